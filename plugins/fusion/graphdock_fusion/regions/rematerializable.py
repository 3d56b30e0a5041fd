"""Draws that every region which reads them makes for itself.

A mask of dropout is drawn long before it is read, and read in two regions: forward, and in the gradient. As a region of its own it
would be written once and read twice, and live in between. What is computed of nothing but draws, constants and single numbers is
the same wherever it is computed, so it is *rematerializable*: it has no place of its own, and each group gets a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, MutableMapping, Sequence
from typing import Any

from graphdock.contracts.ir import PlanGraph, PlanNode, Value, arg_of, copy_node
from graphdock.contracts.rewriter import Rewriter
from graphdock.contracts.streams import streams_of

from graphdock_fusion.regions.forms import form_of

__all__ = ["apart", "duplicate_into_groups", "rematerializable"]


def rematerializable(graph: PlanGraph, kind_of: Callable[[PlanNode], Hashable | None]) -> frozenset[PlanNode]:
    """The nodes of a level that are rematerializable: whoever reads them can compute them as well.

    Args:
      kind_of: node -> device and space of its own; None for one that is in no region.
    """
    if not any(streams_of(node) for node in graph.nodes):
        return frozenset()
    readers: dict[Value, list[PlanNode]] = {}
    held = set(graph.targets) | {v.node for v in graph.outputs if v.node is not None}
    for node in graph.nodes:
        held.update((*node.control, *node.order))
        for value in node.inputs:
            readers.setdefault(value, []).append(node)
    known: dict[PlanNode, Hashable | None] = {}

    def kind(node: PlanNode) -> Hashable | None:
        if node not in known:
            known[node] = kind_of(node)
        return known[node]

    nodes: Iterable[PlanNode] = graph.nodes
    while True:
        found = _drawn(nodes, held, kind)
        stay = {n for n, k in found.items() for v in n.outputs for r in readers.get(v, ()) if kind(r) != k}
        if not stay:
            return frozenset(found)
        held |= stay
        nodes = list(found)


def _drawn(
    nodes: Iterable[PlanNode], held: set[PlanNode], kind: Callable[[PlanNode], Hashable | None]
) -> dict[PlanNode, Hashable]:
    """Draws, and what is computed of them and of nothing else that has a size; each with its kind."""
    found: dict[PlanNode, Hashable] = {}
    for node in nodes:
        if node in held or node.control or node.order:
            continue
        form = form_of(node.opdef)
        if form is None or form.reduces or form.reshapes or form.writes or form.space:
            continue
        read = [v for v, arg in zip(node.inputs, arg_of(node), strict=True) if arg.memory != "host"]
        drawn = [v.node for v in read if v.node in found]
        if not (streams_of(node) or drawn) or any(v.node not in found and not _small(v) for v in read):
            continue
        mine = kind(node)
        if mine is not None and all(found[n] == mine for n in drawn if n is not None):
            found[node] = mine
    return found


def _small(value: Value) -> bool:
    """A constant, or a single number."""
    constant = value.node is not None and value.node.verb == "constant"
    return constant or (value.shape is not None and all(d == 1 for d in value.shape))


def duplicate_into_groups(
    level: PlanGraph,
    groups: Sequence[list[PlanNode]],
    recomputed: set[PlanNode],
    kernels: MutableMapping[PlanNode, Any],
) -> list[list[PlanNode]]:
    """The groups with each rematerializable node in one of them only: all but the first that hold one get a copy.

    Args:
      recomputed: rematerializable nodes; grows by the copies. ``kernels``: node -> kernel; copies get those of what they copy.
    """
    holders: dict[PlanNode, int] = {}
    result: list[list[PlanNode]] = []
    with Rewriter(level) as change:
        for members in groups:
            became: dict[Value, Value] = {}
            made: dict[PlanNode, PlanNode] = {}
            for node in members:
                if node in recomputed:
                    holders[node] = holders.get(node, 0) + 1
                    if holders[node] > 1:
                        made[node] = _again(node, holders[node], became)
                        became.update(zip(node.outputs, made[node].outputs, strict=True))
            for node in members:
                if node not in made and not became.keys().isdisjoint(node.inputs):
                    change.rebind(node, inputs=[became.get(v, v) for v in node.inputs])
            for node, copy in made.items():
                change.insert(copy, before=node)
                kernels[copy] = kernels[node]
            recomputed.update(made.values())
            result.append([made.get(node, node) for node in members])
    return result


def _again(node: PlanNode, number: int, became: dict[Value, Value]) -> PlanNode:
    copy = copy_node(node, [became.get(v, v) for v in node.inputs])
    copy.name = f"{node.name}/{number}"
    for value in copy.outputs:
        value.name = f"{value.name}/{number}"
    return copy


def apart(groups: Sequence[list[PlanNode]], recomputed: Collection[PlanNode]) -> list[list[PlanNode]]:
    """The groups that share no rematerializable node: those that do would have to be copied first."""
    count: dict[PlanNode, int] = {}
    for members in groups:
        for node in members:
            count[node] = count.get(node, 0) + (node in recomputed)
    return [g for g in groups if all(count.get(n, 0) < 2 for n in g)]
