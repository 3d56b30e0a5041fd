"""Known values of small integer tensors: what shape inference may know before anything runs.

A closed list of integer ops up to :data:`LIMIT` elements, evaluated over any graph: ``producer`` tells how a tensor was made, so
that the user's graph (at construction) and the plan (again with concrete feeds) share this module.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from graphdock.shape import Dims

__all__ = ["LIMIT", "Producer", "evaluate"]

#: Largest number of elements that is tracked.
LIMIT = 1024
_DEPTH = 64

Element: TypeAlias = int | None
Known: TypeAlias = "Element | tuple[Element, ...]"
#: tensor -> (op type, attrs, inputs, output index), or None for a tensor that nothing here made.
Producer: TypeAlias = Callable[[Any], "tuple[str, Mapping[str, Any], Sequence[Any], int] | None"]


def evaluate(tensor: Any, producer: Producer, shape_of: Callable[[Any], Dims], depth: int = 0) -> Known:
    """What is known of a rank-0 (int) or rank-1 (tuple, None per unknown element) integer tensor; None when nothing is.

    Of a rank-2 tensor that is asked for itself (paddings) a constant or a stack of vectors is known, as a tuple of rows.
    """
    made = producer(tensor)
    if made is None or depth > _DEPTH:
        return None
    op, attrs, inputs, index = made
    if depth == 0:
        rows = _rows(op, attrs, inputs, lambda x: evaluate(x, producer, shape_of, 1), shape_of)
        if rows is not None:
            return rows  # type: ignore[no-any-return]
    rule = _RULES.get(op)
    if rule is None:
        return None

    def value(i: int) -> Known:
        return evaluate(inputs[i], producer, shape_of, depth + 1)

    found = rule(attrs, inputs, value, shape_of)
    if op in _LISTED and found is not None:
        found = found[index]
    known: Known = found
    return known


def _rows(op: str, attrs: Any, inputs: Any, value_of: Any, shape_of: Any) -> Any:
    """The rows of a rank-2 tensor, or None."""
    if op == "Const":
        array = attrs["value"]
        known = array.ndim == 2 and array.size <= LIMIT and array.dtype.kind in "iu"
        return tuple(tuple(int(v) for v in row) for row in array) if known else None
    if op != "Pack" or attrs.get("axis", 0) not in (0, 1):
        return None
    vectors = []
    for x in inputs:
        dims, found = shape_of(x), value_of(x)
        if dims is None or len(dims) != 1 or dims[0] is None or dims[0] * len(inputs) > LIMIT:
            return None
        vectors.append(found if isinstance(found, tuple) else (None,) * dims[0])
    return tuple(vectors) if attrs.get("axis", 0) == 0 else tuple(zip(*vectors, strict=True))


def _const(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    array = attrs["value"]
    if array.ndim > 1 or array.size > LIMIT or array.dtype.kind not in "iub":
        return None
    return int(array) if array.ndim == 0 else tuple(int(v) for v in array)


def _shape(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    return shape_of(inputs[0])  # type: ignore[no-any-return]


def _rank(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    dims = shape_of(inputs[0])
    return None if dims is None else len(dims)


def _size(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    from graphdock.shape import size

    return size(shape_of(inputs[0]))


def _same(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    return value(0)  # type: ignore[no-any-return]


def _cast(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    return value(0) if attrs["DstT"].is_integer and attrs["SrcT"].is_integer else None


def _pack(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    items = [value(i) for i in range(len(inputs))]
    if attrs.get("axis", 0) != 0 or any(isinstance(v, tuple) for v in items) or any(shape_of(x) != () for x in inputs):
        return None
    return tuple(items)


def _concat(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    parts: list[Element] = []
    for i in range(len(inputs) - 1):
        part = value(i)
        if not isinstance(part, tuple):
            dims = shape_of(inputs[i])
            if dims is None or len(dims) != 1 or dims[0] is None or dims[0] > LIMIT:
                return None
            part = (None,) * dims[0]
        parts.extend(part)
    return tuple(parts)


def _slice(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    x, begin, size = value(0), value(1), value(2)
    if not (isinstance(x, tuple) and isinstance(begin, tuple) and isinstance(size, tuple)):
        return None
    if len(begin) != 1 or begin[0] is None or size[0] is None:
        return None
    return x[begin[0] :] if size[0] == -1 else x[begin[0] : begin[0] + size[0]]


def _strided_slice(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    x, begin, end, strides = (value(i) for i in range(4))
    if not isinstance(x, tuple) or any(not isinstance(v, tuple) or len(v) != 1 for v in (begin, end, strides)):
        return None
    b, e, s = begin[0], end[0], strides[0]
    if attrs.get("ellipsis_mask") or attrs.get("new_axis_mask") or s is None:
        return None
    if attrs.get("shrink_axis_mask", 0) & 1:
        return x[b] if b is not None and -len(x) <= b < len(x) else None
    first = None if attrs.get("begin_mask", 0) & 1 else b
    last = None if attrs.get("end_mask", 0) & 1 else e
    if (first is None and not attrs.get("begin_mask", 0) & 1) or (last is None and not attrs.get("end_mask", 0) & 1):
        return None
    return x[first:last:s]


def _gather(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    x, index = value(0), value(1)
    if not isinstance(x, tuple) or index is None:
        return None
    picks = index if isinstance(index, tuple) else (index,)
    if any(i is None or not 0 <= i < len(x) for i in picks):
        return None
    found = tuple(x[i] for i in picks if i is not None)
    return found if isinstance(index, tuple) else found[0]


def _range(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    start, limit, delta = (value(i) for i in range(3))
    if not (isinstance(start, int) and isinstance(limit, int) and isinstance(delta, int)) or delta == 0:
        return None
    steps = range(start, limit, delta)
    return tuple(steps) if len(steps) <= LIMIT else None


def _prod(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    x = value(0)
    if not isinstance(x, tuple) or None in x or attrs.get("keep_dims"):
        return None
    total: int = math.prod(v for v in x if v is not None)
    return total


def _expand(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    x = value(0)
    found: Known = (x,) if shape_of(inputs[0]) == () and not isinstance(x, tuple) else None
    return found


def _squeeze(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    x = value(0)
    found: Known = x[0] if isinstance(x, tuple) and len(x) == 1 else None
    return found


def _reshape(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    x, to = value(0), value(1)
    if to == ():
        whole: Known = x[0] if isinstance(x, tuple) and len(x) == 1 else x
        return whole
    if isinstance(to, tuple) and len(to) == 1:
        return x if isinstance(x, tuple) else (x,) if shape_of(inputs[0]) == () else None
    return None


def _unpack(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Any:
    x = value(0)
    return x if isinstance(x, tuple) and len(x) == attrs["num"] else None


def _split(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Any:
    x, count = value(1), attrs["num_split"]
    if not isinstance(x, tuple) or len(x) % count:
        return None
    size = len(x) // count
    return [x[i * size : (i + 1) * size] for i in range(count)]


def _reverse(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
    x, axes = value(0), value(1)
    if not isinstance(x, tuple) or not isinstance(axes, tuple) or None in axes:
        return None
    return x[::-1] if axes else x


def _fill(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Any:
    dims, element = value(0), value(1)
    if isinstance(element, tuple) or not isinstance(dims, tuple) or len(dims) > 1 or None in dims:
        return None
    if not dims:
        return element
    return (element,) * dims[0] if dims[0] is not None and 0 <= dims[0] <= LIMIT else None


def _binary(function: Callable[[int, int], int]) -> Any:
    def rule(attrs: Any, inputs: Any, value: Any, shape_of: Any) -> Known:
        limit = 1 << (8 * attrs["T"].size - 1)

        def apply(a: Element, b: Element) -> Element:
            found = None if a is None or b is None else function(a, b)
            # beyond the dtype the step wraps around; what it makes of it is not known here
            return found if found is not None and -limit <= found < limit else None

        a, b = value(0), value(1)
        if isinstance(a, tuple) and isinstance(b, tuple):
            if len(a) == 1 and len(b) != 1:
                a = a * len(b)
            elif len(b) == 1 and len(a) != 1:
                b = b * len(a)
            return tuple(apply(x, y) for x, y in zip(a, b, strict=True)) if len(a) == len(b) else None
        if isinstance(a, tuple):
            return tuple(apply(x, b) for x in a)
        if isinstance(b, tuple):
            return tuple(apply(a, y) for y in b)
        return apply(a, b)

    return rule


_RULES: dict[str, Any] = {
    "Const": _const,
    "Shape": _shape,
    "Rank": _rank,
    "Size": _size,
    "Identity": _same,
    "StopGradient": _same,
    "Cast": _cast,
    "Pack": _pack,
    "Concat": _concat,
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "Gather": _gather,
    "Range": _range,
    "Prod": _prod,
    "ExpandDims": _expand,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Unpack": _unpack,
    "Split": _split,
    "ReverseV2": _reverse,
    "Fill": _fill,
    "Add": _binary(operator.add),
    "Sub": _binary(operator.sub),
    "Mul": _binary(operator.mul),
    "FloorDiv": _binary(lambda a, b: a // b if b else 0),
    "FloorMod": _binary(lambda a, b: a % b if b else 0),
    "Minimum": _binary(min),
    "Maximum": _binary(max),
}

#: Ops with a list output, whose rules return what is known of each.
_LISTED = ("Unpack", "Split")
