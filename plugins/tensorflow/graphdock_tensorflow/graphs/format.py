"""TensorFlow's graphs as a format of the host's."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any

from graphdock.contracts import GraphFormat, GraphRead
from graphdock.messages import from_bytes, make

from graphdock_tensorflow.graphs.files import ENDINGS, SAVED_MODEL, graph_of
from graphdock_tensorflow.graphs.reading import read_graph
from graphdock_tensorflow.graphs.writing import write_graph
from graphdock_tensorflow.plain_data.writing import as_data

__all__ = ["TensorFlowGraphs"]


class TensorFlowGraphs(GraphFormat):
    """GraphDefs, in memory and in files; what meta graphs and SavedModels hold is one too."""

    name = "GraphDef"
    summary = "TensorFlow's GraphDef (.pb, .pbtxt), meta graph (.meta) and the folder of a SavedModel"

    def accepts(self, value: Any) -> bool:
        """Return whether it is a message: of ours, or of TensorFlow's own class."""
        return hasattr(value, "SerializeToString")

    def open(self, path: str, tags: Sequence[str] = ()) -> tuple[str, Any] | None:
        if os.path.isdir(path):
            return graph_of(path, tuple(tags))
        base = os.path.basename(path)
        mine = os.path.splitext(base)[1] in ENDINGS or base.startswith(f"{SAVED_MODEL}.pb")
        return graph_of(path, tuple(tags)) if mine else None

    def read(self, value: Any, ops: Any, mapped: Collection[str] = (), outputs: Sequence[str] = ()) -> GraphRead:
        if not isinstance(value, type(make("GraphDef"))):
            value = from_bytes("GraphDef", value.SerializeToString(), "the GraphDef")
        return read_graph(value, ops, mapped, outputs)

    def write(self, graph: Any, add_shapes: bool = False) -> Any:
        return write_graph(as_data(graph, exact=True), graph.host.ops, add_shapes)
