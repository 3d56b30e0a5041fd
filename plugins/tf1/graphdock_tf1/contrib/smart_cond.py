"""Conditions that are decided while the graph is built, where they can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock.errors import ArgumentTypeError


def smart_constant_value(pred: Any) -> bool | None:
    """The value of a condition that is known while the graph is built; None where it is not.

    Raises:
      ArgumentTypeError: it is no bool, 0, 1 or tensor.
    """
    if isinstance(pred, (_tf.Tensor, _tf.Variable)):
        known = isinstance(pred, _tf.Tensor) and pred.op.type == "Const"
        return bool(pred.op.get_attr("value")) if known else None
    if pred in (0, 1):  # bools too
        return bool(pred)
    raise ArgumentTypeError("pred must be a Tensor, or a Python bool, or 1 or 0", got=repr(pred))


def smart_cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """``tf.cond``, or a call of one function alone where the condition is known while the graph is built.

    Raises:
      ArgumentTypeError: ``pred`` is no condition, or a function is none.
    """
    for what, given in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(given):
            raise ArgumentTypeError(f"{what} must be callable", got=repr(given))
    known = smart_constant_value(pred)
    if known is None:
        return _tf.cond(pred, true_fn, false_fn, name=name)
    return true_fn() if known else false_fn()  # type: ignore[misc]


def smart_cond_of(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any], name: str | None = None) -> Any:
    """:func:`smart_cond` with the names that ``contrib.layers.utils`` gives the functions."""
    return smart_cond(pred, fn1, fn2, name)
