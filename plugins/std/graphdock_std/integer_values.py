"""Integer rules of std's ops: what is known of a small integer output before anything runs.

Each takes a :class:`graphdock.ops.IntegerContext` and returns what is known of the output: an int at rank 0, a tuple at rank 1,
a tuple of rows at rank 2, None where nothing is; a list of these for a list output. An element that is not an int is unknown.
Results need not fit the dtype: the evaluator wraps them around. Where the op would refuse its inputs a rule returns None and
leaves the error to the step.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphdock.ops import IntegerContext


def _elements(ctx: IntegerContext, index: int) -> tuple[list[Any], int] | None:
    """Elements of a scalar or vector, None for unknown ones, and its rank; None for another rank or an unknown number."""
    value, dims = ctx.value(index), ctx.dims(index)
    if isinstance(value, tuple):
        rank = len(dims) if dims is not None else 1
        return (list(value), 1) if rank == 1 and not any(isinstance(v, tuple) for v in value) else None
    if value is not None or dims == ():
        return [value], 0
    if dims is not None and len(dims) == 1 and isinstance(dims[0], int) and dims[0] <= ctx.limit:
        return [None] * dims[0], 1
    return None


def _vector(ctx: IntegerContext, index: int) -> list[Any] | None:
    found = _elements(ctx, index)
    return found[0] if found is not None and found[1] == 1 else None


def _ints(ctx: IntegerContext, index: int) -> list[int] | None:
    """Elements of a scalar or vector all of which are known."""
    found = _elements(ctx, index)
    return found[0] if found is not None and all(isinstance(v, int) for v in found[0]) else None


def _rows(ctx: IntegerContext, index: int) -> list[tuple[Any, ...]] | None:
    """Rows of a matrix."""
    value, dims = ctx.value(index), ctx.dims(index)
    if not isinstance(value, tuple) or dims is None or len(dims) != 2:
        return None
    return list(value)


def _made(elements: Sequence[Any], rank: int) -> Any:
    return tuple(elements) if rank else elements[0]


def _arranged(elements: Sequence[Any], dims: Sequence[int]) -> Any:
    """Row-major elements under a shape of rank 2 or less."""
    if len(dims) < 2:
        return _made(elements, len(dims))
    rows, columns = dims
    return tuple([tuple(elements[r * columns : (r + 1) * columns]) for r in range(rows)])


def _first_axis(axis: Any, rank: int = 1) -> bool:
    return isinstance(axis, int) and axis in (0, -rank)


# arithmetic


def _binary(function: Callable[[int, int], int]) -> Callable[[IntegerContext], Any]:
    """The rule of an elementwise op of two operands that broadcast, over scalars and vectors."""

    def rule(ctx: IntegerContext) -> Any:
        left, right = _elements(ctx, 0), _elements(ctx, 1)
        if left is None or right is None:
            return None
        (a, rank_a), (b, rank_b) = left, right
        if len(a) != len(b):
            if len(a) == 1:
                a = a * len(b)
            elif len(b) == 1:
                b = b * len(a)
            else:
                return None
        found = [
            function(x, y) if isinstance(x, int) and isinstance(y, int) else None for x, y in zip(a, b, strict=True)
        ]
        return _made(found, max(rank_a, rank_b))

    return rule


add = _binary(operator.add)
sub = _binary(operator.sub)
mul = _binary(operator.mul)
floor_div = _binary(lambda a, b: a // b if b else 0)
floor_mod = _binary(lambda a, b: a % b if b else 0)
minimum = _binary(min)
maximum = _binary(max)


def prod(ctx: IntegerContext) -> Any:
    found, axes = _elements(ctx, 0), _ints(ctx, 1)
    if found is None or axes is None:
        return None
    elements, rank = found
    if not axes:
        return _made(elements, rank)
    if rank != 1 or len(axes) > 1 or not _first_axis(axes[0]):
        return None
    total = math.prod(elements) if all(isinstance(v, int) for v in elements) else None
    return (total,) if ctx.attrs["keep_dims"] else total


# shapes


def size(ctx: IntegerContext) -> Any:
    dims = ctx.dims(0)
    if dims is None or not all(isinstance(d, int) for d in dims):
        return None
    count = math.prod(d for d in dims if d is not None)
    return count if count < 1 << 8 * ctx.output_dtype().size - 1 else None


def rank(ctx: IntegerContext) -> Any:
    dims = ctx.dims(0)
    return None if dims is None else len(dims)


# making


def range_(ctx: IntegerContext) -> Any:
    bounds = [ctx.value(i) for i in range(3)]
    if not all(isinstance(v, int) for v in bounds) or bounds[2] == 0 or (bounds[1] - bounds[0]) * bounds[2] < 0:
        return None
    numbers = range(*bounds)
    return tuple(numbers) if len(numbers) <= ctx.limit else None


def fill(ctx: IntegerContext) -> Any:
    dims, value = _ints(ctx, 0), _elements(ctx, 1)
    if dims is None or ctx.dims(0) == () or value is None or value[1] or len(dims) > 2:
        return None
    count = math.prod(dims)
    if any(d < 0 for d in dims) or count > ctx.limit or max(dims, default=0) > ctx.limit:
        return None
    return _arranged(value[0] * count, dims)


# rearranging


def reshape(ctx: IntegerContext) -> Any:
    found, rows, to = _elements(ctx, 0), _rows(ctx, 0), _vector(ctx, 1)
    if to is None or len(to) > 2 or (found is None and rows is None):
        return None
    elements: list[Any] = found[0] if found is not None else [v for row in rows or () for v in row]
    if len(to) == 1 and not isinstance(to[0], int):
        return tuple(elements)
    if not all(isinstance(d, int) for d in to) or to.count(-1) > 1 or min(to, default=0) < -1:
        return None
    rest = math.prod(d for d in to if d != -1)
    if -1 in to:
        if rest == 0:
            return None
        to[to.index(-1)] = len(elements) // rest
    return _arranged(elements, to) if math.prod(to) == len(elements) else None


def expand_dims(ctx: IntegerContext) -> Any:
    found, axis = _elements(ctx, 0), ctx.value(1)
    if found is None or not isinstance(axis, int):
        return None
    elements, rank = found
    if rank == 0:
        return tuple(elements) if _first_axis(axis) else None
    if _first_axis(axis, 2):
        return (tuple(elements),)
    return tuple([(v,) for v in elements]) if axis in (1, -1) else None


def squeeze(ctx: IntegerContext) -> Any:
    found, axes = _elements(ctx, 0), ctx.attrs["axis"]
    if found is None:
        return None
    elements, rank = found
    if not axes:
        return _made(elements, rank if len(elements) != 1 else 0)
    one = rank == 1 and len(elements) == 1 and all(_first_axis(a) for a in axes)
    return elements[0] if one else None


def reverse(ctx: IntegerContext) -> Any:
    found, axes = _elements(ctx, 0), _ints(ctx, 1)
    if found is None or axes is None or ctx.dims(1) == ():
        return None
    elements, rank = found
    if not axes:
        return _made(elements, rank)
    return tuple(elements[::-1]) if rank == 1 and len(axes) == 1 and _first_axis(axes[0]) else None


# joining and cutting


def concat(ctx: IntegerContext) -> Any:
    if not _first_axis(ctx.value(ctx.inputs - 1)):
        return None
    found: list[Any] = []
    for i in range(ctx.inputs - 1):
        part = _vector(ctx, i)
        if part is None:
            return None
        found += part
    return tuple(found)


def pack(ctx: IntegerContext) -> Any:
    parts = [_elements(ctx, i) for i in range(ctx.inputs)]
    forms = {(p[1], len(p[0])) for p in parts if p is not None}
    if len(forms) != 1:
        return None
    # the parts have one shape, so that one tells those of the others
    axis, items = ctx.attrs["axis"], [[None] * next(iter(forms))[1] if p is None else p[0] for p in parts]
    if (0, 1) in forms:
        return tuple([v for (v,) in items]) if _first_axis(axis) else None
    if _first_axis(axis, 2):
        return tuple(map(tuple, items))
    return tuple(zip(*items, strict=True)) if axis in (1, -1) else None


def unpack(ctx: IntegerContext) -> Any:
    count, axis = ctx.attrs["num"], ctx.attrs["axis"]
    elements, rows = _vector(ctx, 0), _rows(ctx, 0)
    found: list[Any] | None = None
    if elements is not None and _first_axis(axis):
        found = elements
    elif rows is not None:
        found = list(rows) if _first_axis(axis, 2) else list(zip(*rows, strict=True)) if axis in (1, -1) else None
    return found if found is not None and len(found) == count else None


def split(ctx: IntegerContext) -> Any:
    elements, count = _vector(ctx, 1), ctx.attrs["num_split"]
    if elements is None or not _first_axis(ctx.value(0)) or len(elements) % count:
        return None
    length = len(elements) // count
    return [tuple(elements[i * length : (i + 1) * length]) for i in range(count)]


def slice_(ctx: IntegerContext) -> Any:
    elements, begin, length = _vector(ctx, 0), _ints(ctx, 1), _ints(ctx, 2)
    if elements is None or begin is None or length is None or len(begin) != 1 or len(length) != 1:
        return None
    first, count = begin[0], length[0]
    if not 0 <= first <= len(elements):
        return None
    if count == -1:
        return tuple(elements[first:])
    return tuple(elements[first : first + count]) if 0 <= count <= len(elements) - first else None


def strided_slice(ctx: IntegerContext) -> Any:
    elements, bounds = _vector(ctx, 0), [_vector(ctx, i) for i in (1, 2, 3)]
    if elements is None or any(b is None or len(b) != 1 for b in bounds):
        return None
    begin, end, step = (b[0] for b in bounds if b is not None)
    attrs = ctx.attrs
    if (attrs["ellipsis_mask"] | attrs["new_axis_mask"]) & 1:
        return None
    if attrs["shrink_axis_mask"] & 1:
        return elements[begin] if isinstance(begin, int) and -len(elements) <= begin < len(elements) else None
    first = None if attrs["begin_mask"] & 1 else begin
    last = None if attrs["end_mask"] & 1 else end
    known = all(isinstance(v, int) for v in (step, 0 if first is None else first, 0 if last is None else last))
    open_bounds = (first is None) == bool(attrs["begin_mask"] & 1) and (last is None) == bool(attrs["end_mask"] & 1)
    return tuple(elements[first:last:step]) if known and open_bounds and step else None


def gather(ctx: IntegerContext) -> Any:
    elements, found = _vector(ctx, 0), _elements(ctx, 1)
    if elements is None or found is None or not _first_axis(ctx.value(2)):
        return None
    indices, rank = found
    if any(isinstance(i, int) and not 0 <= i < len(elements) for i in indices):
        return None
    return _made([elements[i] if isinstance(i, int) else None for i in indices], rank)


def broadcast_args(ctx: IntegerContext) -> Any:
    """The shape that two shapes broadcast to; an unknown dim gives way to one that is known and not 1."""
    a, b = ctx.value(0), ctx.value(1)
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return None
    rank = max(len(a), len(b))
    out: list[Any] = []
    for x, y in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True):
        if isinstance(x, int) and isinstance(y, int):
            if x != y and 1 not in (x, y):
                return None
            out.append(y if x == 1 else x)
        elif x == 1 or y == 1:
            out.append(y if x == 1 else x)
        else:
            out.append(x if isinstance(x, int) else y if isinstance(y, int) else x if x is y else None)
    return tuple(out)


def sparse_reshape(ctx: IntegerContext) -> Any:
    """Return what is known of the outputs of SparseReshape: nothing of the indices, the new shape without -1."""
    shape, new = ctx.value(1), ctx.value(2)
    if not isinstance(new, tuple):
        return [None, None]
    if -1 not in new:
        return [None, new]
    rest = [d for d in new if not (isinstance(d, int) and d == -1)]
    if isinstance(shape, tuple) and all(isinstance(d, int) for d in (*shape, *rest)) and math.prod(rest) > 0:
        left = math.prod(shape) // math.prod(rest)
        return [None, tuple(left if d == -1 else d for d in new)] if len(rest) == len(new) - 1 else [None, None]
    return [None, tuple(None if isinstance(d, int) and d == -1 else d for d in new)]


def identity_n(ctx: IntegerContext) -> list[Any]:
    """Return what is known of each input."""
    return [ctx.value(i) for i in range(ctx.inputs)]
