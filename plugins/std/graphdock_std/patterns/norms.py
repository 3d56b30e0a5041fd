"""Layer norms and RMS norms of the last axis."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.contracts import CONSTANT, Found, Pattern

from graphdock_std.patterns.operands import ROW, any_of


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


def layer_norms() -> Iterator[Pattern]:
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
            inputs = {"x": any_of(rank), "gamma": ROW, "beta": ROW, "epsilon": CONSTANT}
            label = f"layer_norm_{name}_{rank}"
            yield Pattern(label, anchor, inputs, function, _layer_norm, rank=rank, check=_a_whole_row)


def _a_whole_row(found: Found) -> str | None:
    width = found.shapes["x"][-1]
    if found.shapes["gamma"] != (width,) or found.shapes["beta"] != (width,):
        return "gamma and beta are no rows of x"
    return None


# -- by the root mean square


def _square(x: Any) -> Any:
    return _tf.reduce_mean(_tf.square(x), axis=-1, keepdims=True)


def _product(x: Any) -> Any:
    return _tf.reduce_mean(x * x, axis=-1, keepdims=True)


def _rms_by_root(x: Any, gamma: Any, epsilon: Any, *, square: Callable[[Any], Any]) -> Any:
    return x * _tf.rsqrt(square(x) + epsilon) * gamma


def _rms_by_factor(x: Any, gamma: Any, epsilon: Any, *, square: Callable[[Any], Any]) -> Any:
    return x * (_tf.rsqrt(square(x) + epsilon) * gamma)


def _rms_scaled_first(x: Any, gamma: Any, epsilon: Any, *, square: Callable[[Any], Any]) -> Any:
    return x * gamma * _tf.rsqrt(square(x) + epsilon)


def _rms_by_quotient(x: Any, gamma: Any, epsilon: Any, *, square: Callable[[Any], Any]) -> Any:
    return x / _tf.sqrt(square(x) + epsilon) * gamma


def _rms_scaled_quotient(x: Any, gamma: Any, epsilon: Any, *, square: Callable[[Any], Any]) -> Any:
    return x * gamma / _tf.sqrt(square(x) + epsilon)


def _rms_norm(x: Any, gamma: Any, epsilon: Any) -> Any:
    wide = x.dtype.accumulator
    return _ops.apply_op("RMSNorm", x=x, gamma=_ops.cast(gamma, wide), epsilon=float(epsilon))[0]


def rms_norms() -> Iterator[Pattern]:
    """One pattern per spelling and rank."""
    spellings = {
        "rsqrt": (_rms_by_root, "Rsqrt"),
        "factor": (_rms_by_factor, "Rsqrt"),
        "scaled_first": (_rms_scaled_first, "Rsqrt"),
        "quotient": (_rms_by_quotient, "Sqrt"),
        "scaled_quotient": (_rms_scaled_quotient, "Sqrt"),
    }
    for name, (function, anchor) in spellings.items():
        for kind, square in (("square", _square), ("product", _product)):
            for rank in (2, 3, 4):
                inputs = {"x": any_of(rank), "gamma": ROW, "epsilon": CONSTANT}
                yield Pattern(
                    f"rms_norm_{name}_{kind}_{rank}",
                    anchor,
                    inputs,
                    functools.partial(function, square=square),
                    _rms_norm,
                    rank=rank,
                    check=_a_row,
                )


def _a_row(found: Found) -> str | None:
    if found.shapes["gamma"] != found.shapes["x"][-1:]:
        return "gamma is no row of x"
    return None
