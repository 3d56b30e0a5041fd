"""Slices of tensors as TensorFlow spells them: ``"5 2 0,3:-"`` is rows 0 to 2 of a tensor of shape [5, 2]."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.errors import InvalidArgumentError
from graphdock.shape import as_dims

__all__ = ["Slice", "check_parts", "check_shape", "parse_shape_and_slice", "tile"]

#: Dims of more than this many digits are no dims.
_DIGITS = 18
#: Cells of a grid that are counted whatever there is, and for each part; parts of which each is compared with each.
_CELLS, _CELLS_PER_PART, _PARTS = 1 << 20, 256, 4096


@dataclass(frozen=True, slots=True)
class Slice:
    """A box within a tensor: where it begins and how long it is, along each axis."""

    starts: tuple[int, ...]
    lengths: tuple[int, ...]

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Slice:
        """All of a tensor."""
        return cls((0,) * len(shape), tuple(shape))

    @classmethod
    def parse(cls, text: str, shape: Sequence[int]) -> Slice:
        """The slice that ``"0,3:-"`` spells: a start and a length per axis, or ``-`` for all of it; ``""`` is the whole.

        Raises:
          InvalidArgumentError: it is no slice of a tensor of that shape.
        """
        if not text:
            return cls.whole(shape)
        axes = text.split(":")
        if len(axes) != len(shape):
            raise _no_slice(text, shape)
        starts, lengths = [], []
        for axis, size in zip(axes, shape, strict=True):
            start, comma, length = axis.partition(",")
            if axis == "-":
                start, comma, length = "0", ",", str(size)
            if not comma or not _is_number(start) or not _is_number(length) or int(start) + int(length) > size:
                raise _no_slice(text, shape)
            starts.append(int(start))
            lengths.append(int(length))
        return cls(tuple(starts), tuple(lengths))

    def spelled(self, shape: Sequence[int]) -> str:
        """As :meth:`parse` reads it; ``""`` for the whole of a tensor of that shape."""
        if self == Slice.whole(shape):
            return ""
        axes = zip(self.starts, self.lengths, shape, strict=True)
        return ":".join("-" if (start, length) == (0, size) else f"{start},{length}" for start, length, size in axes)

    @property
    def size(self) -> int:
        """Its number of elements."""
        return math.prod(self.lengths)

    def common(self, other: Slice) -> Slice | None:
        """Return what two slices of one tensor share; None when that is nothing."""
        starts = tuple(map(max, self.starts, other.starts))
        ends = [
            min(a + n, b + m) for a, n, b, m in zip(self.starts, self.lengths, other.starts, other.lengths, strict=True)
        ]
        lengths = tuple(end - start for end, start in zip(ends, starts, strict=True))
        return None if any(n <= 0 for n in lengths) else Slice(starts, lengths)

    def within(self, outer: Slice) -> tuple[slice, ...]:
        """The index of this slice in an array that holds ``outer``."""
        places = zip(self.starts, self.lengths, outer.starts, strict=True)
        return tuple(slice(start - base, start - base + length) for start, length, base in places)


def parse_shape_and_slice(text: str) -> tuple[tuple[int, ...], Slice] | None:
    """The shape of the whole and the slice of ``"5 2 0,3:-"``; None for ``""``, which says nothing.

    Raises:
      InvalidArgumentError: the text is none.
    """
    if not text:
        return None
    *dims, part = text.split(" ")
    if not dims or not all(map(_is_number, dims)):
        raise InvalidArgumentError(
            f"{text!r} is no shape and slice", expected="dims and a slice, such as '5 2 0,3:-'", got=repr(text)
        )
    shape = tuple(map(int, dims))
    return shape, Slice.parse(part, shape)


def tile(parts: Sequence[Slice], whole: Slice) -> bool:
    """Return whether each element of the whole lies in one of these parts of it, and in no other.

    Counted is in a grid with a plane where a part begins or ends and nowhere else: it has as many cells as there are parts where
    these are cut along one axis, or each axis in the same places. Where it would have many more, of which a short file can tell
    lies, each part is compared with each; more than 4096 of them count as parts that overlap.
    """
    if sum(p.size for p in parts) != whole.size or not parts:
        return whole.size == 0 and not parts
    edges = [
        sorted({p.starts[i] for p in parts} | {p.starts[i] + p.lengths[i] for p in parts})
        for i in range(len(whole.lengths))
    ]
    if math.prod(len(e) - 1 for e in edges) > max(_CELLS, _CELLS_PER_PART * len(parts)):
        return len(parts) <= _PARTS and _apart(parts)
    grid = np.zeros([len(e) - 1 for e in edges], bool)
    for part in parts:
        places = zip(edges, part.starts, part.lengths, strict=True)
        index: Any = (..., *[slice(bisect_left(e, n), bisect_left(e, n + m)) for e, n, m in places])
        cells = grid[index]
        if cells.any():
            return False
        cells[...] = True
    return True


def _apart(parts: Sequence[Slice]) -> bool:
    """Return whether no two parts share an element."""
    starts = np.array([p.starts for p in parts])
    ends = starts + np.array([p.lengths for p in parts])
    return not any(
        ((starts[i] < ends[i + 1 :]) & (starts[i + 1 :] < ends[i])).all(1).any() for i in range(len(parts) - 1)
    )


def check_shape(shape: Sequence[int]) -> None:
    """Refuse a shape that no array has.

    Raises:
      ShapeError: a dim or the rank is above graphdock's limits. InvalidArgumentError: the rank or the size is above NumPy's.
    """
    as_dims(tuple(shape))
    try:
        np.broadcast_to(np.empty((), np.complex128), tuple(shape))
    except ValueError as error:
        raise InvalidArgumentError(f"there is no array of shape {list(shape)}: {error}") from None


def check_parts(parts: Sequence[Slice], shape: Sequence[int]) -> None:
    """Refuse slices that can't be the parts of one tensor. Whether others overlap, :func:`tile` says when all are there.

    Raises:
      InvalidArgumentError: one is there twice, or they are more than the whole.
    """
    if len(set(parts)) != len(parts):
        raise InvalidArgumentError("a slice of it is there twice")
    if sum(p.size for p in parts) > math.prod(shape):
        raise InvalidArgumentError("its slices are more than the whole")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def _no_slice(text: str, shape: Sequence[int]) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{text!r} is no slice of a tensor of shape {list(shape)}",
        expected="start,length or - for each axis, joined by colons",
        got=repr(text),
    )
