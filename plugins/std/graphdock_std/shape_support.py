"""Common parts of std's shape functions: reading host inputs, dims that may be unknown, and errors that say what was found.

A dim is an int; None where a graph does not know it; a symbol where a plan does not. :func:`known` tells an int from the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeGuard

__all__ = [
    "Dims",
    "axis_of",
    "elements",
    "factors",
    "known",
    "number",
    "numbers",
    "same_run",
    "scalar",
    "shape_from",
    "show",
    "unread",
    "vector",
]

Dims: TypeAlias = "tuple[Any, ...] | None"


def known(dim: Any) -> TypeGuard[int]:
    """Return whether a dim or an element is a number."""
    return isinstance(dim, int)


def show(dims: Dims) -> str:
    return "<unknown>" if dims is None else "[" + ",".join(str(d) if known(d) else "?" for d in dims) + "]"


def elements(dims: Sequence[Any]) -> int | None:
    """Product of the dims; 0 as soon as one is 0, None where one is unknown."""
    if 0 in dims:
        return 0
    return math.prod(dims) if all(map(known, dims)) else None


def factors(ctx: Any, dims: Sequence[Any]) -> tuple[int, list[Any]] | None:
    """The number of elements as a number times symbols; None where a dim is not even a symbol of a dim."""
    number, symbols = 1, []
    for d in map(ctx.canonical, dims):
        if known(d):
            number *= d
        elif d is None or not d.dim:
            return None
        else:
            symbols.append(d)
    return number, symbols


def unread(ctx: Any, values: Sequence[Any]) -> None:
    """Say that a check left out these elements, as far as the feeds' shapes decide them. A kernel checks what only a step knows."""
    fed = [v for v in values if not known(v) and v is not None and v.fed]
    if fed:
        ctx.unproven(*fed)


def scalar(ctx: Any, name: str) -> int | None:
    """Known value of an input that must be a scalar."""
    value = number(ctx, name)
    if not known(value):
        unread(ctx, [value])
        return None
    return value


def number(ctx: Any, name: str) -> Any:
    """Value of an input that must be a scalar: an int, a symbol or None."""
    dims = ctx.shape(name)
    if dims is not None and dims != ():
        raise ctx.fail(f"{name} must be a scalar, but its shape is {show(dims)}")
    value = ctx.values(name)
    return None if isinstance(value, tuple) else value


def vector(ctx: Any, name: str) -> tuple[Any, ...] | None:
    """Elements of an input that must be a vector, as far as they are known; None when not even its length is."""
    dims = ctx.shape(name)
    if dims is not None and len(dims) != 1:
        raise ctx.fail(f"{name} must be a vector, but its shape is {show(dims)}")
    value = ctx.values(name)
    if isinstance(value, tuple):
        return value
    if dims is not None and known(dims[0]):
        return (None,) * dims[0]
    ctx.unproven()
    return None


def numbers(ctx: Any, name: str) -> tuple[int | None, ...] | None:
    """Elements of an input that must be a vector, None for each unknown one; None when not even its length is known."""
    values = vector(ctx, name)
    if values is None:
        return None
    unread(ctx, values)
    return tuple([v if known(v) else None for v in values])


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
        if known(d) and d < 0:
            raise ctx.fail(f"{name} {show(dims)} holds the negative size {d}")
    unread(ctx, [d for d in dims or () if d is not None and not (known(d) or d.dim)])
    return dims


def same_run(ctx: Any, a: Sequence[Any], b: Sequence[Any], message: str) -> tuple[Any, ...]:
    """The dims that two runs are required to share."""
    if len(a) != len(b):
        raise ctx.fail(message)
    return tuple([ctx.equal(x, y, message) for x, y in zip(a, b, strict=True)])
