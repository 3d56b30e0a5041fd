"""Parts of tensors, and transposed matrices: where in a tensor that is there the elements of a value lie.

What cuts a tensor or turns it computes nothing. A region that reads a part where it lies needs no copy of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from graphdock.contracts import PlanGraph, PlanNode, Region, Rewriter, Value
from graphdock.contracts.ir import arg_of

from graphdock_fusion.regions.forms import form_of

__all__ = ["Part", "erase_unread", "is_plain", "parts_of", "place_of", "readable_in_place"]

#: Bytes, one for each element: views of it are views of the tensor. None is ever read: there is one, at ``_ADDRESS``.
_BYTE = np.zeros((), np.int8)
_ADDRESS = _BYTE.__array_interface__["data"][0]
#: Elements of a tensor, at most: places in it are numbers of an address space.
_MOST = 1 << 46
#: Parts of parts, at most.
_DEEP = 16
_Bytes: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.int8]]"


@dataclass(frozen=True, slots=True)
class Part:
    """Place of a part: the elements between neighbours of each dim, and those before the first one, of a value row by row."""

    source: Value
    strides: tuple[int, ...]
    offset: int


def _cut(place: int, x: _Bytes, node: PlanNode) -> Sequence[_Bytes]:
    """Parts along the axis that is input ``place``."""
    axis = int(node.constant(place))
    sizes = [v.shape[axis] or 0 for v in node.outputs if v.shape is not None]
    return np.split(x, list(itertools.accumulate(sizes))[:-1], axis)


def _unpacked(x: _Bytes, node: PlanNode) -> Sequence[_Bytes]:
    moved = np.moveaxis(x, node.attrs["axis"], 0)
    return [moved[i, ...] for i in range(len(moved))]  # views, also of a vector


def _sliced(x: _Bytes, node: PlanNode) -> Sequence[_Bytes]:
    begin, size = (node.constant(i).tolist() for i in (1, 2))
    parts: list[slice | int | None] = [slice(b, None if n < 0 else b + n) for b, n in zip(begin, size, strict=True)]
    return [x[(*parts, ...)]]


def _strided(x: _Bytes, node: PlanNode) -> Sequence[_Bytes]:
    begin, end, step = (node.constant(i).tolist() for i in (1, 2, 3))
    index: list[slice | int | None] = []
    for i, (b, e, s) in enumerate(zip(begin, end, step, strict=True)):
        has = {name: node.attrs[f"{name}_mask"] >> i & 1 for name in ("begin", "end", "new_axis", "shrink_axis")}
        item = slice(None if has["begin"] else b, None if has["end"] else e, s)
        index.append(None if has["new_axis"] else b if has["shrink_axis"] else item)
    return [x[(*index, ...)]]


def _squeezed(x: _Bytes, node: PlanNode) -> Sequence[_Bytes]:
    gone = {a % x.ndim for a in node.attrs["axis"]} or {i for i, n in enumerate(x.shape) if n == 1}
    kept: list[slice | int | None] = [0 if i in gone else slice(None) for i in range(x.ndim)]
    return [x[(*kept, ...)]]


#: Op -> the views that its outputs are of its only tensor.
_VIEWS: Mapping[str, Callable[[_Bytes, PlanNode], Sequence[_Bytes]]] = {
    "Slice": _sliced,
    "Split": lambda x, node: _cut(0, x, node),
    "SplitV": lambda x, node: _cut(2, x, node),
    "Squeeze": _squeezed,
    "StridedSlice": _strided,
    "Transpose": lambda x, node: [np.transpose(x, node.constant(1))],
    "Unpack": _unpacked,
}


def readable_in_place(inputs_stay: bool, nodes: Collection[PlanNode]) -> Callable[[Value], Value | None]:
    """Return what says in which value one lies that nodes of a region read better there, or None: it is a part whose rows have no
    gaps in themselves, or a transposed matrix that only products read.

    Args:
      inputs_stay: what has no node is no variable's memory, which others write.
    """
    device = next(iter(nodes)).device
    others = {v for n in nodes if not ((form := form_of(n.opdef)) and form.space) for v in n.inputs}

    def lies_in(value: Value) -> Value | None:
        node = value.node
        if node is None or node.op not in _VIEWS or node.device != device or _is_deep(value):
            return None
        source, seen = _seen(value)
        if seen is None or source is value or seen.flags.c_contiguous or not _stays(source, inputs_stay):
            return None
        steps = [stride for stride, size in zip(seen.strides, seen.shape, strict=True) if size != 1]
        turned = len(steps) == 2 and steps[0] == 1 and value not in others
        return source if min(steps) > 0 and (steps[-1] == 1 or turned) else None

    return lies_in


def parts_of(region: Region) -> dict[Value, Part]:
    """Places of a region's parts, as its own nodes say them: value of its graph -> where it lies in an input of it."""
    found: dict[Value, Part] = {}
    for node in region.parts:
        for value in node.outputs:
            place = place_of(value)
            assert place is not None
            found[value] = place
    return found


