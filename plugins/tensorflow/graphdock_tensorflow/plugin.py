"""The plugin: TensorFlow's forms of graphs and of checkpoints."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import CheckpointFormat, GraphFormat, hookimpl


@hookimpl
def register_graph_formats() -> Iterable[GraphFormat]:
    from graphdock_tensorflow.graphs.format import TensorFlowGraphs

    return [TensorFlowGraphs()]


@hookimpl
def register_checkpoint_formats() -> Iterable[CheckpointFormat]:
    from graphdock_tensorflow.checkpoints.formats import Bundles, OldFiles

    return [Bundles(), OldFiles()]
