"""Distribution: the base of all; each method is a hook of the subclass, or follows from another one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import UnimplementedError
from graphdock.typing import TensorLike

#: What TensorFlow says of ``1 < parameter``; programs look for it.
_UNDEFINED = "Condition x < y did not hold element-wise: x = 1, y = the parameter"


class ReparameterizationType:
    """Kind of a distribution: whether gradients flow from samples to parameters."""

    def __init__(self, rep_type: str) -> None:
        self._type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._type}>"


#: Samples are differentiable functions of the parameters.
FULLY_REPARAMETERIZED: Final = ReparameterizationType("FULLY_REPARAMETERIZED")
#: They are not, or not of all of them.
NOT_REPARAMETERIZED: Final = ReparameterizationType("NOT_REPARAMETERIZED")


class Parameter(property):
    """A parameter of a distribution, to be read: the attribute that keeps it."""

    def __init__(self, kept: str) -> None:
        def read(self: Distribution) -> _tf.Tensor:
            return getattr(self, kept)  # type: ignore[no-any-return]

        super().__init__(read)

    def __get__(self, made: Any, kind: Any = None) -> _tf.Tensor:
        return super().__get__(made, kind)  # type: ignore[no-any-return]


class Distribution:
    """Base: a batch of distributions of one kind, by parameters that broadcast.

    A sample has the shape ``[sample_shape, batch_shape, event_shape]``; a density is a number per sample and member of the batch.

    A subclass defines ``_batch_shape``, ``_batch_shape_tensor``, ``_sample(shape, seed)`` (with the sample's shape as an
    int32 vector), ``_log_prob(x)`` or ``_prob(x)``, and of the statistics those that there are.

    Args:
      dtype: of samples.
      reparameterization_type: one of the two.
      validate_args: parameters are checked in the step.
      allow_nan_stats: a statistic that is not defined is NaN; else an InvalidArgumentError of the step.
      parameters: arguments of the subclass, for :meth:`copy`.
      name: name scope of what it makes.
    """

    def __init__(
        self,
        dtype: Any,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: dict[str, Any] | None = None,
        graph_parents: Any = None,
        name: str | None = None,
    ) -> None:
        if not name or not name.endswith("/"):
            with _tf.name_scope(name or type(self).__name__) as name:
                pass
        self._name: str = name
        self._dtype = _tf.as_dtype(dtype)
        self._reparameterization_type = reparameterization_type
        self._validate_args = validate_args
        self._allow_nan_stats = allow_nan_stats
        self._parameters = {k: v for k, v in (parameters or {}).items() if k not in ("self", "__class__")}

    # -- facts ------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Its name scope, with a slash."""
        return self._name

    @property
    def dtype(self) -> Any:
        """Dtype of samples."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments it was made of."""
        return dict(self._parameters)

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        """Return whether gradients flow from samples to parameters."""
        return self._reparameterization_type

    @property
    def validate_args(self) -> bool:
        return self._validate_args

    @property
    def allow_nan_stats(self) -> bool:
        return self._allow_nan_stats

    def copy(self, **override_parameters_kwargs: Any) -> Any:
        """Another one of its kind, with other values of these parameters."""
        return type(self)(**{**self._parameters, **override_parameters_kwargs})

    @property
    def batch_shape(self) -> _tf.TensorShape:
        """The static shape of parameters that were broadcast."""
        return _tf.TensorShape(self._batch_shape())

    @property
    def event_shape(self) -> _tf.TensorShape:
        """The static shape of one draw of one member."""
        return _tf.TensorShape(self._event_shape())

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> _tf.Tensor:
        """The shape of the batch, int32."""
        with self._scope(name):
            return _vector(self.batch_shape, self._batch_shape_tensor)

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> _tf.Tensor:
        """The shape of an event, int32."""
        with self._scope(name):
            return _vector(self.event_shape, self._event_shape_tensor)

    # -- draws and densities ----------------------------------------------------------------------------------------

    def sample(self, sample_shape: TensorLike = (), seed: int | None = None, name: str = "sample") -> _tf.Tensor:
        """Draws.

        Args:
          sample_shape: how many: a number, or a shape.
          seed: see ``tf.set_random_seed``.

        Returns:
          ``[sample_shape, batch_shape, event_shape]``.
        """
        with self._scope(name):
            static = _numbers(sample_shape)
            if static is None:
                shape: Any = _tf.reshape(_tf.cast(_ops.convert_to_tensor(sample_shape), dtypes.int32), [-1])
            else:
                shape = _ops.constant(static, dtypes.int32, [len(static)])
            made = self._sample(shape, seed)
            if static is not None:
                made.set_shape(_tf.TensorShape(static).concatenate(self.batch_shape).concatenate(self.event_shape))
            return made

    def _joined(self, sample_shape: Any) -> Any:
        """The shape of draws from the shape of the sample."""
        return _tf.concat([sample_shape, self.batch_shape_tensor(), self.event_shape_tensor()], 0)

    def log_prob(self, value: TensorLike, name: str = "log_prob") -> _tf.Tensor:
        """The logarithm of the density, or of the probability of a discrete one."""
        return self._of(name, value, ("_log_prob", None), ("_prob", _tf.log))

    def prob(self, value: TensorLike, name: str = "prob") -> _tf.Tensor:
        """The density, or the probability of a discrete one."""
        return self._of(name, value, ("_prob", None), ("_log_prob", _tf.exp))

    def cdf(self, value: TensorLike, name: str = "cdf") -> _tf.Tensor:
        """The probability of a draw that is not above ``value``."""
        return self._of(name, value, ("_cdf", None), ("_log_cdf", _tf.exp))

    def log_cdf(self, value: TensorLike, name: str = "log_cdf") -> _tf.Tensor:
        """The logarithm of :meth:`cdf`."""
        return self._of(name, value, ("_log_cdf", None), ("_cdf", _tf.log))

    def survival_function(self, value: TensorLike, name: str = "survival_function") -> _tf.Tensor:
        """The probability of a draw above ``value``."""
        return self._of(name, value, ("_survival_function", None), ("_cdf", lambda p: 1.0 - p))

    def log_survival_function(self, value: TensorLike, name: str = "log_survival_function") -> _tf.Tensor:
        """The logarithm of :meth:`survival_function`."""
        hooks = ("_log_survival_function", None), ("_survival_function", _tf.log), ("_cdf", lambda p: _tf.log1p(-p))
        return self._of(name, value, *hooks)

    def quantile(self, value: TensorLike, name: str = "quantile") -> _tf.Tensor:
        """The number of which ``value`` is the :meth:`cdf`."""
        return self._of(name, value, ("_quantile", None))

    # -- statistics -------------------------------------------------------------------------------------------------

    def mean(self, name: str = "mean") -> _tf.Tensor:
        return self._of(name, None, ("_mean", None))

    def mode(self, name: str = "mode") -> _tf.Tensor:
        """Return where the density is largest."""
        return self._of(name, None, ("_mode", None))

    def variance(self, name: str = "variance") -> _tf.Tensor:
        return self._of(name, None, ("_variance", None), ("_stddev", _tf.square))

    def stddev(self, name: str = "stddev") -> _tf.Tensor:
        return self._of(name, None, ("_stddev", None), ("_variance", _tf.sqrt))

    def covariance(self, name: str = "covariance") -> _tf.Tensor:
        """The matrix of covariances within an event that is a vector."""
        return self._of(name, None, ("_covariance", None))

    def entropy(self, name: str = "entropy") -> _tf.Tensor:
        """Shannon's, in nats."""
        return self._of(name, None, ("_entropy", None))

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> _tf.Tensor:
        """Kullback and Leibler's divergence to ``other``; see ``tf.distributions.kl_divergence``."""
        from graphdock_tf1.distributions.kullback_leibler import kl_divergence

        with self._scope(name):
            return kl_divergence(self, other, self._allow_nan_stats)

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> _tf.Tensor:
        """The entropy, and the divergence to ``other``."""
        with self._scope(name):
            return self.entropy() + self.kl_divergence(other)

    # -- what subclasses use and define -----------------------------------------------------------------------------

    def _batch_shape(self) -> Any:
        raise UnimplementedError(f"{type(self).__name__} does not define _batch_shape")

    def _batch_shape_tensor(self) -> Any:
        raise UnimplementedError(f"{type(self).__name__} does not define _batch_shape_tensor")

    def _event_shape(self) -> Any:
        return []

    def _event_shape_tensor(self) -> Any:
        return _ops.constant([], dtypes.int32)

    def _sample(self, shape: Any, seed: int | None) -> Any:
        raise UnimplementedError(f"{type(self).__name__} can not be sampled")

    def _of(self, name: str, value: Any, *hooks: tuple[str, Any]) -> Any:
        """Return what the first hook gives that the class has, handed to the function beside it."""
        with self._scope(name):
            given = []
            if value is not None:
                given = [_ops.convert_to_tensor(value, preferred_dtype=self.dtype)]
            for hook, finish in hooks:
                method = getattr(self, hook, None)
                if method is not None:
                    made = method(*given)
                    return made if finish is None else finish(made)
        raise UnimplementedError(
            f"{type(self).__name__} has no {name}", hint="it has no closed form, or is not here yet"
        )

    @contextlib.contextmanager
    def _scope(self, name: str) -> Iterator[None]:
        with _tf.name_scope(self._name), _tf.name_scope(name):
            yield

    def _checked(self, tensor: Any, *checks: Any) -> Any:
        """A parameter or sample after its checks, where arguments are validated; a check is a function of the tensor."""
        if not self._validating:
            return tensor
        with _tf.control_dependencies([check(tensor) for check in checks]):
            return _tf.identity(tensor)

    #: Set by a subclass before its parameters are checked.
    _validating = False

    def _where_defined(self, defined: Any, value: Any, said: str) -> Any:
        """A statistic, NaN (or an error of the step) where it is not defined: a parameter is not above 1."""
        if self._allow_nan_stats:
            return _tf.where_v2(defined, value, _tf.cast(float("nan"), value.dtype))
        with _tf.control_dependencies([_tf.Assert(_tf.reduce_all(defined), [said, _UNDEFINED])]):
            return _tf.identity(value)

    def __repr__(self) -> str:
        return (
            f"<tf.distributions.{type(self).__name__} '{self._name}' batch_shape={self.batch_shape} "
            f"event_shape={self.event_shape} dtype={self.dtype.name}>"
        )


