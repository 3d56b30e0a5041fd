"""What the shape functions of the array ops share: reading host inputs, and errors that say what was found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

__all__ = ["Dims", "axis_of", "elements", "fits", "merged", "scalar", "shape_from", "show", "vector"]

Dims: TypeAlias = "tuple[int | None, ...] | None"


def show(dims: Dims) -> str:
    return "<unknown>" if dims is None else "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"


def elements(dims: Sequence[int | None]) -> int | None:
    """Product of the dims; 0 as soon as one is 0."""
    if 0 in dims:
        return 0
    return None if None in dims else math.prod(dims)  # type: ignore[arg-type]


def scalar(ctx: Any, name: str) -> int | None:
    """Known value of an input that must be a scalar."""
    dims = ctx.shape(name)
    if dims is not None and dims != ():
        raise ctx.fail(f"{name} must be a scalar, but its shape is {show(dims)}")
    value = ctx.values(name)
    return value if isinstance(value, int) else None


def vector(ctx: Any, name: str) -> tuple[int | None, ...] | None:
    """Known elements of an input that must be a vector; None when not even its length is known."""
    dims = ctx.shape(name)
    if dims is not None and len(dims) != 1:
        raise ctx.fail(f"{name} must be a vector, but its shape is {show(dims)}")
    value = ctx.values(name)
    if isinstance(value, tuple):
        return value
    if dims is not None and dims[0] is not None:
        return (None,) * dims[0]
    return None


def axis_of(ctx: Any, axis: int, rank: int, of: str) -> int:
    """The axis counted from 0."""
    if not -rank <= axis < rank:
        if rank == 0:
            raise ctx.fail(f"{of} is a scalar and has no axis {axis}")
        raise ctx.fail(f"axis {axis} is out of bounds for {of} of rank {rank}; expected {-rank} to {rank - 1}")
    return axis % rank


def shape_from(ctx: Any, name: str) -> Dims:
    """The shape that a vector input gives; a negative size is an error."""
    dims = vector(ctx, name)
    for d in dims or ():
        if d is not None and d < 0:
            raise ctx.fail(f"{name} {show(dims)} holds the negative size {d}")
    return dims


def merged(ctx: Any, a: int | None, b: int | None, message: str) -> int | None:
    if a is not None and b is not None and a != b:
        raise ctx.fail(message)
    return b if a is None else a


def fits(a: Sequence[int | None], b: Sequence[int | None]) -> bool:
    """Whether two shapes may be the same."""
    return len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))
