"""Python operators on tensors, dispatched to the wrappers that op specs name. The host itself knows no Add."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from graphdock.errors import GraphdockError, UnknownOpError
from graphdock.graph.graph import get_default_graph
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor

__all__ = ["apply_binary", "apply_operator", "apply_reflected"]

#: What is never asked for its own operator when it becomes no tensor: the reason is the better answer.
_VALUES = (numbers.Number, str, bytes, list, tuple, np.ndarray, np.generic)


def _wrapper(method: str, x: Tensor) -> Any:
    found = x.graph.host.ops.operator(method)
    if found is None:
        raise UnknownOpError(
            f"no loaded op library declares the operator {method}", hint="the std plugin does; is it blocked?"
        )
    return found


def apply_operator(method: str, x: Tensor, *args: Any) -> Any:
    """``-x``, ``x < y``, ``x[key]``: the operation has its op's own name."""
    return _wrapper(method, x)(x, *args)


def apply_binary(method: str, x: Tensor, y: Any) -> Any:
    """``x + y`` and its like: the operation is called ``add``. Python values on the right take the dtype of ``x``.

    Returns NotImplemented for a ``y`` that becomes no tensor and has an operator of its own, so that Python asks that.
    """
    name = method.strip("_")
    if isinstance(y, (Tensor, *_VALUES)) or not hasattr(type(y), f"__r{name}__"):
        return _wrapper(method, x)(x, y, name=name)
    with get_default_graph().name_scope(name) as scope:
        try:
            right = convert_to_tensor(y, x.dtype, "y")
        except (GraphdockError, TypeError):
            return NotImplemented
        return _wrapper(method, x)(x, right, name=scope)


def apply_reflected(method: str, x: Any, y: Tensor) -> Any:
    """``x + y`` where only ``y`` is a tensor; ``x`` takes its dtype."""
    with get_default_graph().name_scope(method.strip("_")) as scope:
        return _wrapper(method, y)(convert_to_tensor(x, y.dtype, "x"), y, name=scope)
