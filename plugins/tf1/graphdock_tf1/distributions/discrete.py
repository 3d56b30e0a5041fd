"""Bernoulli, Categorical and Multinomial: draws of classes and of counts."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import DTypeLike, TensorLike

from graphdock_tf1.distributions.checks import bits, counts, enough_classes, integers, total
from graphdock_tf1.distributions.distribution import (
    NOT_REPARAMETERIZED,
    Distribution,
    Parameter,
    VectorDistribution,
)
from graphdock_tf1.distributions.kullback_leibler import RegisterKL
from graphdock_tf1.distributions.location_scale import _floating


class _Discrete(Distribution):
    """Distribution that has probabilities, given as such or as logits."""

    def _weigh(self, logits: Any, probs: Any, validate_args: bool, many: bool) -> None:
        if (logits is None) == (probs is None):
            raise InvalidArgumentError(
                f"{type(self).__name__} needs logits or probs", got="neither" if logits is None else "both"
            )
        self._validating = validate_args
        kind = _floating(logits, probs)
        if probs is None:
            self._logits = self._checked(_ops.convert_to_tensor(logits, kind), *([enough_classes] if many else []))
            self._probs = _tf.nn.softmax(self._logits) if many else _tf.sigmoid(self._logits)
            return

        def parts(p: Any) -> Any:
            one = _ops.constant(1.0, p.dtype)
            above = _tf.assert_less_equal(p, one, message="probs has components greater than 1.")
            if not many:
                return _tf.group(_tf.assert_non_negative(p), above)
            whole = _tf.assert_near(_tf.reduce_sum(p, -1), one, message="probs does not sum to 1.")
            return _tf.group(_tf.assert_non_negative(p), above, whole, enough_classes(p))

        self._probs = self._checked(_ops.convert_to_tensor(probs, kind), parts)
        self._logits = _tf.log(self._probs) - (0.0 if many else _tf.log1p(-self._probs))

    logits = Parameter("_logits")
    probs = Parameter("_probs")


class Bernoulli(_Discrete):
    """1 with a probability, else 0.

    Args:
      logits: of the probability, any number; or probs: the probability.
      dtype: of draws.
      validate_args: check in the step that probabilities are in [0, 1].

    Raises:
      InvalidArgumentError: both of logits and probs, or neither.
    """

    def __init__(
        self,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        given = dict(locals())
        with _tf.name_scope(name) as name:
            self._weigh(logits, probs, validate_args, False)
        super().__init__(dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given, None, name)

    def _batch_shape(self) -> Any:
        return self._logits.shape

    def _batch_shape_tensor(self) -> Any:
        return _tf.shape(self._logits)

    def _sample(self, shape: Any, seed: int | None) -> Any:
        drawn = _tf.random_uniform(self._joined(shape), dtype=self._probs.dtype, seed=seed)
        return _tf.cast(_tf.less(drawn, self._probs), self.dtype)

    def _log_prob(self, x: Any) -> Any:
        x = _tf.cast(self._checked(x, bits), self._logits.dtype)
        logits = self._logits + _tf.zeros_like(x)
        return -_tf.nn.sigmoid_cross_entropy_with_logits(labels=x + _tf.zeros_like(logits), logits=logits)

    def _entropy(self) -> Any:
        return _tf.nn.softplus(-self._logits) - self._logits * (_tf.sigmoid(self._logits) - 1.0)

    def _mean(self) -> Any:
        return _tf.identity(self._probs)

    def _variance(self) -> Any:
        return self._probs * (1.0 - self._probs)

    def _mode(self) -> Any:
        return _tf.cast(self._probs > 0.5, self.dtype)


@RegisterKL(Bernoulli, Bernoulli)
def _kl_bernoulli(a: Any, b: Any, name: str | None = None) -> Any:
    with _tf.name_scope(name or "kl_bernoulli_bernoulli"):
        no = _tf.nn.softplus(b.logits) - _tf.nn.softplus(a.logits)
        yes = _tf.nn.softplus(-b.logits) - _tf.nn.softplus(-a.logits)
        return _tf.sigmoid(a.logits) * yes + _tf.sigmoid(-a.logits) * no


class Categorical(_Discrete):
    """A class with probabilities.

    Args:
      logits: ``[batch, classes]``, up to a constant; or probs: the probabilities.
      dtype: of draws.
      validate_args: check in the step that probabilities are in [0, 1] and sum to 1.

    Raises:
      InvalidArgumentError: both of logits and probs, or neither.
    """

    def __init__(
        self,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        given = dict(locals())
        with _tf.name_scope(name) as name:
            self._weigh(logits, probs, validate_args, True)
        super().__init__(dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given, None, name)

    @property
    def event_size(self) -> _tf.Tensor:
        """The number of classes, int32."""
        return _tf.shape(self._logits)[-1]

    def _batch_shape(self) -> Any:
        return self._logits.shape[:-1]

    def _batch_shape_tensor(self) -> Any:
        return _tf.shape(self._logits)[:-1]

    def _sample(self, shape: Any, seed: int | None) -> Any:
        rows = _tf.reshape(self._logits, [-1, self.event_size])
        kind = dtypes.int64 if self.dtype in (dtypes.int64, dtypes.float64) else dtypes.int32
        drawn = _tf.multinomial(rows, _tf.reduce_prod(shape), seed=seed, output_dtype=kind)
        return _tf.cast(_tf.reshape(_tf.transpose(drawn), self._joined(shape)), self.dtype)

    def _classes(self, k: Any, values: Any) -> tuple[Any, Any]:
        """A class for each row of values, both broadcast."""
        k = self._checked(k, integers)
        k = k if k.dtype.is_integer else _tf.cast(k, dtypes.int32)
        values = values + _tf.zeros_like(_tf.expand_dims(_tf.cast(k, values.dtype), -1))
        return k + _tf.zeros(_tf.shape(values)[:-1], k.dtype), values

    def _log_prob(self, k: Any) -> Any:
        k, logits = self._classes(k, self._logits)
        return -_tf.nn.sparse_softmax_cross_entropy_with_logits(labels=k, logits=logits)

    def _cdf(self, k: Any) -> Any:
        k, probs = self._classes(k, self._probs)
        below = _tf.expand_dims(k, -1) > _tf.cast(_tf.range(self.event_size), k.dtype)
        return _tf.reduce_sum(probs * _tf.cast(below, probs.dtype), -1)

    def _entropy(self) -> Any:
        return -_tf.reduce_sum(_tf.nn.log_softmax(self._logits) * self._probs, -1)

    def _mode(self) -> Any:
        return _tf.cast(_tf.argmax(self._logits, -1), self.dtype)


@RegisterKL(Categorical, Categorical)
def _kl_categorical(a: Any, b: Any, name: str | None = None) -> Any:
    with _tf.name_scope(name or "kl_categorical_categorical"):
        apart = _tf.nn.log_softmax(a.logits) - _tf.nn.log_softmax(b.logits)
        return _tf.reduce_sum(_tf.nn.softmax(a.logits) * apart, -1)


class Multinomial(_Discrete, VectorDistribution):
    """Counts of how often each class came in a number of draws.

    Args:
      total_count: number of draws, floating, which broadcasts to the batch.
      logits, probs: as of ``tf.distributions.Categorical``; an event is a vector of counts, of their dtype.
    """

    def __init__(
        self,
        total_count: TensorLike,
        logits: TensorLike | None = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        given = dict(locals())
        with _tf.name_scope(name) as name:
            self._weigh(logits, probs, validate_args, True)
            kind = self._probs.dtype
            self._total_count = self._checked(_ops.convert_to_tensor(total_count, kind), counts)
            self._mean_value = _tf.expand_dims(self._total_count, -1) * self._probs
        super().__init__(kind, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given, None, name)

    total_count = Parameter("_total_count")

    def _rows(self) -> Any:
        return self._mean_value

    def _sample(self, shape: Any, seed: int | None) -> Any:
        """As many draws for each row as the largest count, of which each row takes its own number."""
        classes, n = _tf.shape(self._mean_value)[-1], _tf.reduce_prod(shape)
        rows = _tf.reshape(self._logits + _tf.zeros_like(self._mean_value), [-1, classes])
        wanted = _tf.reshape(
            _tf.cast(self._total_count + _tf.zeros_like(self._mean_value[..., 0]), dtypes.int32), [-1, 1, 1]
        )
        most = _tf.maximum(_tf.reduce_max(wanted), 1)
        drawn = _tf.reshape(_tf.multinomial(rows, n * most, seed=seed), [-1, n, most])
        taken = _tf.cast(_tf.reshape(_tf.range(most), [1, 1, -1]) < wanted, self.dtype) + _tf.zeros_like(
            drawn, self.dtype
        )
        # each draw adds one to a cell of [rows, n, classes]
        size = _tf.cast(_tf.stack([_tf.shape(rows)[0], n, classes]), dtypes.int64)
        events = _tf.reshape(_tf.range(size[0] * size[1]), [-1, n, 1])
        each = _tf.unsorted_segment_sum(taken, events * size[2] + drawn, _tf.reduce_prod(size))
        return _tf.reshape(_tf.transpose(_tf.reshape(each, size), [1, 0, 2]), self._joined(shape))

    def _log_prob(self, x: Any) -> Any:
        x = self._checked(x, counts, total(self._total_count))
        ways = _tf.lgamma(self._total_count + 1.0) - _tf.reduce_sum(_tf.lgamma(x + 1.0), -1)
        return _tf.reduce_sum(x * _tf.nn.log_softmax(self._logits), -1) + ways

    def _mean(self) -> Any:
        return _tf.identity(self._mean_value)

    def _variance(self) -> Any:
        return self._mean_value * (1.0 - self._probs)

    def _covariance(self) -> Any:
        apart = -_tf.expand_dims(self._mean_value, -1) * _tf.expand_dims(self._probs, -2)
        return _tf.matrix_set_diag(apart, self._variance())
