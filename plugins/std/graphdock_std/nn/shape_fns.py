"""Shape functions of the neural-network ops whose channels may be the last dim or dim 1."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic


def _channels(ctx: Any, name: str) -> Any:
    """Size of the channels of input ``name``; ``ctx`` is a ShapeContext."""
    dims = ctx.shape(name)
    if dims is None:
        return None
    if len(dims) < 2:
        raise ctx.fail(f"{name} has rank {len(dims)}; it must have rank 2 or more")
    return dims[1] if ctx.attrs["data_format"] == "NCHW" else dims[-1]


@symbolic
def bias_add(ctx: Any) -> list[Any]:
    """The shape of ``value``, which must have as many channels as ``bias`` has elements."""
    channels, bias = _channels(ctx, "value"), ctx.shape("bias")
    if bias is not None and channels is not None:
        ctx.equal(channels, bias[0], f"value has {channels} channels and bias has {bias[0]}")
    dims = ctx.shape("value")
    if dims is not None and bias is not None and isinstance(bias[0], int):
        at = 1 if ctx.attrs["data_format"] == "NCHW" else len(dims) - 1
        dims = (*dims[:at], bias[0], *dims[at + 1 :])
    return [dims]


@symbolic
def bias_add_grad(ctx: Any) -> list[Any]:
    """One number per channel."""
    return [(_channels(ctx, "out_backprop"),)]
