"""Parts of tensors, and transposed matrices: where in a tensor that is there the elements of a value lie.

What cuts a tensor or turns it computes nothing. A region that reads a part where it lies needs no copy of it. So do regions of
plans for any shape, where the offset is a number, and each stride a number or a multiple of dims that the part has itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import TypeAlias

from graphdock.contracts import PlanGraph, PlanNode, Rewriter, Value
from graphdock.contracts.ir import arg_of
from graphdock.contracts.region_program import Span
from graphdock.shape import Symbol

from graphdock_fusion.regions.forms import form_of
from graphdock_fusion.regions.placing import Shape, known
from graphdock_fusion.regions.typed import NotInRegion

__all__ = ["Part", "Stride", "erase_unread", "is_plain", "place_of", "readable_in_place"]

#: Elements of a tensor, at most: places in it are numbers of an address space.
_MOST = 1 << 46
#: Parts of parts, at most.
_DEEP = 16
#: Elements from one place to the next: a number, times these symbols.
Stride: TypeAlias = "tuple[int, tuple[Symbol, ...]]"
_Index: TypeAlias = "slice | int | EllipsisType | None"


@dataclass(frozen=True, slots=True)
class Part:
    """Place of a part in a value, which lies row by row.

    Attributes:
      strides: between neighbours of each dim. ``offset``: elements before the first one.
      spans: which dim of the value each dim is a slice of; None for a new one.
    """

    source: Value
    strides: tuple[Stride, ...]
    offset: int
    spans: tuple[Span | None, ...]


@dataclass(frozen=True, slots=True)
class _Dim:
    """A dim of a view: its size, its stride, and what it is of the whole tensor."""

    size: int | Symbol
    stride: Stride
    span: Span | None


@dataclass(frozen=True, slots=True)
class _View:
    dims: tuple[_Dim, ...]
    offset: int

    def __getitem__(self, index: Sequence[_Index]) -> _View | None:
        """Part of it, as NumPy's index gives it; None where its place depends on a size that is not known, and of a slice of a
        slice of such a dim."""
        rest = len(self.dims) - sum(i is not None and i is not Ellipsis for i in index)
        middle = index.index(Ellipsis) if Ellipsis in index else len(index)
        items = [*index[:middle], *[slice(None)] * rest, *index[middle + 1 :]]
        left, offset = iter(self.dims), self.offset
        found: list[_Dim] = []
        for item in items:
            assert item is not Ellipsis
            dim = _Dim(1, (0, ()), None) if item is None else next(left)
            if item is None or item == slice(None):
                found.append(dim)
                continue
            cut = _cut(dim, item)
            if cut is None:
                return None
            begin, kept = cut
            if begin and dim.stride[1]:
                return None
            offset += begin * dim.stride[0]
            found += kept
        return _View(tuple(found), offset)

    def turned(self, order: Sequence[int]) -> _View:
        return _View(tuple([self.dims[i] for i in order]), self.offset)


def _cut(dim: _Dim, item: slice | int) -> tuple[int, Sequence[_Dim]] | None:
    """First place of what an index leaves of a dim, and that; None where it is not known."""
    if isinstance(item, int):
        if isinstance(dim.size, int):
            return item % dim.size, ()
        return None if item < 0 else (item, ())  # that there are so many is a condition of the plan
    begin, end, step = item.start or 0, item.stop, 1 if item.step is None else item.step
    factor, symbols = dim.stride
    stride = factor * step, symbols
    if isinstance(dim.size, int):
        places = range(dim.size)[item]
        return places.start, [_Dim(len(places), stride, None)]
    if begin < 0 or step < 0 or dim.span is None or dim.span != Span(dim.span.dim):
        return None
    return begin, [_Dim(dim.size, stride, Span(dim.span.dim, begin, end, step))]


def _piece(x: _View, axis: int, node: PlanNode, output: int) -> _View | None:
    """Part along an axis, of sizes that the plan knows."""
    axis %= len(x.dims)
    sizes = [known(v)[axis] for v in node.outputs]
    before = [size for size in sizes if isinstance(size, int)]
    if len(before) < len(sizes) or sum(before) != x.dims[axis].size:
        return None
    begin = sum(before[:output])
    return x[(*[slice(None)] * axis, slice(begin, begin + before[output]))]


def _sliced(x: _View, node: PlanNode, _: int) -> _View | None:
    begin, size = (node.constant(i).tolist() for i in (1, 2))
    return x[[slice(b or None, None if n < 0 else b + n) for b, n in zip(begin, size, strict=True)]]


def _strided(x: _View, node: PlanNode, _: int) -> _View | None:
    begin, end, step = (node.constant(i).tolist() for i in (1, 2, 3))
    index: list[_Index] = []
    for i, (b, e, s) in enumerate(zip(begin, end, step, strict=True)):
        has = {n: node.attrs[f"{n}_mask"] >> i & 1 for n in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
        item = slice(None if has["begin"] or b == 0 and s > 0 else b, None if has["end"] else e, None if s == 1 else s)
        index.append(... if has["ellipsis"] else None if has["new_axis"] else b if has["shrink_axis"] else item)
    return x[index]


def _squeezed(x: _View, node: PlanNode, _: int) -> _View | None:
    gone = {a % len(x.dims) for a in node.attrs["axis"]} or {i for i, d in enumerate(x.dims) if d.size == 1}
    return x[[0 if i in gone else slice(None) for i in range(len(x.dims))]]


#: Op -> the view that an output is of its only tensor, by its number.
_VIEWS: Mapping[str, Callable[[_View, PlanNode, int], _View | None]] = {
    "Slice": _sliced,
    "Split": lambda x, node, output: _piece(x, int(node.constant(0)), node, output),
    "SplitV": lambda x, node, output: _piece(x, int(node.constant(2)), node, output),
    "Squeeze": _squeezed,
    "StridedSlice": _strided,
    "Transpose": lambda x, node, _: x.turned(node.constant(1).tolist()),
    "Unpack": lambda x, node, output: x[(*[slice(None)] * (node.attrs["axis"] % len(x.dims)), output)],
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
        if seen is None or source is value or not _stays(source, inputs_stay):
            return None
        single = all(d.size == 1 for d in seen.dims)
        if _has_no_gaps(seen) and (single or node.op == "Squeeze"):  # its kernel gives a view that everyone reads
            return None
        shape = {d.size for d in seen.dims}
        if any(symbol not in shape for d in seen.dims for symbol in d.stride[1]):
            return None
        steps = [d.stride for d in seen.dims if d.size != 1]
        turned = len(steps) == 2 and steps[0] == (1, ()) and not steps[1][1] and value not in others
        return source if min(s[0] for s in steps) > 0 and (steps[-1] == (1, ()) or turned) else None

    return lies_in


def place_of(value: Value) -> Part | None:
    """Place of a value in one that it is a part of; None where it is none, or that is not known before the step."""
    source, seen = _seen(value)
    if seen is None or source is value:
        return None
    return Part(source, tuple([d.stride for d in seen.dims]), seen.offset, tuple([d.span for d in seen.dims]))


def erase_unread(level: PlanGraph, nodes: Collection[PlanNode]) -> None:
    """Erase those of these nodes that nothing of a level reads or waits for any more, and what only they read of them."""
    kept = {v.node for v in level.outputs} | set(level.targets)
    with Rewriter(level) as change:
        for node in reversed(level.nodes):
            if node in nodes and node not in kept:
                change.erase(node)
            else:
                kept.update((*(v.node for v in node.inputs), *node.control, *node.order))


def _seen(value: Value) -> tuple[Value, _View | None]:
    """The value whose elements it has, and which of these; None where that is not known before the step."""
    node = value.node
    try:
        shape = known(value)
        if 0 in shape or math.prod(d for d in shape if isinstance(d, int)) > _MOST:
            return value, None
        if node is not None and node.op in _VIEWS and _waits_for_nothing(node):
            source, whole = _seen(_whole(node))
            if whole is not None and (view := _VIEWS[node.op](whole, node, value.index)) is not None:
                # what the plan knows of the value's own dims holds of these
                dims = [_Dim(n, d.stride, d.span) for n, d in zip(shape, view.dims, strict=True)]
                return source, _View(tuple(dims), view.offset)
    except NotInRegion:  # a shape is not known
        return value, None
    return value, _View(
        tuple([_Dim(n, s, Span(i)) for i, (n, s) in enumerate(zip(shape, _rows(shape), strict=True))]), 0
    )


def _rows(shape: Shape) -> list[Stride]:
    """Strides of what lies row by row."""
    found: list[Stride] = []
    factor, symbols = 1, list[Symbol]()
    for size in reversed(shape):
        found.append((factor, tuple(sorted(symbols, key=id))))
        if isinstance(size, int):
            factor *= size
        else:
            symbols.append(size)
    return found[::-1]


def _has_no_gaps(view: _View) -> bool:
    """Return whether a view lies row by row."""
    lies = _rows(tuple([d.size for d in view.dims]))
    return all(d.size == 1 or d.stride == stride for d, stride in zip(view.dims, lies, strict=True))


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
    return _waits_for_nothing(node) and all(
        v.shape is not None and None not in v.shape and 0 not in v.shape for v in node.outputs
    )


def _waits_for_nothing(node: PlanNode) -> bool:
    """Return whether a node computes nothing but its outputs, of numbers that are known, and nothing is checked when it runs."""
    numbers = [node.constant(i) for i, arg in enumerate(arg_of(node)) if arg.memory == "host"]
    return not node.control and not node.order and node.guard is None and all(n is not None for n in numbers)


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
