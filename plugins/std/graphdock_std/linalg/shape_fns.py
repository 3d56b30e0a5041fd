"""Shape rules of decompositions, some of whose results are empty where they are not asked for."""

from __future__ import annotations

from graphdock.ops import ShapeContext, symbolic

from graphdock_std.shape_support import Dims, known


@symbolic
def svd(ctx: ShapeContext) -> list[Dims]:
    """``s``, ``u``, ``v`` of Svd; without ``compute_uv`` the last two hold nothing."""
    x = ctx.shape("input")
    if x is None:
        return [None, None, None] if ctx.attrs["compute_uv"] else [None, (0,), (0,)]
    *batch, m, n = x
    least = min(m, n) if known(m) and known(n) else None if m is None or n is None else ctx.derived("least", m, n)
    if not ctx.attrs["compute_uv"]:
        return [(*batch, least), (0,), (0,)]
    if ctx.attrs["full_matrices"]:
        return [(*batch, least), (*batch, m, m), (*batch, n, n)]
    return [(*batch, least), (*batch, m, least), (*batch, n, least)]


@symbolic
def self_adjoint_eig(ctx: ShapeContext) -> list[Dims]:
    """``e`` and ``v`` of SelfAdjointEigV2; without ``compute_v`` the last one holds nothing.

    Raises:
      ShapeError: the matrices are not square.
    """
    x = ctx.shape("input")
    if x is None:
        return [None, None if ctx.attrs["compute_v"] else (0,)]
    *batch, m, n = x
    side = ctx.equal(m, n, f"the matrices must be square, but they are {m} by {n}")
    return [(*batch, side), (*batch, side, side) if ctx.attrs["compute_v"] else (0,)]
