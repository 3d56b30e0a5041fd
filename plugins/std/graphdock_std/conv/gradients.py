"""Gradients of convolutions and pools: each op of a family is linear in what its siblings are the gradients to."""

from __future__ import annotations

from typing import Any

from graphdock import ops as _ops

#: op type of a convolution -> its two gradients.
_BACKPROPS = {
    "Conv2D": ("Conv2DBackpropInput", "Conv2DBackpropFilter"),
    "Conv3D": ("Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
    "DepthwiseConv2dNative": ("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
}
#: Either gradient -> the convolution.
_FORWARD = {backprop: op for op, both in _BACKPROPS.items() for backprop in both}

_WINDOW = (
    "strides",
    "padding",
    "explicit_paddings",
    "data_format",
    "dilations",
    "ksize",
    "use_cudnn_on_gpu",
    "include_batch_in_index",
)


def _window(op: Any) -> dict[str, Any]:
    """The attributes that an op shares with its gradients."""
    return {name: op.get_attr(name) for name in _WINDOW if name in op.node_attrs}


def conv_input(op: Any, grad: Any) -> Any:
    """Of a convolution, by input."""
    x, w = op.inputs
    return _backprop_input(op, op.type, _ops.shape(x), w, grad)


def conv_filter(op: Any, grad: Any) -> Any:
    """Of a convolution, by filter."""
    x, w = op.inputs
    return _backprop_filter(op, op.type, x, _ops.shape(w), grad)


def conv_backprop_input_grad(op: Any, grad: Any) -> list[Any]:
    """Of the gradient to the input, by filter and by out_backprop: with the gradient in the place of the input."""
    _, w, dy = op.inputs
    forward = _FORWARD[op.type]
    return [_backprop_filter(op, forward, grad, _ops.shape(w), dy), _conv(op, forward, grad, w)]


def conv_backprop_filter_grad(op: Any, grad: Any) -> list[Any]:
    """Of the gradient to the filter, by input and by out_backprop: with the gradient in the place of the filter."""
    x, _, dy = op.inputs
    forward = _FORWARD[op.type]
    return [_backprop_input(op, forward, _ops.shape(x), grad, dy), _conv(op, forward, x, grad)]


def _conv(op: Any, forward: str, x: Any, w: Any) -> Any:
    return _ops.apply_op(forward, input=x, filter=w, **_window(op))


def _backprop_input(op: Any, forward: str, sizes: Any, w: Any, dy: Any) -> Any:
    backprop = _BACKPROPS[forward][0]
    return _ops.apply_op(backprop, input_sizes=sizes, filter=w, out_backprop=dy, **_window(op))


def _backprop_filter(op: Any, forward: str, x: Any, sizes: Any, dy: Any) -> Any:
    backprop = _BACKPROPS[forward][1]
    return _ops.apply_op(backprop, input=x, filter_sizes=sizes, out_backprop=dy, **_window(op))


def max_pool(op: Any, grad: Any) -> Any:
    """Of MaxPool and MaxPool3D."""
    return _of_max_pool(f"{op.type}Grad", op, op.inputs[0], op.outputs[0], grad)


def max_pool_grad(op: Any, grad: Any) -> Any:
    """Of MaxPoolGrad and MaxPool3DGrad, by grad: what stands where each window has its maximum."""
    return _of_max_pool(f"{op.type}Grad", op, *op.inputs[:2], grad)


def max_pool_grad_grad(op: Any, grad: Any) -> Any:
    """Of MaxPoolGradGrad and MaxPool3DGradGrad, by grad."""
    return _of_max_pool(op.type.removesuffix("Grad"), op, *op.inputs[:2], grad)


def _of_max_pool(op_type: str, op: Any, x: Any, y: Any, grad: Any) -> Any:
    return _ops.apply_op(op_type, orig_input=x, orig_output=y, grad=grad, **_window(op))


def avg_pool(op: Any, grad: Any) -> Any:
    """Of AvgPool and AvgPool3D."""
    return _ops.apply_op(f"{op.type}Grad", orig_input_shape=_ops.shape(op.inputs[0]), grad=grad, **_window(op))


def avg_pool_grad(op: Any, grad: Any) -> Any:
    """Of AvgPoolGrad and AvgPool3DGrad, by grad: they are linear, and the pool is their transpose."""
    forward = op.type.removesuffix("Grad")
    return _ops.apply_op(forward, **{"value" if forward == "AvgPool" else "input": grad}, **_window(op))


def max_pool_with_argmax(op: Any, grad: Any, _: Any) -> Any:
    """Of MaxPoolWithArgmax."""
    return _of_argmax("MaxPoolGradWithArgmax", op, grad, op.outputs[1])


def max_pool_grad_with_argmax(op: Any, grad: Any) -> Any:
    """Of MaxPoolGradWithArgmax, by grad."""
    return _of_argmax("MaxPoolGradGradWithArgmax", op, grad, op.inputs[2])


def max_pool_grad_grad_with_argmax(op: Any, grad: Any) -> Any:
    """Of MaxPoolGradGradWithArgmax, by grad."""
    return _of_argmax("MaxPoolGradWithArgmax", op, grad, op.inputs[2])


def _of_argmax(op_type: str, op: Any, grad: Any, argmax: Any) -> Any:
    if grad is None:
        return None
    return _ops.apply_op(op_type, input=op.inputs[0], grad=grad, argmax=argmax, **_window(op))
