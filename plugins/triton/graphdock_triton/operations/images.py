"""Calls for images with channels last: batch norm and convolutions. Imports no triton."""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphdock.contracts import KernelRefused, PrepareContext

from graphdock_triton.operations.call import (
    FLOATS,
    Call,
    Operation,
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


def _conv2d(ctx: PrepareContext) -> Call:
    (images, height, width, channels), (rows, columns, _, filters) = dims_of(ctx, 0), dims_of(ctx, 1)
    if ctx.attr("data_format") != "NHWC":
        raise KernelRefused("it takes channels in the last dim")
    made = ctx.outputs[0].shape
    if made is None or made[1] is None or made[2] is None:
        raise KernelRefused("shapes are not known")
    size, out, window = (height, width), (made[1], made[2]), (rows, columns)
    stride, dilation = _middle(ctx.attr("strides")), _middle(ctx.attr("dilations"))
    padding, explicit = ctx.attr("padding"), ctx.attr("explicit_paddings") or (0,) * 8
    span = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    before = [_before(padding, explicit[2 + 2 * i], size[i], out[i], stride[i], span[i]) for i in range(2)]
    if window == (1, 1) and stride == (1, 1) and out == size and not any(before):
        raise KernelRefused("a window of one element is a product of matrices, which the cuda plugin has a library for")
    dims = {
        "places": images * math.prod(out), "filters": filters, "window": rows * columns * channels, "channels": channels,
        "x_height": height, "x_width": width, "y_height": out[0], "y_width": out[1], "w_width": columns,
        "stride_h": stride[0], "stride_w": stride[1], "top": before[0], "left": before[1],
        "dilation_h": dilation[0], "dilation_w": dilation[1],
    }  # fmt: skip
    problem = problem_of(ctx, dims, dict.fromkeys("TYB", type_of(ctx, 0)), flags={"PRECISION": precision_of(ctx)})
    return Call(problem, {"x": 0, "weights": 1, "y": 2})


def _middle(numbers: Sequence[int]) -> tuple[int, int]:
    """Of four numbers, one per dim, those of height and width."""
    return numbers[1], numbers[2]


_NORMED = {"T": FLOATS, "U": ("float32",)}

#: The ops of this module.
CALLS = (
    Operation("FusedBatchNorm", "batch_norm", _batch_norm, _NORMED),
    Operation("FusedBatchNormGrad", "batch_norm_grad", _batch_norm_grad, _NORMED),
    Operation("Conv2D", "conv2d", _conv2d, {"T": FLOATS}),
)
