"""Large constants that patterns look at, such as masks of attention, folded where a pattern may ask for them.

Passes fold small results alone, because whatever is folded stays in memory. A pattern that wants to know what a table holds finds
none that is larger; those are folded here, just before patterns are looked for. What a pattern takes the place of goes then.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from graphdock.contracts.ir import PlanGraph, PlanNode, Value, make_node
from graphdock.contracts.rewriter import Rewriter
from graphdock.passes.rewrite import Tools, constant_node
from graphdock.shape import size

__all__ = ["MOST", "fold_tables"]

#: Bytes up to which a table is folded.
MOST = 256 << 20
#: How far from an anchor a table is read.
_STEPS = 3


def fold_tables(level: PlanGraph, anchors: Collection[PlanNode], ranks: Collection[int], tools: Tools) -> None:
    """Fold the floating tables of some ranks that follow from constants and are read near the anchors of patterns, or by them."""
    derived = _derived(level)
    read = {v for node in _near(anchors, derived) for v in node.inputs if v.node in derived}
    wanted = {v for v in read if _is_table(v, ranks)}
    waiting, needed = list(wanted), set[PlanNode]()
    while waiting:
        node = waiting.pop().node
        if node is not None and node not in needed:
            needed.add(node)
            waiting.extend(node.inputs)
    arrays: dict[Value, np.ndarray] = {}
    with Rewriter(level) as change:
        for node in level.nodes if wanted else ():
            if node not in needed:
                continue
            results = [node.attrs["value"]] if node.verb == "constant" else _computed(node, arrays, tools)
            if results is None:
                continue
            arrays.update(zip(node.outputs, results, strict=True))
            if node.verb != "constant" and not wanted.isdisjoint(node.outputs):
                made = [constant_node(node, v, arrays[v], v.dtype, tools.const) for v in node.outputs]
                change.replace(node, [change.insert(constant, before=node).outputs[0] for constant in made])


def _near(anchors: Collection[PlanNode], derived: Collection[PlanNode]) -> set[PlanNode]:
    """The anchors, and what they are computed from in few steps."""
    found, edge = set(anchors), set(anchors)
    for _ in range(_STEPS):
        edge = {v.node for node in edge for v in node.inputs if v.node is not None and v.node not in derived} - found
        found |= edge
    return found


def _derived(level: PlanGraph) -> set[PlanNode]:
    """Constants, and what is computed from nothing else."""
    found: set[PlanNode] = set()
    for node in level.nodes:
        plain = (
            node.verb == "kernel" and "pure" in node.opdef.traits and not (node.control or node.bodies) and node.inputs
        )
        if node.verb == "constant" or (plain and all(v.node in found for v in node.inputs)):
            found.add(node)
    return found


def _is_table(value: Value, ranks: Collection[int]) -> bool:
    count = size(value.shape)
    if count is None or not value.dtype.is_floating or len(value.shape or ()) not in ranks:
        return False
    return count * value.dtype.size <= MOST and value.node is not None and value.node.verb != "constant"


def _computed(node: PlanNode, arrays: dict[Value, np.ndarray], tools: Tools) -> list[np.ndarray] | None:
    """The results of a node whose inputs are known; None where one is not, or it can't be computed here."""
    if not all(v in arrays for v in node.inputs):
        return None
    if any((count := size(v.shape)) is None or count * v.dtype.size > MOST for v in node.outputs):
        return None
    given = [constant_node(node, v, arrays[v], v.dtype, tools.const).outputs[0] for v in node.inputs]
    types = [(v.dtype, v.shape) for v in node.outputs]
    return tools.evaluate(make_node(node.opdef, node.name, given, node.attrs, types, requested=node.requested))
