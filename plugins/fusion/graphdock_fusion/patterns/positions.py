"""One order of the nodes of a level, by which all go that is put there for patterns: no value waits for what stands behind it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from graphdock.contracts.ir import PlanGraph, PlanNode, Value

__all__ = ["Positions"]


class Positions:
    """Positions of values in one order of a level, in which each node is behind all that it needs.

    It is the level's own order, in which gradients stand behind what they are gradients of. With ops that come ``last`` it is one
    where these stand as late as can be, the last of them latest: what is computed without them stands before them.
    """

    def __init__(self, level: PlanGraph, last: Sequence[str] = ()) -> None:
        self._level = level
        self._last = last
        self._positions: dict[PlanNode, int] = {}

    def of(self, value: Value) -> int:
        """The position of the node that makes a value; what enters the level, or needs nothing, is before all."""
        if not self._positions:
            order = _ordered(self._level.nodes, self._last) if self._last else self._level.nodes
            self._positions = {node: i for i, node in enumerate(order)}
        node = value.node
        return -1 if node is None or not (node.inputs or node.control or node.order) else self._positions[node]


def _ordered(nodes: Sequence[PlanNode], last: Sequence[str]) -> Iterator[PlanNode]:
    """The nodes, each behind all that it needs; those of an op of ``last`` only when nothing else could be next but such ones, and
    ones of later ops."""
    waits = {n: {b for b in (*(v.node for v in n.inputs), *n.control, *n.order) if b is not None} for n in nodes}
    followers: dict[PlanNode, list[PlanNode]] = {}
    for node, before in waits.items():
        for other in before:
            followers.setdefault(other, []).append(node)
    turns = {op: i for i, op in enumerate(last, 1)}
    ready: list[deque[PlanNode]] = [deque() for _ in range(len(turns) + 1)]
    for node in nodes:
        if not waits[node]:
            ready[turns.get(node.op, 0)].append(node)
    while waiting := next(filter(None, ready), None):
        done = waiting.popleft()
        yield done
        for node in followers.get(done, ()):
            waits[node].discard(done)
            if not waits[node]:
                ready[turns.get(node.op, 0)].append(node)
