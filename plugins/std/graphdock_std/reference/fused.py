"""Oracles of specs/fused.yaml, in float64 and by definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphdock_std.reference.random import stream_uniform

__all__ = ["attention", "attention_grad", "dropped_attention", "dropped_attention_grad", "fused_matmul"]


def _weights(query: Any, key: Any, scale: float, causal: bool, bias: Any) -> tuple[np.ndarray, np.ndarray]:
    """Softmax, and the base 2 logarithms of its sums."""
    scores = np.einsum("...md,...nd->...mn", query.astype(np.float64), key.astype(np.float64)) * scale
    if bias is not None:
        scores = scores + bias.astype(np.float64)
    queries, keys = scores.shape[-2:]
    if causal:
        for i in range(queries):
            for j in range(keys):
                if j > i + keys - queries:
                    scores[..., i, j] = -np.inf
    high = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - high)
    total = weights.sum(-1, keepdims=True)
    return weights / total, (high + np.log(total))[..., 0] / math.log(2)


def attention(
    query: Any, key: Any, value: Any, bias: Any = None, scale: float = 1.0, causal: bool = False
) -> tuple[np.ndarray, ...]:
    weights, logs = _weights(query, key, scale, causal, bias)
    output = np.einsum("...mn,...ne->...me", weights, value.astype(np.float64))
    return output.astype(query.dtype), logs.astype(np.float32)


def attention_grad(
    output_backprop: Any,
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    scale: float = 1.0,
    causal: bool = False,
    **_: Any,
) -> tuple[np.ndarray, ...]:
    """By the derivative of each weight by each score of its row."""
    g, q, k, v = (x.astype(np.float64) for x in (output_backprop, query, key, value))
    weights, _logs = _weights(query, key, scale, causal, bias)
    toward = np.einsum("...me,...ne->...mn", g, v)
    slope = weights[..., :, None] * (np.eye(weights.shape[-1]) - weights[..., None, :])
    scores = np.einsum("...mn,...mnj->...mj", toward, slope) * scale
    found = (
        np.einsum("...mn,...nd->...md", scores, k),
        np.einsum("...mn,...md->...nd", scores, q),
        np.einsum("...mn,...me->...ne", weights, g),
    )
    return tuple(x.astype(query.dtype) for x in found)


def _kept(weights: np.ndarray, stream: Any, rate: Any, factor: Any) -> np.ndarray:
    """The factor of each weight: 0 where it is dropped."""
    return np.where(stream_uniform(weights.shape, stream) < np.float32(rate), 0.0, float(factor))


def dropped_attention(
    query: Any,
    key: Any,
    value: Any,
    stream: Any,
    rate: Any,
    factor: Any,
    bias: Any = None,
    scale: float = 1.0,
    causal: bool = False,
) -> tuple[np.ndarray, ...]:
    weights, logs = _weights(query, key, scale, causal, bias)
    dropped = weights * _kept(weights, stream, rate, factor)
    output = np.einsum("...mn,...ne->...me", dropped, value.astype(np.float64))
    return output.astype(query.dtype), logs.astype(np.float32)


def dropped_attention_grad(
    output_backprop: Any,
    query: Any,
    key: Any,
    value: Any,
    stream: Any,
    rate: Any,
    factor: Any,
    bias: Any = None,
    scale: float = 1.0,
    causal: bool = False,
    **_: Any,
) -> tuple[np.ndarray, ...]:
    g, q, k, v = (x.astype(np.float64) for x in (output_backprop, query, key, value))
    weights, _logs = _weights(query, key, scale, causal, bias)
    kept = _kept(weights, stream, rate, factor)
    toward = np.einsum("...me,...ne->...mn", g, v) * kept
    slope = weights[..., :, None] * (np.eye(weights.shape[-1]) - weights[..., None, :])
    scores = np.einsum("...mn,...mnj->...mj", toward, slope) * scale
    found = (
        np.einsum("...mn,...nd->...md", scores, k),
        np.einsum("...mn,...md->...nd", scores, q),
        np.einsum("...mn,...me->...ne", weights * kept, g),
    )
    return tuple(x.astype(query.dtype) for x in found)


def fused_matmul(
    a: Any, b: Any, bias: Any, transpose_a: bool = False, transpose_b: bool = False, activation: str = "none"
) -> tuple[np.ndarray, ...]:
    left, right, summand = (x.astype(np.float64) for x in (a, b, bias))
    before = (left.T if transpose_a else left) @ (right.T if transpose_b else right) + summand
    functions: dict[str, Any] = {
        "none": lambda x: x,
        "relu": lambda x: max(x, 0.0),
        "tanh": math.tanh,
        "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
        "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
        "gelu_tanh": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    }
    y = np.array([functions[activation](x) for x in before.ravel().tolist()]).reshape(before.shape)
    return y.astype(a.dtype), before.astype(a.dtype)
