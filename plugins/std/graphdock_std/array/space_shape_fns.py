"""Shape functions of what moves pixels between space, channels and batch, and of windows of images."""

from __future__ import annotations

import math
from typing import Any

from graphdock.ops import symbolic

from graphdock_std.shape_support import Dims, known, numbers, shape_from, show, unread


def _image(ctx: Any, name: str) -> Dims:
    dims = ctx.shape(name)
    if dims is not None and len(dims) != 4:
        raise ctx.fail(f"{name} has rank {len(dims)}; it must have rank 4")
    return dims


def _divided(ctx: Any, dim: Any, by: int, what: str) -> Any:
    """``dim // by``, which must be exact."""
    if known(dim):
        if dim % by:
            raise ctx.fail(f"{what} {dim} is not a multiple of {by}")
        return dim // by
    if by == 1:
        return dim
    if dim is not None:
        ctx.unproven(dim)
    return ctx.derived("part", dim, by)


def _times(ctx: Any, dim: Any, by: int) -> Any:
    return dim * by if known(dim) else 0 if by == 0 else dim if by == 1 else ctx.derived("product", dim, by)


@symbolic
def depth_to_space(ctx: Any) -> list[Dims]:
    dims, size = _image(ctx, "input"), ctx.attrs["block_size"]
    if dims is None:
        return [(None,) * 4]
    if ctx.attrs["data_format"] == "NCHW":
        n, c, h, w = dims
        return [(n, _divided(ctx, c, size * size, "the depth"), _times(ctx, h, size), _times(ctx, w, size))]
    n, h, w, c = dims
    return [(n, _times(ctx, h, size), _times(ctx, w, size), _divided(ctx, c, size * size, "the depth"))]


@symbolic
def space_to_depth(ctx: Any) -> list[Dims]:
    dims, size = _image(ctx, "input"), ctx.attrs["block_size"]
    if dims is None:
        return [(None,) * 4]
    if ctx.attrs["data_format"] == "NCHW":
        n, c, h, w = dims
        return [
            (n, _times(ctx, c, size * size), _divided(ctx, h, size, "the height"), _divided(ctx, w, size, "the width"))
        ]
    n, h, w, c = dims
    return [(n, _divided(ctx, h, size, "the height"), _divided(ctx, w, size, "the width"), _times(ctx, c, size * size))]


def _blocks(ctx: Any, margins: str) -> tuple[list[Any], list[tuple[Any, Any]]] | None:
    """``block_shape`` and the rows of the margins, None for each unknown element; None where not even M is known."""
    blocks, dims = numbers(ctx, "block_shape"), ctx.shape(margins)
    if dims is not None:
        count = "M" if blocks is None else len(blocks)
        message = f"{margins} must have shape [{count},2], but have {show(dims)}"
        if len(dims) != 2:
            raise ctx.fail(message)
        ctx.equal(dims[1], 2, message)
        if blocks is not None:
            ctx.equal(dims[0], len(blocks), message)
    if blocks is None:
        return None
    for b in blocks:
        if b is not None and b < 1:
            raise ctx.fail(f"block_shape {show(blocks)} holds {b}; a block has 1 or more elements along each dim")
    values = ctx.values(margins)
    rows: list[tuple[Any, Any]] = [(None, None)] * len(blocks)
    if isinstance(values, tuple) and all(isinstance(row, tuple) for row in values):
        unread(ctx, [p for row in values for p in row])
        rows = [tuple(p if known(p) else None for p in row) for row in values]  # type: ignore[misc]
        for row in rows:
            for p in row:
                if p is not None and p < 0:
                    raise ctx.fail(f"{margins} hold {p}; a margin can't be negative")
    dims = ctx.shape("input")
    if dims is not None and len(dims) < len(blocks) + 1:
        raise ctx.fail(
            f"input has rank {len(dims)}; {len(blocks)} spatial dims and a batch need rank {len(blocks) + 1}"
        )
    return list(blocks), rows


