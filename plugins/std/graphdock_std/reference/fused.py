"""Oracles of specs/fused.yaml, in float64 and by definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphdock_std.reference.conv import conv
from graphdock_std.reference.nn import softmax_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits
from graphdock_std.reference.random import stream_uniform


def _weights(
    query: Any,
    key: Any,
    bias: Any = None,
    scale: float = 1.0,
    causal: bool = False,
    hidden: float = -math.inf,
    **_: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Softmax, the base 2 logarithms of its sums, and which scores are seen."""
    scores = np.einsum("...md,...nd->...mn", query.astype(np.float64), key.astype(np.float64)) * scale
    masked = bias is not None and bias.dtype == np.bool_
    if bias is not None and not masked:
        scores = scores + bias.astype(np.float64)
    queries, keys = scores.shape[-2:]
    seen = np.array(np.broadcast_to(bias if masked else True, scores.shape))
    for i in range(queries if causal else 0):
        for j in range(keys):
            if j > i + keys - queries:
                seen[..., i, j] = False
    scores[~seen] = hidden
    high = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - high)
    total = weights.sum(-1, keepdims=True)
    return weights / total, (high + np.log(total))[..., 0] / math.log(2), seen


def _kept(shape: Any, stream: Any = None, rate: Any = 0.0, factor: Any = 1.0, **_: Any) -> np.ndarray:
    """The factor of each weight: 0 where it is dropped; 1 where no stream is given."""
    if stream is None:
        return np.ones(shape)
    return np.where(stream_uniform(shape, stream) < np.float32(rate), 0.0, float(factor))


def attention(query: Any, key: Any, value: Any, **given: Any) -> tuple[np.ndarray, ...]:
    """Scaled dot products, also with dropped weights; ``given`` are the other inputs and the attributes."""
    weights, logs, _seen = _weights(query, key, **given)
    output = np.einsum("...mn,...ne->...me", weights * _kept(weights.shape, **given), value.astype(np.float64))
    return output.astype(query.dtype), logs.astype(np.float32)


def attention_grad(output_backprop: Any, query: Any, key: Any, value: Any, **given: Any) -> tuple[np.ndarray, ...]:
    """By the derivative of each weight by each score of its row."""
    g, q, k, v = (x.astype(np.float64) for x in (output_backprop, query, key, value))
    weights, _logs, seen = _weights(query, key, **given)
    kept = _kept(weights.shape, **given)
    toward = np.einsum("...me,...ne->...mn", g, v) * kept
    slope = weights[..., :, None] * (np.eye(weights.shape[-1]) - weights[..., None, :])
    scores = np.where(seen, np.einsum("...mn,...mnj->...mj", toward, slope) * given.get("scale", 1.0), 0.0)
    found = (
        np.einsum("...mn,...nd->...md", scores, k),
        np.einsum("...mn,...md->...nd", scores, q),
        np.einsum("...mn,...me->...ne", weights * kept, g),
    )
    return tuple(x.astype(query.dtype) for x in found)


dropped_attention = attention
dropped_attention_grad = attention_grad


def fused_matmul(
    a: Any, b: Any, bias: Any, transpose_a: bool = False, transpose_b: bool = False, activation: str = "none"
) -> tuple[np.ndarray, ...]:
    left, right, summand = (x.astype(np.float64) for x in (a, b, bias))
    before = (left.T if transpose_a else left) @ (right.T if transpose_b else right) + summand
    return _activated(before, activation, a.dtype)


def fused_conv(input: Any, filter: Any, bias: Any, activation: str = "none", **window: Any) -> tuple[np.ndarray, ...]:
    x, w, summand = (x.astype(np.float64) for x in (input, filter, bias))
    shape = (-1, 1, 1) if window["data_format"] == "NCHW" else (-1,)
    return _activated(conv(x, w, **window) + summand.reshape(shape), activation, input.dtype)


_FUNCTIONS: dict[str, Any] = {
    "none": lambda x: x,
    "relu": lambda x: max(x, 0.0),
    "relu6": lambda x: min(max(x, 0.0), 6.0),
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


def _activated(before: np.ndarray, activation: str, dtype: Any) -> tuple[np.ndarray, ...]:
    """``f(before)`` and ``before``."""
    y = np.array([_FUNCTIONS[activation](x) for x in before.ravel().tolist()]).reshape(before.shape)
    return y.astype(dtype), before.astype(dtype)


def _slope_of_gelu(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2))) + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _slope_of_gelu_tanh(x: float) -> float:
    root = math.sqrt(2 / math.pi)
    t = math.tanh(root * (x + 0.044715 * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t**2) * root * (1 + 3 * 0.044715 * x**2)


def _times(slope: Any, x: Any, dy: Any) -> np.ndarray:
    slopes = np.array([slope(v) for v in x.astype(np.float64).ravel().tolist()]).reshape(x.shape)
    return np.asarray(slopes * dy.astype(np.float64))


def gelu_grad(x: Any, dy: Any) -> np.ndarray:
    return _times(_slope_of_gelu, x, dy).astype(x.dtype)


def gelu_tanh_grad(x: Any, dy: Any) -> np.ndarray:
    return _times(_slope_of_gelu_tanh, x, dy).astype(x.dtype)


def matmul_with_sums(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, summed: str = "b"
) -> tuple[np.ndarray, ...]:
    left, right = (x.astype(np.float64) for x in (a, b))
    left, right = left.T if transpose_a else left, right.T if transpose_b else right
    sums = np.einsum("mk->m", left) if summed == "a" else np.einsum("kn->n", right)
    return np.einsum("mk,kn->mn", left, right).astype(a.dtype), sums.astype(a.dtype)


def matmul_gelu_grad(a: Any, b: Any, x: Any, transpose_a: bool = False, transpose_b: bool = False) -> np.ndarray:
    left, right = (y.astype(np.float64) for y in (a, b))
    product = (left.T if transpose_a else left) @ (right.T if transpose_b else right)
    return _times(_slope_of_gelu_tanh, x, product).astype(a.dtype)


def cross_entropy_with_gradient(features: Any, labels: Any, slope: Any, **_: Any) -> tuple[np.ndarray, np.ndarray]:
    loss, slopes = softmax_cross_entropy_with_logits(features.astype(np.float64), labels.astype(np.float64))
    return _both(features, loss, slopes, slope)


def sparse_cross_entropy_with_gradient(
    features: Any, labels: Any, slope: Any, **_: Any
) -> tuple[np.ndarray, np.ndarray]:
    loss, slopes = sparse_softmax_cross_entropy_with_logits(features.astype(np.float64), labels)
    return _both(features, loss, slopes, slope)


def _both(features: Any, loss: Any, slopes: Any, slope: Any) -> tuple[np.ndarray, np.ndarray]:
    scaled = np.einsum("...c,...->...c", slopes, np.asarray(slope).astype(np.float64))
    return np.asarray(loss).astype(features.dtype), np.asarray(scaled).astype(features.dtype)
