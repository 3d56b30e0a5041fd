"""Products with what follows them, in other ops, and their gradients."""

from __future__ import annotations

import math
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

__all__ = ["activate", "fused_matmul_gradient", "gelu", "gelu_tanh"]

_ROOT = math.sqrt(2 / math.pi)


def gelu(x: Any) -> Any:
    """``x`` times the normal distribution's function of it (Hendrycks and Gimpel, 2016)."""
    return 0.5 * x * (1.0 + _tf.erf(x * math.sqrt(0.5)))


def gelu_tanh(x: Any) -> Any:
    """The same, approximated."""
    return 0.5 * x * (1.0 + _tf.tanh(_ROOT * (x + 0.044715 * x * x * x)))


def activate(x: Any, activation: str) -> Any:
    """What FusedMatMul's attribute says."""
    return _FUNCTIONS[activation](x)


def _same(x: Any) -> Any:
    return _ops.identity(x)


_FUNCTIONS = {
    "none": _same,
    "relu": lambda x: _tf.nn.relu(x),
    "tanh": lambda x: _tf.tanh(x),
    "sigmoid": lambda x: _tf.sigmoid(x),
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
}


def fused_matmul_gradient(op: Any, grad_y: Any, grad_before: Any) -> list[Any]:
    """By both matrices and the bias: through the activation, then as of a product."""
    (a, b, _), (y, before) = op.inputs, op.outputs
    slope = grad_before
    if grad_y is not None:
        through = _through(op.get_attr("activation"), y, before, grad_y)
        slope = through if slope is None else slope + through
    left, right = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    to_a = _tf.matmul(b, slope, right, True) if left else _tf.matmul(slope, b, False, not right)
    to_b = _tf.matmul(slope, a, True, left) if right else _tf.matmul(a, slope, not left)
    return [to_a, to_b, _tf.reduce_sum(slope, 0)]


def _through(activation: str, y: Any, before: Any, grad: Any) -> Any:
    """The gradient of what an activation is applied to."""
    if activation == "none":
        return grad
    if activation == "relu":
        return _ops.apply_op("ReluGrad", gradients=grad, features=y)
    if activation == "tanh":
        return _ops.apply_op("TanhGrad", y=y, dy=grad)
    if activation == "sigmoid":
        return _ops.apply_op("SigmoidGrad", y=y, dy=grad)
    if activation == "gelu":
        density = _tf.exp(-0.5 * before * before) * (1.0 / math.sqrt(2 * math.pi))
        return grad * (0.5 * (1.0 + _tf.erf(before * math.sqrt(0.5))) + before * density)
    t = _tf.tanh(_ROOT * (before + 0.044715 * before * before * before))
    inner = _ROOT * (1.0 + 3 * 0.044715 * before * before)
    return grad * (0.5 * (1.0 + t) + 0.5 * before * (1.0 - t * t) * inner)
