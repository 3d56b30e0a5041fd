"""Large constants that patterns look at, such as masks of attention, folded where a pattern may ask for them.

Passes fold small results alone, because whatever is folded stays in memory. A pattern that wants to know what a table holds finds
none that is larger; those are folded here, just before patterns are looked for. What a pattern takes the place of goes then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from graphdock.contracts import OpDef, PassContext, Pattern, PlanContext, PlanGraph, PlanNode, Rewriter, Value
from graphdock.contracts.ir import make_node
from graphdock.shape import size

__all__ = ["MOST", "fold_tables", "tables"]

#: Bytes up to which a table is folded.
MOST = 256 << 20
#: How far from an anchor a table is read.
_STEPS = 3


def tables(graph: PlanGraph, context: PlanContext, patterns: Sequence[Pattern]) -> None:
    """Fold the tables that these patterns may look at, at every level."""
    for level in list(graph.all_graphs()):
        for anchors, ranks in _wanted(level, context, patterns):
            fold_tables(level, anchors, ranks, context)


def _wanted(
    level: PlanGraph, context: PlanContext, patterns: Sequence[Pattern]
) -> list[tuple[set[PlanNode], set[int]]]:
    """Anchors in a level of patterns that look at tables of constants, where they may be found, with the ranks of those tables;
    those of one op together."""
    wanted: dict[str, list[Pattern]] = {}
    for pattern in patterns:
        wanted.setdefault(pattern.anchor, []).append(pattern)
    found: dict[str, tuple[set[PlanNode], set[int]]] = {}
    for node in level.nodes if wanted else ():
        device = context.device_type(node) if node.op in wanted else None
        here = [p for p in wanted[node.op] if device not in p.not_on] if device is not None else []
        if here:
            anchors, ranks = found.setdefault(node.op, (set(), set()))
            anchors.add(node)
            ranks.update(len(o.shape) for p in here for o in p.inputs.values() if o.constant and o.shape)
    return list(found.values())


def fold_tables(level: PlanGraph, anchors: Collection[PlanNode], ranks: Collection[int], context: PassContext) -> None:
    """Fold the tables of some ranks that follow from constants and are read near the anchors of patterns, or by them.

    They are of floating numbers, or flags. Of those of other ranks leading dims of one go, where readers give as many dims
    without them; so do leading dims along which all is the same, and all dims of one number, as of a mask that is tiled.
    """
    derived = _derived(level)
    read = {v for node in _near(anchors, derived) for v in node.inputs if v.node in derived}
    found = {v for v in read if _is_table(v, ranks)}
    others = {v for v in read - found if len(v.shape or ()) not in ranks}
    tiled = _tiled(level, others, derived, min(ranks))
    wanted = found | tiled
    waiting, needed = list(wanted), set[PlanNode]()
    while waiting:
        node = waiting.pop().node
        if node is not None and node not in needed:
            needed.add(node)
            waiting.extend(node.inputs if _number(node) is None else ())
    readers: dict[Value, list[PlanNode]] = {v: [] for v in wanted}
    for node in level.nodes if wanted else ():
        for value in wanted.intersection(node.inputs) if node not in derived else ():
            readers[value].append(node)
    arrays: dict[Value, np.ndarray] = {}
    became: dict[Value, Value] = {}
    with Rewriter(level) as change:
        for node in level.nodes if wanted else ():
            if node not in needed:
                continue
            results = [node.attrs["value"]] if node.verb == "constant" else _computed(node, arrays, context)
            if results is None:
                continue
            arrays.update(zip(node.outputs, results, strict=True))
            for value in wanted.intersection(node.outputs):
                if value in found:
                    array = _fitted(arrays[value], readers[value], derived, ranks)
                elif (array := _once(arrays[value], min(ranks))).ndim == arrays[value].ndim:
                    continue
                table = context.constant(node, value, array)
                table.name = table.outputs[0].name = f"{value.name}/table"  # the value may stay, for readers elsewhere
                became[value] = change.insert(table, before=node).outputs[0]
        for node in dict.fromkeys(n for value in became for n in readers[value]):
            change.rebind(node, [became.get(v, v) for v in node.inputs])


def _near(anchors: Collection[PlanNode], derived: Collection[PlanNode]) -> set[PlanNode]:
    """The anchors, and what they are computed from in few steps."""
    found, edge = set(anchors), set(anchors)
    for _ in range(_STEPS):
        edge = {v.node for node in edge for v in node.inputs if v.node is not None and v.node not in derived} - found
        found |= edge
    return found


def _derived(level: PlanGraph) -> set[PlanNode]:
    """Constants, what is computed from nothing else, and ones and zeros of a shape that is known."""
    found: set[PlanNode] = set()
    for node in level.nodes:
        plain = (
            node.verb == "kernel" and "pure" in node.opdef.traits and not (node.control or node.bodies) and node.inputs
        )
        if node.verb == "constant" or (
            plain and (_number(node) is not None or all(v.node in found for v in node.inputs))
        ):
            found.add(node)
    return found


def _number(node: PlanNode) -> int | None:
    """The number that all elements are of what asks its input for nothing but a shape, which is known; None of other nodes."""
    form = node.opdef.region
    if form is None or len(form.outputs) != 1 or size(node.outputs[0].shape) is None:
        return None
    (text,) = form.outputs.values()
    return int(text) if text.isdecimal() else None


def _ones(dims: Sequence[int | None]) -> bool:
    return all(d == 1 for d in dims)


def _broadcasts(opdef: OpDef) -> bool:
    """Return whether each input has a shape of its own, as those of a sum of two have, and those of ``AddN`` have not."""
    shapes = [arg.shape for arg in opdef.inputs]
    alone = len(set(shapes)) == len(shapes) and all(arg.arity == "one" for arg in opdef.inputs)
    return "elementwise" in opdef.traits and alone


def _fitted(
    array: np.ndarray, readers: Sequence[PlanNode], derived: Collection[PlanNode], ranks: Collection[int]
) -> np.ndarray:
    """The array, of one of the ranks where that needs no more than to take leading ones away, and its readers broadcast."""

    def keeps(node: PlanNode) -> bool:
        others = [v.shape for v in node.inputs if v.node not in derived]  # which keep their dims
        return _broadcasts(node.opdef) and any(s is not None and len(s) >= array.ndim for s in others)

    wanted = [
        array.shape[array.ndim - r :] for r in sorted(ranks) if r <= array.ndim and _ones(array.shape[: array.ndim - r])
    ]
    return array.reshape(wanted[-1]) if wanted and all(map(keeps, readers)) else array


def _tiled(level: PlanGraph, read: Collection[Value], derived: Collection[PlanNode], rank: int) -> set[Value]:
    """Values that may be tables which were tiled: of more dims than a table, which all of their readers would give without them."""
    found = {v for v in read if _is_small(v) and v.shape is not None and len(v.shape) > rank}
    for node in level.nodes if found else ():
        if node in derived or found.isdisjoint(node.inputs):
            continue
        others = [v for v in node.inputs if v.node not in derived]
        if not (_broadcasts(node.opdef) and any(v.shape == node.outputs[0].shape for v in others)):
            found.difference_update(node.inputs)
    return found


def _once(array: np.ndarray, rank: int) -> np.ndarray:
    """The array without leading dims along which it is the same, bit by bit, down to a rank; a number where that is all of it."""
    bits = np.ascontiguousarray(array).view(f"u{array.itemsize}")
    if bits.size and (bits == bits.flat[0]).all():
        return array.reshape(-1)[:1].reshape(())
    while bits.ndim > rank and len(bits) and (bits == bits[:1]).all():
        array, bits = array[0], bits[0]
    return array


def _is_small(value: Value) -> bool:
    """Return whether a value is of numbers that tables have, and of no more bytes."""
    count = size(value.shape)
    return (
        count is not None
        and (value.dtype.is_floating or value.dtype.name == "bool")
        and count * value.dtype.size <= MOST
    )


def _is_table(value: Value, ranks: Collection[int]) -> bool:
    """Return whether a value may become a table of one of the ranks, and is none yet."""
    dims = value.shape or ()
    constant = value.node is not None and value.node.verb == "constant"
    fits = any(r <= len(dims) and _ones(dims[: len(dims) - r]) for r in ranks)
    return fits and _is_small(value) and not (constant and len(dims) in ranks)


def _computed(node: PlanNode, arrays: dict[Value, np.ndarray], context: PassContext) -> list[np.ndarray] | None:
    """The results of a node whose inputs are known; None where one is not, or it can't be computed here."""
    number = _number(node)
    if number is None and not all(v in arrays for v in node.inputs):
        return None
    if any((count := size(v.shape)) is None or count * v.dtype.size > MOST for v in node.outputs):
        return None
    if number is not None:
        made = node.outputs[0]
        return [np.full([d or 0 for d in made.shape or ()], number, made.dtype.np)]
    given = [context.constant(node, v, arrays[v]).outputs[0] for v in node.inputs]
    types = [(v.dtype, v.shape) for v in node.outputs]
    return context.evaluate(make_node(node.opdef, node.name, given, node.attrs, types, requested=node.requested))
