"""Regularizers: functions of a variable whose results are losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import graphdock as _tf
from graphdock.errors import InvalidArgumentError

#: A function of a tensor; None for no loss.
Regularizer: TypeAlias = "Callable[[Any], Any]"


def _checked(scale: Any, name: str) -> float:
    if isinstance(scale, bool) or not isinstance(scale, float | int) or isinstance(scale, int) and scale != 0:
        raise InvalidArgumentError(f"{name} must be a floating number", got=repr(scale))
    if scale < 0.0 or not math.isfinite(scale):
        raise InvalidArgumentError(f"{name} must be finite and not negative", got=repr(scale))
    return float(scale)


def l1_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """``scale * sum(|weights|)``; none where ``scale`` is 0.

    Raises:
      InvalidArgumentError: ``scale`` is an integer, or negative.
    """
    scale = _checked(scale, "scale")
    if scale == 0.0:
        return lambda _: None

    def l1(weights: Any, name: str | None = None) -> Any:
        with _tf.name_scope(scope or "l1_regularizer") as inner:
            return _tf.multiply(scale, _tf.reduce_sum(_tf.abs(weights)), name=name or inner)

    return l1


def l2_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """``scale * sum(weights ** 2) / 2``; as :func:`l1_regularizer`."""
    scale = _checked(scale, "scale")
    if scale == 0.0:
        return lambda _: None

    def l2(weights: Any) -> Any:
        with _tf.name_scope(scope or "l2_regularizer") as inner:
            return _tf.multiply(scale, _tf.nn.l2_loss(weights), name=inner)

    return l2


def l1_l2_regularizer(scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None) -> Regularizer:
    """The sum of both; of one where the other's scale is 0."""
    scale_l1, scale_l2 = _checked(scale_l1, "scale_l1"), _checked(scale_l2, "scale_l2")
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope or "l1_l2_regularizer")


def sum_regularizer(regularizer_list: Sequence[Regularizer | None], scope: str | None = None) -> Regularizer:
    """The sum of several, of which None are left out; None of none."""
    given = [r for r in regularizer_list if r is not None]
    if not given:
        return None  # type: ignore[return-value]

    def summed(weights: Any) -> Any:
        with _tf.name_scope(scope or "sum_regularizer") as inner:
            made = [t for t in (r(weights) for r in given) if t is not None]
            return _tf.add_n(made, name=inner) if made else None

    return summed


def apply_regularization(regularizer: Regularizer, weights_list: Sequence[Any] | None = None) -> _tf.Tensor:
    """The sum of a regularizer over weights (default: ``GraphKeys.WEIGHTS``), which joins ``GraphKeys.REGULARIZATION_LOSSES``.

    Raises:
      InvalidArgumentError: there are no weights, or a result is no scalar.
    """
    weights = list(_tf.get_collection(_tf.GraphKeys.WEIGHTS)) if weights_list is None else list(weights_list)
    if not weights:
        raise InvalidArgumentError("there are no weights to regularize")
    with _tf.name_scope("get_regularization_penalty") as scope:
        made = [regularizer(w) for w in weights]
        losses = [t if t is not None else _tf.constant(0.0) for t in made]
        for loss in losses:
            if loss.shape.rank != 0:
                raise InvalidArgumentError("a regularizer must return a scalar", got=str(loss.shape))
        summed = _tf.add_n(losses, name=scope)
    _tf.add_to_collection(_tf.GraphKeys.REGULARIZATION_LOSSES, summed)
    return summed
