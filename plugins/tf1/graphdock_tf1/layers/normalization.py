"""Batch normalisation, with moving averages and the updates that keep them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, ShapeError, UnimplementedError
from graphdock.typing import TensorLike

from graphdock_tf1.layers.base import Layer
from graphdock_tf1.layers.functional import called, choose, static_bool
from graphdock_tf1.layers.input_spec import InputSpec
from graphdock_tf1.layers.lookup import initializer_of


class BatchNormalization(Layer):
    """Batch normalisation. Arguments are those of :func:`batch_normalization`; ``training`` is the call's."""

    def __init__(
        self,
        axis: int | Sequence[int] = -1,
        momentum: TensorLike = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        beta_regularizer: Callable[[Any], Any] | None = None,
        gamma_regularizer: Callable[[Any], Any] | None = None,
        beta_constraint: Callable[[Any], Any] | None = None,
        gamma_constraint: Callable[[Any], Any] | None = None,
        renorm: bool = False,
        renorm_clipping: Mapping[str, Any] | None = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Callable[..., Any] | None = None,
        name: str | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(trainable, name, **keywords)
        for word, given in (("renorm", renorm), ("virtual_batch_size", virtual_batch_size), ("adjustment", adjustment)):
            if given:
                raise UnimplementedError(f"batch_normalization({word}=) is not here", hint="leave it out")
        self.axis: Any = list(axis) if isinstance(axis, list | tuple) else [axis]
        self.momentum, self.epsilon, self.center, self.scale = momentum, epsilon, center, scale
        (
            self.beta_initializer,
            self.gamma_initializer,
            self.moving_mean_initializer,
            self.moving_variance_initializer,
        ) = map(
            initializer_of, (beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer)
        )
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self.fused = fused is None or fused
        self.gamma: Any = None
        self.beta: Any = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None

    @property
    def _param_dtype(self) -> Any:
        """Statistics of half precision are kept in single."""
        return dtypes.float32 if self.dtype in (dtypes.float16, dtypes.bfloat16) else self.dtype

    def build(self, input_shape: Any) -> None:
        shape = _tf.TensorShape(input_shape)
        rank = shape.rank
        if rank is None:
            raise ShapeError(
                f"the layer {self.name!r} must know the rank of its inputs", expected="a rank", got="unknown"
            )
        self.axis = [int(a) + rank if int(a) < 0 else int(a) for a in self.axis]
        if any(not 0 <= a < rank for a in self.axis) or len(set(self.axis)) != len(self.axis):
            raise InvalidArgumentError(
                f"the layer {self.name!r}: wrong axis", expected=f"axes of rank {rank}", got=str(self.axis)
            )
        sizes = {a: shape[a].value for a in self.axis}
        if None in sizes.values():
            raise ShapeError(
                f"the layer {self.name!r} must know the dims that it keeps apart",
                expected=f"numbers for {self.axis}",
                got=str(shape),
            )
        halves = (dtypes.float16, dtypes.bfloat16, dtypes.float32)
        self.fused = self.fused and rank == 4 and self.axis in ([1], [3]) and self.dtype in halves
        self.input_spec = InputSpec(ndim=rank, axes=sizes)
        one = len(sizes) == 1
        self._param_shape = list(sizes.values()) if one else [sizes.get(i, 1) for i in range(rank)]
        if self.scale:
            self.gamma = self._weight("gamma", self.gamma_initializer, self.gamma_regularizer, self.gamma_constraint)
        if self.center:
            self.beta = self._weight("beta", self.beta_initializer, self.beta_regularizer, self.beta_constraint)
        partitioner = self._scope.partitioner
        self._scope.set_partitioner(None)  # the statistics are not cut
        try:
            self.moving_mean = self._weight("moving_mean", self.moving_mean_initializer, trainable=False)
            self.moving_variance = self._weight("moving_variance", self.moving_variance_initializer, trainable=False)
        finally:
            self._scope.set_partitioner(partitioner)
        self.built = True

    def _weight(
        self, name: str, initializer: Any, regularizer: Any = None, constraint: Any = None, trainable: bool = True
    ) -> Any:
        return self.add_weight(
            name, self._param_shape, self._param_dtype, initializer, regularizer, trainable, constraint
        )

    def call(self, inputs: Any, training: Any = False) -> Any:
        made, mean, variance = (self._fused if self.fused else self._plain)(inputs, training)
        known = static_bool(training)
        if known is None or known:
            momentum = (
                self.momentum if known else choose(training, lambda: _number(self.momentum), lambda: _number(1.0))
            )
            for kept, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
                self.add_update(_moved(kept, value, momentum))
        return made

    def _fused(self, inputs: Any, training: Any) -> Any:
        """In one op. The variance that it gives, and that is averaged, is the unbiased estimate."""
        sizes = self._param_shape
        gamma = self.gamma if self.scale else _tf.ones(sizes, self._param_dtype)
        beta = self.beta if self.center else _tf.zeros(sizes, self._param_dtype)
        word = "NCHW" if self.axis == [1] else "NHWC"

        def normalized(now: bool) -> Any:
            kept = (None, None) if now else (self.moving_mean, self.moving_variance)
            return _tf.nn.fused_batch_norm(inputs, gamma, beta, *kept, self.epsilon, word, now)

        return choose(training, lambda: normalized(True), lambda: normalized(False))

    def _plain(self, inputs: Any, training: Any) -> Any:
        rank = inputs.shape.rank
        over = [i for i in range(rank) if i not in self.axis]
        shape = [self.input_spec.axes.get(i, 1) for i in range(rank)]
        flat = self.axis == [rank - 1] or len(self.axis) > 1

        def spread(value: Any) -> Any:
            return value if value is None or flat else _tf.reshape(value, shape)

        x = _tf.cast(inputs, self._param_dtype)
        mean, variance = choose(
            training,
            lambda: _tf.nn.moments(x, over, keep_dims=len(self.axis) > 1),
            lambda: (self.moving_mean.value(), self.moving_variance.value()),
        )
        made = _tf.nn.batch_normalization(
            x, spread(mean), spread(variance), spread(self.beta), spread(self.gamma), self.epsilon
        )
        made.set_shape(inputs.shape)
        return _tf.cast(made, inputs.dtype), mean, variance

    def compute_output_shape(self, input_shape: Any) -> _tf.TensorShape:
        return _tf.TensorShape(input_shape)


def _number(value: Any) -> Any:
    return _ops.convert_to_tensor(value, dtypes.float32)


def _moved(kept: Any, value: Any, momentum: Any) -> Any:
    """The operation that moves an average towards a value."""
    with _tf.name_scope("AssignMovingAvg") as scope, _tf.colocate_with(kept.op):
        decay = _tf.cast(1.0 - momentum, kept.dtype)
        return kept.assign_sub((kept - _tf.cast(value, kept.dtype)) * decay, name=scope, read_value=False)


def batch_normalization(
    inputs: TensorLike,
    axis: int | Sequence[int] = -1,
    momentum: TensorLike = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = "zeros",
    gamma_initializer: Any = "ones",
    moving_mean_initializer: Any = "zeros",
    moving_variance_initializer: Any = "ones",
    beta_regularizer: Callable[[Any], Any] | None = None,
    gamma_regularizer: Callable[[Any], Any] | None = None,
    beta_constraint: Callable[[Any], Any] | None = None,
    gamma_constraint: Callable[[Any], Any] | None = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Mapping[str, Any] | None = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Callable[..., Any] | None = None,
) -> _tf.Tensor:
    """``(inputs - mean) / sqrt(variance + epsilon) * gamma + beta``: of the batch while training, else of moving averages.

    Ioffe and Szegedy, "Batch normalization: accelerating deep network training by reducing internal covariate shift", 2015.

    While training, the operations that keep the averages join ``GraphKeys.UPDATE_OPS``; a program runs them with its step::

        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = optimizer.minimize(loss)

    Args:
      inputs: floating tensor whose rank is known.
      axis: the dim, or dims, that are kept apart: -1 for channels that are last, 1 for channels that are first.
      momentum: of the averages: ``average = average * momentum + value * (1 - momentum)``.
      epsilon: added to the variance.
      center, scale: whether there is a ``beta`` to add, a ``gamma`` to multiply by.
      training: a bool, or a scalar tensor that says it in the step.
      trainable: whether optimizers change ``beta`` and ``gamma``; where not, no update joins the collection.
      fused: False: never in one op, which is otherwise taken for images of rank 4.
      initializers, regularizers, constraints, name, reuse: as of ``tf.layers.dense``.

    Returns:
      A tensor like ``inputs``. Variables are ``batch_normalization/gamma``, ``beta``, ``moving_mean`` and ``moving_variance``.

    Raises:
      UnimplementedError: renorm, virtual_batch_size or adjustment. ShapeError: the rank, or a dim to keep apart, is not known.
    """
    return called(BatchNormalization, locals(), "training")  # type: ignore[no-any-return]
