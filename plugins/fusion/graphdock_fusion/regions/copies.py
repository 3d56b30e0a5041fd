"""Copies between parts of a loop's buffers: nodes that cut, turn and join tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphdock.contracts import LoopCopy, PlanNode, Value

from graphdock_fusion.regions.parts import is_plain, place_of

__all__ = ["copies_of"]


def copies_of(node: PlanNode) -> list[tuple[Value, Value, LoopCopy]]:
    """The copies that make a node's outputs: from which value, to which, and which elements; none where it is another op, or its
    numbers or shapes are not known."""
    if node.op in ("Concat", "Pack"):
        return _joined(node) if is_plain(node) else []
    if node.op == "ReverseV2":
        return _reversed(node) if is_plain(node) else []
    found = []
    for value in node.outputs:
        part, shape = place_of(value), value.shape
        if part is None or shape is None or part.source.shape is None or None in (*shape, *part.source.shape):
            return []
        dims, strides = tuple([d or 0 for d in shape]), tuple([number for number, _ in part.strides])
        found.append((part.source, value, LoopCopy(dims, strides, part.offset, _strides(dims), 0)))
    return found


def _joined(node: PlanNode) -> list[tuple[Value, Value, LoopCopy]]:
    (made,) = node.outputs
    whole = tuple([d or 0 for d in made.shape or ()])
    strides, found, at = _strides(whole), [], 0
    if node.op == "Pack":
        axis = node.attrs["axis"] % len(whole)
        values: Sequence[Value] = node.inputs
    else:
        axis = int(node.constant(node.attrs["N"])) % len(whole)
        values = node.inputs[: node.attrs["N"]]
    for value in values:
        shape = tuple([d or 0 for d in value.shape or ()])
        if None in (value.shape or ()) or 0 in shape:
            return []
        into = strides[:axis] + strides[axis + 1 :] if node.op == "Pack" else strides
        found.append((value, made, LoopCopy(shape, _strides(shape), 0, into, at * strides[axis])))
        at += 1 if node.op == "Pack" else shape[axis]
    return found


def _reversed(node: PlanNode) -> list[tuple[Value, Value, LoopCopy]]:
    """The copy that reads some dims from their ends."""
    (made,), axes = node.outputs, node.constant(1)
    dims = tuple([d or 0 for d in made.shape or ()])
    strides = list(_strides(dims))
    first = 0
    for axis in {int(a) % len(dims) for a in axes.reshape(-1)}:
        first += (dims[axis] - 1) * strides[axis]
        strides[axis] = -strides[axis]
    return [(node.inputs[0], made, LoopCopy(dims, tuple(strides), first, _strides(dims), 0))]


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements from place to place of each dim, row by row without gaps."""
    return tuple([math.prod(shape[i + 1 :]) for i in range(len(shape))])
