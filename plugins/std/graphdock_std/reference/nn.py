"""Oracles of the neural-network ops: float64, one row at a time, and other formulas than the kernels'."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphdock_std.reference.math import elementwise, per_element


def _log_rows(logits: Any) -> np.ndarray:
    """log softmax in float64: each logit less the row's log of the sum of exponentials, folded pair by pair."""
    x = np.asarray(logits).astype(np.float64)
    if x.size == 0:
        return x
    return x - np.logaddexp.reduce(x, axis=-1, keepdims=True)


def log_softmax(logits: Any, **_: Any) -> np.ndarray:
    return _log_rows(logits).astype(logits.dtype)


def softmax(logits: Any, **_: Any) -> np.ndarray:
    return np.exp(_log_rows(logits)).astype(logits.dtype)


def softmax_cross_entropy_with_logits(features: Any, labels: Any, **_: Any) -> tuple[np.ndarray, np.ndarray]:
    log_p, wide = _log_rows(features), np.asarray(labels).astype(np.float64)
    loss = -np.einsum("...c,...c->...", wide, log_p)
    return np.asarray(loss).astype(features.dtype), (np.exp(log_p) - wide).astype(features.dtype)


def sparse_softmax_cross_entropy_with_logits(features: Any, labels: Any, **_: Any) -> tuple[np.ndarray, np.ndarray]:
    one_hot = np.equal(np.asarray(labels)[..., None], np.arange(features.shape[-1])).astype(np.float64)
    loss, backprop = softmax_cross_entropy_with_logits(np.asarray(features).astype(np.float64), one_hot)
    return loss.astype(features.dtype), backprop.astype(features.dtype)


_SCALE, _ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717

relu = per_element(lambda v: 0 if v <= 0 else v)
relu6 = per_element(lambda v: 6 if v > 6 else 0 if v <= 0 else v)
relu_grad = per_element(lambda g, v: g * (v > 0))
elu = per_element(lambda v: v if v > 0 else math.expm1(v))
selu = per_element(lambda v: _SCALE * (v if v > 0 else _ALPHA * math.expm1(v)))
softsign = per_element(lambda v: math.nan if math.isinf(v) else math.copysign(1.0 - 1.0 / (1.0 + abs(v)), v))


def leaky_relu(features: Any, alpha: float = 0.2, **_: Any) -> np.ndarray:
    return elementwise(lambda v: v if v > 0 else alpha * v, features)


def leaky_relu_grad(gradients: Any, features: Any, alpha: float = 0.2, **_: Any) -> np.ndarray:
    return elementwise(lambda g, v: g if v > 0 else g * alpha, gradients, features)


def softplus(features: Any, **_: Any) -> np.ndarray:
    return np.logaddexp(np.asarray(features).astype(np.float64), 0.0).astype(features.dtype)


def _channel_axis(rank: int, data_format: str) -> int:
    return 1 if data_format == "NCHW" else rank - 1


def bias_add(value: Any, bias: Any, data_format: str = "NHWC", **_: Any) -> np.ndarray:
    out = np.array(value)
    moved = np.moveaxis(out, _channel_axis(out.ndim, data_format), 0)
    for channel, b in zip(moved, bias, strict=True):
        channel += b
    return out


def bias_add_grad(out_backprop: Any, data_format: str = "NHWC", **_: Any) -> np.ndarray:
    x = np.asarray(out_backprop)
    wide = x.astype(np.float64) if x.dtype.kind not in "iu" else x
    moved = np.moveaxis(wide, _channel_axis(x.ndim, data_format), 0)
    totals = [sum(channel.ravel().tolist()) for channel in moved]
    if x.dtype.kind in "iu":
        bits = 8 * x.dtype.itemsize
        return np.array([t % (1 << bits) for t in totals], np.uint64).astype(x.dtype)
    return np.array(totals, np.float64).astype(x.dtype)


def l2_loss_sum(t: Any, **_: Any) -> np.ndarray:
    return np.array(math.fsum(float(l2_loss(x.astype(np.float64))) for x in t)).astype(t[0].dtype)


def l2_loss(t: Any, **_: Any) -> np.ndarray:
    values = np.asarray(t).astype(np.float64).ravel().tolist()
    return np.array(math.fsum(v * v for v in values) / 2.0).astype(t.dtype)
