"""Groups of nodes that are offered to region compilers: connected nodes of one kind, in groups that can each be one node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Protocol

from graphdock.contracts import RegionCompiler
from graphdock.contracts.ir import PlanNode
from graphdock.device_name import DeviceSpec

__all__ = ["SHORT", "ByDevice", "Kinds", "elementwise", "form_fusion_groups", "without"]

#: Nodes of a group, at most, that waits for one that stands further behind.
SHORT = 8
#: Verbs of nodes that read nothing and run nothing.
_STILL = frozenset({"constant", "handle"})


def elementwise(node: PlanNode) -> bool:
    """Return whether a node computes each element of its output from the same element of its inputs, and does nothing else.

    One whose shapes are checked when it runs does more.
    """
    opdef = node.opdef
    return "elementwise" in opdef.traits and not opdef.is_stateful and not node.bodies and node.guard is None


class Kinds(Protocol):
    """Rules for which nodes may be in one group, asked node by node, in order.

    Attributes:
      rematerializable: nodes that are computed of nothing that a group makes, but single numbers, and that belong to every group
        that reads them: a reader joins only groups of the first kind that it may be in.
    """

    rematerializable: set[PlanNode]

    def options(self, node: PlanNode, before: Sequence[PlanNode]) -> Sequence[Hashable]:
        """The kinds of group that may take a node, the best first; none where no group may."""

    def settle(self, node: PlanNode, kind: Hashable, joined: Sequence[PlanNode]) -> bool:
        """Return whether the node can be in a group of a kind with these nodes before it; where it can, it is, and that is
        remembered.
        """

    def alone(self, node: PlanNode) -> bool:
        """Return whether a node may be a group by itself."""


class ByDevice:
    """Any nodes of one device that ``device_of`` gives a device."""

    def __init__(self, device_of: Callable[[PlanNode], DeviceSpec | None]) -> None:
        self._device_of = device_of
        self.rematerializable: set[PlanNode] = set()

    def options(self, node: PlanNode, before: Sequence[PlanNode]) -> Sequence[Hashable]:
        device = self._device_of(node)
        return () if device is None else (device,)

    def settle(self, node: PlanNode, kind: Hashable, joined: Sequence[PlanNode]) -> bool:
        return True

    def alone(self, node: PlanNode) -> bool:
        return False


def form_fusion_groups(
    nodes: Sequence[PlanNode], kinds: Kinds, largest: int = RegionCompiler.largest
) -> list[list[PlanNode]]:
    """Groups of connected nodes of one kind, each in order, of two and more but for those that may be alone; the groups stand in
    the order of their first nodes.

    No path leaves a group and comes back, not even over other groups: a node's rank counts how often the longest way to it changed
    between groups and what is in none, and a group has one rank. A short group that nothing outside of it follows yet takes the
    rank of the first node that does, and that node. A rematerializable node counts as a part of each node that reads it, and
    stands in all of their groups. Linear in the number of nodes.

    Args:
      nodes: in an order that keeps their edges. largest: nodes of one group, at most, as :class:`RegionCompiler` says.
    """
    rank: dict[PlanNode, int] = {}
    kind: dict[PlanNode, Hashable] = {}
    group: dict[PlanNode, list[PlanNode]] = {}
    followed: set[PlanNode] = set()  # by a node of another group

    def free(node: PlanNode) -> bool:
        members = group.get(node, ())
        return 0 < len(members) <= SHORT and followed.isdisjoint(members)

    # the rematerializable nodes that a node needs, itself among them if it is one
    carried: dict[PlanNode, dict[PlanNode, None]] = {}
    for node in nodes:
        edges = (*(v.node for v in node.inputs), *node.control, *node.order)
        needed = {f: None for n in edges if n in carried and n in kinds.rematerializable for f in carried[n]}
        edges += tuple([v.node for f in needed for v in f.inputs])
        if node in kinds.rematerializable:
            carried[node] = {**needed, node: None}
            continue
        # no way leads over a constant or a handle, unless it waits for something
        before = [n for n in edges if n in rank and n is not None and (n.verb not in _STILL or n.control or n.order)]
        mine, highest, joined = _choice(node, before, kinds, rank, kind, bool(needed), free)
        for late in {id(g): g for n in joined if rank[n] < highest for g in (group[n],)}.values():
            rank.update(dict.fromkeys(late, highest))
        followed.update([n for n in before if n not in joined])
        kind[node], rank[node] = mine, highest
        if mine is None:
            continue
        carried[node] = needed
        group[node] = [node]
        for other in joined:
            if group[other] is not group[node]:
                _join(group, group[other], group[node])
    unique: dict[int, list[PlanNode]] = {id(members): members for members in group.values()}
    place = {node: i for i, node in enumerate(nodes)}
    found = [sorted(members, key=place.__getitem__) for members in unique.values()]
    # a part that is cut by place keeps the property, and parts stand one after another
    parts = [members[i : i + largest] for members in found for i in range(0, len(members), largest)]
    whole = [sorted({*p, *(f for n in p for f in carried[n])}, key=place.__getitem__) for p in parts]
    return sorted((p for p in whole if len(p) > 1 or kinds.alone(p[0])), key=lambda p: place[p[0]])


def _choice(
    node: PlanNode,
    before: Sequence[PlanNode],
    kinds: Kinds,
    rank: Mapping[PlanNode, int],
    kind: Mapping[PlanNode, Hashable],
    copies: bool,
    free: Callable[[PlanNode], bool],
) -> tuple[Hashable, int, Sequence[PlanNode]]:
    """A node's kind (None for one in no group), its rank, and the nodes before it whose groups it joins. ``copies``: it needs
    rematerializable nodes, which are of its own kind alone. ``free``: whether a node's group may take a higher rank."""
    options = kinds.options(node, before)
    for mine in options[:1] if copies else options:
        highest = max((rank[n] + (kind[n] != mine) for n in before), default=0)
        joined = [n for n in before if kind[n] == mine and (rank[n] == highest or free(n))]
        if joined and kinds.settle(node, mine, joined):
            return mine, highest, joined
    # by itself, until others join it: behind all that it can't be with
    if options and kinds.settle(node, options[0], ()):
        return options[0], max((rank[n] + 1 for n in before), default=0), ()
    return None, max((rank[n] + (kind[n] is not None) for n in before), default=0), ()


def _join(group: dict[PlanNode, list[PlanNode]], a: list[PlanNode], b: list[PlanNode]) -> None:
    """One group of two; the smaller is moved, so that each node is moved a logarithmic number of times."""
    if len(a) < len(b):
        a, b = b, a
    a.extend(b)
    for node in b:
        group[node] = a


def without(members: Sequence[PlanNode], gone: Collection[PlanNode], kinds: Kinds) -> list[list[PlanNode]]:
    """Return what is left of a group when some of its nodes go, as groups again."""
    taken = set(gone)

    class Rest:
        rematerializable = {n for n in members if n in kinds.rematerializable and n not in taken}

        def options(self, node: PlanNode, before: Sequence[PlanNode]) -> Sequence[Hashable]:
            return () if node in taken else kinds.options(node, before)

        def settle(self, node: PlanNode, kind: Hashable, joined: Sequence[PlanNode]) -> bool:
            return kinds.settle(node, kind, joined)

        def alone(self, node: PlanNode) -> bool:
            return kinds.alone(node)

    return form_fusion_groups(members, Rest())
