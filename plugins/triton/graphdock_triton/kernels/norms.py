"""Layer norm and RMS norm of rows, with an optional residual added before; forward and backward. Imports triton.

Layer norm: Ba, Kiros and Hinton, "Layer normalization", 2016. RMS norm: Zhang and Sennrich, "Root mean square layer normalization",
2019. A row that fits is read once and kept in registers; the gradients of gamma and beta are summed per program over its rows and
then over programs, in one order: no atomics. Wider rows are read in blocks, the mean first and then the variance from differences.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from graphdock_triton.kernels.spec import (
    FLOATS,
    Config,
    Kernel,
    Problem,
    Stage,
    cdiv,
    derived,
    dim,
    power,
    scratch,
    tensor,
    value,
)

__all__ = ["KERNELS", "norm", "norm_grad"]

#: The widest row that is kept in registers, in elements: forward, and backward with two sums per element.
_WIDEST, _WIDEST_GRAD = 16384, 8192
_WIDE_BLOCK = 4096


@triton.jit
def _row_with_residual(x, residual, total, at, mask):
    """x, plus the residual, as it is read later: rounded to its type. Stores the sum where it is wanted."""
    row = tl.load(x + at, mask, other=0.0)
    if residual is not None:
        row = (row.to(tl.float32) + tl.load(residual + at, mask, other=0.0).to(tl.float32)).to(row.dtype)
        if total is not None:
            tl.store(total + at, row, mask)
    return row.to(tl.float32)


@triton.jit
def _scaled(normal, gamma, beta, columns, inside):
    if gamma is not None:
        normal *= tl.load(gamma + columns, inside, other=0.0).to(tl.float32)
    if beta is not None:
        normal += tl.load(beta + columns, inside, other=0.0).to(tl.float32)
    return normal


@triton.jit
def norm_forward(
    x,
    residual,
    total,
    gamma,
    beta,
    y,
    mean,
    inverse,
    rows,
    width,
    epsilon,
    RMS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """y[rows, width] of whole rows: ROWS of them in [ROWS, BLOCK] registers, BLOCK >= width."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)[None, :]
    inside = columns < width
    mask = (row < rows)[:, None] & inside
    at = row[:, None] * width + columns
    v = _row_with_residual(x, residual, total, at, mask)
    if not RMS:
        average = tl.sum(v, 1) / width
        v = tl.where(mask, v - average[:, None], 0.0)
        if mean is not None:
            tl.store(mean + row, average, row < rows)
    root = 1.0 / tl.sqrt(tl.sum(v * v, 1) / width + epsilon)
    if inverse is not None:
        tl.store(inverse + row, root, row < rows)
    tl.store(y + at, _scaled(v * root[:, None], gamma, beta, columns, inside).to(y.dtype.element_ty), mask)