@symbolic
def space_to_batch_nd(ctx: Any) -> list[Dims]:
    dims, found = ctx.shape("input"), _blocks(ctx, "paddings")
    if dims is None or found is None:
        return [None if dims is None else (None,) * len(dims)]
    blocks, rows = found
    out: list[Any] = []
    for axis, (block, (a, b)) in enumerate(zip(blocks, rows, strict=True), 1):
        if block is None or a is None or b is None:
            out.append(None)
            continue
        n = dims[axis]
        padded = n + a + b if known(n) else n if a + b == 0 else ctx.derived("padded", n, a, b)
        if not known(n) and n is not None and block > 1:
            ctx.unproven(n)
        out.append(
            _divided(ctx, padded, block, f"the padded size of axis {axis},")
            if known(padded) or block == 1
            else ctx.derived("part", padded, block)
        )
    batch = None if None in blocks else _times(ctx, dims[0], math.prod(blocks))
    return [(batch, *out, *dims[len(blocks) + 1 :])]


@symbolic
def batch_to_space_nd(ctx: Any) -> list[Dims]:
    dims, found = ctx.shape("input"), _blocks(ctx, "crops")
    if dims is None or found is None:
        return [None if dims is None else (None,) * len(dims)]
    blocks, rows = found
    out: list[Any] = []
    for axis, (block, (a, b)) in enumerate(zip(blocks, rows, strict=True), 1):
        n = dims[axis]
        if block is None or a is None or b is None:
            out.append(None)
            continue
        if known(n):
            if n * block < a + b:
                raise ctx.fail(f"crops [{a},{b}] of axis {axis} take more than its {n * block} elements")
            out.append(n * block - a - b)
            continue
        if a + b and n is not None:
            ctx.unproven(n)
        grown = _times(ctx, n, block)
        out.append(grown if a + b == 0 else ctx.derived("cropped", grown, a, b))
    batch = None if None in blocks else _divided(ctx, dims[0], math.prod(blocks), "the batch")
    return [(batch, *out, *dims[len(blocks) + 1 :])]


def _window(ctx: Any) -> tuple[list[int], list[int], list[int]]:
    """Rows and columns of ``ksizes``, ``strides`` and ``rates``."""
    result = []
    for name in ("ksizes", "strides", "rates"):
        values = list(ctx.attrs[name])
        if len(values) != 4 or values[0] != 1 or values[3] != 1 or min(values) < 1:
            raise ctx.fail(f"{name} must be [1, rows, columns, 1] with positive numbers, but is {values}")
        result.append(values[1:3])
    return result[0], result[1], result[2]


def _patches(ctx: Any, dims: Dims) -> Dims:
    """Shape of the patches of images of these dims."""
    sizes, strides, rates = _window(ctx)
    if dims is None:
        return (None,) * 4
    out: list[Any] = []
    for n, k, s, r in zip(dims[1:3], sizes, strides, rates, strict=True):
        reach = (k - 1) * r + 1
        if ctx.attrs["padding"] == "SAME":
            out.append(-(-n // s) if known(n) else n if s == 1 else ctx.derived("windows", n, s))
        else:
            fits = known(n)
            over = n if fits else "?"
            ctx.at_least(
                n, reach - 2 * s + 1, f"the output size would be negative: a window of {reach} elements over {over}"
            )
            out.append(
                max(0, (n - reach) // s + 1) if fits else n if reach == s == 1 else ctx.derived("fit", n, reach, s)
            )
    return (dims[0], *out, _times(ctx, dims[3], sizes[0] * sizes[1]))


@symbolic
def extract_image_patches(ctx: Any) -> list[Dims]:
    return [_patches(ctx, _image(ctx, "images"))]


@symbolic
def extract_image_patches_grad(ctx: Any) -> list[Dims]:
    dims, given = shape_from(ctx, "images_shape"), _image(ctx, "patches_grad")
    if dims is None:
        _window(ctx)
        return [(None,) * 4]
    if len(dims) != 4:
        raise ctx.fail(f"images_shape {show(dims)} must have 4 elements")
    made = _patches(ctx, dims)
    if made is None or given is None:
        ctx.unproven()
        return [dims]
    for want, got in zip(made, given, strict=True):
        ctx.equal(
            want, got, f"patches_grad has shape {show(given)}; images of {show(dims)} have patches of {show(made)}"
        )
    return [dims]
