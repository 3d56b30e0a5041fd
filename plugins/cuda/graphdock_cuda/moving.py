"""Elements moved from one set of places to another: what transposes, slices, joins and repeats have in common.

Axes that lie alike in both arrays are merged first. What is then one run is a copy; what transposes goes in tiles through shared
memory; all else is moved element by element, 16 bytes at a time where the last axis is contiguous in both arrays.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace

from graphdock.contracts import dtypes

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.launch import i32, i64, raw, u32
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["as_bits", "copy_box", "divider", "move", "strides_of"]

MAX_RANK = 8
#: Sides of a plane that is worth tiles.
_TILED = 8
_NARROW = 1 << 31
_BITS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
#: An axis: its dim, its stride in the target and in the source, in elements.
Axis = tuple[int, int, int]


def as_bits(x: Operand) -> Operand:
    """The same bytes as unsigned integers of that size; complex128 stays what it is."""
    return replace(x, dtype=_BITS.get(x.dtype.size, x.dtype))


def divider(divisor: int) -> bytes:
    """A ``divider`` of ``source/base.cuh``, for numbers below 2**31."""
    shift = (divisor - 1).bit_length()
    magic = ((1 << 32) * ((1 << shift) - divisor)) // divisor + 1
    return struct.pack("<III", divisor, magic & 0xFFFFFFFF, shift)


def strides_of(shape: Sequence[int]) -> list[int]:
    """Strides in elements of a row-major array."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(range(len(shape))):
        strides[axis] = step
        step *= shape[axis]
    return strides


def move(
    w: Work, target: Operand, origin: Operand, dims: Sequence[int], to: Sequence[int], origins: Sequence[int]
) -> None:
    """``target[sum(i * to)] = origin[sum(i * origins)]`` for all index tuples below ``dims``.

    Args:
      target, origin: where the index tuple of zeros lies is their begin, see :meth:`Operand.at`.
      to, origins: strides in elements; of ``to`` no two tuples may meet.
    """
    if math.prod(dims) == 0:
        return
    axes = _merged([a for a in zip(dims, to, origins, strict=True) if a[0] != 1])
    if len(axes) > MAX_RANK:
        count, step, back = axes[0]
        rest = [list(a) for a in zip(*axes[1:], strict=True)]
        for i in range(count):
            move(w, target.at(i * step), origin.at(i * back), *rest)
        return
    if not axes or (len(axes) == 1 and axes[0][1:] == (1, 1)):
        count = axes[0][0] if axes else 1
        w.copy(target.at(0, (count,)), origin.at(0, (count,)))
    elif not _tiles(w, target, origin, axes):
        _elements(w, target, origin, axes)


def copy_box(
    w: Work, target: Operand, at: Sequence[int], origin: Operand, start: Sequence[int], box: Sequence[int]
) -> None:
    """A box of ``origin`` from ``start`` on, to ``at`` in ``target``; both row-major."""
    to, back = strides_of(target.shape), strides_of(origin.shape)
    there = sum(a * s for a, s in zip(at, to, strict=True))
    here = sum(a * s for a, s in zip(start, back, strict=True))
    move(w, target.at(there), origin.at(here), box, to, back)


def _merged(axes: list[Axis]) -> list[Axis]:
    """Axes from the outermost in the target to the innermost, those joined that lie one within the other in both arrays."""
    out: list[Axis] = []
    for dim, to, back in sorted(axes, key=lambda a: -abs(a[1])):
        if out and out[-1][1] == to * dim and out[-1][2] == back * dim:
            out[-1] = (out[-1][0] * dim, to, back)
        else:
            out.append((dim, to, back))
    return out


def _reach(axes: Sequence[Axis], which: int) -> int:
    return sum((a[0] - 1) * abs(a[which]) for a in axes)


def _tiles(w: Work, target: Operand, origin: Operand, axes: list[Axis]) -> bool:
    """Move by tiles where the last axis is contiguous in the target and another one in the source."""
    columns = axes[-1]
    rows = next((a for a in axes[:-1] if a[2] == 1), None)
    if columns[1] != 1 or columns[2] in (0, 1) or rows is None or min(rows[0], columns[0]) < _TILED:
        return False
    rest = [a for a in axes[:-1] if a is not rows]
    count = -(-rows[0] // 32) * -(-columns[0] // 32) * math.prod(a[0] for a in rest)
    if count >= _NARROW:
        return False
    args = (i64(rows[0]), i64(columns[0]), i64(rows[1]), i64(columns[2]), i32(len(rest)), raw(_places(rest)))
    w.launch(_source(target), "tiles", count, (32, 8), target, origin, *args)
    return True


def _elements(w: Work, target: Operand, origin: Operand, axes: list[Axis]) -> None:
    size, rank = math.prod(a[0] for a in axes), i32(len(axes))
    grid = blocks(size, 1024)
    if max(size, _reach(axes, 1), _reach(axes, 2)) >= _NARROW:
        args = (i64(size), rank, raw(_places(axes)))
        w.launch(_source(target), "move_64", grid, 256, target, origin, *args)
        return
    width, last = _width(target.dtype.size, axes), axes[-1][0]
    pad = MAX_RANK - len(axes)
    packed = b"".join(divider(a[0]) for a in axes) + divider(1) * pad
    packed += struct.pack(f"<{2 * MAX_RANK}i", *(s for k in (1, 2) for s in ([a[k] for a in axes] + [0] * pad)))
    packed += divider(last // width)
    w.launch(
        _source(target),
        "move_32",
        blocks(size, 1024 * width),
        256,
        target,
        origin,
        u32(size),
        rank,
        raw(packed),
        i32(width.bit_length() - 1),
    )


def _width(size: int, axes: Sequence[Axis]) -> int:
    """Return how many elements make 16 bytes that lie together and aligned in both arrays, if these are aligned; else 1."""
    width = 16 // size
    together = axes[-1][1:] == (1, 1) and axes[-1][0] % width == 0
    return width if together and all(a[1] % width == 0 and a[2] % width == 0 for a in axes[:-1]) else 1


def _places(axes: Sequence[Axis]) -> bytes:
    pad = MAX_RANK - len(axes)
    return struct.pack(
        f"<{3 * MAX_RANK}q",
        *([a[0] for a in axes] + [1] * pad),
        *([a[1] for a in axes] + [0] * pad),
        *([a[2] for a in axes] + [0] * pad),
    )


def _source(target: Operand) -> Source:
    return source("word.cuh", "move.cuh", SIZE=str(target.dtype.size))
