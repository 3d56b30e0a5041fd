"""Variables as TensorFlow's VariableDefs, of which collections of meta graphs consist, and back."""

from __future__ import annotations

from typing import Any

from graphdock import Variable
from graphdock.errors import InvalidArgumentError
from graphdock.ops import get_default_graph, variable_of, variable_of_operations

from graphdock_tf1.variables.partitioned import SaveSliceInfo


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
    initializer = graph.as_graph_element(prefix + message.initializer_name, allow_tensor=False)
    if len(initializer.inputs) < 2:
        raise InvalidArgumentError(f"{initializer.name} initializes nothing", op=initializer.name, got=initializer.type)
    value = initializer.inputs[1]
    if message.initial_value_name:
        value = graph.as_graph_element(prefix + message.initial_value_name, allow_operation=False)
    read = prefix + message.snapshot_name
    made: Variable = variable_of_operations(handle, initializer, value, read, bool(message.trainable))
    if message.HasField("save_slice_info_def"):
        part = message.save_slice_info_def
        fields = [list(map(int, getattr(part, f))) for f in ("full_shape", "var_offset", "var_shape")]
        made._save_slice_info = SaveSliceInfo(prefix + part.full_name, *fields)
    return made
