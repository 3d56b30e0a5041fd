"""Convolutions and products with what follows them, which are one kernel here: looked for where the backend is listed.

The ops that stand for them are graphdock's own, of which no other cpu's kernels are quicker than the parts'.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.contracts import Found, Operand, Pattern

__all__ = ["PATTERNS"]

_WINDOW = ("strides", "padding", "explicit_paddings", "data_format", "dilations")
#: Value of the ops' attribute -> what follows, in the plan.
_FOLLOWS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: _tf.nn.relu(x),
    "tanh": lambda x: _tf.tanh(x),
    "sigmoid": lambda x: _tf.sigmoid(x),
    "none": lambda x: x,
}


def _biased(y: Any, bias: Any, kind: str, data_format: str) -> Any:
    return y + bias if kind == "add" else _tf.nn.bias_add(y, bias, data_format=data_format)


def _convolution(input: Any, filter: Any, bias: Any, *, kind: str, name: str, **window: Any) -> Any:
    made = _ops.apply_op("Conv2D", input=input, filter=filter, **window)
    return _FOLLOWS[name](_biased(made, bias, kind, window["data_format"]))


def _fused_convolution(input: Any, filter: Any, bias: Any, *, name: str, **window: Any) -> Any:
    return _ops.apply_op("FusedConv2D", input=input, filter=filter, bias=bias, activation=name, **window)[0]


def _product(a: Any, b: Any, bias: Any, *, kind: str, name: str) -> Any:
    return _FOLLOWS[name](_biased(_tf.matmul(a, b), bias, kind, "NHWC"))


def _fused_product(a: Any, b: Any, bias: Any, *, name: str) -> Any:
    return _ops.apply_op("FusedMatMul", a=a, b=b, bias=bias, activation=name)[0]


def _whole(found: Found) -> str | None:
    """The reason why the op's kernels would refuse what the parts' take."""
    return "it has no elements" if any(0 in shape for shape in found.shapes.values()) else None


def _of_channels(found: Found, kind: str) -> str | None:
    if found.shapes["bias"] != found.shapes["filter"][-1:]:
        return "the bias is not a number per channel"
    if kind == "add" and found.attrs["data_format"] != "NHWC":
        return "the bias is added along another dim"
    return _whole(found)


def _of_columns(found: Found) -> str | None:
    return "the bias is not a number per column" if found.shapes["bias"] != found.shapes["b"][1:] else _whole(found)


def _patterns() -> Iterator[Pattern]:
    """Each activation before none: what has one would be found without it."""
    images = {"input": Operand((None,) * 4), "filter": Operand((None,) * 4), "bias": Operand((None,))}
    matrices = {"a": Operand((None,) * 2), "b": Operand((None,) * 2), "bias": Operand((None,))}
    shared: dict[str, Any] = {"dtypes": ("float32",), "listed": True}
    for name in _FOLLOWS:
        for kind in ("bias_add", "add"):
            called = functools.partial("_".join, (kind, name) if name != "none" else (kind,))()
            yield Pattern(
                f"conv2d_{called}", "Conv2D", images, functools.partial(_convolution, kind=kind, name=name),
                functools.partial(_fused_convolution, name=name), attrs=_WINDOW,
                check=functools.partial(_of_channels, kind=kind), **shared,
            )  # fmt: skip
            yield Pattern(
                f"matmul_{called}", "MatMul", matrices, functools.partial(_product, kind=kind, name=name),
                functools.partial(_fused_product, name=name), check=_of_columns, **shared,
            )  # fmt: skip


PATTERNS = tuple(_patterns())
