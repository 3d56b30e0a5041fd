"""Integer rules of the host's structural ops; see :class:`graphdock.opdef.shape_values.IntegerContext`."""

from __future__ import annotations

from graphdock.opdef.shape_values import LIMIT, IntegerContext, Known

__all__ = ["cast", "const", "identity", "shape"]


def const(ctx: IntegerContext) -> Known:
    """The elements, up to rank 2."""
    array = ctx.attrs["value"]
    if array.ndim > 2 or array.size > LIMIT:
        return None
    if array.ndim == 2:
        return tuple(map(tuple, array.tolist()))
    return tuple(array.tolist()) if array.ndim else array.item()


def shape(ctx: IntegerContext) -> Known:
    """The dims; nothing where one does not fit the dtype, which the kernel refuses."""
    dims = ctx.dims(0)
    top = (1 << 8 * ctx.output_dtype().size - 1) - 1
    return None if dims is None or any(isinstance(d, int) and d > top for d in dims) else dims


def identity(ctx: IntegerContext) -> Known:
    """The input itself."""
    return ctx.value(0)


def cast(ctx: IntegerContext) -> Known:
    """The input, which wraps around in the output's dtype; unknown elements may, where it is the narrower one."""
    value, given, made = ctx.value(0), ctx.dtype(0), ctx.output_dtype()
    if given.kind == made.kind and given.size <= made.size:
        return value
    if isinstance(value, tuple):
        return tuple(map(_numbers, value))
    return value if isinstance(value, int) else None


def _numbers(value: Known) -> Known:
    if isinstance(value, tuple):
        return tuple(map(_numbers, value))
    return value if isinstance(value, int) else None
