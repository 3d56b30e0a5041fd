"""Products of matrices with what follows them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.contracts import Operand, Pattern

from graphdock_std.fused import gelu, gelu_tanh
from graphdock_std.patterns.operands import PARTS, ROW, any_of

__all__ = ["products"]


def _product(a: Any, b: Any, bias: Any) -> Any:
    return _tf.nn.bias_add(_tf.matmul(a, b), bias)


def _sum(a: Any, b: Any, bias: Any) -> Any:
    return _tf.matmul(a, b) + bias


def _fused_matmul(a: Any, b: Any, bias: Any, activation: str, shape: Any = None) -> Any:
    y = _ops.apply_op("FusedMatMul", a=a, b=b, bias=bias, activation=activation)[0]
    return y if shape is None else _tf.reshape(y, shape)


def _followed(
    a: Any, b: Any, bias: Any, shape: Any = None, *, product: Callable[..., Any], follow: Callable[[Any], Any]
) -> Any:
    y = product(a, b, bias)
    return follow(y if shape is None else _tf.reshape(y, shape))


def _gelu_by_quotient(x: Any) -> Any:
    return 0.5 * x * (1.0 + _tf.erf(x / math.sqrt(2.0)))


def products() -> Iterator[Pattern]:
    follows: dict[str, tuple[Callable[[Any], Any], str]] = {
        "gelu": (gelu, "Erf"),
        "gelu_quotient": (_gelu_by_quotient, "Erf"),
        "gelu_tanh": (gelu_tanh, "Tanh"),
        "relu": (lambda x: _tf.nn.relu(x), "Relu"),
        "tanh": (lambda x: _tf.tanh(x), "Tanh"),
        "sigmoid": (lambda x: _tf.sigmoid(x), "Sigmoid"),
    }
    matrices = {"a": any_of(2), "b": any_of(2), "bias": ROW}
    for kind, product in (("bias_add", _product), ("add", _sum)):
        for name, (follow, anchor) in follows.items():
            function = functools.partial(_followed, product=product, follow=follow)
            standing = functools.partial(_fused_matmul, activation=name.removesuffix("_quotient"))
            for size in (0, 3):
                shape = {"shape": Operand((size,), "int32", constant=True)} if size else {}
                label = f"matmul_{kind}_{name}" + (f"_reshaped_{size}" if size else "")
                yield Pattern(label, anchor, matrices | shape, function, standing, not_on=PARTS)
        anchor = "BiasAdd" if kind == "bias_add" else "MatMul"
        yield Pattern(
            f"matmul_{kind}",
            anchor,
            matrices,
            product,
            functools.partial(_fused_matmul, activation="none"),
            not_on=PARTS,
        )
