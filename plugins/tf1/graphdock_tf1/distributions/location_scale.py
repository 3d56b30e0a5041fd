"""Normal, Laplace, StudentT and Uniform: draws that are moved and stretched."""

from __future__ import annotations

import math
from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.typing import TensorLike

from graphdock_tf1.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    Parameter,
)
from graphdock_tf1.distributions.kullback_leibler import RegisterKL


class _Broadcast(Distribution):
    """A batch of the shape that two or three parameters broadcast to."""

    def _shapes(self) -> list[Any]:
        return []

    def _batch_shape(self) -> Any:
        shape = _tf.TensorShape([])
        for tensor in self._shapes():
            shape = _tf.broadcast_static_shape(shape, tensor.shape)
        return shape

    def _batch_shape_tensor(self) -> Any:
        shape: Any = _ops.constant([], dtypes.int32)
        for tensor in self._shapes():
            shape = _tf.broadcast_dynamic_shape(shape, _tf.shape(tensor))
        return shape

    def _whole(self, value: Any) -> Any:
        """``value`` for each member of the batch."""
        return value * _tf.ones(self.batch_shape_tensor(), self.dtype)


class _LocationScale(_Broadcast):
    """Distribution that is at ``loc`` and ``scale`` wide."""

    _loc: Any
    _scale: Any

    def _place(self, loc: Any, scale: Any, validate_args: bool, *checks: Any, like: Any = None) -> None:
        """Take the two, after the checks of the scale where arguments are validated."""
        self._validating = validate_args
        kind = _floating(loc, scale, like)
        scale = _ops.convert_to_tensor(scale, kind)
        with _tf.control_dependencies([check(scale) for check in checks] if validate_args else []):
            self._loc = _tf.identity(_ops.convert_to_tensor(loc, kind), name="loc")
            self._scale = _tf.identity(scale, name="scale")

    loc = Parameter("_loc")
    scale = Parameter("_scale")

    def _shapes(self) -> list[Any]:
        return [self._loc, self._scale]

    def _z(self, x: Any) -> Any:
        return (x - self._loc) / self._scale

    def _mean(self) -> Any:
        return self._whole(self._loc)

    def _mode(self) -> Any:
        return self._mean()


def _floating(*values: Any) -> Any:
    """The dtype of the first tensor or array of floating numbers; float32 of plain numbers."""
    for value in values:
        kind = getattr(value, "dtype", None)
        if kind is not None and _tf.as_dtype(kind).is_floating:
            return _tf.as_dtype(kind)
    return dtypes.float32


class Normal(_LocationScale):
    """The normal distribution.

    Args:
      loc: the mean; scale: the standard deviation, positive. They broadcast.
      validate_args: check in the step that ``scale`` is positive.
      allow_nan_stats, name: as of ``tf.distributions.Distribution``.
    """

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:
        given = dict(locals())
        with _tf.name_scope(name) as name:
            self._place(loc, scale, validate_args, _tf.assert_positive)
        kind = self._scale.dtype
        super().__init__(kind, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, given, None, name)

    def _sample(self, shape: Any, seed: int | None) -> Any:
        return _tf.random_normal(self._joined(shape), dtype=self.dtype, seed=seed) * self._scale + self._loc

    def _log_prob(self, x: Any) -> Any:
        return -0.5 * _tf.square(self._z(x)) - (0.5 * math.log(2.0 * math.pi) + _tf.log(self._scale))

    def _cdf(self, x: Any) -> Any:
        return _ndtr(self._z(x))

    def _log_cdf(self, x: Any) -> Any:
        return _log_ndtr(self._z(x))

    def _survival_function(self, x: Any) -> Any:
        return _ndtr(-self._z(x))

    def _log_survival_function(self, x: Any) -> Any:
        return _log_ndtr(-self._z(x))

    def _quantile(self, p: Any) -> Any:
        inside = _tf.logical_not(_tf.logical_or(p <= 0.0, p >= 1.0))
        ends = _tf.where_v2(p <= 0.0, _ops.constant(-math.inf, p.dtype), _ops.constant(math.inf, p.dtype))
        # no gradient flows at the ends, where it would be infinite
        within = _tf.math.ndtri(_tf.where_v2(inside, p, _ops.constant(0.5, p.dtype)))
        return _tf.where_v2(inside, within, ends) * self._scale + self._loc

    def _stddev(self) -> Any:
        return self._whole(self._scale)

    def _entropy(self) -> Any:
        return 0.5 * math.log(2.0 * math.pi * math.e) + _tf.log(self._whole(self._scale))


