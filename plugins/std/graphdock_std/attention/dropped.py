"""Attention with dropout of its weights, in other ops: for devices without a kernel of it, and for gradients."""

from __future__ import annotations

import math
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_std.attention.functions import attend_log_sum, attend_weights, biased, total
from graphdock_std.grad_support import apart


def attend_kept(weights: Any, stream: Any, rate: Any) -> Any:
    """1 for each weight that stays, 0 for each that is dropped."""
    drawn = _ops.apply_op("StreamUniform", shape=_tf.shape(weights), stream=stream, dtype=_tf.float32)
    return _ops.cast(drawn >= rate, weights.dtype)


def attend_dropped(
    query: Any,
    key: Any,
    value: Any,
    stream: Any,
    rate: Any,
    factor: Any,
    scale: float,
    causal: bool,
    bias: Any = None,
    hidden: float = -math.inf,
) -> Any:
    """Return what DroppedAttention gives."""
    weights = attend_weights(query, key, scale, causal, bias, hidden)
    return _tf.matmul(weights * factor * attend_kept(weights, stream, rate), value)


def dropped_attention_gradient(op: Any, grad_output: Any, grad_log_sum: Any) -> list[Any]:
    """By query, key, value, factor and bias; of the logarithms, and by the last two, through other ops."""
    query, key, value, stream, rate, factor, *rest = op.inputs
    how = {name: op.get_attr(name) for name in ("scale", "causal", "hidden")}
    bias, smooth = biased(rest)
    parts: list[Any] = [None] * (4 + len(rest))
    if grad_output is not None:
        parts[:3] = _ops.apply_op(
            "DroppedAttentionGrad",
            output_backprop=grad_output,
            query=query,
            key=key,
            value=value,
            output=op.outputs[0],
            log_sum=op.outputs[1],
            stream=stream,
            rate=rate,
            factor=factor,
            bias=bias,
            **how,
        )
        sources = apart(factor, *smooth)
        added = sources[1] if smooth else bias
        again = attend_dropped(query, key, value, stream, rate, sources[0], bias=added, **how)
        parts[3 : 3 + len(sources)] = _tf.gradients(again, sources, grad_output)
    if grad_log_sum is not None:
        sources = apart(query, key, *smooth)
        logs = attend_log_sum(*sources[:2], bias=sources[2] if smooth else bias, **how)
        by_query, by_key, *by_bias = _tf.gradients(logs, sources, grad_log_sum)
        more = [by_query, by_key, None, None, *(by_bias or [None] * len(rest))]
        parts = [total(a, b) for a, b in zip(parts, more, strict=True)]
    return parts


def dropped_attention_grad_gradient(op: Any, *grads: Any) -> list[Any]:
    """By what arrives and by all that DroppedAttention differentiates by: built of other ops, and differentiated as that is."""
    stream, rate = op.inputs[6:8]
    bias, smooth = biased(op.inputs[9:])
    sources = apart(*op.inputs[:4], op.inputs[8], *smooth)
    cotangent, query, key, value, factor = sources[:5]
    how = {name: op.get_attr(name) for name in ("scale", "causal", "hidden")}
    added = sources[5] if smooth else bias
    output = attend_dropped(query, key, value, stream, rate, factor, bias=added, **how)
    again = _tf.gradients(output, [query, key, value], cotangent)
    pairs = [(y, g) for y, g in zip(again, grads, strict=True) if g is not None]
    found = list(_tf.gradients([y for y, _ in pairs], sources, [g for _, g in pairs]))
    return found if smooth or bias is None else [*found, None]
