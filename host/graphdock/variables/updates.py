"""Functions that set and change a variable, where programs do not call its methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphdock.errors import InvalidArgumentError
from graphdock.graph.tensor import Tensor
from graphdock.typing import TensorLike
from graphdock.variables.variable import Variable

__all__ = ["assign", "assign_add", "assign_sub"]


def _variable(ref: Any, what: Callable[..., Any]) -> Variable:
    if isinstance(ref, Variable):
        return ref
    raise InvalidArgumentError(f"{what.__name__} needs a Variable", got=f"{ref!r} (a {type(ref).__name__})")


def assign(
    ref: Variable,
    value: TensorLike,
    validate_shape: bool | None = None,
    use_locking: bool = False,
    name: str | None = None,
) -> Tensor:
    """Set the variable ``ref``; returns its new value. See :meth:`Variable.assign`."""
    return _variable(ref, assign).assign(value, use_locking, name)


def assign_add(ref: Variable, value: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
    """Add to the variable ``ref``; returns its new value."""
    return _variable(ref, assign_add).assign_add(value, use_locking, name)


def assign_sub(ref: Variable, value: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
    """Subtract from the variable ``ref``; returns its new value."""
    return _variable(ref, assign_sub).assign_sub(value, use_locking, name)
