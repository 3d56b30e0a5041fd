"""Static shapes: a tuple of dims where an unknown dim is None, or None where the rank is unknown.

The graph, the plan and kernels use this bare form (``Dims``); :class:`graphdock.tensor_shape.TensorShape` wraps it for people.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from graphdock.errors import ShapeError

__all__ = [
    "MAX_DIM",
    "MAX_RANK",
    "Dims",
    "Extent",
    "HasDims",
    "Symbol",
    "as_dims",
    "broadcast",
    "common",
    "compatible",
    "left_over",
    "merge",
    "plain",
    "show",
    "size",
]

Dims: TypeAlias = tuple[int | None, ...] | None
MAX_RANK = 254
#: Largest dim: what a device counts with.
MAX_DIM = 2**63 - 1


class Symbol:
    """A number that a plan does not know: a dim, or an element of a small integer tensor. One symbol stands for one number.

    Attributes:
      fed: whether the shapes of the feeds alone decide it; otherwise it is known when the step has come so far.
      feed: for a dim of a feed itself, which feed and which axis.
      dim: whether it is a dim, and so not negative; elements of a tensor may be.
    """

    __slots__ = ("dim", "fed", "feed")

    def __init__(self, fed: bool, feed: tuple[int, int] | None = None, dim: bool = True) -> None:
        self.fed = fed
        self.feed = feed
        self.dim = dim

    def __repr__(self) -> str:
        return (
            f"<dim {self.feed[1]} of feed {self.feed[0]}>" if self.feed else f"<{'fed' if self.fed else 'late'} symbol>"
        )


#: A shape in a plan, with a symbol in place of each unknown dim; a symbol alone stands for an unknown rank.
Extent: TypeAlias = "tuple[int | Symbol, ...] | Symbol"


class HasDims:
    """Wrapper of a bare shape for people: :class:`graphdock.tensor_shape.TensorShape`."""

    __slots__ = ()
    _dims: Dims


def plain(extent: Any) -> Dims:
    """The dims of an extent, None for each symbol."""
    if extent is None or isinstance(extent, Symbol):
        return None
    for d in extent:
        if not isinstance(d, int):
            return tuple([d if isinstance(d, int) else None for d in extent])
    return extent  # type: ignore[no-any-return]


def as_dims(value: Any) -> Dims:
    """Dims from None, an int, a sequence or array of ints and None, or a TensorShape.

    Raises:
      ShapeError: a dim is not an integer, is negative or above 64 bits, or the rank is above 254.
    """
    if value is None:
        return None
    if isinstance(value, HasDims):
        return value._dims
    if not isinstance(value, (tuple, list)):
        try:
            value = (value.__index__(),)
        except (AttributeError, TypeError):  # an array has __index__, which raises unless it holds one integer
            try:
                value = (None,) if getattr(value, "value", value) is None else tuple(value)
            except TypeError:
                raise ShapeError(
                    f"{value!r} is not a shape", expected="None, an integer or a sequence of them"
                ) from None
    dims: list[int | None] = []
    for d in value:
        if d is None or getattr(d, "value", d) is None:
            dims.append(None)
            continue
        try:
            n = d.__index__()
        except AttributeError:
            raise ShapeError(f"{value!r} is not a shape: {d!r} is not an integer") from None
        if not -MAX_DIM <= n <= MAX_DIM:
            raise ShapeError(f"a dim does not fit into 64 bits: it has {n.bit_length()}")
        if n < 0:
            raise ShapeError(f"{value!r} is not a shape: dim {n} is negative")
        dims.append(n)
    if len(dims) > MAX_RANK:
        raise ShapeError(f"rank {len(dims)} is above the limit of {MAX_RANK}")
    return tuple(dims)


def show(dims: Dims) -> str:
    """``[10,784]``, ``[?,10]``, or ``<unknown>`` for an unknown rank."""
    return "<unknown>" if dims is None else "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"


def size(dims: Dims) -> int | None:
    """Number of elements, or None when it is not known."""
    if dims is None:
        return None
    n = 1
    for d in dims:
        if d is None:
            return None
        n *= d
    return n


def left_over(dims: Sequence[int], others: Sequence[int]) -> int:
    """The dim that a reshape from ``dims`` to ``others`` and -1 leaves for -1, provided that there is one.

    Where one of the others is 0, dims of size 0 do not count, as in TensorFlow: from [0,3,4] to [0,-1] it is 12.
    """
    if 0 in others:
        dims, others = [d for d in dims if d], [d for d in others if d]
    return math.prod(dims) // math.prod(others)


def compatible(a: Dims, b: Dims) -> bool:
    """Return whether one concrete shape could satisfy both."""
    if a is None or b is None or a == b:
        return True
    return len(a) == len(b) and all([_agree(x, y) for x, y in zip(a, b, strict=True)])


def _agree(x: Any, y: Any) -> bool:
    """Return whether two dims may be one; an unknown ``tf.Dimension`` compares as None with whatever it is compared with."""
    if x is None or y is None:
        return True
    equal = x == y
    return equal is None or bool(equal)


def merge(a: Dims, b: Dims) -> Dims:
    """Return what is known when both hold. Raises ShapeError when they contradict."""
    if a is None:
        return b
    if b is None:
        return a
    if not compatible(a, b):
        raise ShapeError(f"shapes {show(a)} and {show(b)} do not agree")
    return tuple(y if x is None else x for x, y in zip(a, b, strict=True))


def common(a: Dims, b: Dims) -> Dims:
    """Return what is known of a tensor that has the one shape or the other."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def broadcast(*shapes: Dims) -> Dims:
    """NumPy's broadcasting over static shapes. Raises ShapeError when two known dims clash.

    An unknown dim against a known dim above 1 gives the known dim; against 1 or unknown it stays unknown.
    """
    if any(s is None for s in shapes):
        return None
    known = [s for s in shapes if s is not None]
    rank = max((len(s) for s in known), default=0)
    out: list[int | None] = []
    for axis in range(-rank, 0):
        dim: int | None = 1
        for s in known:
            d = s[axis] if -axis <= len(s) else 1
            if d == 1 or d == dim:
                continue
            if dim == 1 or (dim is None and d is not None):
                dim = d
            elif d is not None:
                raise ShapeError("shapes " + " and ".join(show(x) for x in known) + " cannot be broadcast together")
        out.append(dim)
    return tuple(out)


def concrete(dims: Dims) -> Sequence[int] | None:
    """The dims when all are known, else None."""
    if dims is None or None in dims:
        return None
    return dims  # type: ignore[return-value]
