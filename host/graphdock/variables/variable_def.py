"""Variables as TensorFlow's VariableDefs, of which collections of meta graphs consist, and back."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from graphdock.errors import InvalidArgumentError
from graphdock.graph.graph import get_default_graph
from graphdock.variables.partitioned import SaveSliceInfo
from graphdock.variables.variable import Variable, _by_handle, variable_of

if TYPE_CHECKING:
    from graphdock.graph.graph import Graph

__all__ = ["from_proto", "to_proto"]


def to_proto(variable: Variable, export_scope: str | None = None) -> Any:
    """The VariableDef of a variable; None where it is not in the scope that is given, which names lose.

    Raises:
      UnavailableError: the library protobuf is not installed.
    """
    from graphdock.messages import make

    prefix = f"{export_scope}/" if export_scope else ""
    if not variable.name.startswith(prefix):
        return None

    def name(thing: Any) -> str:
        return str(thing.name).removeprefix(prefix)

    made = make("VariableDef", variable_name=name(variable), initializer_name=name(variable.initializer))
    made.snapshot_name, made.initial_value_name = name(variable._snapshot), name(variable.initial_value)
    made.is_resource, made.trainable = True, bool(variable.trainable)
    whole = variable._save_slice_info
    if whole is not None:
        part = made.save_slice_info_def
        part.full_name = whole.full_name.removeprefix(prefix)
        for field in ("full_shape", "var_offset", "var_shape"):
            getattr(part, field).extend(getattr(whole, field))
    return made


def from_proto(message: Any, import_scope: str | None = None) -> Variable:
    """The Variable of operations that are in the default graph, in a scope if one is given; one for each handle.

    Raises:
      InvalidArgumentError, NotFoundError: what the message names is not in the graph, or is no variable.
    """
    graph = get_default_graph()
    prefix = f"{import_scope}/" if import_scope else ""
    op = graph.get_operation_by_name(prefix + message.variable_name.partition(":")[0])
    if op.verb != "handle":
        raise InvalidArgumentError(f"{op.name} is no variable", op=op.name, got=op.type)
    handle = op.outputs[0]
    known = variable_of(handle)
    if known is not None:
        return known
    made: Variable = Variable.__new__(Variable)
    made._handle = handle
    made.dtype, made._dims = handle.op.node_attrs["dtype"], handle.op.node_attrs["shape"]
    made._validate = made._dims is not None
    made._initializer = graph.as_graph_element(prefix + message.initializer_name, allow_tensor=False)
    made._initialized = None
    made._initial_value = (
        graph.as_graph_element(prefix + message.initial_value_name, allow_operation=False)
        if message.initial_value_name
        else made._initializer.inputs[1]
    )
    made._snapshot = _snapshot(graph, made, prefix + message.snapshot_name)
    made.trainable, made.constraint = bool(message.trainable), None
    made._save_slice_info = None
    if message.HasField("save_slice_info_def"):
        part = message.save_slice_info_def
        fields = [list(map(int, getattr(part, f))) for f in ("full_shape", "var_offset", "var_shape")]
        made._save_slice_info = SaveSliceInfo(prefix + part.full_name, *fields)
    _by_handle[handle.op] = weakref.ref(made)
    graph._reads[handle.op] = made._snapshot
    return made


def _snapshot(graph: Graph, variable: Variable, name: str) -> Any:
    """The shared read: the one that is named, or a new one where that is none of this variable."""
    if name.partition(":")[0] in graph._by_name:
        found = graph.as_graph_element(name, allow_operation=False)
        if found.op.verb == "read" and found.op.inputs[0] is variable.handle:
            if variable._dims is not None:
                graph._learn(found, variable._dims)
            return found
    with graph.control_dependencies(None), graph.name_scope(variable.op.name + "/Read/"):
        return variable._read(None)
