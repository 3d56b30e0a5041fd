"""Shapes that no pattern can say."""

from graphdock.ops import symbolic

__all__ = ["energy"]


@symbolic
def energy(ctx):
    """``[*B, 1]`` or ``[*B]``: the rank depends on an attribute."""
    x = ctx.shape("x")
    if x is None:
        return [None]
    return [(*x[:-1], 1) if ctx.attrs["keep_dims"] else x[:-1]]
