"""Gradients that leave a body: level by level, from where the ``ys`` stand out to where the ``xs`` do.

A body sees outer tensors through its captures. Where an ``xs`` lies outside, or is reached through operations outside, the gradient
by such a capture goes on in the graph around, and what it needs of that is captured in turn: all ops are built where the caller
stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphdock.errors import InvalidArgumentError
from graphdock.gradients.build import Build
from graphdock.gradients.flow import Flow
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.tensor import Tensor

__all__ = ["Levels", "enclosing_graph", "graphs_around"]


def enclosing_graph(tensors: Sequence[Tensor]) -> Graph:
    """The graph in which gradients of these tensors are built: the default graph if it is a body that sees them, else the innermost
    of theirs.

    Raises:
      InvalidArgumentError: no graph sees all of them.
    """
    inner = get_default_graph()
    bodies = [inner] if isinstance(inner, BodyGraph) else []
    for graph in dict.fromkeys([*bodies, *[t.graph for t in tensors]]):
        around = graphs_around(graph)
        if all(t.graph in around for t in tensors):
            return graph
    first, other = tensors[0], next(t for t in tensors if t.graph not in graphs_around(tensors[0].graph))
    raise InvalidArgumentError(
        f"gradients: ys[0] ({first.name}) and ys[{list(tensors).index(other)}] ({other.name}) are of different graphs",
        op=other.op.name,
        site=other.op.site,
    )


def graphs_around(graph: Graph) -> list[Graph]:
    """A graph and those around it."""
    found = [graph]
    while isinstance(graph, BodyGraph):
        graph = graph.outer
        found.append(graph)
    return found


class Levels:
    """The flows from ``ys`` to ``xs`` through the graphs around ``graph``, innermost first.

    Args:
      graph: where the ops are built.
      ys: tensors of it or of graphs around it.
      xs, stops: tensors; what is of a graph that is not seen from ``graph`` is in no flow.

    Raises:
      GradientError: an op on the way has no gradient.
    """

    def __init__(self, graph: Graph, ys: Sequence[Tensor], xs: set[Tensor], stops: set[Tensor]) -> None:
        self.graph = graph
        self._chain = graphs_around(graph)
        if all(x.graph is graph for x in xs):
            del self._chain[1:]
        wanted = self._wanted(ys, xs, stops)
        self.flows: list[Flow] = []
        arriving: list[Tensor] = []
        for level, around in enumerate(self._chain):
            here = [y for y in ys if y.graph is around]
            flow = Flow([*arriving, *here], wanted[level], {t for t in stops if t.graph is around})
            flow.check_all()
            self.flows.append(flow)
            received = flow.received()
            arriving = [outer for outer, inner in self._captures(level).items() if inner in received]

    def _wanted(self, ys: Sequence[Tensor], xs: set[Tensor], stops: set[Tensor]) -> list[set[Tensor]]:
        """For each level the ``xs`` of it, and the captures through which others are reached."""
        found: list[set[Tensor]] = []
        reached: set[Tensor] = set()
        for level in reversed(range(len(self._chain))):
            here = {x for x in xs if x.graph is self._chain[level]} | reached
            found.insert(0, here)
            if level:
                captures = self._captures(level - 1)
                flow = Flow(list(captures), here, {t for t in stops if t.graph is self._chain[level]})
                reached = {inner for outer, inner in captures.items() if flow.is_active(outer)}
        return found

    def _captures(self, level: int) -> Mapping[Tensor, Tensor]:
        body = self._chain[level]
        return body.captures if isinstance(body, BodyGraph) and level + 1 < len(self._chain) else {}

    def build(
        self, ys: Sequence[Tensor], grads: Sequence[Any], xs: set[Tensor], colocate: bool, gate: bool
    ) -> dict[Tensor, Any]:
        """Add the ops to the default graph, ``graph``. The gradient by each of ``xs`` that has one."""
        found: dict[Tensor, Any] = {}
        arriving: dict[Tensor, Any] = {}
        for level, (around, flow) in enumerate(zip(self._chain, self.flows, strict=True)):
            build = Build(self.graph, flow, colocate, gate)
            build.arrive(arriving, arriving.values())
            here = [(y, grad) for y, grad in zip(ys, grads, strict=True) if y.graph is around]
            build.arrive([y for y, _ in here], [grad for _, grad in here])
            build.run()
            totals = {x: build.total(x) for x in xs if x.graph is around}
            found.update((x, total) for x, total in totals.items() if total is not None)
            captures = {outer: build.total(inner) for outer, inner in self._captures(level).items() if inner in flow.xs}
            arriving = {outer: total for outer, total in captures.items() if total is not None}
        return found
