"""Python operators on tensors, dispatched to the wrappers that op specs name. The host itself knows no Add."""

from __future__ import annotations

from typing import Any

from graphdock.errors import UnknownOpError
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor

__all__ = ["apply_operator", "apply_reflected"]


def _wrapper(method: str, x: Tensor) -> Any:
    found = x.graph.host.ops.operator(method)
    if found is None:
        raise UnknownOpError(
            f"no loaded op library declares the operator {method}", hint="the std plugin does; is it blocked?"
        )
    return found


def apply_operator(method: str, x: Tensor, *args: Any) -> Any:
    """``x + y`` and its like. Python values on the right take the dtype of ``x``."""
    return _wrapper(method, x)(x, *args)


def apply_reflected(method: str, x: Any, y: Tensor) -> Any:
    """``x + y`` where only ``y`` is a tensor; ``x`` takes its dtype."""
    return _wrapper(method, y)(convert_to_tensor(x, y.dtype), y)