def _ndtr(z: Any) -> Any:
    """The normal distribution's function, right in both tails."""
    return 0.5 * _tf.erfc(-z * math.sqrt(0.5))


def _log_ndtr(z: Any) -> Any:
    """Its logarithm; far to the left, where it underflows, by its asymptotic series."""
    left, right = (-20.0, 8.0) if z.dtype == dtypes.float64 else (-10.0, 5.0)
    far = _tf.minimum(z, left)
    inverse = 1.0 / _tf.square(far)
    series = 1.0 - inverse * (1.0 - 3.0 * inverse * (1.0 - 5.0 * inverse))
    tail = -0.5 * _tf.square(far) - _tf.log(-far) - 0.5 * math.log(2.0 * math.pi) + _tf.log(series)
    middle = _tf.log(_ndtr(_tf.maximum(_tf.minimum(z, right), left)))
    return _tf.where(z > right, -_ndtr(-z), _tf.where(z > left, middle, tail))


@RegisterKL(Normal, Normal)
def _kl_normal(a: Any, b: Any, name: str | None = None) -> Any:
    with _tf.name_scope(name or "kl_normal_normal"):
        ratio = _tf.square(a.scale / b.scale)
        return _tf.squared_difference(a.loc, b.loc) / (2.0 * _tf.square(b.scale)) + 0.5 * (ratio - 1.0 - _tf.log(ratio))


class Laplace(_LocationScale):
    """Laplace's distribution: exponential to both sides of ``loc``. Arguments as of ``tf.distributions.Normal``."""

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Laplace",
    ) -> None:
        given = dict(locals())
        with _tf.name_scope(name) as name:
            self._place(loc, scale, validate_args, _tf.assert_positive)
        kind = self._scale.dtype
        super().__init__(kind, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, given, None, name)

    def _sample(self, shape: Any, seed: int | None) -> Any:
        drawn = _tf.random_uniform(self._joined(shape), -1.0, 1.0, self.dtype, seed)
        return self._loc - self._scale * _tf.sign(drawn) * _tf.log1p(-_tf.minimum(_tf.abs(drawn), 1.0 - 2.0**-24))

    def _log_prob(self, x: Any) -> Any:
        return -_tf.abs(self._z(x)) - math.log(2.0) - _tf.log(self._scale)

    def _cdf(self, x: Any) -> Any:
        z = self._z(x)
        return 0.5 - 0.5 * _tf.sign(z) * _tf.expm1(-_tf.abs(z))

    def _log_cdf(self, x: Any) -> Any:
        return _log_cdf_laplace(self._z(x))

    def _log_survival_function(self, x: Any) -> Any:
        return _log_cdf_laplace(-self._z(x))

    def _stddev(self) -> Any:
        return math.sqrt(2.0) * self._whole(self._scale)

    def _entropy(self) -> Any:
        return math.log(2.0) + 1.0 + _tf.log(self._whole(self._scale))


def _log_cdf_laplace(z: Any) -> Any:
    """The logarithm of the function, right in both tails: z to the left, where it is a power of e, is that power."""
    right = _tf.log1p(-0.5 * _tf.exp(-_tf.abs(z)))
    return _tf.where(z <= 0.0, z - math.log(2.0), right)


