"""Products and convolutions with what follows them, in other ops, and their gradients."""

from __future__ import annotations

import math
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

_ROOT = math.sqrt(2 / math.pi)


def gelu(x: Any) -> Any:
    """``x`` times the normal distribution's function of it (Hendrycks and Gimpel, 2016)."""
    return 0.5 * x * (1.0 + _tf.erf(x * math.sqrt(0.5)))


def gelu_tanh(x: Any) -> Any:
    """The same, approximated."""
    return 0.5 * x * (1.0 + _tf.tanh(_ROOT * (x + 0.044715 * x * x * x)))


def activate(x: Any, activation: str) -> Any:
    """Return what the attribute of FusedMatMul and FusedConv2D says."""
    return _FUNCTIONS[activation](x)


def _same(x: Any) -> Any:
    return _ops.identity(x)


_FUNCTIONS = {
    "none": _same,
    "relu": lambda x: _tf.nn.relu(x),
    "relu6": lambda x: _tf.nn.relu6(x),
    "tanh": lambda x: _tf.tanh(x),
    "sigmoid": lambda x: _tf.sigmoid(x),
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
}


def fused_matmul_gradient(op: Any, grad_y: Any, grad_before: Any) -> list[Any]:
    """By both matrices and the bias: through the activation, then as of a product."""
    a, b, _ = op.inputs
    slope = _before_activation(op, grad_y, grad_before)
    left, right = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    return [*_by_matrices(a, b, slope, left, right), _tf.reduce_sum(slope, 0)]


def convolved(
    input: Any,
    filter: Any,
    bias: Any,
    strides: Any,
    padding: str,
    explicit_paddings: Any,
    data_format: str,
    dilations: Any,
) -> Any:
    """A convolution of images and a bias, by the attributes of FusedConv2D."""
    window = {"strides": strides, "padding": padding, "explicit_paddings": explicit_paddings, "dilations": dilations}
    made = _ops.apply_op("Conv2D", input=input, filter=filter, data_format=data_format, **window)
    return _tf.nn.bias_add(made, bias, data_format=data_format)


def fused_conv_gradient(op: Any, grad_y: Any, grad_before: Any) -> list[Any]:
    """By images, filter and bias: through the activation, then as of a convolution."""
    x, w, _ = op.inputs
    slope = _before_activation(op, grad_y, grad_before)
    window = {n: op.get_attr(n) for n in ("strides", "padding", "explicit_paddings", "data_format", "dilations")}
    to_x = _ops.apply_op("Conv2DBackpropInput", input_sizes=_ops.shape(x), filter=w, out_backprop=slope, **window)
    to_w = _ops.apply_op("Conv2DBackpropFilter", input=x, filter_sizes=_ops.shape(w), out_backprop=slope, **window)
    return [to_x, to_w, _ops.apply_op("BiasAddGrad", out_backprop=slope, data_format=op.get_attr("data_format"))]


def _before_activation(op: Any, grad_y: Any, grad_before: Any) -> Any:
    """The gradient of what the activation is applied to, of all that arrives; one of both does."""
    if grad_y is None:
        return grad_before
    y, before = op.outputs
    through = _through(op.get_attr("activation"), y, before, grad_y)
    return through if grad_before is None else grad_before + through


def _through(activation: str, y: Any, before: Any, grad: Any) -> Any:
    """The gradient of what an activation is applied to."""
    if activation == "none":
        return grad
    if activation == "relu":
        return _ops.apply_op("ReluGrad", gradients=grad, features=y)
    if activation == "relu6":
        return _ops.apply_op("ReluGrad", gradients=_tf.where(y < 6.0, grad, _tf.zeros_like(grad)), features=y)
    if activation == "tanh":
        return _ops.apply_op("TanhGrad", y=y, dy=grad)
    if activation == "sigmoid":
        return _ops.apply_op("SigmoidGrad", y=y, dy=grad)
    return _ops.apply_op("GeluGrad" if activation == "gelu" else "GeluTanhGrad", x=before, dy=grad)


def _density(x: Any) -> Any:
    return _tf.exp(-0.5 * x * x) * (1.0 / math.sqrt(2 * math.pi))


def gelu_slope(x: Any) -> Any:
    """The derivative of gelu."""
    return 0.5 * (1.0 + _tf.erf(x * math.sqrt(0.5))) + x * _density(x)


def gelu_curve(x: Any) -> Any:
    """The second derivative of gelu."""
    return (2.0 - x * x) * _density(x)


def _inner(x: Any) -> tuple[Any, Any]:
    """The tanh of gelu's approximation, and the derivative of what that is of."""
    return _tf.tanh(_ROOT * (x + 0.044715 * x * x * x)), _ROOT * (1.0 + 3 * 0.044715 * x * x)


def gelu_tanh_slope(x: Any) -> Any:
    """The derivative of gelu's approximation."""
    t, by_x = _inner(x)
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * by_x


def gelu_tanh_curve(x: Any) -> Any:
    """The second derivative of gelu's approximation."""
    t, by_x = _inner(x)
    return (1.0 - t * t) * (by_x + x * (_ROOT * 3 * 0.044715 * x - t * by_x * by_x))


def inner_sums(a: Any, b: Any, transpose_a: bool, transpose_b: bool, summed: str) -> Any:
    """Of a product's left or right matrix, the sums along the dim that the product sums over."""
    if summed == "a":
        return _tf.reduce_sum(a, 0 if transpose_a else 1)
    return _tf.reduce_sum(b, 1 if transpose_b else 0)


def _by_matrices(a: Any, b: Any, slope: Any, left: bool, right: bool) -> tuple[Any, Any]:
    """The gradient of a product by both matrices."""
    to_a = _tf.matmul(b, slope, right, True) if left else _tf.matmul(slope, b, False, not right)
    to_b = _tf.matmul(slope, a, True, left) if right else _tf.matmul(a, slope, not left)
    return to_a, to_b


def matmul_with_sums_gradient(op: Any, grad_y: Any, grad_sums: Any) -> list[Any]:
    """By both matrices: as of a product, and to each term of a sum the same."""
    a, b = op.inputs
    left, right = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    parts: list[Any] = [None, None] if grad_y is None else [*_by_matrices(a, b, grad_y, left, right)]
    if grad_sums is not None:
        of_a = op.get_attr("summed") == "a"
        matrix, at = (a, 0) if of_a else (b, 1)
        along_rows = left if of_a else not right  # the sums run down the columns
        each = _tf.broadcast_to(_tf.expand_dims(grad_sums, 0 if along_rows else 1), _tf.shape(matrix))
        parts[at] = each if parts[at] is None else parts[at] + each
    return parts


def matmul_gelu_grad_gradient(op: Any, grad: Any) -> list[Any]:
    """By both matrices and what gelu was applied to."""
    a, b, x = op.inputs
    left, right = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    slope = _ops.apply_op("GeluTanhGrad", x=x, dy=grad)
    return [*_by_matrices(a, b, slope, left, right), grad * _tf.matmul(a, b, left, right) * gelu_tanh_curve(x)]
