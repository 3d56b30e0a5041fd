"""Functions that give variables their initial values, tell whether they have one, set and change them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from graphdock.errors import InvalidArgumentError
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op
from graphdock.ops.core import group
from graphdock.typing import TensorLike
from graphdock.variables.collections import global_variables, local_variables
from graphdock.variables.variable import Variable

__all__ = [
    "assign",
    "assign_add",
    "assign_sub",
    "global_variables_initializer",
    "initialize_all_variables",
    "is_variable_initialized",
    "local_variables_initializer",
    "variables_initializer",
]


def variables_initializer(var_list: Iterable[Variable], name: str = "init") -> Operation:
    """An operation that initializes the given variables. An initial value that reads another variable finds it
    initialized.
    """
    variables = list(var_list)
    for variable in variables:
        if not isinstance(variable, Variable):
            raise InvalidArgumentError("variables_initializer needs Variables", got=repr(variable))
    return group(*[v.initializer for v in variables], name=name)


def global_variables_initializer() -> Operation:
    """An operation that initializes every global variable that is there now."""
    return variables_initializer(global_variables(), "init")


def local_variables_initializer() -> Operation:
    """An operation that initializes every local variable that is there now."""
    return variables_initializer(local_variables(), "init")


#: TensorFlow's oldest name of :func:`global_variables_initializer`.
initialize_all_variables = global_variables_initializer


def is_variable_initialized(variable: Variable | Tensor, name: str | None = None) -> Tensor:
    """A bool scalar: whether the variable, or that of which a tensor was read, has a value in this session."""
    if isinstance(variable, Tensor) and variable.op.verb == "read":
        handle = variable.op.inputs[0]
    elif isinstance(variable, Variable):
        handle = variable.handle
    else:
        raise InvalidArgumentError("is_variable_initialized needs a Variable", got=repr(variable))
    return apply_op("VarIsInitializedOp", name=name, resource=handle)  # type: ignore[no-any-return]


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
