"""Variables of operations that a graph has already, as an imported graph does."""

from __future__ import annotations

import weakref
from typing import Any

from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.variables.variable import Variable, _by_handle

__all__ = ["variable_of_operations"]


def variable_of_operations(
    handle: Tensor, initializer: Operation, initial_value: Tensor, read: str, trainable: bool
) -> Variable:
    """The Variable of a handle, which has none yet.

    Args:
      initializer: the operation that assigns ``initial_value``.
      read: name of the read that its users share; a new one is made where that is none of this variable.
    """
    graph = handle.graph
    made: Variable = Variable.__new__(Variable)
    made._handle = handle
    made.dtype, made._dims = handle.op.node_attrs["dtype"], handle.op.node_attrs["shape"]
    made._validate = made._dims is not None
    made._initializer, made._initialized = initializer, None
    made._initial_value = initial_value
    made._snapshot = _snapshot(graph, made, read)
    made.trainable, made.constraint = trainable, None
    made._save_slice_info = None
    _by_handle[handle.op] = weakref.ref(made)
    graph._reads[handle.op] = made._snapshot
    return made


def _snapshot(graph: Graph, variable: Variable, name: str) -> Any:
    """The shared read: the one that is named, or a new one where that is none of this variable."""
    if name.partition(":")[0] in graph._by_name:
        found = graph.as_graph_element(name, allow_operation=False)
        if found.op.verb == "read" and found.op.inputs[0] is variable.handle:
            if variable._dims is not None:
                graph.learn_shape(found, variable._dims)
            return found
    with graph.control_dependencies(None), graph.name_scope(variable.op.name + "/Read/"):
        return variable._read(None)
