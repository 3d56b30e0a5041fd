"""Rematerializable nodes in several groups: each group gets its own."""

from __future__ import annotations

from collections.abc import Collection, MutableMapping, Sequence
from typing import Any

from graphdock.contracts.ir import PlanGraph, PlanNode, Value, copy_node
from graphdock.contracts.rewriter import Rewriter

__all__ = ["apart", "duplicate_into_groups"]


def duplicate_into_groups(
    level: PlanGraph,
    groups: Sequence[list[PlanNode]],
    rematerializable: set[PlanNode],
    kernels: MutableMapping[PlanNode, Any],
) -> list[list[PlanNode]]:
    """The groups with each rematerializable node in one of them only: all but the first that hold one get a copy.

    Args:
      rematerializable: grows by the copies. ``kernels``: node -> kernel; the copies get those of what they copy.
    """
    holders: dict[PlanNode, int] = {}
    result: list[list[PlanNode]] = []
    with Rewriter(level) as change:
        for members in groups:
            became: dict[Value, Value] = {}
            made: dict[PlanNode, PlanNode] = {}
            for node in members:
                if node in rematerializable:
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
            rematerializable.update(made.values())
            result.append([made.get(node, node) for node in members])
    return result


def _again(node: PlanNode, number: int, became: dict[Value, Value]) -> PlanNode:
    copy = copy_node(node, [became.get(v, v) for v in node.inputs])
    copy.name = f"{node.name}/{number}"
    for value in copy.outputs:
        value.name = f"{value.name}/{number}"
    return copy


def apart(groups: Sequence[list[PlanNode]], rematerializable: Collection[PlanNode]) -> list[list[PlanNode]]:
    """The groups that share no rematerializable node: those that do would have to be copied first."""
    count: dict[PlanNode, int] = {}
    for members in groups:
        for node in members:
            count[node] = count.get(node, 0) + (node in rematerializable)
    return [g for g in groups if all(count.get(n, 0) < 2 for n in g)]
