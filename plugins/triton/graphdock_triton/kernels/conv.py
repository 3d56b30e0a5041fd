"""Convolutions of images as one matrix product, whose left operand is never made. Imports triton.

Row r of the product is a place of the output; column k of its left operand is an element of the window there, and row k of the
filter [height, width, channels, filters] as it lies (Chetlur and others, "cuDNN: efficient primitives for deep learning",
2014). Bias, residual and activation follow as in matmul.py.

With channels first neighbours in memory are neighbouring places, in images and in what is made: tiles of both are loaded and
stored transposed.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from graphdock_triton.kernels.functions import ACTIVATIONS, activation, product
from graphdock_triton.kernels.spec import FLOATS, Config, Kernel, Problem, Stage, cdiv, dim, power, tensor

__all__ = ["KERNELS", "conv2d"]


@triton.jit
def conv_tiles(
    x, weights, bias, residual, pre, y, places, filters, window, x_height, x_width, channels, y_height, y_width, w_width,
    stride_h, stride_w, top, left, dilation_h, dilation_w,
    ACTIVATION: tl.constexpr, ADD_FIRST: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr,
    FIRST: tl.constexpr, GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A tile of y[places, filters]. ``window``: elements of a window, which the filter has for each of its outputs.

    Of the dims of a tile the last one is that of memory: elements of the window and filters, or with FIRST places.
    """
    down = tl.cdiv(places, BLOCK_M)
    wide = tl.cdiv(filters, BLOCK_N)
    first = tl.program_id(0) // (GROUP * wide) * GROUP
    high = min(down - first, GROUP)
    within = tl.program_id(0) % (GROUP * wide)
    rows = (first + within % high) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = within // high * BLOCK_N + tl.arange(0, BLOCK_N)
    at = rows[None, :] if FIRST else rows[:, None]
    # the corner of each place's window in its image
    image = at // (y_height * y_width)
    row = at // y_width % y_height * stride_h - top
    column = at % y_width * stride_w - left
    base = x + image.to(tl.int64) * x_height * x_width * channels
    x_place = 1 if FIRST else channels
    x_channel = x_height * x_width if FIRST else 1
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for begin in range(0, window, BLOCK_K):
        k = begin + tl.arange(0, BLOCK_K)
        along = k[:, None] if FIRST else k[None, :]
        tap = along // channels
        h = row + tap // w_width * dilation_h
        w = column + tap % w_width * dilation_w
        seen = (at < places) & (along < window) & (h >= 0) & (h < x_height) & (w >= 0) & (w < x_width)
        a = tl.load(base + (h * x_width + w) * x_place + along % channels * x_channel, seen, other=0.0)
        if FIRST:
            a = tl.trans(a)
        inside = (k < window)[:, None] & (columns < filters)[None, :]
        b = tl.load(weights + k[:, None] * filters + columns[None, :], inside, other=0.0)
        sums = product(a, b, sums, PRECISION, UPCAST)
    if bias is not None:
        sums += tl.load(bias + columns, columns < filters, other=0.0).to(tl.float32)[None, :]
    if FIRST:
        sums = tl.trans(sums)
        across = columns[:, None]
        size = y_height * y_width
        to = (image.to(tl.int64) * filters * size + at % size) + across.to(tl.int64) * size
    else:
        across = columns[None, :]
        to = at.to(tl.int64) * filters + across
    mask = (at < places) & (across < filters)
    if residual is not None and ADD_FIRST:
        sums += tl.load(residual + to, mask, other=0.0).to(tl.float32)
    if pre is not None:
        tl.store(pre + to, sums.to(pre.dtype.element_ty), mask)
    sums = activation(sums, ACTIVATION)
    if residual is not None and not ADD_FIRST:
        sums += tl.load(residual + to, mask, other=0.0).to(tl.float32)
    tl.store(y + to, sums.to(y.dtype.element_ty), mask)


