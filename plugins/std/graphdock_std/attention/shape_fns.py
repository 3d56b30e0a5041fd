"""Shape functions of attention, whose bias broadcasts to the scores."""

from __future__ import annotations

from typing import Any

from graphdock.ops import symbolic


def _agree(ctx: Any) -> tuple[Any, Any, Any]:
    """The shapes of query, key and value, which fit one another; None for an unknown one."""
    query, key, value = (ctx.shape(name) for name in ("query", "key", "value"))
    bias = ctx.shape("bias")
    if query is None or key is None or (value is None or bias is None):
        ctx.unproven()
    if bias is None or query is None or key is None:
        return query, key, value
    scores = (*query[:-1], key[-2])
    if len(bias) > len(scores):
        raise ctx.fail(f"bias has rank {len(bias)} for scores of rank {len(scores)}")
    for have, want in zip(reversed(bias), reversed(scores), strict=False):
        ctx.one_or_equal(have, want, "bias does not broadcast to queries and keys")
    return query, key, value


@symbolic
def attention(ctx: Any) -> list[Any]:
    """An answer per query, as wide as a value; and a number per query."""
    query, _, value = _agree(ctx)
    output = None if query is None else (*query[:-1], None if value is None else value[-1])
    return [output, None if query is None else query[:-1]]


@symbolic
def attention_grad(ctx: Any) -> list[Any]:
    """The shapes of query, key and value."""
    return list(_agree(ctx))
