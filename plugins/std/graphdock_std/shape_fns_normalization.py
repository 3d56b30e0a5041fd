"""Shape functions of batch normalisation, whose channels may be the last dim or dim 1."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic

__all__ = ["fused_batch_norm", "fused_batch_norm_grad"]


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
    """The shape of x, and vectors of its channels."""
    vector = (_channels(ctx, "x"),)
    mean = ctx.shape("mean")
    if not ctx.attrs["is_training"] and mean is not None:
        ctx.equal(mean[0], vector[0], f"mean has {mean[0]} elements for {vector[0]} channels")
    return [ctx.shape("x"), vector, vector, vector, vector]


@symbolic
def fused_batch_norm_grad(ctx: Any) -> list[Any]:
    vector = (_channels(ctx, "x"),)
    return [ctx.shape("x"), vector, vector]