class VectorDistribution(Distribution):
    """Draws of vectors: the last dim of a parameter is the event's, those before are the batch's."""

    def _rows(self) -> Any:
        """The parameter."""
        raise UnimplementedError(f"{type(self).__name__} does not define _rows")

    def _batch_shape(self) -> Any:
        return self._rows().shape[:-1]

    def _batch_shape_tensor(self) -> Any:
        return _tf.shape(self._rows())[:-1]

    def _event_shape(self) -> Any:
        return self._rows().shape[-1:]

    def _event_shape_tensor(self) -> Any:
        return _tf.shape(self._rows())[-1:]


def _vector(static: _tf.TensorShape, dynamic: Any) -> Any:
    """A shape as an int32 vector, a constant where it is known."""
    if static.is_fully_defined():
        return _ops.constant(static.as_list(), dtypes.int32, [static.rank])
    return dynamic()


def _numbers(shape: Any) -> list[int] | None:
    """A sample's shape that is no tensor, as numbers."""
    if isinstance(shape, _tf.Tensor | _tf.Variable):
        return None
    given = list(shape) if hasattr(shape, "__len__") or isinstance(shape, _tf.TensorShape) else [shape]
    return None if any(isinstance(s, _tf.Tensor | _tf.Variable) for s in given) else [int(s) for s in given]