def place_of(value: Value) -> Part | None:
    """Place of a value in one that it is a part of; None where it is none, or that is not known before the step."""
    source, seen = _seen(value)
    if seen is None or source is value:
        return None
    return Part(source, seen.strides, seen.__array_interface__["data"][0] - _ADDRESS)


def erase_unread(level: PlanGraph, nodes: Collection[PlanNode]) -> None:
    """Erase those of these nodes that nothing of a level reads or waits for any more, and what only they read of them."""
    kept = {v.node for v in level.outputs} | set(level.targets)
    with Rewriter(level) as change:
        for node in reversed(level.nodes):
            if node in nodes and node not in kept:
                change.erase(node)
            else:
                kept.update((*(v.node for v in node.inputs), *node.control, *node.order))


def _seen(value: Value) -> tuple[Value, _Bytes | None]:
    """The value whose elements it has, and which of these; None where that is not known before the step."""
    node = value.node
    if node is not None and node.op in _VIEWS and is_plain(node):
        source, whole = _seen(_whole(node))
        if whole is not None:
            return source, _VIEWS[node.op](whole, node)[value.index]
    shape = [d or 0 for d in value.shape or ()]
    if value.shape is None or 0 in shape or math.prod(shape) > _MOST:
        return value, None
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return value, np.lib.stride_tricks.as_strided(_BYTE, shape, strides)


def _whole(node: PlanNode) -> Value:
    """The only tensor that a view reads."""
    (value,) = [v for v, arg in zip(node.inputs, arg_of(node), strict=True) if arg.memory != "host"]
    return value


def _is_deep(value: Value) -> bool:
    """Return whether a value is a part of too many others."""
    for _ in range(_DEEP):
        if value.node is None or value.node.op not in _VIEWS:
            return False
        value = _whole(value.node)
    return True


def is_plain(node: PlanNode) -> bool:
    """Return whether a node waits for nothing, its numbers are known, and its shapes."""
    numbers = [node.constant(i) for i, arg in enumerate(arg_of(node)) if arg.memory == "host"]
    shapes = [v.shape for v in node.outputs]
    known = all(s is not None and None not in s and 0 not in s for s in shapes) and not node.attrs.get("ellipsis_mask")
    return known and not node.control and not node.order and node.guard is None and all(n is not None for n in numbers)


def _stays(value: Value, inputs_stay: bool) -> bool:
    """Return whether nobody writes the elements of a value while it is read: they are no variable's."""
    node = value.node
    while node is not None:
        if node.opdef.accesses or node.opdef.effects:
            return False
        if not node.opdef.aliases:
            return True
        names = set(node.opdef.aliases.values())
        value = next(v for v, arg in zip(node.inputs, arg_of(node), strict=True) if arg.name in names)
        node = value.node
    return inputs_stay
