"""Attention in other ops: for devices without a kernel of it, and for gradients of its gradient."""

from __future__ import annotations

import math
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_std.grad_support import apart

__all__ = ["attend", "attend_log_sum", "attend_weights", "attention_grad_gradient", "attention_gradient", "total"]


def _scores(query: Any, key: Any, scale: float, causal: bool, bias: Any = None) -> Any:
    """[..., queries, keys] in float32 at least, minus infinity where a query does not look."""
    wide = query.dtype.accumulator
    scores = _ops.cast(_tf.matmul(query, key, transpose_b=True), wide) * scale
    if bias is not None:
        scores = scores + _ops.cast(bias, wide)
    if not causal:
        return scores
    queries, keys = _tf.shape(query)[-2], _tf.shape(key)[-2]
    seen = _tf.matrix_band_part(_tf.ones(_tf.stack([queries, keys]), wide), -1, keys - queries)
    return _tf.where(_tf.broadcast_to(seen > 0.0, _tf.shape(scores)), scores, _tf.fill(_tf.shape(scores), _low(wide)))


def _low(dtype: Any) -> Any:
    return _ops.constant(-math.inf, dtype)


def attend_weights(query: Any, key: Any, scale: float, causal: bool, bias: Any = None) -> Any:
    """What each query gives each key of its attention, of the dtype of ``query``."""
    return _ops.cast(_tf.nn.softmax(_scores(query, key, scale, causal, bias)), query.dtype)


def attend(query: Any, key: Any, value: Any, scale: float, causal: bool, bias: Any = None) -> Any:
    """What Attention gives."""
    return _tf.matmul(attend_weights(query, key, scale, causal, bias), value)


def attend_log_sum(query: Any, key: Any, scale: float, causal: bool, bias: Any = None) -> Any:
    """Likewise its second output."""
    total = _tf.reduce_logsumexp(_scores(query, key, scale, causal, bias), axis=-1)
    return _ops.cast(total * (1.0 / math.log(2.0)), _tf.float32)


def attention_gradient(op: Any, grad_output: Any, grad_log_sum: Any) -> list[Any]:
    """By query, key, value and bias; of the logarithms, and by the bias, through other ops."""
    query, key, value, *rest = op.inputs
    scale, causal = op.get_attr("scale"), op.get_attr("causal")
    parts: list[Any] = [None] * len(op.inputs)
    if grad_output is not None:
        parts[:3] = _ops.apply_op(
            "AttentionGrad",
            output_backprop=grad_output,
            query=query,
            key=key,
            value=value,
            output=op.outputs[0],
            log_sum=op.outputs[1],
            bias=rest[0] if rest else None,
            scale=scale,
            causal=causal,
        )
        if rest:
            bias = apart(*rest)
            parts[3:] = _tf.gradients(attend(query, key, value, scale, causal, *bias), bias, grad_output)
    if grad_log_sum is not None:
        sources = apart(query, key, *rest)
        logs = attend_log_sum(*sources[:2], scale, causal, *sources[2:])
        more = _tf.gradients(logs, sources, grad_log_sum)
        more.insert(2, None)
        parts = [total(a, b) for a, b in zip(parts, more, strict=True)]
    return parts


def attention_grad_gradient(op: Any, *grads: Any) -> list[Any]:
    """By what arrives, query, key, value and bias: the gradient, built of other ops, is differentiated as it is.

    What Attention gave follows from its inputs, and has no gradient of its own.
    """
    sources = apart(*op.inputs[:4], *op.inputs[6:])
    arriving, query, key, value, *rest = sources
    output = attend(query, key, value, op.get_attr("scale"), op.get_attr("causal"), *rest)
    again = _tf.gradients(output, [query, key, value], arriving)
    pairs = [(y, g) for y, g in zip(again, grads, strict=True) if g is not None]
    return list(_tf.gradients([y for y, _ in pairs], sources, [g for _, g in pairs]))


def total(a: Any, b: Any) -> Any:
    """The sum of two parts of a gradient, either of which may be None."""
    return b if a is None else a if b is None else a + b
