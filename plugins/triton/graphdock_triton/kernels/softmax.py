"""Softmax and log-softmax of rows, forward and backward. Imports triton.

A row that fits is read once. A wider one is read twice: maximum and sum come from one pass (Milakov and Gimelshein, "Online
normalizer calculation for softmax", 2018), in every lane for itself, and lanes are put together at its end.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from graphdock_triton.kernels.spec import FLOATS, Config, Kernel, Problem, Stage, cdiv, dim, power, tensor

__all__ = ["KERNELS", "add_lane", "join_lanes", "row_configs", "softmax", "softmax_grad"]

#: The widest row that is kept in registers, in elements.
WIDEST = 16384


@triton.jit
def add_lane(largest, total, v):
    """Another element for every lane: the largest so far, and the sum of exponentials of differences to it."""
    now = tl.maximum(largest, v)
    shift = tl.where(now == float("-inf"), 0.0, now)  # a lane that has seen nothing else stays empty
    return now, total * tl.exp(largest - shift) + tl.exp(v - shift)


@triton.jit
def join_lanes(largest, total):
    """The largest element and the sum of exponentials of a row, of those of its lanes."""
    most = tl.max(largest, 0)
    shift = tl.where(most == float("-inf"), 0.0, most)
    return most, tl.sum(total * tl.exp(largest - shift), 0)


@triton.jit
def softmax_forward(x, y, rows, width, LOG: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """y[rows, width] of whole rows: ROWS of them in [ROWS, BLOCK] registers, BLOCK >= width."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows)[:, None] & (columns < width)
    at = row[:, None] * width + columns
    v = tl.load(x + at, mask, other=float("-inf")).to(tl.float32)
    v -= tl.max(v, 1)[:, None]
    e = tl.exp(v)
    total = tl.sum(tl.where(mask, e, 0.0), 1)[:, None]
    if LOG:
        out = v - tl.log(total)
    else:
        out = e / total
    tl.store(y + at, out.to(y.dtype.element_ty), mask)


@triton.jit
def softmax_forward_wide(x, y, width, LOG: tl.constexpr, BLOCK: tl.constexpr):
    """y[rows, width], one row per program, in blocks."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, width, BLOCK):
        v = tl.load(x + row * width + begin + lane, begin + lane < width, other=float("-inf")).to(tl.float32)
        largest, total = add_lane(largest, total, v)
    most, whole = join_lanes(largest, total)
    for begin in range(0, width, BLOCK):
        mask = begin + lane < width
        at = row * width + begin + lane
        v = tl.load(x + at, mask, other=0.0).to(tl.float32) - most
        if LOG:
            out = v - tl.log(whole)
        else:
            out = tl.exp(v) / whole
        tl.store(y + at, out.to(y.dtype.element_ty), mask)


@triton.jit
def softmax_backward(dy, y, dx, rows, width, LOG: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """dx of y and its gradient: y (dy - sum(dy y)), of the logarithm dy - exp(y) sum(dy)."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows)[:, None] & (columns < width)
    at = row[:, None] * width + columns
    grad = tl.load(dy + at, mask, other=0.0).to(tl.float32)
    v = tl.load(y + at, mask, other=0.0).to(tl.float32)
    if LOG:
        out = grad - tl.exp(v) * tl.sum(grad, 1)[:, None]
    else:
        out = v * (grad - tl.sum(grad * v, 1)[:, None])
    tl.store(dx + at, out.to(dx.dtype.element_ty), mask)


@triton.jit
def softmax_backward_wide(dy, y, dx, width, LOG: tl.constexpr, BLOCK: tl.constexpr):
    """dx, one row per program, in blocks."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, width, BLOCK):
        mask = begin + lane < width
        grad = tl.load(dy + row * width + begin + lane, mask, other=0.0).to(tl.float32)
        if not LOG:
            grad *= tl.load(y + row * width + begin + lane, mask, other=0.0).to(tl.float32)
        sums += grad
    total = tl.sum(sums, 0)
    for begin in range(0, width, BLOCK):
        mask = begin + lane < width
        at = row * width + begin + lane
        grad = tl.load(dy + at, mask, other=0.0).to(tl.float32)
        v = tl.load(y + at, mask, other=0.0).to(tl.float32)
        if LOG:
            out = grad - tl.exp(v) * total
        else:
            out = v * (grad - total)
        tl.store(dx + at, out.to(dx.dtype.element_ty), mask)


def row_configs(p: Problem) -> Sequence[Config]:
    """Whole rows of ``width``: 16 elements per thread; wide ones in blocks."""
    width = p.dims["width"]
    if width > WIDEST:
        return [Config({"BLOCK": b}, w) for b, w in ((4096, 8), (8192, 16), (2048, 8))]
    block = power(width)
    rows = max(1, 1024 // block)
    warps = min(max(block * rows // 512, 1), 16)
    sizes = ((rows, warps), (rows, min(warps * 2, 32)), (max(rows // 2, 1), max(warps // 2, 1)))
    return [Config({"BLOCK": block, "ROWS": r}, w) for r, w in dict.fromkeys(sizes)]


def fits(p: Problem, c: Config) -> bool:
    return "ROWS" in c.blocks


def _wide(p: Problem, c: Config) -> bool:
    return not fits(p, c)


def _groups(p: Problem, c: Config) -> tuple[int, ...]:
    return (cdiv(p.dims["rows"], c["ROWS"]),)


def _rows(p: Problem, c: Config) -> tuple[int, ...]:
    return (p.dims["rows"],)


softmax = Kernel(
    name="softmax",
    doc=__doc__,
    types={"T": FLOATS},
    flags={"LOG": (False, True)},
    arguments=(
        tensor("x", "T", "in", "[rows, width]"),
        tensor("y", "T", "out", "[rows, width]; may be x"),
        dim("rows"),
        dim("width"),
    ),
    stages=(Stage(softmax_forward, _groups, fits), Stage(softmax_forward_wide, _rows, _wide)),
    configs=row_configs,
)

softmax_grad = Kernel(
    name="softmax_grad",
    doc=__doc__,
    types={"T": FLOATS},
    flags={"LOG": (False, True)},
    arguments=(
        tensor("dy", "T", "in", "[rows, width]"),
        tensor("y", "T", "in", "[rows, width]: the result of softmax"),
        tensor("dx", "T", "out", "[rows, width]; may be dy"),
        dim("rows"),
        dim("width"),
    ),
    stages=(Stage(softmax_backward, _groups, fits), Stage(softmax_backward_wide, _rows, _wide)),
    configs=row_configs,
)

KERNELS = (softmax, softmax_grad)