@triton.jit
def norm_forward_wide(
    x, residual, total, gamma, beta, y, mean, inverse, width, epsilon, RMS: tl.constexpr, BLOCK: tl.constexpr
):
    """y[rows, width], one row per program, in blocks."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    average = 0.0
    if not RMS:
        sums = tl.zeros([BLOCK], tl.float32)
        for begin in range(0, width, BLOCK):
            mask = begin + lane < width
            sums += _row_with_residual(x, residual, None, row * width + begin + lane, mask)
        average = tl.sum(sums, 0) / width
        if mean is not None:
            tl.store(mean + row, average)
    squares = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, width, BLOCK):
        mask = begin + lane < width
        v = _row_with_residual(x, residual, None, row * width + begin + lane, mask)
        v = tl.where(mask, v - average, 0.0)
        squares += v * v
    root = 1.0 / tl.sqrt(tl.sum(squares, 0) / width + epsilon)
    if inverse is not None:
        tl.store(inverse + row, root)
    for begin in range(0, width, BLOCK):
        columns = begin + lane
        mask = columns < width
        at = row * width + columns
        v = _row_with_residual(x, residual, total, at, mask)
        tl.store(y + at, _scaled((v - average) * root, gamma, beta, columns, mask).to(y.dtype.element_ty), mask)


@triton.jit
def norm_backward(
    dy, x, gamma, mean, inverse, dtotal, dx, parts_gamma, parts_beta, rows, width, turns,
    RMS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, SUM_GAMMA: tl.constexpr, SUM_BETA: tl.constexpr,
):  # fmt: skip
    """dx, and what each program adds to dgamma and dbeta: program p has ``turns`` groups of ROWS rows, side by side."""
    program = tl.program_id(0)
    columns = tl.arange(0, BLOCK)[None, :]
    inside = columns < width
    factor = tl.full([1, BLOCK], 1.0, tl.float32)
    if gamma is not None:
        factor = tl.load(gamma + columns, inside, other=0.0).to(tl.float32)
    to_gamma = tl.zeros([ROWS, BLOCK], tl.float32)
    to_beta = tl.zeros([ROWS, BLOCK], tl.float32)
    for turn in range(turns):
        row = (program.to(tl.int64) * turns + turn) * ROWS + tl.arange(0, ROWS)
        valid = row < rows
        mask = valid[:, None] & inside
        at = row[:, None] * width + columns
        grad = tl.load(dy + at, mask, other=0.0).to(tl.float32)
        root = tl.load(inverse + row, valid, other=0.0).to(tl.float32)[:, None]
        v = tl.load(x + at, mask, other=0.0).to(tl.float32)
        if not RMS:
            v -= tl.load(mean + row, valid, other=0.0).to(tl.float32)[:, None]
        normal = tl.where(mask, v * root, 0.0)
        if SUM_GAMMA:
            to_gamma += grad * normal
        if SUM_BETA:
            to_beta += grad
        h = grad * factor
        out = h - normal * (tl.sum(h * normal, 1) / width)[:, None]
        if not RMS:
            out -= (tl.sum(h, 1) / width)[:, None]
        out *= root
        if dtotal is not None:
            out += tl.load(dtotal + at, mask, other=0.0).to(tl.float32)
        tl.store(dx + at, out.to(dx.dtype.element_ty), mask)
    to = program * width + tl.arange(0, BLOCK)
    if SUM_GAMMA:
        tl.store(parts_gamma + to, tl.sum(to_gamma, 0), tl.arange(0, BLOCK) < width)
    if SUM_BETA:
        tl.store(parts_beta + to, tl.sum(to_beta, 0), tl.arange(0, BLOCK) < width)


@triton.jit
def norm_backward_wide(dy, x, gamma, mean, inverse, dtotal, dx, width, RMS: tl.constexpr, BLOCK: tl.constexpr):
    """dx, one row per program, in blocks."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    root = tl.load(inverse + row).to(tl.float32)
    average = 0.0
    if not RMS:
        average = tl.load(mean + row).to(tl.float32)
    sums = tl.zeros([BLOCK], tl.float32)
    slopes = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, width, BLOCK):
        columns = begin + lane
        mask = columns < width
        h = _scaled(tl.load(dy + row * width + columns, mask, other=0.0).to(tl.float32), gamma, None, columns, mask)
        v = tl.load(x + row * width + columns, mask, other=0.0).to(tl.float32)
        sums += h
        slopes += tl.where(mask, h * (v - average) * root, 0.0)
    slope = tl.sum(slopes, 0) / width
    base = 0.0
    if not RMS:
        base = tl.sum(sums, 0) / width
    for begin in range(0, width, BLOCK):
        columns = begin + lane
        mask = columns < width
        at = row * width + columns
        h = _scaled(tl.load(dy + at, mask, other=0.0).to(tl.float32), gamma, None, columns, mask)
        v = tl.load(x + at, mask, other=0.0).to(tl.float32)
        out = (h - base - (v - average) * root * slope) * root
        if dtotal is not None:
            out += tl.load(dtotal + at, mask, other=0.0).to(tl.float32)
        tl.store(dx + at, out.to(dx.dtype.element_ty), mask)


