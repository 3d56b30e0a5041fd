"""Products of matrices with what follows them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.contracts import Found, Operand, Pattern

from graphdock_std.nn.fused import gelu, gelu_tanh
from graphdock_std.patterns.operands import PARTS, ROW, any_of


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


def _gelu_as_bert_has_it(x: Any) -> Any:
    return x * (0.5 * (1.0 + _tf.erf(x / math.sqrt(2.0))))


def _cube(x: Any) -> Any:
    return _tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * _tf.pow(x, 3.0)))


#: Spelling of an activation -> how it is written, and a rare op of it.
FOLLOWS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "gelu": (gelu, "Erf"),
    "gelu_quotient": (_gelu_by_quotient, "Erf"),
    "gelu_cdf": (_gelu_as_bert_has_it, "Erf"),
    "gelu_tanh": (gelu_tanh, "Tanh"),
    "gelu_tanh_pow": (lambda x: 0.5 * x * (1.0 + _cube(x)), "Tanh"),
    "gelu_tanh_cdf": (lambda x: x * (0.5 * (1.0 + _cube(x))), "Tanh"),
    "relu": (lambda x: _tf.nn.relu(x), "Relu"),
    "tanh": (lambda x: _tf.tanh(x), "Tanh"),
    "sigmoid": (lambda x: _tf.sigmoid(x), "Sigmoid"),
}


def activation_of(spelling: str) -> str:
    """Value of an attribute of a fused op."""
    return spelling.removesuffix("_quotient").removesuffix("_cdf").removesuffix("_pow")


def products() -> Iterator[Pattern]:
    matrices = {"a": any_of(2), "b": any_of(2), "bias": ROW}
    for kind, product in (("bias_add", _product), ("add", _sum)):
        for name, (follow, anchor) in FOLLOWS.items():
            function = functools.partial(_followed, product=product, follow=follow)
            standing = functools.partial(_fused_matmul, activation=activation_of(name))
            for size in (0, 3):
                shape = {"shape": Operand((size,), "int32", constant=True)} if size else {}
                label = f"matmul_{kind}_{name}" + (f"_reshaped_{size}" if size else "")
                yield Pattern(label, anchor, matrices | shape, function, standing, not_on=PARTS, check=_of_columns)
        anchor = "BiasAdd" if kind == "bias_add" else "MatMul"
        yield Pattern(
            f"matmul_{kind}",
            anchor,
            matrices,
            product,
            functools.partial(_fused_matmul, activation="none"),
            not_on=PARTS,
            check=_of_columns,
        )


def _of_columns(found: Found) -> str | None:
    """None where a bias is a number per column: what is added may be one for all, or make more columns of one."""
    return None if found.shapes["bias"] == found.shapes["b"][1:] else "the bias is not a number per column"


def _with_sums(a: Any, b: Any) -> Any:
    return _tf.matmul(a, b, True), _tf.reduce_sum(b, 0)


def _matmul_with_sums(a: Any, b: Any) -> Any:
    return tuple(_ops.apply_op("MatMulWithSums", a=a, b=b, transpose_a=True))


def _through_gelu(a: Any, b: Any, x: Any) -> Any:
    return _ops.apply_op("GeluTanhGrad", x=x, dy=_tf.matmul(a, b, False, True))


def _matmul_gelu_grad(a: Any, b: Any, x: Any) -> Any:
    return _ops.apply_op("MatMulGeluGrad", a=a, b=b, x=x, transpose_b=True)


def products_of_gradients() -> Iterator[Pattern]:
    """Yield what the gradients of dense layers have in common, of two that follow one another too."""
    two = {"a": any_of(2), "b": any_of(2)}
    gelu_too = two | {"x": any_of(2)}
    yield Pattern(
        "matmul_gelu_grad", "GeluTanhGrad", gelu_too, _through_gelu, _matmul_gelu_grad, not_on=PARTS, rank=2, late=True
    )
    yield Pattern("matmul_with_sums", "Sum", two, _with_sums, _matmul_with_sums, not_on=PARTS, rank=1, late=True)
