"""DirichletMultinomial: counts of classes whose probabilities are drawn first."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.typing import TensorLike

from graphdock_tf1.distributions.checks import counts, enough_classes, total
from graphdock_tf1.distributions.distribution import NOT_REPARAMETERIZED, Parameter, VectorDistribution
from graphdock_tf1.distributions.location_scale import _floating


class DirichletMultinomial(VectorDistribution):
    """Counts of how often each class came in a number of draws, with probabilities from Dirichlet's distribution.

    Args:
      total_count: number of draws, floating, which broadcasts to the batch.
      concentration: ``[batch, k]``, positive; an event is a vector of k counts.
      validate_args: check that in the step.
    """

    def __init__(
        self,
        total_count: TensorLike,
        concentration: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        given = dict(locals())
        with _tf.name_scope(name) as name:
            self._validating = validate_args
            kind = _floating(concentration, total_count)
            self._total_count = self._checked(_ops.convert_to_tensor(total_count, kind), counts)
            self._concentration = self._checked(
                _ops.convert_to_tensor(concentration, kind), _tf.assert_positive, enough_classes
            )
            self._total = _tf.reduce_sum(self._concentration, -1)
            #: Parameters for each member of the batch and class.
            self._count = _tf.expand_dims(self._total_count, -1) + _tf.zeros_like(self._concentration)
        super().__init__(kind, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, given, None, name)

    total_count = Parameter("_total_count")
    concentration = Parameter("_concentration")
    total_concentration = Parameter("_total")

    def _rows(self) -> Any:
        return self._count

    def _sample(self, shape: Any, seed: int | None) -> Any:
        whole = self._concentration + _tf.zeros_like(self._count)
        drawn = _tf.random_gamma(shape, whole, dtype=self.dtype, seed=seed)
        classes = _tf.shape(self._count)[-1]
        rows = _tf.reshape(_tf.log(drawn), [-1, classes])
        wanted = _tf.cast(_tf.reshape((self._count + _tf.zeros_like(drawn))[..., 0], [-1, 1]), dtypes.int32)
        most = _tf.maximum(_tf.reduce_max(wanted), 1)
        picked = _tf.multinomial(rows, most, seed=None if seed is None else seed + 1)
        taken = _tf.cast(_tf.expand_dims(_tf.range(most), 0) < wanted, self.dtype)
        each = _tf.one_hot(picked, classes, dtype=self.dtype) * _tf.expand_dims(taken, -1)
        return _tf.reshape(_tf.reduce_sum(each, 1), self._joined(shape))

    def _log_prob(self, x: Any) -> Any:
        x = self._checked(x, counts, total(self._total_count, "counts last-dimension"))
        ways = _tf.lgamma(self._total_count + 1.0) - _tf.reduce_sum(_tf.lgamma(x + 1.0), -1)
        return _tf.lbeta(self._concentration + x) - _tf.lbeta(self._concentration) + ways

    def _mean(self) -> Any:
        return self._count * self._concentration / _tf.expand_dims(self._total, -1)

    def _scale(self) -> Any:
        total = _tf.expand_dims(self._total, -1)
        return _tf.sqrt((1.0 + total / self._count) / (1.0 + total))

    def _variance(self) -> Any:
        spread = self._scale() * self._mean()
        return spread * (self._count * self._scale() - spread)

    def _covariance(self) -> Any:
        spread = self._scale() * self._mean()
        return _tf.matrix_set_diag(-_tf.expand_dims(spread, -1) * _tf.expand_dims(spread, -2), self._variance())
