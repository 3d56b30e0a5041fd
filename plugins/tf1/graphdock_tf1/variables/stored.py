"""Variables by name, and other initial values for them: what functions that restore variables build on."""

from __future__ import annotations

from typing import Any

from graphdock import Variable
from graphdock.errors import DTypeError, ShapeError
from graphdock.ops import Tensor, init_scope
from graphdock.shape import compatible, show

from graphdock_tf1.variables.scope import store_of_graph


def stored_variables() -> dict[str, Any]:
    """Full name -> what ``get_variable`` has made of that name in the default graph: a Variable, or a PartitionedVariable."""
    store = store_of_graph()
    with store.lock:
        return dict(store.variables)


def set_initial_value(variable: Variable, value: Tensor) -> None:
    """Let a variable begin with another value: its initializer assigns ``value`` from now on.

    Operations that run the initializer which it had before, such as a ``global_variables_initializer()`` that was made before, go
    on with the old value.

    Raises:
      DTypeError, ShapeError: the value does not fit.
    """
    if value.dtype is not variable.dtype:
        raise DTypeError(
            f"Variable {variable.name} can't begin with a value of another dtype",
            expected=variable.dtype.name,
            got=value.dtype.name,
        )
    if not compatible(variable._dims, value._dims):
        raise ShapeError(
            f"Variable {variable.name} can't begin with a value of another shape",
            expected=show(variable._dims),
            got=show(value._dims),
        )
    with init_scope():
        variable._initializer = variable.assign(value, name=f"{variable.op.name}/Assign", read_value=False)
    variable._initial_value = value
    variable._initialized = None
