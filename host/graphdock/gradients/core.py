"""Gradients of the host's structural ops, where a formula does not say it."""

from __future__ import annotations

from typing import Any

from graphdock.graph.operation import Operation
from graphdock.ops.core import cast as _cast

__all__ = ["add_n", "cast", "read_variable"]


def add_n(op: Operation, grad: Any) -> list[Any]:
    """Every addend gets the gradient of the sum."""
    return [grad] * len(op.inputs)


def cast(op: Operation, grad: Any) -> Any:
    """The gradient in the input's dtype; none between types that are not both floating."""
    source = op.inputs[0].dtype
    if not source.is_floating or not grad.dtype.is_floating:
        return None
    return _cast(grad, source)


def read_variable(op: Operation, grad: Any) -> Any:
    """The gradient by the variable's value; backprop sums it at the handle over all reads."""
    return grad
