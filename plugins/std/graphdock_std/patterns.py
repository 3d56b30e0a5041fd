"""What people write in several ops and one op of std computes: layer norms, attention, products with what follows them.

Each spelling is a pattern of its own, and each rank.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.contracts import CONSTANT, Found, Operand, Pattern

from graphdock_std.fused import gelu, gelu_tanh

__all__ = ["PATTERNS"]

_ROW = Operand((None,))
#: Devices without launches to save.
_PARTS = ("cpu",)


def _any(rank: int) -> Operand:
    return Operand((None,) * rank)


# -- layer norms of the last axis


def _centred(x: Any) -> tuple[Any, Any]:
    mean = _tf.reduce_mean(x, axis=-1, keepdims=True)
    return x - mean, mean


def _norm_by_root(x: Any, gamma: Any, beta: Any, epsilon: Any) -> Any:
    d, _ = _centred(x)
    return d * _tf.rsqrt(_tf.reduce_mean(_tf.square(d), axis=-1, keepdims=True) + epsilon) * gamma + beta


def _norm_by_product(x: Any, gamma: Any, beta: Any, epsilon: Any) -> Any:
    d, _ = _centred(x)
    return d * _tf.rsqrt(_tf.reduce_mean(d * d, axis=-1, keepdims=True) + epsilon) * gamma + beta


def _norm_by_quotient(x: Any, gamma: Any, beta: Any, epsilon: Any) -> Any:
    d, _ = _centred(x)
    return d / _tf.sqrt(_tf.reduce_mean(_tf.square(d), axis=-1, keepdims=True) + epsilon) * gamma + beta


def _norm_scaled_first(x: Any, gamma: Any, beta: Any, epsilon: Any) -> Any:
    d, _ = _centred(x)
    return gamma * d / _tf.sqrt(_tf.reduce_mean(_tf.square(d), axis=-1, keepdims=True) + epsilon) + beta


def _norm_by_moments(x: Any, gamma: Any, beta: Any, epsilon: Any) -> Any:
    mean, variance = _tf.nn.moments(x, [-1], keep_dims=True)
    return (x - mean) * _tf.rsqrt(variance + epsilon) * gamma + beta


def _norm_as_batch_norm(x: Any, gamma: Any, beta: Any, epsilon: Any) -> Any:
    mean, variance = _tf.nn.moments(x, [-1], keep_dims=True)
    return _tf.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)


def _layer_norm(x: Any, gamma: Any, beta: Any, epsilon: Any) -> Any:
    wide = x.dtype.accumulator
    return _ops.apply_op(
        "LayerNorm",
        x=x,
        gamma=_ops.cast(gamma, wide),
        beta=_ops.cast(beta, wide),
        epsilon=float(epsilon),
        begin_norm_axis=-1,
    )[0]


def _layer_norms() -> Iterator[Pattern]:
    spellings = {
        "rsqrt": (_norm_by_root, "Rsqrt"),
        "product": (_norm_by_product, "Rsqrt"),
        "quotient": (_norm_by_quotient, "Sqrt"),
        "scaled_first": (_norm_scaled_first, "Sqrt"),
        "moments": (_norm_by_moments, "Rsqrt"),
        "batch_norm": (_norm_as_batch_norm, "Rsqrt"),
    }
    for name, (function, anchor) in spellings.items():
        for rank in (2, 3, 4):
            inputs = {"x": _any(rank), "gamma": _ROW, "beta": _ROW, "epsilon": CONSTANT}
            yield Pattern(f"layer_norm_{name}_{rank}", anchor, inputs, function, _layer_norm, check=_a_whole_row)


def _a_whole_row(found: Found) -> str | None:
    width = found.shapes["x"][-1]
    if found.shapes["gamma"] != (width,) or found.shapes["beta"] != (width,):
        return "gamma and beta are no rows of x"
    return None


# -- attention


def _scaled_after(query: Any, key: Any, scale: Any) -> Any:
    return _tf.matmul(query, key, transpose_b=True) * scale


def _scaled_before(query: Any, key: Any, scale: Any) -> Any:
    return _tf.matmul(query * scale, key, transpose_b=True)


def _divided_after(query: Any, key: Any, scale: Any) -> Any:
    return _tf.matmul(query, key, transpose_b=True) / scale


def _unscaled(query: Any, key: Any, scale: None) -> Any:
    return _tf.matmul(query, key, transpose_b=True)


def _open(scores: Any) -> Any:
    return scores


def _blended(scores: Any, seen: Any, low: Any) -> Any:
    return scores * seen - low


def _added(scores: Any, low: Any) -> Any:
    return scores + low


def _attended(
    query: Any,
    key: Any,
    value: Any,
    scale: Any = None,
    *,
    score: Callable[..., Any],
    hide: Callable[..., Any],
    **masks: Any,
) -> Any:
    return _tf.matmul(_tf.nn.softmax(hide(score(query, key, scale), **masks)), value)


def _attention(query: Any, key: Any, value: Any, scale: Any = 1.0, *, divided: bool, **masks: Any) -> Any:
    factor = 1.0 / float(scale) if divided else float(scale)
    attrs = {"scale": factor, "causal": bool(masks)}
    return _ops.apply_op("Attention", query=query, key=key, value=value, **attrs)[0]


def _attentions() -> Iterator[Pattern]:
    table = Operand((None, None), constant=True)
    hidden: dict[str, tuple[Callable[..., Any], dict[str, Operand]]] = {
        "": (_open, {}),
        "_blended": (_blended, {"seen": table, "low": table}),
        "_added": (_added, {"low": table}),
    }
    scores = {"after": _scaled_after, "before": _scaled_before, "divided": _divided_after, "unscaled": _unscaled}
    for rank in (3, 4):
        operands = {name: _any(rank) for name in ("query", "key", "value")}
        for name, score in scores.items():
            scale = {} if score is _unscaled else {"scale": CONSTANT}
            for label, (hide, masks) in hidden.items():
                yield Pattern(
                    f"attention_{name}{label}_{rank}",
                    "Softmax",
                    operands | scale | masks,
                    functools.partial(_attended, score=score, hide=hide),
                    functools.partial(_attention, divided=score is _divided_after),
                    not_on=_PARTS,
                    check=_causal if masks else None,
                )


def _causal(found: Found) -> str | None:
    """None where what is added, or taken away, hides the keys behind each query, and nothing else."""
    low = np.asarray(found.constants["low"], np.float64)
    seen = np.tri(*low.shape, dtype=bool)
    if low.shape != (found.shapes["query"][-2], found.shapes["key"][-2]) or low.shape[0] != low.shape[1]:
        return "the mask is no square of queries and keys"
    blend = found.constants.get("seen")
    sign = -1.0 if blend is None else 1.0
    if np.any(low[seen] != 0) or np.any(sign * low[~seen] < 1e4):
        return "the mask is not causal"
    if blend is not None and not np.array_equal(np.asarray(blend, np.float64), seen):
        return "the mask is not causal"
    return None


# -- products and what follows them


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


def _products() -> Iterator[Pattern]:
    follows: dict[str, tuple[Callable[[Any], Any], str]] = {
        "gelu": (gelu, "Erf"),
        "gelu_quotient": (_gelu_by_quotient, "Erf"),
        "gelu_tanh": (gelu_tanh, "Tanh"),
        "relu": (lambda x: _tf.nn.relu(x), "Relu"),
        "tanh": (lambda x: _tf.tanh(x), "Tanh"),
        "sigmoid": (lambda x: _tf.sigmoid(x), "Sigmoid"),
    }
    matrices = {"a": _any(2), "b": _any(2), "bias": _ROW}
    for kind, product in (("bias_add", _product), ("add", _sum)):
        for name, (follow, anchor) in follows.items():
            function = functools.partial(_followed, product=product, follow=follow)
            standing = functools.partial(_fused_matmul, activation=name.removesuffix("_quotient"))
            for size in (0, 3):
                shape = {"shape": Operand((size,), "int32", constant=True)} if size else {}
                label = f"matmul_{kind}_{name}" + (f"_reshaped_{size}" if size else "")
                yield Pattern(label, anchor, matrices | shape, function, standing, not_on=_PARTS)
        anchor = "BiasAdd" if kind == "bias_add" else "MatMul"
        yield Pattern(
            f"matmul_{kind}",
            anchor,
            matrices,
            product,
            functools.partial(_fused_matmul, activation="none"),
            not_on=_PARTS,
        )


PATTERNS = (*_layer_norms(), *_attentions(), *_products())
