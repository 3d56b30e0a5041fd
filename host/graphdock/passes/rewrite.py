"""What passes share: what they may ask for, making constants, dropping what nobody needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdock.contracts.ir import PlanGraph, PlanNode, Value, make_node
from graphdock.contracts.opdef import OpDef
from graphdock.contracts.rewriter import Rewriter
from graphdock.dtypes import DType

__all__ = ["Tools", "constant_node", "prune"]


@dataclass(frozen=True, slots=True)
class Tools:
    """What passes may ask the planner for.

    Attributes:
      evaluate: computes a node over constants, or returns None where it can't.
      const: the OpDef of the Const nodes that passes make.
      find: the OpDef of a type.
    """

    evaluate: Callable[[PlanNode], list[np.ndarray[Any, Any]] | None]
    const: OpDef
    find: Callable[[str], OpDef]


def constant_node(like: PlanNode, value: Value, array: np.ndarray[Any, Any], dtype: DType, const: OpDef) -> PlanNode:
    """A Const node, whose OpDef is ``const``, that stands for ``value``, which ``like`` makes."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    array.flags.writeable = False
    return make_node(
        const,
        value.name,
        [],
        {"value": array, "dtype": dtype},
        [(dtype, array.shape)],
        site_of=like.site_of,
        origins=like.origins,
    )


def prune(graph: PlanGraph) -> None:
    """Drop every node that neither an output nor a target needs."""
    if _is_tight(graph):
        return
    needed = set(graph.targets)
    read = set(graph.outputs)
    with Rewriter(graph) as change:
        for node in reversed(graph.nodes):  # whoever needs a node stands behind it
            if node in needed or not read.isdisjoint(node.outputs):
                needed.update(node.control)
                read.update(node.inputs)
            else:
                change.erase(node)


def _is_tight(graph: PlanGraph) -> bool:
    """Whether every node is read or followed by another, or wanted itself. The last of nodes that nobody needs would not be."""
    read = set(graph.outputs).union(*[n.inputs for n in graph.nodes])
    followed = set(graph.targets).union(*[n.control for n in graph.nodes])
    return followed.issuperset([n for n in graph.nodes if read.isdisjoint(n.outputs)])
