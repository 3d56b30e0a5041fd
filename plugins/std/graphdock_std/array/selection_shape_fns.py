"""Shape functions of the ops that choose or count elements."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic

from graphdock_std.shape_support import Dims, known, number, show, unread


def _count(ctx: Any, name: str, least: int = 0) -> Any:
    """A scalar that is the size of a dim."""
    count = number(ctx, name)
    if known(count) and count < least:
        raise ctx.fail(f"{name} is {count}")
    if not known(count) and count is not None and not count.dim:
        unread(ctx, [count])
    return count


@symbolic
def top_k(ctx: Any) -> list[Dims]:
    x, k = ctx.shape("input"), _count(ctx, "k")
    if x is None:
        return [None, None]
    if not x:
        raise ctx.fail("input is a scalar and has no rows")
    if known(k):
        ctx.at_least(x[-1], k, f"k is {k}, but a row of input {show(x)} has {x[-1]} elements")
    return [(*x[:-1], k)] * 2


@symbolic
def nth_element(ctx: Any) -> list[Dims]:
    x, n = ctx.shape("input"), _count(ctx, "n")
    if x is None:
        return [None]
    if not x:
        raise ctx.fail("input is a scalar and has no rows")
    if known(n):
        ctx.at_least(x[-1], n + 1, f"n is {n}, but a row of input {show(x)} has {x[-1]} elements")
    return [x[:-1]]


@symbolic
def histogram(ctx: Any) -> list[Dims]:
    return [(_count(ctx, "nbins", 1),)]


def bincount(ctx: Any) -> list[Dims]:
    arr, weights, size = ctx.shape("arr"), ctx.shape("weights"), number(ctx, "size")
    if known(size) and size < 0:
        raise ctx.fail(f"size is {size}")
    if arr is not None and weights is not None and None not in weights and 0 not in weights:
        message = f"weights {show(weights)} must be of the shape of arr, {show(arr)}, or empty"
        if len(arr) != len(weights):
            raise ctx.fail(message)
        for a, b in zip(arr, weights, strict=True):
            ctx.equal(a, b, message)
    return [(size,)]