class StudentT(_LocationScale):
    """Student's t distribution.

    Args:
      df: degrees of freedom, positive. loc, scale: as of ``tf.distributions.Normal``; all broadcast.
    """

    def __init__(
        self,
        df: TensorLike,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        given = dict(locals())
        with _tf.name_scope(name) as name:
            self._place(loc, scale, validate_args, like=df)
            kind = self._scale.dtype
            self._df = _tf.identity(self._checked(_ops.convert_to_tensor(df, kind), _tf.assert_positive), name="df")
        super().__init__(kind, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given, None, name)

    df = Parameter("_df")

    def _shapes(self) -> list[Any]:
        return [self._df, self._loc, self._scale]

    def _sample(self, shape: Any, seed: int | None) -> Any:
        normal = _tf.random_normal(self._joined(shape), dtype=self.dtype, seed=seed)
        gamma = _tf.random_gamma(
            shape, 0.5 * self._whole(self._df), 0.5, self.dtype, None if seed is None else seed + 1
        )
        return normal * _tf.rsqrt(gamma / self._df) * self._scale + self._loc

    def _log_prob(self, x: Any) -> Any:
        half = 0.5 * (self._df + 1.0)
        scale = _tf.log(_tf.abs(self._scale)) + 0.5 * _tf.log(self._df * math.pi)
        return -half * _tf.log1p(_tf.square(self._z(x)) / self._df) - (
            scale + _tf.lgamma(0.5 * self._df) - _tf.lgamma(half)
        )

    def _cdf(self, x: Any) -> Any:
        z = (x - self._loc) / _tf.abs(self._scale)
        ones = _tf.ones_like(z * self._df)
        df = self._df * ones
        below = 0.5 * _tf.betainc(0.5 * df, 0.5 * ones, df / (_tf.square(z) + df))
        return _tf.where_v2(z < 0.0, below, 1.0 - below)

    def _entropy(self) -> Any:
        df = self._whole(self._df)
        half = 0.5 * (df + 1.0)
        beta = _tf.lgamma(0.5 * df) + _tf.lgamma(_ops.constant(0.5, self.dtype)) - _tf.lgamma(half)
        return (
            _tf.log(_tf.abs(self._scale))
            + 0.5 * _tf.log(df)
            + beta
            + half * (_tf.digamma(half) - _tf.digamma(0.5 * df))
        )

    def _mean(self) -> Any:
        return self._where_defined(
            self._whole(self._df) > 1.0, self._whole(self._loc), "the mean of df <= 1 is not defined"
        )

    def _mode(self) -> Any:
        return _tf.identity(self._loc)

    def _variance(self) -> Any:
        df = self._whole(self._df)
        finite = df / _tf.where(df > 2.0, df - 2.0, _tf.ones_like(df))
        made = _tf.square(self._whole(self._scale)) * _tf.where(
            df > 2.0, finite, _tf.fill(_tf.shape(df), _tf.cast(math.inf, self.dtype))
        )
        return self._where_defined(df > 1.0, made, "the variance of df <= 1 is not defined")


class Uniform(_Broadcast):
    """Even over ``[low, high)``.

    Args:
      low, high: the bounds, which broadcast; ``low < high``.
      validate_args: check that in the step.
    """

    def __init__(
        self,
        low: TensorLike = 0.0,
        high: TensorLike = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        given = dict(locals())
        with _tf.name_scope(name) as name:
            self._validating = validate_args
            kind = _floating(low, high)
            high = _ops.convert_to_tensor(high, kind)
            self._low = _tf.identity(
                self._checked(_ops.convert_to_tensor(low, kind), lambda v: _tf.assert_less(v, high)), name="low"
            )
            self._high = _tf.identity(high, name="high")
        super().__init__(kind, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, given, None, name)

    low = Parameter("_low")
    high = Parameter("_high")

    def range(self, name: str = "range") -> _tf.Tensor:
        """``high - low``."""
        with self._scope(name):
            return self._high - self._low

    def _shapes(self) -> list[Any]:
        return [self._low, self._high]

    def _sample(self, shape: Any, seed: int | None) -> Any:
        return self._low + self.range() * _tf.random_uniform(self._joined(shape), dtype=self.dtype, seed=seed)

    def _prob(self, x: Any) -> Any:
        x = self._whole(x)
        outside = _tf.logical_or(x < self._low, x >= self._high)
        density = _tf.where_v2(outside, _tf.zeros_like(x), _tf.ones_like(x) / self.range())
        return _tf.where_v2(_tf.is_nan(x), x, density)

    def _cdf(self, x: Any) -> Any:
        x = self._whole(x)
        inside = _tf.clip_by_value((x - self._low) / self.range(), 0.0, 1.0)
        return _tf.where_v2(x >= self._high, _tf.ones_like(x), inside)  # 1 also where there is no range

    def _mean(self) -> Any:
        return (self._low + self._high) / 2.0

    def _stddev(self) -> Any:
        return self.range() / math.sqrt(12.0)

    def _entropy(self) -> Any:
        return _tf.log(self.range())
