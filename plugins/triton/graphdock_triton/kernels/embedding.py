"""Rows of a table by number, and its gradient: rows added in the order in which they were taken. Imports triton.

The gradient takes row numbers that are sorted, and where each stood before, in a stable order (the cuda plugin's ``order_rows``).
One program adds all rows of a number, one after the other: no atomics, the same sum every time.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from graphdock_triton.kernels.functions import report
from graphdock_triton.kernels.spec import FLOATS, Config, Kernel, Problem, Stage, cdiv, dim, power, tensor, value

__all__ = ["KERNELS", "gather_rows", "scatter_add_rows"]


@triton.jit
def gather_tiles(table, numbers, y, fault, code, count, height, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """y[count, width] of table[height, width]. A number outside of [0, height) is reported, and its row is zero."""
    place = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    number = tl.load(numbers + place, place < count, other=0).to(tl.int64)
    valid = (number >= 0) & (number < height)
    if fault is not None:  # noqa: SIM102  (the outer condition is settled when the code is made)
        if tl.min(valid.to(tl.int32), 0) == 0:
            last = tl.max(tl.where(valid, -1, place), 0)
            report(fault, code, tl.sum(tl.where(place == last, number, 0), 0), last)
    inside = (place < count)[:, None] & (columns < width)[None, :]
    rows = tl.load(table + number[:, None] * width + columns[None, :], inside & valid[:, None], other=0.0)
    tl.store(y + place[:, None] * width + columns[None, :], rows, inside)


@triton.jit
def scatter_add_runs(grads, ordered, order, table, count, width, BLOCK: tl.constexpr):
    """table[ordered[i]] += grads[order[i]] of i in order: the program of a run's first row adds the run."""
    at = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    number = tl.load(ordered + at)
    before = tl.load(ordered + at - 1, at > 0, other=0)
    if (at == 0) | (before != number):
        to = table + number.to(tl.int64) * width + columns
        sums = tl.load(to, inside, other=0.0).to(tl.float32)
        going = at < count
        while going:
            row = tl.load(order + at).to(tl.int64)
            sums += tl.load(grads + row * width + columns, inside, other=0.0).to(tl.float32)
            at += 1
            going = (at < count) & (tl.load(ordered + at, at < count, other=0) == number)
        tl.store(to, sums.to(table.dtype.element_ty), inside)


def _gather_configs(p: Problem) -> Sequence[Config]:
    block = min(power(p.dims["width"]), 1024)
    rows = max(1, 2048 // block)
    return [Config({"BLOCK": block, "ROWS": r}, w) for r, w in ((rows, 4), (max(rows // 2, 1), 4), (rows * 2, 8))]


def _scatter_configs(p: Problem) -> Sequence[Config]:
    """Narrow blocks: a long run is one program's per block."""
    block = min(power(p.dims["width"]), 256)
    warps = max(1, block // 128)
    return [Config({"BLOCK": block}, warps), Config({"BLOCK": min(power(p.dims["width"]), 512)}, warps * 2)]


gather_rows = Kernel(
    name="gather_rows",
    doc=__doc__,
    types={"T": FLOATS, "I": ("i32", "i64")},
    arguments=(
        tensor("table", "T", "in", "[height, width]"),
        tensor("numbers", "I", "in", "[count]"),
        tensor("y", "T", "out", "[count, width]"),
        tensor("fault", "i64", "out", "[3]: a number that is no row, its place, and code", optional=True),
        value("code", "written to fault", "i64"),
        dim("count"),
        dim("height", "", "i64"),
        dim("width"),
    ),
    stages=(Stage(gather_tiles, lambda p, c: (cdiv(p.dims["count"], c["ROWS"]), cdiv(p.dims["width"], c["BLOCK"]))),),
    configs=_gather_configs,
)

scatter_add_rows = Kernel(
    name="scatter_add_rows",
    doc=__doc__,
    types={"T": FLOATS, "G": FLOATS},
    arguments=(
        tensor("grads", "G", "in", "[count, width]"),
        tensor("ordered", "u32", "in", "[count]: row numbers of the table, ascending"),
        tensor("order", "i32", "in", "[count]: the row of grads of each"),
        tensor("table", "T", "update", "[height, width]"),
        dim("count"),
        dim("width"),
    ),
    stages=(Stage(scatter_add_runs, lambda p, c: (p.dims["count"], cdiv(p.dims["width"], c["BLOCK"]))),),
    configs=_scatter_configs,
)

KERNELS = (gather_rows, scatter_add_rows)
