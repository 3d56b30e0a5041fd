"""The plugin: TensorFlow's forms of graphs and of checkpoints, and graphdock's own JSON."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import CheckpointFormat, GraphFormat, hookimpl


@hookimpl
def register_graph_formats() -> Iterable[GraphFormat]:
    from graphdock_tensorflow.graphs.format import TensorFlowGraphs
    from graphdock_tensorflow.plain_data.format import JsonGraphs
    from graphdock_tensorflow.plain_data.frames import FramedGraphs

    return [TensorFlowGraphs(), JsonGraphs(), FramedGraphs()]


@hookimpl
def register_checkpoint_formats() -> Iterable[CheckpointFormat]:
    from graphdock_tensorflow.checkpoints.formats import Bundles, OldFiles

    return [Bundles(), OldFiles()]
