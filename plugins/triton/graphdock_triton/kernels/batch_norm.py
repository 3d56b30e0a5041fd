"""Batch norm of images with channels last, and its gradient. Imports triton.

A program takes some channels of a group of rows: its mean, and the squares of differences to it. Groups are joined in one order
(Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979). Batch norm: Ioffe and
Szegedy, 2015. What follows the statistics is a pass of its own, over the same blocks.
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
    scratch,
    tensor,
    value,
)

__all__ = ["KERNELS", "batch_norm", "batch_norm_grad"]


@triton.jit
def _join(count, mean, squares, more, mean2, squares2):
    """Statistics of two groups as one."""
    both = count + more
    safe = tl.where(both > 0.0, both, 1.0)
    apart = mean2 - mean
    return both, mean + apart * (more / safe), squares + squares2 + apart * apart * (count * more / safe)


@triton.jit
def channel_parts(x, means, squares, rows, channels, turns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Mean and squares of ``turns`` blocks of rows, of BLOCK channels."""
    group = tl.program_id(0)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < channels
    count = 0.0
    mean = tl.zeros([BLOCK], tl.float32)
    spread = tl.zeros([BLOCK], tl.float32)
    for turn in range(turns):
        row = (group.to(tl.int64) * turns + turn) * ROWS + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & inside[None, :]
        v = tl.load(x + row[:, None] * channels + channel[None, :], mask, other=0.0).to(tl.float32)
        more = tl.sum((row < rows).to(tl.float32), 0)
        mean2 = tl.sum(v, 0) / tl.maximum(more, 1.0)
        d = tl.where(mask, v - mean2[None, :], 0.0)
        count, mean, spread = _join(count, mean, spread, more, mean2, tl.sum(d * d, 0))
    tl.store(means + group * channels + channel, mean, inside)
    tl.store(squares + group * channels + channel, spread, inside)


@triton.jit
def channel_statistics(
    means, squares, mean, variance, batch_mean, batch_variance, rows, channels, each, count, BLOCK: tl.constexpr
):
    """Mean and variance of all groups, of ``each`` rows but the last; batch_variance is the unbiased one."""
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < channels
    known = 0.0
    average = tl.zeros([BLOCK], tl.float32)
    spread = tl.zeros([BLOCK], tl.float32)
    for group in range(count):
        more = tl.minimum(each, rows - group * each).to(tl.float32)
        at = group * channels + channel
        mean2 = tl.load(means + at, inside, other=0.0)
        squares2 = tl.load(squares + at, inside, other=0.0)
        known, average, spread = _join(known, average, spread, more, mean2, squares2)
    tl.store(mean + channel, average, inside)
    tl.store(variance + channel, spread / known, inside)
    if batch_mean is not None:
        tl.store(batch_mean + channel, average, inside)
    if batch_variance is not None:
        tl.store(batch_variance + channel, spread / tl.maximum(known - 1.0, 1.0), inside)


@triton.jit
def channel_copies(mean, variance, batch_mean, batch_variance, kept_mean, kept_variance, channels, BLOCK: tl.constexpr):
    """Statistics that were given, once more."""
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < channels
    average = tl.load(mean + channel, inside, other=0.0)
    spread = tl.load(variance + channel, inside, other=0.0)
    if batch_mean is not None:
        tl.store(batch_mean + channel, average, inside)
    if batch_variance is not None:
        tl.store(batch_variance + channel, spread, inside)
    if kept_mean is not None:
        tl.store(kept_mean + channel, average, inside)
    if kept_variance is not None:
        tl.store(kept_variance + channel, spread, inside)


