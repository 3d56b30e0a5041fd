"""Dilation and erosion of images by a structuring function. Names, argument names and defaults are TensorFlow 1's.

Serra, "Image analysis and mathematical morphology", 1982.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.typing import TensorLike

from graphdock_std.conv.window_args import either


def dilation2d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: Sequence[int] | None = None,
    rates: Sequence[int] | None = None,
    padding: Literal["SAME", "VALID"] | None = None,
    name: str | None = None,
    filters: TensorLike | None = None,
    dilations: Sequence[int] | None = None,
) -> _ops.Tensor:
    """Each window's largest sum of an element and the filter's.

    Args:
      input: floating tensor ``[batch, height, width, channels]``.
      filter: ``[height, width, channels]``, of the same dtype; ``filters`` is its newer name.
      strides: step of the window, a number per dim.
      rates: distance of the filter's elements in the input, a number per dim; ``dilations`` is its newer name.
      padding: ``"SAME"`` or ``"VALID"``; padding never is the largest.

    Raises:
      ShapeError: the channels differ, or a window is larger than the input.
    """
    return _ops.apply_op(
        "Dilation2D",
        input=input,
        filter=either("filters", filters, "filter", filter),
        strides=list(strides or (1, 1, 1, 1)),
        rates=list(either("dilations", dilations, "rates", rates)),
        padding=padding,
        name=name,
    )


def erosion2d(
    value: TensorLike,
    kernel: TensorLike,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: Literal["SAME", "VALID"],
    name: str | None = None,
) -> _ops.Tensor:
    """Each window's smallest difference of an element and the kernel's, which is turned around: the dual of :func:`dilation2d`."""
    with _tf.name_scope(name or "erosion2d") as scope:
        value, kernel = _ops.convert_to_tensor(value), _ops.convert_to_tensor(kernel)
        return _tf.negative(dilation2d(-value, kernel[::-1, ::-1], strides, rates, padding), name=scope)


def _attrs(op: Any) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in ("strides", "rates", "padding")}


def dilation_input_grad(op: Any, grad: Any) -> Any:
    """Of Dilation2D by input, and of Dilation2DBackpropInputGrad by grad."""
    x, w = op.inputs[:2]
    return _ops.apply_op("Dilation2DBackpropInput", input=x, filter=w, out_backprop=grad, **_attrs(op))


def dilation_filter_grad(op: Any, grad: Any) -> Any:
    """Of Dilation2D by filter, and of Dilation2DBackpropFilterGrad by grad."""
    x, w = op.inputs[:2]
    return _ops.apply_op("Dilation2DBackpropFilter", input=x, filter=w, out_backprop=grad, **_attrs(op))


def dilation_pick_input(op: Any, grad: Any) -> Any:
    """Of Dilation2DBackpropInput, by out_backprop."""
    x, w = op.inputs[:2]
    return _ops.apply_op("Dilation2DBackpropInputGrad", input=x, filter=w, grad=grad, **_attrs(op))


def dilation_pick_filter(op: Any, grad: Any) -> Any:
    """Of Dilation2DBackpropFilter, by out_backprop."""
    x, w = op.inputs[:2]
    return _ops.apply_op("Dilation2DBackpropFilterGrad", input=x, filter=w, grad=grad, **_attrs(op))