@triton.jit
def norm_column_parts(
    dy, x, mean, inverse, parts_gamma, parts_beta, rows, width, turns,
    RMS: tl.constexpr, COLUMN_ROWS: tl.constexpr, COLUMNS: tl.constexpr, SUM_GAMMA: tl.constexpr, SUM_BETA: tl.constexpr,
):  # fmt: skip
    """Sum what groups of wide rows add to dgamma and dbeta: a program has some columns of ``turns`` blocks of rows."""
    part = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < width
    to_gamma = tl.zeros([COLUMN_ROWS, COLUMNS], tl.float32)
    to_beta = tl.zeros([COLUMN_ROWS, COLUMNS], tl.float32)
    for turn in range(turns):
        row = (part.to(tl.int64) * turns + turn) * COLUMN_ROWS + tl.arange(0, COLUMN_ROWS)
        valid = row < rows
        mask = valid[:, None] & inside[None, :]
        at = row[:, None] * width + columns[None, :]
        grad = tl.load(dy + at, mask, other=0.0).to(tl.float32)
        if SUM_GAMMA:
            v = tl.load(x + at, mask, other=0.0).to(tl.float32)
            if not RMS:
                v -= tl.load(mean + row, valid, other=0.0).to(tl.float32)[:, None]
            to_gamma += tl.where(mask, grad * v * tl.load(inverse + row, valid, other=0.0).to(tl.float32)[:, None], 0.0)
        to_beta += grad
    if SUM_GAMMA:
        tl.store(parts_gamma + part * width + columns, tl.sum(to_gamma, 0), inside)
    if SUM_BETA:
        tl.store(parts_beta + part * width + columns, tl.sum(to_beta, 0), inside)


