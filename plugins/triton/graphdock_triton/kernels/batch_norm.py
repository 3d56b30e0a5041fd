"""Mean and variance of channels, and the sums of their gradient, of images with channels last. Imports triton.

A program takes some channels of a group of rows: its mean, and the squares of differences to it. Groups are joined in one order
(Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979). Batch norm: Ioffe and
Szegedy, 2015; what follows the statistics is elementwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from graphdock_triton.kernels.spec import FLOATS, Config, Kernel, Problem, Stage, cdiv, derived, dim, scratch, tensor

__all__ = ["KERNELS", "batch_norm_grad_sums", "batch_norm_statistics"]


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
def channel_statistics(means, squares, mean, variance, unbiased, rows, channels, each, count, BLOCK: tl.constexpr):
    """Mean and variance of all groups, of ``each`` rows but the last."""
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
    if unbiased is not None:
        tl.store(unbiased + channel, spread / tl.maximum(known - 1.0, 1.0), inside)


@triton.jit
def channel_grad_parts(
    dy, x, mean, inverse, parts, slopes, rows, channels, turns, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Sums of dy, and of dy times the normalised x, of ``turns`` blocks of rows."""
    group = tl.program_id(0)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < channels
    average = tl.load(mean + channel, inside, other=0.0)[None, :]
    root = tl.load(inverse + channel, inside, other=0.0)[None, :]
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
    return None if p.dims["rows"] else "there are no rows"


batch_norm_statistics = Kernel(
    name="batch_norm_statistics",
    doc=__doc__,
    types={"T": FLOATS},
    arguments=(
        tensor("x", "T", "in", "[rows, channels]"),
        tensor("mean", "fp32", "out", "[channels]"),
        tensor("variance", "fp32", "out", "[channels]"),
        tensor("unbiased", "fp32", "out", "[channels]: the variance times rows / (rows - 1)", optional=True),
        scratch("means", "fp32", "[groups, channels]", _elements),
        scratch("squares", "fp32", "[groups, channels]", _elements),
        *_SIZES,
        derived("each", "rows of a group", lambda p, c: _turns(p, c) * c["ROWS"]),
    ),
    stages=(Stage(channel_parts, _grid), Stage(channel_statistics, _columns, warps=2)),
    configs=_configs,
    refuse=_refuse,
)

batch_norm_grad_sums = Kernel(
    name="batch_norm_grad_sums",
    doc=__doc__,
    types={"T": FLOATS},
    arguments=(
        tensor("dy", "T", "in", "[rows, channels]"),
        tensor("x", "T", "in", "[rows, channels]"),
        tensor("mean", "fp32", "in", "[channels]"),
        tensor("inverse", "fp32", "in", "[channels]: 1 / sqrt(variance + epsilon)"),
        tensor("dscale", "fp32", "out", "[channels]"),
        tensor("doffset", "fp32", "out", "[channels]"),
        scratch("parts", "fp32", "[groups, channels]", _elements),
        scratch("slopes", "fp32", "[groups, channels]", _elements),
        *_SIZES,
    ),
    stages=(Stage(channel_grad_parts, _grid), Stage(channel_grad_sums, _columns)),
    configs=_configs,
    constants=lambda p, c: {"JOINED": 32},
    refuse=_refuse,
)

KERNELS = (batch_norm_statistics, batch_norm_grad_sums)
