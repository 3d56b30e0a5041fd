"""Softmax cross-entropy of rows of logits, fused with its gradient. Imports triton.

Labels are distributions, or numbers of classes; those can be smoothed (Szegedy and others, "Rethinking the inception architecture
for computer vision", 2015) and one of them ignored. Logits are read once where a row fits, else twice: softmax.py. The gradient
may be written over the logits (Hsu and others, "Liger kernel", 2024).
"""

from __future__ import annotations

import triton
import triton.language as tl

from graphdock_triton.kernels.functions import report
from graphdock_triton.kernels.softmax import add_lane, fits, join_lanes, row_configs
from graphdock_triton.kernels.spec import FLOATS, Config, Kernel, Problem, Stage, cdiv, dim, tensor, value

__all__ = ["KERNELS", "cross_entropy", "sparse_cross_entropy"]


@triton.jit
def cross_entropy_rows(x, labels, loss, dx, dloss, rows, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """loss[rows] of distributions and dx: ROWS rows in [ROWS, BLOCK] registers, BLOCK >= width."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    valid = row < rows
    columns = tl.arange(0, BLOCK)[None, :]
    mask = valid[:, None] & (columns < width)
    at = row[:, None] * width + columns
    v = tl.load(x + at, mask, other=float("-inf")).to(tl.float32)
    label = tl.load(labels + at, mask, other=0.0).to(tl.float32)
    v -= tl.max(v, 1)[:, None]
    e = tl.exp(v)
    total = tl.sum(tl.where(mask, e, 0.0), 1)[:, None]
    costs = tl.where(mask, label * (tl.log(total) - v), 0.0)
    tl.store(loss + row, tl.sum(costs, 1).to(loss.dtype.element_ty), valid)
    if dx is not None:
        out = e / total - label
        if dloss is not None:
            out *= tl.load(dloss + row, valid, other=0.0).to(tl.float32)[:, None]
        tl.store(dx + at, out.to(dx.dtype.element_ty), mask)


@triton.jit
def cross_entropy_wide(x, labels, loss, dx, dloss, width, BLOCK: tl.constexpr):
    """loss[rows] of distributions and dx, one row per program, in blocks."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, width, BLOCK):
        v = tl.load(x + row * width + begin + lane, begin + lane < width, other=float("-inf")).to(tl.float32)
        largest, total = add_lane(largest, total, v)
    most, whole = join_lanes(largest, total)
    log_whole = tl.log(whole)
    factor = 1.0
    if dloss is not None:
        factor = tl.load(dloss + row).to(tl.float32)
    costs = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, width, BLOCK):
        mask = begin + lane < width
        at = row * width + begin + lane
        v = tl.load(x + at, mask, other=0.0).to(tl.float32) - most
        label = tl.load(labels + at, mask, other=0.0).to(tl.float32)
        costs += tl.where(mask, label * (log_whole - v), 0.0)
        if dx is not None:
            out = tl.exp(v) / whole - label
            if dloss is not None:
                out *= factor
            tl.store(dx + at, out.to(dx.dtype.element_ty), mask)
    tl.store(loss + row, tl.sum(costs, 0).to(loss.dtype.element_ty))


