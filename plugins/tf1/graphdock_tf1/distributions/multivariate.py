"""The multivariate normal distribution with a diagonal covariance."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock.typing import TensorLike

from graphdock_tf1.distributions.distribution import FULLY_REPARAMETERIZED, VectorDistribution
from graphdock_tf1.distributions.kullback_leibler import RegisterKL, kl_divergence
from graphdock_tf1.distributions.location_scale import Normal


class MultivariateNormalDiag(VectorDistribution):
    """Vectors of independent normal draws.

    Args:
      loc: the mean ``[..., size]``; default 0. scale_diag: standard deviations ``[..., size]``; default 1. They broadcast.
      scale_identity_multiplier: ``[...]``, added to each standard deviation; alone it is all of them.
      validate_args, allow_nan_stats, name: as of ``tf.distributions.Distribution``.
    """

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ) -> None:
        given = dict(locals())
        with _tf.name_scope(name) as name:
            scale: Any = 1.0 if scale_diag is None and scale_identity_multiplier is None else scale_diag
            if scale_identity_multiplier is not None:
                more = _tf.expand_dims(_tf.convert_to_tensor(scale_identity_multiplier), -1)
                scale = more if scale is None else scale + more
            scale = _tf.convert_to_tensor(scale)
            where = _tf.zeros_like(scale) if loc is None else _tf.convert_to_tensor(loc, dtype=scale.dtype)
            self._normal = Normal(where + _tf.zeros_like(scale), scale + _tf.zeros_like(where), validate_args)
        super().__init__(self._normal.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, given, None, name)

    @property
    def loc(self) -> _tf.Tensor:
        """The mean."""
        return self._normal.loc

    def _rows(self) -> Any:
        return self._normal.loc

    def _sample(self, shape: Any, seed: int | None) -> Any:
        return self._normal.sample(shape, seed)

    def _log_prob(self, x: Any) -> Any:
        return _tf.reduce_sum(self._normal.log_prob(x), -1)

    def _entropy(self) -> Any:
        return _tf.reduce_sum(self._normal.entropy(), -1)

    def _mean(self) -> Any:
        return self._normal.mean()

    def _mode(self) -> Any:
        return self._normal.mode()

    def _stddev(self) -> Any:
        return self._normal.stddev()

    def _covariance(self) -> Any:
        return _tf.matrix_diag(self._normal.variance())


@RegisterKL(MultivariateNormalDiag, MultivariateNormalDiag)
def _of_two(a: Any, b: Any, name: str | None = None) -> Any:
    return _tf.reduce_sum(kl_divergence(a._normal, b._normal), -1, name=name)