@triton.jit
def channel_apply(
    x, scale, offset, mean, variance, y, rows, channels, turns, epsilon, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """y of ``turns`` blocks of rows, of BLOCK channels."""
    group = tl.program_id(0)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < channels
    average = tl.load(mean + channel, inside, other=0.0)[None, :]
    factor = 1.0 / tl.sqrt(tl.load(variance + channel, inside, other=1.0) + epsilon)
    factor = (factor * tl.load(scale + channel, inside, other=0.0))[None, :]
    summand = tl.load(offset + channel, inside, other=0.0)[None, :]
    for turn in range(turns):
        row = (group.to(tl.int64) * turns + turn) * ROWS + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & inside[None, :]
        at = row[:, None] * channels + channel[None, :]
        v = tl.load(x + at, mask, other=0.0).to(tl.float32)
        tl.store(y + at, ((v - average) * factor + summand).to(y.dtype.element_ty), mask)


@triton.jit
def channel_grad_parts(
    dy, x, mean, variance, parts, slopes, rows, channels, turns, epsilon, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Sums of dy, and of dy times the normalised x, of ``turns`` blocks of rows."""
    group = tl.program_id(0)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < channels
    average = tl.load(mean + channel, inside, other=0.0)[None, :]
    root = (1.0 / tl.sqrt(tl.load(variance + channel, inside, other=1.0) + epsilon))[None, :]
    sums = tl.zeros([ROWS, BLOCK], tl.float32)
    products = tl.zeros([ROWS, BLOCK], tl.float32)
    for turn in range(turns):
        row = (group.to(tl.int64) * turns + turn) * ROWS + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & inside[None, :]
        at = row[:, None] * channels + channel[None, :]
        grad = tl.load(dy + at, mask, other=0.0).to(tl.float32)
        v = tl.load(x + at, mask, other=0.0).to(tl.float32)
        sums += grad
        products += tl.where(mask, grad * (v - average) * root, 0.0)
    tl.store(parts + group * channels + channel, tl.sum(sums, 0), inside)
    tl.store(slopes + group * channels + channel, tl.sum(products, 0), inside)


@triton.jit
def channel_grad_sums(parts, slopes, dscale, doffset, channels, count, JOINED: tl.constexpr, BLOCK: tl.constexpr):
    """dscale and doffset of all groups, blocks of JOINED of them in one order."""
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < channels
    sums = tl.zeros([JOINED, BLOCK], tl.float32)
    products = tl.zeros([JOINED, BLOCK], tl.float32)
    for begin in range(0, count, JOINED):
        group = begin + tl.arange(0, JOINED)
        mask = (group < count)[:, None] & inside[None, :]
        at = group[:, None] * channels + channel[None, :]
        sums += tl.load(parts + at, mask, other=0.0)
        products += tl.load(slopes + at, mask, other=0.0)
    tl.store(doffset + channel, tl.sum(sums, 0), inside)
    tl.store(dscale + channel, tl.sum(products, 0), inside)


@triton.jit
def channel_grad_apply(
    dy, x, scale, mean, variance, dscale, doffset, dx, rows, channels, turns, epsilon,
    TRAINING: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """dx of ``turns`` blocks of rows; with TRAINING through the statistics as well."""
    group = tl.program_id(0)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < channels
    root = 1.0 / tl.sqrt(tl.load(variance + channel, inside, other=1.0) + epsilon)
    factor = (root * tl.load(scale + channel, inside, other=0.0))[None, :]
    average = tl.load(mean + channel, inside, other=0.0)[None, :]
    base = (tl.load(doffset + channel, inside, other=0.0) / rows)[None, :]
    slope = (root * (tl.load(dscale + channel, inside, other=0.0) / rows))[None, :]
    for turn in range(turns):
        row = (group.to(tl.int64) * turns + turn) * ROWS + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & inside[None, :]
        at = row[:, None] * channels + channel[None, :]
        out = tl.load(dy + at, mask, other=0.0).to(tl.float32)
        if TRAINING:
            out -= base + (tl.load(x + at, mask, other=0.0).to(tl.float32) - average) * slope
        tl.store(dx + at, (out * factor).to(dx.dtype.element_ty), mask)


def _configs(p: Problem) -> Sequence[Config]:
    return [
        Config({"ROWS": rows, "BLOCK": block}, warps) for rows, block, warps in ((32, 64, 4), (64, 32, 4), (16, 128, 4))
    ]


def _turns(p: Problem, c: Config) -> int:
    """Blocks of rows of a program: so many that the GPU is full, and no more than 16 times 1024 groups."""
    across = cdiv(p.dims["channels"], c["BLOCK"])
    return max(1, cdiv(cdiv(p.dims["rows"], c["ROWS"]), max(1, cdiv(4 * p.multiprocessors, across))))


def _count(p: Problem, c: Config) -> int:
    return cdiv(p.dims["rows"], c["ROWS"] * _turns(p, c))


def _elements(p: Problem, c: Config) -> int:
    return _count(p, c) * p.dims["channels"]


def _grid(p: Problem, c: Config) -> tuple[int, ...]:
    return _count(p, c), cdiv(p.dims["channels"], c["BLOCK"])


def _columns(p: Problem, c: Config) -> tuple[int, ...]:
    return (cdiv(p.dims["channels"], c["BLOCK"]),)


_SIZES = (
    dim("rows", "images times places"),
    dim("channels"),
    derived("turns", "blocks of rows of a program", _turns),
    derived("count", "of groups", _count),
)


def _refuse(p: Problem) -> str | None:
    return None if p.dims["rows"] * p.dims["channels"] else "there are no elements"


def _training(p: Problem, c: Config) -> bool:
    return bool(p.flags.get("TRAINING", True))


def _copies(p: Problem, c: Config) -> bool:
    return not _training(p, c) and bool(p.present)


batch_norm = Kernel(
    name="batch_norm",
    doc=__doc__,
    types={"T": FLOATS},
    flags={"TRAINING": (True, False)},
    arguments=(
        tensor("x", "T", "in", "[rows, channels]"),
        tensor("scale", "fp32", "in", "[channels]"),
        tensor("offset", "fp32", "in", "[channels]"),
        tensor("mean", "fp32", "update", "[channels]: that of x, in training; else given"),
        tensor("variance", "fp32", "update", "[channels]: as mean"),
        tensor("y", "T", "out", "[rows, channels]; may be x"),
        tensor("batch_mean", "fp32", "out", "[channels]: the mean again", optional=True),
        tensor("batch_variance", "fp32", "out", "[channels]: in training times rows / (rows - 1)", optional=True),
        tensor("kept_mean", "fp32", "out", "[channels]: the mean that was given, not in training", optional=True),
        tensor("kept_variance", "fp32", "out", "[channels]: as kept_mean", optional=True),
        scratch("means", "fp32", "[groups, channels]", _elements),
        scratch("squares", "fp32", "[groups, channels]", _elements),
        *_SIZES,
        derived("each", "rows of a group", lambda p, c: _turns(p, c) * c["ROWS"]),
        value("epsilon", "added to the variance"),
    ),
    stages=(
        Stage(channel_parts, _grid, _training),
        Stage(channel_statistics, _columns, _training, warps=2),
        Stage(channel_copies, _columns, _copies, warps=2),
        Stage(channel_apply, _grid),
    ),
    configs=_configs,
    refuse=_refuse,
)

batch_norm_grad = Kernel(
    name="batch_norm_grad",
    doc=__doc__,
    types={"T": FLOATS},
    flags={"TRAINING": (True, False)},
    arguments=(
        tensor("dy", "T", "in", "[rows, channels]"),
        tensor("x", "T", "in", "[rows, channels]"),
        tensor("scale", "fp32", "in", "[channels]"),
        tensor("mean", "fp32", "in", "[channels]"),
        tensor("variance", "fp32", "in", "[channels]"),
        tensor("dx", "T", "out", "[rows, channels]; may be dy"),
        tensor("dscale", "fp32", "out", "[channels]"),
        tensor("doffset", "fp32", "out", "[channels]"),
        scratch("parts", "fp32", "[groups, channels]", _elements),
        scratch("slopes", "fp32", "[groups, channels]", _elements),
        *_SIZES,
        value("epsilon", "added to the variance"),
    ),
    stages=(Stage(channel_grad_parts, _grid), Stage(channel_grad_sums, _columns), Stage(channel_grad_apply, _grid)),
    configs=_configs,
    constants=lambda p, c: {"JOINED": 32},
    refuse=_refuse,
)

KERNELS = (batch_norm, batch_norm_grad)
