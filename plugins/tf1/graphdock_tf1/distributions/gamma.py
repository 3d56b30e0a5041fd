"""Gamma, Exponential, Beta and Dirichlet: draws that are made of gamma's."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.typing import TensorLike

from graphdock_tf1.distributions.checks import enough_classes, inside_unit, of_simplex
from graphdock_tf1.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    Parameter,
    VectorDistribution,
)
from graphdock_tf1.distributions.kullback_leibler import RegisterKL
from graphdock_tf1.distributions.location_scale import _Broadcast, _floating


def _xlogy(x: Any, y: Any) -> Any:
    """``x * log(y)``, 0 where x is."""
    return _tf.math.xlogy(*_tf_like(x, y))


def _tf_like(x: Any, y: Any) -> tuple[Any, Any]:
    return x + _tf.zeros_like(y), y + _tf.zeros_like(x)


class Gamma(_Broadcast):
    """The gamma distribution.

    Args:
      concentration: its shape; rate: one by its scale. Both positive; they broadcast.
      validate_args: check that in the step.
    """

    def __init__(
        self,
        concentration: TensorLike,
        rate: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        given = dict(locals())
        self._given(concentration, rate, validate_args, allow_nan_stats, NOT_REPARAMETERIZED, given, name)

    def _given(
        self, concentration: Any, rate: Any, validate: bool, allow: bool, kind: Any, given: dict[str, Any], name: str
    ) -> None:
        with _tf.name_scope(name) as name:
            self._validating = validate
            dtype = _floating(concentration, rate)
            made = [self._checked(_ops.convert_to_tensor(v, dtype), _tf.assert_positive) for v in (concentration, rate)]
            self._concentration = _tf.identity(made[0], name="concentration")
            self._rate = _tf.identity(made[1], name="rate")
        Distribution.__init__(self, dtype, kind, validate, allow, given, None, name)

    concentration = Parameter("_concentration")
    rate = Parameter("_rate")

    def _shapes(self) -> list[Any]:
        return [self._concentration, self._rate]

    def _sample(self, shape: Any, seed: int | None) -> Any:
        return _tf.random_gamma(shape, self._concentration, self._rate, self.dtype, seed)

    def _log_prob(self, x: Any) -> Any:
        x = self._checked(x, _tf.assert_positive)
        total = _tf.lgamma(self._concentration) - self._concentration * _tf.log(self._rate)
        return _xlogy(self._concentration - 1.0, x) - self._rate * x - total

    def _cdf(self, x: Any) -> Any:
        return _tf.igamma(*_tf_like(self._concentration, self._rate * self._checked(x, _tf.assert_positive)))

    def _entropy(self) -> Any:
        c = self._concentration
        return c - _tf.log(self._rate) + _tf.lgamma(c) + (1.0 - c) * _tf.digamma(c)

    def _mean(self) -> Any:
        return self._concentration / self._rate

    def _variance(self) -> Any:
        return self._concentration / _tf.square(self._rate)

    def _stddev(self) -> Any:
        return _tf.sqrt(self._concentration) / self._rate

    def _mode(self) -> Any:
        mode = (self._concentration - 1.0) / self._rate
        return self._where_defined(self._concentration > 1.0, mode, "the mode of concentration <= 1 is not defined")


@RegisterKL(Gamma, Gamma)
def _kl_gamma(a: Any, b: Any, name: str | None = None) -> Any:
    with _tf.name_scope(name or "kl_gamma_gamma"):
        return (
            (a.concentration - b.concentration) * _tf.digamma(a.concentration)
            + _tf.lgamma(b.concentration)
            - _tf.lgamma(a.concentration)
            + b.concentration * (_tf.log(a.rate) - _tf.log(b.rate))
            + a.concentration * (b.rate / a.rate - 1.0)
        )


class Exponential(Gamma):
    """The exponential distribution: Gamma of concentration 1.

    Args:
      rate: one by its mean; positive.
    """

    def __init__(
        self, rate: TensorLike, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Exponential"
    ) -> None:
        given = dict(locals())
        self._given(1.0, rate, validate_args, allow_nan_stats, FULLY_REPARAMETERIZED, given, name)

    def _sample(self, shape: Any, seed: int | None) -> Any:
        drawn = _tf.random_uniform(self._joined(shape), dtype=self.dtype, seed=seed)
        return -_tf.log1p(-drawn) / self._rate

    def _log_survival_function(self, x: Any) -> Any:
        return -self._rate * self._checked(x, _tf.assert_positive)


class Beta(_Broadcast):
    """The beta distribution over (0, 1).

    Args:
      concentration1, concentration0: of successes and failures, positive; they broadcast.
      validate_args: check that in the step.
    """

    def __init__(
        self,
        concentration1: TensorLike,
        concentration0: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        given = dict(locals())
        with _tf.name_scope(name) as name:
            self._validating = validate_args
            kind = _floating(concentration1, concentration0)
            self._one, self._zero = (
                self._checked(_ops.convert_to_tensor(v, kind), _tf.assert_positive)
                for v in (concentration1, concentration0)
            )
            self._total = self._one + self._zero
        super().__init__(kind, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given, None, name)

    concentration1 = Parameter("_one")
    concentration0 = Parameter("_zero")
    total_concentration = Parameter("_total")

    def _shapes(self) -> list[Any]:
        return [self._one, self._zero]

    def _sample(self, shape: Any, seed: int | None) -> Any:
        one = _tf.random_gamma(shape, self._whole(self._one), dtype=self.dtype, seed=seed)
        zero = _tf.random_gamma(
            shape, self._whole(self._zero), dtype=self.dtype, seed=None if seed is None else seed + 1
        )
        return one / (one + zero)

    def _log_normalization(self) -> Any:
        return _tf.lgamma(self._one) + _tf.lgamma(self._zero) - _tf.lgamma(self._total)

    def _log_prob(self, x: Any) -> Any:
        x = self._checked(x, inside_unit)
        return _xlogy(self._one - 1.0, x) + (self._zero - 1.0) * _tf.log1p(-x) - self._log_normalization()

    def _cdf(self, x: Any) -> Any:
        ones = _tf.ones_like(self._total * x)
        return _tf.betainc(self._one * ones, self._zero * ones, x * ones)

    def _entropy(self) -> Any:
        return (
            self._log_normalization()
            - (self._one - 1.0) * _tf.digamma(self._one)
            - (self._zero - 1.0) * _tf.digamma(self._zero)
            + (self._total - 2.0) * _tf.digamma(self._total)
        )

    def _mean(self) -> Any:
        return self._one / self._total

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self._mean()) / (1.0 + self._total)

    def _mode(self) -> Any:
        defined = _tf.logical_and(self._one > 1.0, self._zero > 1.0)
        mode = (self._one - 1.0) / (self._total - 2.0)
        return self._where_defined(defined, mode, "the mode of a concentration <= 1 is not defined")


@RegisterKL(Beta, Beta)
def _kl_beta(a: Any, b: Any, name: str | None = None) -> Any:
    with _tf.name_scope(name or "kl_beta_beta"):
        return (
            b._log_normalization()
            - a._log_normalization()
            - _tf.digamma(a.concentration1) * (b.concentration1 - a.concentration1)
            - _tf.digamma(a.concentration0) * (b.concentration0 - a.concentration0)
            + _tf.digamma(a.total_concentration) * (b.total_concentration - a.total_concentration)
        )


class Dirichlet(VectorDistribution):
    """Dirichlet's distribution over vectors of positive numbers that sum to 1.

    Args:
      concentration: ``[batch, k]``, positive; an event is a vector of k.
      validate_args: check that in the step.
    """

    def __init__(
        self,
        concentration: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Dirichlet",
    ) -> None:
        given = dict(locals())
        with _tf.name_scope(name) as name:
            self._validating = validate_args
            kind = _floating(concentration)
            self._concentration = self._checked(
                _ops.convert_to_tensor(concentration, kind), _tf.assert_positive, enough_classes
            )
            self._total = _tf.reduce_sum(self._concentration, -1)
        super().__init__(kind, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given, None, name)

    concentration = Parameter("_concentration")
    total_concentration = Parameter("_total")

    def _rows(self) -> Any:
        return self._concentration

    def _sample(self, shape: Any, seed: int | None) -> Any:
        drawn = _tf.random_gamma(shape, self._concentration, dtype=self.dtype, seed=seed)
        return drawn / _tf.reduce_sum(drawn, -1, keepdims=True)

    def _size(self) -> Any:
        return _tf.cast(_tf.shape(self._concentration)[-1], self.dtype)

    def _log_prob(self, x: Any) -> Any:
        x = self._checked(x, of_simplex)
        return _tf.reduce_sum(_xlogy(self._concentration - 1.0, x), -1) - _tf.lbeta(self._concentration)

    def _entropy(self) -> Any:
        c = self._concentration
        own = _tf.reduce_sum((c - 1.0) * _tf.digamma(c), -1)
        return _tf.lbeta(c) + (self._total - self._size()) * _tf.digamma(self._total) - own

    def _mean(self) -> Any:
        return self._concentration / _tf.expand_dims(self._total, -1)

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self._mean()) / (1.0 + _tf.expand_dims(self._total, -1))

    def _covariance(self) -> Any:
        mean = self._mean()
        apart = -_tf.expand_dims(mean, -1) * _tf.expand_dims(mean, -2)
        return _tf.matrix_set_diag(apart / (1.0 + self._total[..., None, None]), self._variance())

    def _mode(self) -> Any:
        mode = (self._concentration - 1.0) / _tf.expand_dims(self._total - self._size(), -1)
        defined = _tf.reduce_all(self._concentration > 1.0, -1, keepdims=True)
        return self._where_defined(defined, mode, "the mode of a concentration <= 1 is not defined")


@RegisterKL(Dirichlet, Dirichlet)
def _kl_dirichlet(a: Any, b: Any, name: str | None = None) -> Any:
    with _tf.name_scope(name or "kl_dirichlet_dirichlet"):
        apart = _tf.digamma(a.concentration) - _tf.digamma(_tf.expand_dims(a.total_concentration, -1))
        shared = _tf.reduce_sum((a.concentration - b.concentration) * apart, -1)
        return shared - _tf.lbeta(a.concentration) + _tf.lbeta(b.concentration)
