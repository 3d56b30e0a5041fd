"""Passes that changed the nodes of a plan, kept for plans that are explained and for no other."""

from __future__ import annotations

from graphdock.contracts.ir import PlanGraph, PlanNode

__all__ = ["PassHistory"]


class PassHistory:
    """Passes that dropped nodes of an operation, made some, or put others in their place. Which values a node reads says nothing.

    Attributes:
      changes: name of an operation, as of :attr:`PlanNode.origin` -> the passes, in order, each once.
    """

    def __init__(self) -> None:
        self.changes: dict[str, list[str]] = {}
        self._seen: dict[str, list[PlanNode]] = {}

    def see(self, graph: PlanGraph) -> None:
        """Remember the nodes, before a pass runs."""
        self._seen = _by_origin(graph)

    def note(self, name: str, graph: PlanGraph) -> None:
        """Compare with the nodes that were seen last, after the pass has run, and remember these."""
        now = _by_origin(graph)
        for origin in (*self._seen, *(o for o in now if o not in self._seen)):
            if self._seen.get(origin) != now.get(origin):
                passes = self.changes.setdefault(origin, [])
                if name not in passes:
                    passes.append(name)
        self._seen = now


def _by_origin(graph: PlanGraph) -> dict[str, list[PlanNode]]:
    found: dict[str, list[PlanNode]] = {}
    for level in graph.all_graphs():
        for node in level.nodes:
            found.setdefault(node.origin, []).append(node)
    return found
