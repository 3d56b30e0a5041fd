"""Dropout whose mask nobody keeps: forward and backward draw it from the step's random stream. Imports triton.

The stream is Philox4x64-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011) with the counters
of ``graphdock.contracts.streams``: the draws are those of the std package's RandomUniform of float32, on any
backend. A block of four 64-bit words gives eight numbers, low half first, of 24 bits. Dropout: Srivastava and others, 2014.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from graphdock_triton.kernels.spec import FLOATS, Config, Kernel, Problem, Stage, cdiv, dim, tensor, value

__all__ = ["KERNELS", "dropout", "kept_of", "philox", "uniforms"]


@triton.jit
def philox(block, key0, key1, outer, iteration, ordinal):
    """The four words of blocks [N] of uint64, counted from 1."""
    c0 = block
    c1 = tl.zeros_like(block) + outer
    c2 = tl.zeros_like(block) + iteration
    c3 = tl.zeros_like(block) + ordinal
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(c0, 0xD2E7470EE14C6C93), c0 * 0xD2E7470EE14C6C93
        high1, low1 = tl.umulhi(c2, 0xCA5A826395121157), c2 * 0xCA5A826395121157
        c0, c1, c2, c3 = high1 ^ c1 ^ key0, low1, high0 ^ c3 ^ key1, low0
        key0 += 0x9E3779B97F4A7C15
        key1 += 0xBB67AE8584CAA73B
    return c0, c1, c2, c3


@triton.jit
def _fraction(half):
    """The upper 24 of 32 bits as a fraction of one."""
    return ((half & 0xFFFFFFFF) >> 8).to(tl.uint32).to(tl.float32) * 5.960464477539063e-08


@triton.jit
def _numbers(w0, w1, w2, w3):
    """The eight numbers of each block, side by side along the last dim."""
    low = tl.interleave(tl.interleave(_fraction(w0), _fraction(w2)), tl.interleave(_fraction(w1), _fraction(w3)))
    high = tl.interleave(
        tl.interleave(_fraction(w0 >> 32), _fraction(w2 >> 32)), tl.interleave(_fraction(w1 >> 32), _fraction(w3 >> 32))
    )
    return tl.interleave(low, high)


@triton.jit
def uniforms(first, key0, key1, outer, iteration, ordinal, BLOCKS: tl.constexpr):
    """Numbers of [0, 1) of BLOCKS blocks after block ``first``: [8 BLOCKS]. Each thread has those of its blocks."""
    number = (tl.arange(0, BLOCKS).to(tl.int64) + first + 1).to(tl.uint64)
    w0, w1, w2, w3 = philox(
        number, key0.to(tl.uint64), key1.to(tl.uint64), outer.to(tl.uint64), iteration.to(tl.uint64), ordinal
    )
    return _numbers(w0, w1, w2, w3)


@triton.jit
def kept_of(stream, rate, row, begin, columns, COLUMNS: tl.constexpr, BLOCKS: tl.constexpr):
    """Return which of a matrix' elements stay: 1 or 0 for those of rows ``row`` [R] and COLUMNS columns from ``begin``: [R,
    COLUMNS].

    Element i of the matrix, row by row, has number i of the stream, five words in memory. BLOCKS: rows and ``begin`` are multiples
    of 8, and a block of random words makes eight numbers; else each element computes its own.
    """
    key0, key1 = tl.load(stream), tl.load(stream + 1)
    outer, iteration, ordinal = tl.load(stream + 2), tl.load(stream + 3), tl.load(stream + 4)
    if BLOCKS:
        block = row.to(tl.int64)[:, None] * (columns // 8) + begin // 8 + tl.arange(0, COLUMNS // 8)[None, :]
        w0, w1, w2, w3 = philox((block + 1).to(tl.uint64), key0, key1, outer, iteration, ordinal)
        draws = _numbers(w0, w1, w2, w3)
    else:
        place = row.to(tl.int64)[:, None] * columns + begin + tl.arange(0, COLUMNS)[None, :]
        w0, w1, w2, w3 = philox((place // 8 + 1).to(tl.uint64), key0, key1, outer, iteration, ordinal)
        word = place // 2 % 4
        found = tl.where(word < 2, tl.where(word == 0, w0, w1), tl.where(word == 2, w2, w3))
        draws = _fraction(tl.where(place % 2 == 0, found, found >> 32))
    return (draws >= tl.load(rate)).to(tl.float32)


@triton.jit
def dropout_elements(
    x, residual, y, ordinal, key0, key1, outer, iteration, n, rate, scale, BLOCKS: tl.constexpr, BLOCK: tl.constexpr
):
    """y = x scale [draw >= rate], plus residual. BLOCK is 8 BLOCKS."""
    first = tl.program_id(0).to(tl.int64) * BLOCKS
    draws = uniforms(first, key0, key1, outer, iteration, tl.load(ordinal), BLOCKS)
    at = first * 8 + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask, other=0.0).to(tl.float32) * scale * (draws >= rate).to(tl.float32)
    if residual is not None:
        v += tl.load(residual + at, mask, other=0.0).to(tl.float32)
    tl.store(y + at, v.to(y.dtype.element_ty), mask)


def _configs(p: Problem) -> Sequence[Config]:
    return [Config({"BLOCKS": b, "BLOCK": 8 * b}, w) for b, w in ((128, 4), (256, 4), (256, 8), (512, 8))]


dropout = Kernel(
    name="dropout",
    doc=__doc__,
    types={"T": FLOATS},
    arguments=(
        tensor("x", "T", "in", "[n]; the gradient of y for that of x"),
        tensor("residual", "T", "in", "[n]: added after", optional=True),
        tensor("y", "T", "out", "[n]; may be x"),
        tensor("ordinal", "u64", "in", "[1]: of the step, where the queue's step arguments have it"),
        value("key0", "", "u64"),
        value("key1", "", "u64"),
        value("outer", "counter of outer loops", "u64"),
        value("iteration", "of the innermost loop", "u64"),
        dim("n", "", "i64"),
        value("rate", "what is dropped"),
        value("scale", "1 / (1 - rate), rounded to the type of x"),
    ),
    stages=(Stage(dropout_elements, lambda p, c: (cdiv(p.dims["n"], c["BLOCK"]),)),),
    configs=_configs,
)

KERNELS = (dropout,)
