"""Attention in other ops: for devices without a kernel of it, and for gradients of its gradient."""

from __future__ import annotations

import functools
import math
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_std.grad_support import apart


def _scores(query: Any, key: Any, scale: float, causal: bool, bias: Any = None, hidden: float = -math.inf) -> Any:
    """[..., queries, keys] in float32 at least, ``hidden`` where a query does not look."""
    wide = query.dtype.accumulator
    scores = _tf.matmul(_ops.cast(query, wide), _ops.cast(key, wide), transpose_b=True) * scale
    if bias is not None and bias.dtype is not _tf.bool:
        scores = scores + _ops.cast(bias, wide)
    seen = _seen(_tf.shape(scores), causal, bias)
    return scores if seen is None else _tf.where(seen, scores, _tf.fill(_tf.shape(scores), _ops.constant(hidden, wide)))


def _seen(shape: Any, causal: bool, bias: Any) -> Any:
    """Keys that a query sees, of the shape of the scores; None for all."""
    seen = [bias] if bias is not None and bias.dtype is _tf.bool else []
    if causal:
        queries, keys = shape[-2], shape[-1]
        seen.append(_tf.expand_dims(_tf.range(queries), 1) + (keys - queries) >= _tf.range(keys))
    return _tf.broadcast_to(functools.reduce(_tf.logical_and, seen), shape) if seen else None


def attend_weights(
    query: Any, key: Any, scale: float, causal: bool, bias: Any = None, hidden: float = -math.inf
) -> Any:
    """Return what each query gives each key of its attention, of the dtype of ``query``."""
    return _ops.cast(_tf.nn.softmax(_scores(query, key, scale, causal, bias, hidden)), query.dtype)


def attend_slopes(weights: Any, toward: Any, scale: float, causal: bool, bias: Any = None) -> Any:
    """The gradient of the products of queries and keys, of what arrives ``toward`` the weights: none of a score that is hidden."""
    slopes = weights * (toward - _tf.reduce_sum(toward * weights, [-1], True)) * scale
    seen = _seen(_tf.shape(weights), causal, bias)
    return slopes if seen is None else _tf.where(seen, slopes, _tf.zeros_like(slopes))


def attend(
    query: Any, key: Any, value: Any, scale: float, causal: bool, bias: Any = None, hidden: float = -math.inf
) -> Any:
    """Return what Attention gives."""
    return _tf.matmul(attend_weights(query, key, scale, causal, bias, hidden), value)


def attend_log_sum(
    query: Any, key: Any, scale: float, causal: bool, bias: Any = None, hidden: float = -math.inf
) -> Any:
    """Likewise its second output."""
    scores = _scores(query, key, scale, causal, bias, hidden)
    high = _tf.reduce_max(scores, axis=-1, keepdims=True)  # NaN where nothing is seen, as of kernels
    total = _tf.squeeze(high, [-1]) + _tf.log(_tf.reduce_sum(_tf.exp(scores - high), axis=-1))
    return _ops.cast(total * (1.0 / math.log(2.0)), _tf.float32)


def biased(inputs: Any) -> tuple[Any, list[Any]]:
    """Of the last input of attention, where there is one: it, or None; and it in a list, where it has a gradient."""
    bias = inputs[0] if inputs else None
    return bias, [bias] if bias is not None and bias.dtype.is_differentiable else []


def attention_gradient(op: Any, grad_output: Any, grad_log_sum: Any) -> list[Any]:
    """By query, key, value and bias; of the logarithms, and by the bias, through other ops."""
    query, key, value, *rest = op.inputs
    how = {name: op.get_attr(name) for name in ("scale", "causal", "hidden")}
    bias, smooth = biased(rest)
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
            bias=bias,
            **how,
        )
        if smooth:
            one = apart(bias)
            parts[3:] = _tf.gradients(attend(query, key, value, bias=one[0], **how), one, grad_output)
    if grad_log_sum is not None:
        sources = apart(query, key, *smooth)
        logs = attend_log_sum(*sources[:2], bias=sources[2] if smooth else bias, **how)
        by_query, by_key, *by_bias = _tf.gradients(logs, sources, grad_log_sum)
        more = [by_query, by_key, None, *(by_bias or [None] * len(rest))]
        parts = [total(a, b) for a, b in zip(parts, more, strict=True)]
    return parts


def attention_grad_gradient(op: Any, *grads: Any) -> list[Any]:
    """By what arrives, query, key, value and bias: the gradient, built of other ops, is differentiated as it is.

    What Attention gave follows from its inputs, and has no gradient of its own.
    """
    bias, smooth = biased(op.inputs[6:])
    sources = apart(*op.inputs[:4], *smooth)
    arriving, query, key, value = sources[:4]
    how = {name: op.get_attr(name) for name in ("scale", "causal", "hidden")}
    output = attend(query, key, value, bias=sources[4] if smooth else bias, **how)
    again = _tf.gradients(output, [query, key, value], arriving)
    pairs = [(y, g) for y, g in zip(again, grads, strict=True) if g is not None]
    found = list(_tf.gradients([y for y, _ in pairs], sources, [g for _, g in pairs]))
    return found if smooth or bias is None else [*found, None]


def total(a: Any, b: Any) -> Any:
    """The sum of two parts of a gradient, either of which may be None."""
    return b if a is None else a if b is None else a + b
