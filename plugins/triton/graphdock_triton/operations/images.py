"""Calls for images: batch norm with channels last, and convolutions. Imports no triton."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphdock.contracts import KernelRefused, PrepareContext

from graphdock_triton.operations.call import (
    FLOATS,
    Call,
    Operation,
    activation_of,
    dims_of,
    precision_of,
    problem_of,
    type_of,
)

__all__ = ["CALLS"]


# -- batch norm


def _channels(ctx: PrepareContext, index: int) -> dict[str, int]:
    """A batch as rows of channels. Raises KernelRefused where channels are not the last dim that counts."""
    dims = dims_of(ctx, index)
    if ctx.attr("data_format").startswith("NC"):
        if math.prod(dims[2:]) != 1:
            raise KernelRefused("it takes channels in the last dim")
        dims = dims[:2]
    return {"rows": math.prod(dims[:-1]), "channels": dims[-1]}


def _batch_norm(ctx: PrepareContext) -> Call:
    """``(x, scale, offset, mean, variance) -> (y, mean, unbiased variance, mean, variance)``."""
    training = ctx.attr("is_training")
    tensors = {"x": 0, "scale": 1, "offset": 2, "y": 5}
    tensors |= {"mean": 8, "variance": 9} if training else {"mean": 3, "variance": 4}
    vectors = {"batch_mean": 6, "batch_variance": 7} | ({} if training else {"kept_mean": 8, "kept_variance": 9})
    wanted = {name: place for name, place in vectors.items() if ctx.outputs[place - 5].used}
    problem = problem_of(
        ctx, _channels(ctx, 0), {"T": type_of(ctx, 0)}, flags={"TRAINING": training}, present=frozenset(wanted)
    )
    return Call(problem, tensors | wanted, {"epsilon": ctx.attr("epsilon")})


def _batch_norm_grad(ctx: PrepareContext) -> Call:
    """``(dy, x, scale, mean, variance) -> (dx, dscale, doffset)``."""
    flags = {"TRAINING": ctx.attr("is_training")}
    problem = problem_of(ctx, _channels(ctx, 1), {"T": type_of(ctx, 1)}, flags=flags)
    names = ("dy", "x", "scale", "mean", "variance", "dx", "dscale", "doffset")
    return Call(problem, dict(zip(names, range(8), strict=True)), {"epsilon": ctx.attr("epsilon")})


# -- convolutions


def _before(padding: str, explicit: int, size: int, out: int, stride: int, span: int) -> int:
    """Zeros in front of a dim; with SAME the odd one is behind."""
    if padding == "SAME":
        return max(0, (out - 1) * stride + span - size) // 2
    return explicit if padding == "EXPLICIT" else 0


def _window(ctx: PrepareContext) -> dict[str, int]:
    """The dims of a convolution of two inputs, as the kernel has them. Raises KernelRefused where they are not known."""
    x, (rows, columns, _, filters) = dims_of(ctx, 0), dims_of(ctx, 1)
    made = ctx.outputs[0].shape
    if made is None or None in made:
        raise KernelRefused("shapes are not known")
    at = slice(2, 4) if _first(ctx) else slice(1, 3)
    size, out, window = x[at], [d for d in made[at] if d is not None], (rows, columns)
    stride, dilation = ctx.attr("strides")[at], ctx.attr("dilations")[at]
    padding, explicit = ctx.attr("padding"), tuple(ctx.attr("explicit_paddings") or (0,) * 8)[::2][at]
    span = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    before = [_before(padding, explicit[i], size[i], out[i], stride[i], span[i]) for i in range(2)]
    channels = x[1] if _first(ctx) else x[3]
    return {
        "places": x[0] * math.prod(out), "filters": filters, "window": rows * columns * channels, "channels": channels,
        "x_height": size[0], "x_width": size[1], "y_height": out[0], "y_width": out[1], "w_width": columns,
        "stride_h": stride[0], "stride_w": stride[1], "top": before[0], "left": before[1],
        "dilation_h": dilation[0], "dilation_w": dilation[1],
    }  # fmt: skip


def _first(ctx: PrepareContext) -> bool:
    return bool(ctx.attr("data_format") == "NCHW")


def _is_product(dims: Mapping[str, int]) -> bool:
    """Return whether a window of one element meets every element: with channels last, a product of two matrices."""
    same = dims["x_height"] == dims["y_height"] and dims["x_width"] == dims["y_width"]
    steps = dims["stride_h"] * dims["stride_w"] == 1 and not dims["top"] + dims["left"]
    return dims["window"] == dims["channels"] and same and steps


def _conv2d(ctx: PrepareContext) -> Call:
    dims = _window(ctx)
    if _is_product(dims) and not _first(ctx):
        raise KernelRefused("a window of one element is a product of matrices, which the cuda plugin has a library for")
    flags = {"PRECISION": precision_of(ctx), "FIRST": _first(ctx)}
    problem = problem_of(ctx, dims, dict.fromkeys("TYB", type_of(ctx, 0)), flags=flags)
    return Call(problem, {"x": 0, "weights": 1, "y": 2})


def _fused_point(ctx: PrepareContext) -> Call:
    """As :func:`_fused_conv2d`, where it is a product of matrices."""
    call = _fused_conv2d(ctx)
    if not call.kernel:
        raise KernelRefused("it is no product of matrices")
    return replace(call, kernel="")


def _fused_conv2d(ctx: PrepareContext) -> Call:
    """``(input, filter, bias) -> (y, before)``; a product of matrices by the kernel of those."""
    dims = _window(ctx)
    flags: dict[str, Any] = {"ACTIVATION": activation_of(ctx), "PRECISION": precision_of(ctx)}
    kept = ctx.outputs[1].used
    present = frozenset({"bias", *(["pre"] if kept else ())})
    places = {"bias": 2, **({"pre": 4} if kept else {})}
    if _is_product(dims) and not _first(ctx):
        m, k, n = dims["places"], dims["channels"], dims["filters"]
        steps = {"a_m": k, "a_k": 1, "b_k": n, "b_n": 1, "c_m": n, "a_batch": 0, "b_batch": 0, "c_batch": 0}
        sizes = {"batch": 1, "m": m, "n": n, "k": k}
        problem = problem_of(ctx, sizes | steps, dict.fromkeys("TCB", type_of(ctx, 0)), flags=flags, present=present)
        return Call(problem, {"a": 0, "b": 1, "c": 3, **places}, {"alpha": 1.0}, kernel="matmul")
    flags["FIRST"] = _first(ctx)
    problem = problem_of(ctx, dims, dict.fromkeys("TYB", type_of(ctx, 0)), flags=flags, present=present)
    return Call(problem, {"x": 0, "weights": 1, "y": 3, **places})


_NORMED = {"T": FLOATS, "U": ("float32",)}

#: The ops of this module.
CALLS = (
    Operation("FusedBatchNorm", "batch_norm", _batch_norm, _NORMED),
    Operation("FusedBatchNormGrad", "batch_norm_grad", _batch_norm_grad, _NORMED),
    Operation("Conv2D", "conv2d", _conv2d, {"T": FLOATS}),
    Operation("FusedConv2D", "conv2d", _fused_conv2d, {"T": FLOATS}, name="fused_conv2d"),
    Operation("FusedConv2D", "matmul_persistent", _fused_point, {"T": FLOATS}, priority=1),
)
