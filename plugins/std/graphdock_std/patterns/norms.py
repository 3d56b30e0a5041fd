"""Layer norms and RMS norms of the last axis."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.contracts import CONSTANT, Found, Pattern

from graphdock_std.patterns.operands import ROW, any_of


def _mean(x: Any) -> Any:
    return _tf.reduce_mean(x, axis=-1, keepdims=True)


def _of_square(x: Any) -> tuple[Any, Any]:
    """Return what the mean leaves of ``x``, and the variance of that."""
    d = x - _mean(x)
    return d, _mean(_tf.square(d))


def _of_product(x: Any) -> tuple[Any, Any]:
    d = x - _mean(x)
    return d, _mean(d * d)


def _of_two_differences(x: Any) -> tuple[Any, Any]:
    """The difference is written twice: a plan has it once, and its gradient in two parts."""
    mean = _mean(x)
    return x - mean, _mean(_tf.square(x - mean))


def _of_moments(x: Any) -> tuple[Any, Any]:
    mean, variance = _tf.nn.moments(x, [-1], keep_dims=True)
    return x - mean, variance


def _by_root(d: Any, variance: Any, gamma: Any, beta: Any) -> Any:
    return d * _tf.rsqrt(variance) * gamma + beta


def _by_factor(d: Any, variance: Any, gamma: Any, beta: Any) -> Any:
    return d * (_tf.rsqrt(variance) * gamma) + beta


def _by_quotient(d: Any, variance: Any, gamma: Any, beta: Any) -> Any:
    return d / _tf.sqrt(variance) * gamma + beta


def _scaled_first(d: Any, variance: Any, gamma: Any, beta: Any) -> Any:
    return gamma * d / _tf.sqrt(variance) + beta


def _norm(
    x: Any, gamma: Any, beta: Any, epsilon: Any, *, centred: Callable[..., Any], scaled: Callable[..., Any]
) -> Any:
    d, variance = centred(x)
    return scaled(d, variance + epsilon, gamma, beta)


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
    """One pattern per spelling of the variance, spelling of the scale, and rank."""
    variances = {"square": _of_square, "product": _of_product, "twice": _of_two_differences, "moments": _of_moments}
    scales = {
        "rsqrt": (_by_root, "Rsqrt"),
        "factor": (_by_factor, "Rsqrt"),
        "quotient": (_by_quotient, "Sqrt"),
        "scaled_first": (_scaled_first, "Sqrt"),
    }
    spellings: dict[str, tuple[Callable[..., Any], str]] = {
        f"{scale}_{variance}": (functools.partial(_norm, centred=centred, scaled=scaled), anchor)
        for scale, (scaled, anchor) in scales.items()
        for variance, centred in variances.items()
    }
    for name, (function, anchor) in {**spellings, "batch_norm": (_norm_as_batch_norm, "Rsqrt")}.items():
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
