"""The plugin: one form of graphs."""

from graphdock.contracts import hookimpl


@hookimpl
def register_graph_formats():
    from graphdock_edges.form import Edges

    return [Edges()]