#: Block sizes m, n and k, warps and stages, for elements of 2 bytes; k is halved for those of 4.
_SHAPES = (
    (128, 128, 64, 8, 3), (128, 64, 64, 4, 3), (64, 128, 64, 4, 3), (64, 64, 64, 4, 4), (128, 32, 64, 4, 4), (64, 32, 64, 4, 4),
    (32, 32, 64, 2, 4),
)  # fmt: skip
#: With channels first what is loaded goes through registers, and so does the transposed result; elements of few channels are loaded
#: one by one.
_FIRST_SHAPES = ((128, 64, 32, 8, 3), (64, 64, 32, 4, 4), (128, 32, 32, 4, 4), (64, 32, 32, 4, 4), (32, 32, 32, 2, 4))


def _configs(p: Problem) -> Sequence[Config]:
    """The largest tile that makes a program for each multiprocessor, then the others."""
    d = p.dims
    out = []
    apart = p.flags.get("FIRST") or d["channels"] * p.bytes_of("T") % 16
    for m, n, k, warps, stages in _FIRST_SHAPES if apart else _SHAPES:
        if n <= max(power(d["filters"]), 32) or n == 32:
            k = max(16, min(k if p.bytes_of("T") == 2 else k // 2, power(d["window"])))
            programs = cdiv(d["places"], m) * cdiv(d["filters"], n)
            sizes = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8}
            out.append((min(programs, p.multiprocessors), m * n, Config(sizes, warps, stages)))
    return [config for _, _, config in sorted(out, key=lambda t: t[:2], reverse=True)]


def _moved(p: Problem, c: Config) -> int:
    """The windows of a tile's places, what its filters have of them, and the tile."""
    read = (c["BLOCK_M"] + c["BLOCK_N"]) * p.dims["window"] * p.bytes_of("T")
    return read + c["BLOCK_M"] * c["BLOCK_N"] * p.bytes_of("Y")


def _refuse(p: Problem) -> str | None:
    d = p.dims
    if not d["places"] * d["filters"] * d["window"]:
        return "the result or its windows are empty"
    if d["x_height"] * d["x_width"] * d["channels"] >= 1 << 31:
        return "an image has 2^31 elements or more"
    return None


conv2d = Kernel(
    name="conv2d",
    doc=__doc__,
    types={"T": FLOATS, "Y": FLOATS, "B": FLOATS},
    flags={
        "ACTIVATION": ACTIVATIONS,
        "ADD_FIRST": (False, True),
        "PRECISION": ("ieee", "tf32", "tf32x3"),
        "UPCAST": (False, True),
        "FIRST": (False, True),
    },
    arguments=(
        tensor(
            "x", "T", "in", "[images, x_height, x_width, channels], with FIRST [images, channels, x_height, x_width]"
        ),
        tensor("weights", "T", "in", "[w_height, w_width, channels, filters]"),
        tensor("bias", "B", "in", "[filters]", optional=True),
        tensor("residual", "Y", "in", "like y: added after the activation, or before with ADD_FIRST", optional=True),
        tensor("pre", "Y", "out", "like y: what the activation is applied to", optional=True),
        tensor(
            "y", "Y", "out", "[images, y_height, y_width, filters], with FIRST [images, filters, y_height, y_width]"
        ),
        dim("places", "images y_height y_width"),
        dim("filters"),
        dim("window", "w_height w_width channels"),
        *(
            dim(name)
            for name in ("x_height", "x_width", "channels", "y_height", "y_width", "w_width", "stride_h", "stride_w")
        ),
        dim("top", "zeros above an image"),
        dim("left", "zeros to the left of an image"),
        dim("dilation_h"),
        dim("dilation_w"),
    ),
    stages=(
        Stage(conv_tiles, lambda p, c: (cdiv(p.dims["places"], c["BLOCK_M"]) * cdiv(p.dims["filters"], c["BLOCK_N"]),)),
    ),
    configs=_configs,
    refuse=_refuse,
    moved=_moved,
    warps=8,
)

KERNELS = (conv2d,)
