"""Kullback and Leibler's divergence, by pairs of kinds of distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock.arguments import check_type
from graphdock.errors import AlreadyExistsError, UnimplementedError

_FOUND: dict[tuple[type, type], Callable[..., Any]] = {}


def kl_divergence(
    distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: str | None = None
) -> _tf.Tensor:
    """Return how much of the entropy is lost where ``distribution_b`` stands for ``distribution_a``: the mean over a of log(a / b).

    Args:
      allow_nan_stats: False: NaN is an InvalidArgumentError of the step.

    Returns:
      A number for each member of the batch.

    Raises:
      UnimplementedError: no function is registered for the two kinds.
    """
    pairs = [
        (i + j, (a, b))
        for i, a in enumerate(type(distribution_a).__mro__)
        for j, b in enumerate(type(distribution_b).__mro__)
    ]
    for _, pair in sorted(pairs, key=lambda p: p[0]):
        if pair in _FOUND:
            break
    else:
        kinds = f"{type(distribution_a).__name__} and {type(distribution_b).__name__}"
        raise UnimplementedError(
            f"there is no divergence of {kinds}", hint="register one with tf.distributions.RegisterKL"
        )
    with _tf.name_scope("KullbackLeibler"):
        made = _FOUND[pair](distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return made  # type: ignore[no-any-return]
        fine = _tf.logical_not(_tf.reduce_any(_tf.is_nan(made)))
        with _tf.control_dependencies([_tf.Assert(fine, ["the divergence is NaN", made])]):
            return _tf.identity(made)


class RegisterKL:
    """Register the divergence of two classes: a decorator of a function of two distributions, with ``name=``.

    @tf.distributions.RegisterKL(Mine, tf.distributions.Normal)
    def _kl(mine, normal, name=None): ...
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: Callable[..., Any]) -> Callable[..., Any]:
        """Keep it.

        Raises:
          AlreadyExistsError: the two have one.
        """
        check_type(kl_fn, Callable, "RegisterKL", "a function of two distributions")  # type: ignore[arg-type]
        if self._key in _FOUND:
            raise AlreadyExistsError(f"{self._key[0].__name__} and {self._key[1].__name__} have a divergence already")
        _FOUND[self._key] = kl_fn
        return kl_fn