@triton.jit
def norm_column_sums(
    parts_gamma, parts_beta, dgamma, dbeta, count, width, COUNTED: tl.constexpr, COLUMNS: tl.constexpr
):
    """dgamma and dbeta: the sums of ``count`` parts, blocks of COUNTED of them in one order."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < width
    lane = tl.arange(0, COUNTED)
    to_gamma = tl.zeros([COUNTED, COLUMNS], tl.float32)
    to_beta = tl.zeros([COUNTED, COLUMNS], tl.float32)
    for begin in range(0, count, COUNTED):
        mask = (begin + lane < count)[:, None] & inside[None, :]
        at = (begin + lane)[:, None] * width + columns[None, :]
        if dgamma is not None:
            to_gamma += tl.load(parts_gamma + at, mask, other=0.0)
        if dbeta is not None:
            to_beta += tl.load(parts_beta + at, mask, other=0.0)
    if dgamma is not None:
        tl.store(dgamma + columns, tl.sum(to_gamma, 0).to(dgamma.dtype.element_ty), inside)
    if dbeta is not None:
        tl.store(dbeta + columns, tl.sum(to_beta, 0).to(dbeta.dtype.element_ty), inside)


def _warps(elements: int) -> int:
    """16 elements per thread, from 1 to 16 warps."""
    return min(max(elements // 512, 1), 16)


def _fits(p: Problem, c: Config) -> bool:
    return "ROWS" in c.blocks


def _row_configs(p: Problem) -> Sequence[Config]:
    width = p.dims["width"]
    if width > _WIDEST:
        return [Config({"BLOCK": b}, w) for b, w in ((_WIDE_BLOCK, 8), (8192, 16), (2048, 8))]
    block = power(width)
    rows = max(1, 1024 // block)
    first = Config({"BLOCK": block, "ROWS": rows}, _warps(block * rows))
    few = Config({"BLOCK": block, "ROWS": rows}, max(first.warps // 2, 1))
    many = Config({"BLOCK": block, "ROWS": rows * 2 if rows > 1 else 1}, min(first.warps * 2, 32))
    return [first, few, many]


def _grad_configs(p: Problem) -> Sequence[Config]:
    width = p.dims["width"]
    shared = {"COLUMNS": 64, "COUNTED": 32}
    if width > _WIDEST_GRAD:
        return [Config(shared | {"BLOCK": b, "COLUMN_ROWS": 16}, 8) for b in (_WIDE_BLOCK, 2048)]
    block = power(width)
    rows = max(1, 512 // block)
    warps = (
        max(block * rows // 512, 1) if block < _WIDEST_GRAD else 32
    )  # two sums per element: 8 elements per thread there
    return [
        Config(shared | {"BLOCK": block, "ROWS": r}, w)
        for r, w in ((rows, warps), (rows, min(warps * 2, 16)), (rows * 2, warps))
    ]


def _parts(p: Problem, c: Config) -> int:
    """Return how many programs sum for gamma and beta: those that run at once, where there are so many rows."""
    rows = c["ROWS"] if _fits(p, c) else c["COLUMN_ROWS"]
    groups = cdiv(p.dims["rows"], rows)
    return cdiv(groups, _turns(p, c))


def _turns(p: Problem, c: Config) -> int:
    """Return how many groups of rows each of them has."""
    if not _fits(p, c):
        return cdiv(cdiv(p.dims["rows"], c["COLUMN_ROWS"]), 16)
    resident = max(1, min(4, 32 // c.warps))
    return max(1, cdiv(cdiv(p.dims["rows"], c["ROWS"]), p.multiprocessors * resident))


def _sums(p: Problem, c: Config) -> bool:
    return bool(p.present & {"dgamma", "dbeta"})


def _refuse(p: Problem) -> str | None:
    if not p.dims["width"]:
        return "rows have no elements"
    return None


norm = Kernel(
    name="norm",
    doc=__doc__,
    types={"T": FLOATS, "U": FLOATS},
    flags={"RMS": (False, True)},
    arguments=(
        tensor("x", "T", "in", "[rows, width]"),
        tensor("residual", "T", "in", "[rows, width]: added to x", optional=True),
        tensor("total", "T", "out", "[rows, width]: x plus residual, which is what is normalised", optional=True),
        tensor("gamma", "U", "in", "[width]", optional=True),
        tensor("beta", "U", "in", "[width]", optional=True),
        tensor("y", "T", "out", "[rows, width]"),
        tensor("mean", "fp32", "out", "[rows]; none for RMS norm", optional=True),
        tensor("inverse", "fp32", "out", "[rows]: 1 / sqrt(variance + epsilon)", optional=True),
        dim("rows"),
        dim("width"),
        value("epsilon"),
    ),
    stages=(
        Stage(norm_forward, lambda p, c: (cdiv(p.dims["rows"], c["ROWS"]),), _fits),
        Stage(norm_forward_wide, lambda p, c: (p.dims["rows"],), lambda p, c: not _fits(p, c)),
    ),
    configs=_row_configs,
    refuse=_refuse,
)

norm_grad = Kernel(
    name="norm_grad",
    doc=__doc__,
    types={"T": FLOATS, "U": FLOATS},
    flags={"RMS": (False, True)},
    arguments=(
        tensor("dy", "T", "in", "[rows, width]"),
        tensor("x", "T", "in", "[rows, width]: what was normalised"),
        tensor("gamma", "U", "in", "[width]", optional=True),
        tensor("mean", "fp32", "in", "[rows]; none for RMS norm", optional=True),
        tensor("inverse", "fp32", "in", "[rows]"),
        tensor(
            "dtotal", "T", "in", "[rows, width]: added to dx, the gradient that the residual carries", optional=True
        ),
        tensor("dx", "T", "out", "[rows, width]"),
        tensor("dgamma", "U", "out", "[width]", optional=True),
        tensor("dbeta", "U", "out", "[width]", optional=True),
        scratch(
            "parts_gamma",
            "fp32",
            "[parts, width]",
            lambda p, c: _parts(p, c) * p.dims["width"] if "dgamma" in p.present else 1,
        ),
        scratch(
            "parts_beta",
            "fp32",
            "[parts, width]",
            lambda p, c: _parts(p, c) * p.dims["width"] if "dbeta" in p.present else 1,
        ),
        dim("rows"),
        dim("width"),
        derived("turns", "groups of rows of a program", _turns),
        derived("count", "of parts", _parts),
    ),
    stages=(
        Stage(norm_backward, lambda p, c: (_parts(p, c),), _fits),
        Stage(norm_backward_wide, lambda p, c: (p.dims["rows"],), lambda p, c: not _fits(p, c)),
        Stage(
            norm_column_parts,
            lambda p, c: (_parts(p, c), cdiv(p.dims["width"], c["COLUMNS"])),
            lambda p, c: not _fits(p, c) and _sums(p, c),
            warps=4,
        ),
        Stage(norm_column_sums, lambda p, c: (cdiv(p.dims["width"], c["COLUMNS"]),), _sums, warps=4),
    ),
    configs=_grad_configs,
    constants=lambda p, c: {"SUM_GAMMA": "dgamma" in p.present, "SUM_BETA": "dbeta" in p.present},
    refuse=_refuse,
)

KERNELS = (norm, norm_grad)
