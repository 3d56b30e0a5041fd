"""Shape functions of normalisation: of batches, whose channels may be the last dim or dim 1, and of layers."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic

from graphdock_std.shape_support import axis_of, same_run, show


def _channels(ctx: Any, like: str) -> Any:
    """The channels that ``x`` and ``scale`` agree on; ``like`` names an input of the shape of x. None where unknown."""
    dims, scale = ctx.shape(like), ctx.shape("scale")
    wanted = len(ctx.attrs["data_format"])
    channels = None if scale is None else scale[0]
    if dims is None:
        ctx.unproven()
        return channels
    if len(dims) != wanted:
        raise ctx.fail(f"{like} has rank {len(dims)}; data_format {ctx.attrs['data_format']} takes rank {wanted}")
    found = dims[1] if ctx.attrs["data_format"].startswith("NC") else dims[-1]
    if channels is None:
        return found
    return ctx.equal(found, channels, f"{like} has {found} channels and scale has {channels} elements")


@symbolic
def fused_batch_norm(ctx: Any) -> list[Any]:
    """The shape of x, whose channels other inputs may tell, and vectors of its channels."""
    channels, mean, x, layout = _channels(ctx, "x"), ctx.shape("mean"), ctx.shape("x"), ctx.attrs["data_format"]
    if not ctx.attrs["is_training"] and mean is not None:
        told = ctx.equal(mean[0], channels, f"mean has {mean[0]} elements for {channels} channels")
        channels = told if channels is None else channels
    dims = list(x or (None,) * len(layout))
    at = 1 if layout.startswith("NC") else len(layout) - 1
    dims[at] = channels if dims[at] is None else dims[at]
    return [tuple(dims), *[(channels,)] * 4]


@symbolic
def fused_batch_norm_grad(ctx: Any) -> list[Any]:
    vector = (_channels(ctx, "x"),)
    return [ctx.shape("x"), vector, vector]


def _row_dims(ctx: Any) -> tuple[Any, Any]:
    """The dims of x before a row and those of a row; None where unknown."""
    x, gamma = ctx.shape("x"), ctx.shape("gamma")
    if x is None:
        ctx.unproven()
        return None, gamma
    begin = axis_of(ctx, ctx.attrs["begin_norm_axis"], len(x), "x")
    outer, inner = x[:begin], x[begin:]
    if gamma is None:
        ctx.unproven()
        return outer, inner
    return outer, same_run(ctx, gamma, inner, f"gamma has shape {show(gamma)} and a row of x {show(inner)}")


@symbolic
def layer_norm(ctx: Any) -> list[Any]:
    """The shape of x, and twice its dims before a row."""
    outer, _ = _row_dims(ctx)
    return [ctx.shape("x"), outer, outer]


@symbolic
def layer_norm_grad(ctx: Any) -> list[Any]:
    outer, inner = _row_dims(ctx)
    mean = ctx.shape("mean")
    if outer is not None and mean is not None:
        same_run(ctx, mean, outer, f"mean has shape {show(mean)} for rows of shape {show(outer)}")
    elif outer is not None:
        ctx.unproven()
    return [ctx.shape("x"), inner, inner]
