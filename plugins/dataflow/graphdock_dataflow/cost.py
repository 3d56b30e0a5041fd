"""Cost of kernels: which of them are dear enough to be handed to another thread, by what the planner knows of their times."""

from __future__ import annotations

from math import prod

from graphdock.contracts import PlacedGraph, PlanNode, QueuedDevice
from graphdock.shape import concrete

__all__ = ["HAND_OFF", "dear_nodes", "is_small", "seconds_of"]

#: Seconds that a kernel must take to be handed over: a hand-off costs some 15 us on each side.
HAND_OFF = 50e-6
#: Elements of each input and output of a kernel that is not looked at.
_SMALL = 256


def is_small(node: PlanNode) -> bool:
    """Return whether it has so few elements that no op takes long over them: most nodes need no more than this."""
    shapes = [concrete(v.shape) for v in (*node.inputs, *node.outputs)]
    return all(dims is not None and prod(dims) <= _SMALL for dims in shapes)


def seconds_of(placed: PlacedGraph, node: PlanNode) -> float:
    """About how long a node's kernel takes; 0 where nobody knows."""
    if is_small(node):
        return 0.0
    return placed.seconds(node) or 0.0


def dear_nodes(placed: PlacedGraph, least: float, overlapping: frozenset[PlanNode]) -> frozenset[PlanNode]:
    """Nodes whose kernels may be handed over: they take ``least`` seconds, neither wait nor lock for themselves, and are the cpu's.

    Args:
      overlapping: nodes of which several executions may be at work at once; of these none that draws, for its stream is one.
    """
    found = []
    for level in placed.graph.all_graphs():
        for node in level.nodes:
            if node not in placed.kernels or "waits" in node.opdef.effects:
                continue
            if isinstance(placed.device_of(node), QueuedDevice):
                continue
            if node.opdef.accesses and not placed.holds:
                continue
            if node in overlapping and "random" in node.opdef.effects:
                continue
            if not least or seconds_of(placed, node) >= least:
                found.append(node)
    return frozenset(found)
