"""AsProto: what a variable can say of itself as a message."""

from __future__ import annotations

from typing import Any

from graphdock import ops

__all__ = ["AsProto"]


class AsProto:
    """The methods of a Variable that write and read TensorFlow's VariableDefs, as an installed package knows them."""

    def to_proto(self, export_scope: str | None = None) -> Any:
        """It as a VariableDef; None where it is not in the scope that is given, which names lose.

        Raises:
          AttributeError: no installed package knows the message.
        """
        return ops.variable_to_proto(self, export_scope)

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Any:
        """The Variable of operations that are in the default graph already, in a scope if one is given.

        Raises:
          InvalidArgumentError, NotFoundError: what the message names is not in the graph, or is no variable.
        """
        return ops.variable_from_proto(variable_def, import_scope)