@triton.jit
def sparse_cross_entropy_rows(
    x, labels, loss, dx, dloss, fault, code, width, ignored, smoothing, SMOOTH: tl.constexpr, IGNORE: tl.constexpr,
    FITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """loss[rows] of class numbers and dx, one row per program: in registers if FITS, else in blocks.

    With smoothing s the label is 1 - s + s / width of its class and s / width of the others. A row whose label is ``ignored`` has
    no loss and no gradient. One outside of [0, width) is reported; where nobody wants to know, its row is NaN.
    """
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    here = x + row * width
    outside = (label < 0) | (label >= width)
    skipped = False
    if IGNORE:
        skipped = label == ignored
    if fault is not None:  # noqa: SIM102  (the outer condition is settled when the code is made)
        if outside & (not skipped):
            report(fault, code, label, row)
    target = tl.load(here + tl.where(outside, 0, label)).to(tl.float32)
    if FITS:
        kept = tl.load(here + lane, lane < width, other=float("-inf")).to(tl.float32)
        most = tl.max(kept, 0)
        whole = tl.sum(tl.where(lane < width, tl.exp(kept - most), 0.0), 0)
        logits = tl.sum(tl.where(lane < width, kept - most, 0.0), 0)
    else:
        largest = tl.full([BLOCK], float("-inf"), tl.float32)
        total = tl.zeros([BLOCK], tl.float32)
        sums = tl.zeros([BLOCK], tl.float32)
        for begin in range(0, width, BLOCK):
            v = tl.load(here + begin + lane, begin + lane < width, other=float("-inf")).to(tl.float32)
            largest, total = add_lane(largest, total, v)
            if SMOOTH:
                sums += tl.where(begin + lane < width, v, 0.0)
        most, whole = join_lanes(largest, total)
        logits = tl.sum(sums, 0) - most * width
    log_whole = tl.log(whole)
    cost = log_whole - (target - most)
    if SMOOTH:
        cost = cost * (1.0 - smoothing) + (log_whole - logits / width) * smoothing
    cost = tl.where(outside, float("nan"), cost)
    cost = tl.where(skipped, 0.0, cost)
    tl.store(loss + row, cost.to(loss.dtype.element_ty))
    if dx is not None:
        hit = 1.0
        rest = 0.0
        if SMOOTH:
            hit = 1.0 - smoothing
            rest = smoothing / width
        factor = 1.0
        if dloss is not None:
            factor = tl.load(dloss + row).to(tl.float32)
        for begin in range(0, width, BLOCK):
            columns = begin + lane
            mask = columns < width
            if FITS:
                v = kept
            else:
                v = tl.load(here + columns, mask, other=0.0).to(tl.float32)
            out = tl.exp(v - most) / whole - rest - tl.where(columns == label, hit, 0.0)
            out = tl.where(outside, float("nan"), out * factor)
            out = tl.where(skipped, 0.0, out)
            tl.store(dx + row * width + columns, out.to(dx.dtype.element_ty), mask)


@triton.jit
def sparse_cross_entropy_tiles(
    x, labels, loss, dx, dloss, fault, code, rows, width, ignored, smoothing, SMOOTH: tl.constexpr, IGNORE: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The same of short rows: ROWS of them in [ROWS, BLOCK] registers, BLOCK >= width."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    valid = row < rows
    label = tl.load(labels + row, valid, other=0).to(tl.int64)
    outside = (label < 0) | (label >= width)
    skipped = row < 0
    if IGNORE:
        skipped = label == ignored
    if fault is not None:
        wrong = outside & ~skipped & valid
        if tl.max(wrong.to(tl.int32), 0) == 1:
            last = tl.max(tl.where(wrong, row, -1), 0)
            report(fault, code, tl.sum(tl.where(row == last, label, 0), 0), last)
    columns = tl.arange(0, BLOCK)[None, :]
    mask = valid[:, None] & (columns < width)
    at = row[:, None] * width + columns
    v = tl.load(x + at, mask, other=float("-inf")).to(tl.float32)
    v -= tl.max(v, 1)[:, None]
    e = tl.exp(v)
    whole = tl.sum(tl.where(mask, e, 0.0), 1)
    mine = columns == label[:, None]
    log_whole = tl.log(whole)
    cost = log_whole - tl.sum(tl.where(mine & mask, v, 0.0), 1)
    if SMOOTH:
        logits = tl.sum(tl.where(mask, v, 0.0), 1)
        cost = cost * (1.0 - smoothing) + (log_whole - logits / width) * smoothing
    cost = tl.where(outside, float("nan"), cost)
    tl.store(loss + row, tl.where(skipped, 0.0, cost).to(loss.dtype.element_ty), valid)
    if dx is not None:
        hit = 1.0
        rest = 0.0
        if SMOOTH:
            hit = 1.0 - smoothing
            rest = smoothing / width
        out = e / whole[:, None] - rest - tl.where(mine, hit, 0.0)
        if dloss is not None:
            out *= tl.load(dloss + row, valid, other=0.0).to(tl.float32)[:, None]
        out = tl.where(outside[:, None], float("nan"), out)
        out = tl.where(skipped[:, None], 0.0, out)
        tl.store(dx + at, out.to(dx.dtype.element_ty), mask)


def _sparse_configs(p: Problem) -> list[Config]:
    """Short rows side by side; of longer ones one per program, in registers or not."""
    found = list(row_configs(p))
    if "ROWS" in found[0].blocks and found[0]["ROWS"] > 1:
        return found
    out = [Config({"BLOCK": c["BLOCK"]}, max(1, min(c.warps, c["BLOCK"] // 128))) for c in found]
    return list({(c["BLOCK"], c.warps): c for c in out}.values())


def _groups(p: Problem, c: Config) -> tuple[int, ...]:
    return (cdiv(p.dims["rows"], c["ROWS"]),)


def _rows(p: Problem, c: Config) -> tuple[int, ...]:
    return (p.dims["rows"],)


def _refuse(p: Problem) -> str | None:
    return None if p.dims["width"] else "there are no classes"


_LOSS = (
    tensor("loss", "L", "out", "[rows]"),
    tensor("dx", "T", "out", "[rows, width]: the gradient of the sum of losses by x; may be x", optional=True),
    tensor("dloss", "L", "in", "[rows]: factors of the rows of dx", optional=True),
)

cross_entropy = Kernel(
    name="cross_entropy",
    doc=__doc__,
    types={"T": FLOATS, "L": FLOATS},
    arguments=(
        tensor("x", "T", "in", "[rows, width]: logits"),
        tensor("labels", "T", "in", "[rows, width]: distributions"),
        *_LOSS,
        dim("rows"),
        dim("width"),
    ),
    stages=(
        Stage(cross_entropy_rows, _groups, fits),
        Stage(cross_entropy_wide, _rows, lambda p, c: not fits(p, c)),
    ),
    configs=row_configs,
    refuse=_refuse,
)

sparse_cross_entropy = Kernel(
    name="sparse_cross_entropy",
    doc=__doc__,
    types={"T": FLOATS, "L": FLOATS, "I": ("i32", "i64")},
    flags={"SMOOTH": (False, True), "IGNORE": (False, True)},
    arguments=(
        tensor("x", "T", "in", "[rows, width]: logits"),
        tensor("labels", "I", "in", "[rows]: classes"),
        *_LOSS,
        tensor("fault", "i64", "out", "[3]: a label outside of the classes, its row, and code", optional=True),
        value("code", "written to fault", "i64"),
        dim("rows"),
        dim("width"),
        value("ignored", "the label without loss, with IGNORE", "i32"),
        value("smoothing", "from 0 to 1, with SMOOTH"),
    ),
    stages=(
        Stage(sparse_cross_entropy_tiles, _groups, fits),
        Stage(sparse_cross_entropy_rows, _rows, lambda p, c: not fits(p, c)),
    ),
    configs=_sparse_configs,
    constants=lambda p, c: {"FITS": c["BLOCK"] >= p.dims["width"]},
    refuse=_refuse,
)

KERNELS = (cross_entropy, sparse_cross_entropy)
