"""Which nodes are offered to region compilers: connected elementwise nodes of one device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from graphdock.contracts.ir import PlanNode
from graphdock.device_name import DeviceSpec

__all__ = ["LARGEST", "elementwise", "grow"]

#: Most nodes of one candidate; longer ones are offered in parts, so that planning stays linear.
LARGEST = 512


def elementwise(node: PlanNode) -> bool:
    """Whether a node computes each element of its output from the same element of its inputs, and does nothing else.

    One whose shapes are checked when it runs does more.
    """
    opdef = node.opdef
    return "elementwise" in opdef.traits and not opdef.is_stateful and not node.bodies and node.guard is None


def grow(nodes: Sequence[PlanNode], device_of: Callable[[PlanNode], DeviceSpec | None]) -> list[list[PlanNode]]:
    """Groups of two and more connected nodes of one device, each in order; the groups stand in the order of their first nodes.

    No path leaves a group and comes back, not even over other groups: a node's rank counts how often the longest way to it changed
    between groups and what is in none, and a group has one rank. Linear in the number of nodes.

    Args:
      nodes: in an order that keeps their edges.
      device_of: a node's device, or None for a node that is in no group.
    """
    rank: dict[PlanNode, int] = {}
    kind: dict[PlanNode, DeviceSpec | None] = {}
    group: dict[PlanNode, list[PlanNode]] = {}
    for node in nodes:
        mine = kind[node] = device_of(node)
        edges = (*(v.node for v in node.inputs), *node.control, *node.order)
        # a constant is copied into each group that reads it
        before = [n for n in edges if n is not None and n in rank and n.verb != "constant"]
        highest = rank[node] = max((rank[n] + (kind[n] != mine) for n in before), default=0)
        if mine is None:
            continue
        group[node] = [node]
        for other in before:
            if other in group and group[other] is not group[node] and rank[other] == highest and kind[other] == mine:
                _join(group, group[other], group[node])
    unique: dict[int, list[PlanNode]] = {id(members): members for members in group.values()}
    place = {node: i for i, node in enumerate(nodes)}
    found = [sorted(members, key=place.__getitem__) for members in unique.values() if len(members) > 1]
    # a part that is cut by place keeps the property, and parts stand one after another
    parts = [members[i : i + LARGEST] for members in found for i in range(0, len(members), LARGEST)]
    return sorted((p for p in parts if len(p) > 1), key=lambda p: place[p[0]])


def _join(group: dict[PlanNode, list[PlanNode]], a: list[PlanNode], b: list[PlanNode]) -> None:
    """One group of two; the smaller is moved, so that each node is moved a logarithmic number of times."""
    if len(a) < len(b):
        a, b = b, a
    a.extend(b)
    for node in b:
        group[node] = a


def without(members: Sequence[PlanNode], gone: Collection[PlanNode]) -> list[list[PlanNode]]:
    """What is left of a group when some of its nodes go, as groups again."""
    taken = set(gone)
    return grow(members, lambda n: None if n in taken else n.device)
