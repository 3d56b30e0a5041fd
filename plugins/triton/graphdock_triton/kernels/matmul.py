"""Matrix products with what follows them: bias, activation, residual; or an activation's gradient and the bias's. Imports triton.

Tiles of C go to programs in groups of rows, so that those that run together share operands in L2 (Tillet, Kung and Cox, "Triton",
2019, tutorial 3). With few tiles the sum over k is split among programs; a second launch adds the parts in order (Osama and others,
"Stream-K", 2023, call it split-K) and does the rest. Operands have any strides: TN, NT and NN are the same code.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from graphdock_triton.kernels.functions import ACTIVATIONS, activation, activation_grad, product
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

__all__ = ["FOLLOWING", "GROUP", "KERNELS", "finish", "matmul", "matmul_bias_sums", "refuse"]

#: Rows of tiles whose programs are neighbours.
GROUP = 8


@triton.jit
def finish(v, bias, residual, pre, gate, to, columns, mask, inside, ACTIVATION: tl.constexpr, ADD_FIRST: tl.constexpr):
    """Return what follows the product, of a float32 tile: its offsets in C are ``to``. ``pre`` keeps what is activated."""
    if bias is not None:
        v += tl.load(bias + columns, inside, other=0.0).to(tl.float32)[None, :]
    if residual is not None and ADD_FIRST:
        v += tl.load(residual + to, mask, other=0.0).to(tl.float32)
    if pre is not None:
        tl.store(pre + to, v.to(pre.dtype.element_ty), mask)
    if gate is not None:
        v *= activation_grad(tl.load(gate + to, mask, other=0.0).to(tl.float32), ACTIVATION)
    else:
        v = activation(v, ACTIVATION)
    if residual is not None and not ADD_FIRST:
        v += tl.load(residual + to, mask, other=0.0).to(tl.float32)
    return v


@triton.jit
def matmul_tiles(
    a, b, c, bias, residual, pre, gate, parts, bias_parts, alpha,
    m, n, k, a_m, a_k, b_k, b_n, c_m, a_batch, b_batch, c_batch, k_split,
    ACTIVATION: tl.constexpr, ADD_FIRST: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr, EVEN_K: tl.constexpr,
    SPLIT: tl.constexpr, SUM_BIAS: tl.constexpr, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A tile of C, or with SPLIT > 1 the part of it that k_split of the k make up. Programs: tiles, batch, splits."""
    batch = tl.program_id(1)
    split = tl.program_id(2)
    down = tl.cdiv(m, BLOCK_M)
    across = tl.cdiv(n, BLOCK_N)
    group = tl.program_id(0) // (GROUP * across)
    first = group * GROUP
    high = min(down - first, GROUP)
    within = tl.program_id(0) % (GROUP * across)
    tile_m = first + within % high
    tile_n = within // high
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    lane = tl.arange(0, BLOCK_K)
    # rows and columns past the end wrap around: what they give is not stored
    here = batch.to(tl.int64)
    begin = split * k_split
    a_at = a + here * a_batch + (rows % m)[:, None] * a_m + (begin + lane)[None, :] * a_k
    b_at = b + here * b_batch + (begin + lane)[:, None] * b_k + (columns % n)[None, :] * b_n
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    count = min(k - begin, k_split)
    for done in range(0, count, BLOCK_K):
        if EVEN_K:
            left = tl.load(a_at)
            right = tl.load(b_at)
        else:
            left = tl.load(a_at, (lane < count - done)[None, :], other=0.0)
            right = tl.load(b_at, (lane < count - done)[:, None], other=0.0)
        sums = product(left, right, sums, PRECISION, UPCAST)
        a_at += BLOCK_K * a_k
        b_at += BLOCK_K * b_k
    inside = columns < n
    mask = (rows < m)[:, None] & inside[None, :]
    if SPLIT > 1:
        to = ((split * tl.num_programs(1) + batch).to(tl.int64) * m + rows[:, None]) * n + columns[None, :]
        tl.store(parts + to, sums, mask)
    else:
        to = here * c_batch + rows[:, None] * c_m + columns[None, :]
        v = finish(sums * alpha, bias, residual, pre, gate, to, columns, mask, inside, ACTIVATION, ADD_FIRST)
        tl.store(c + to, v.to(c.dtype.element_ty), mask)
        if SUM_BIAS:
            part = tl.sum(tl.where(mask, v, 0.0), 0)
            tl.store(bias_parts + (batch * down + tile_m) * n + columns, part, inside)


@triton.jit
def matmul_joined(
    c, bias, residual, pre, gate, parts, alpha, m, n, c_m, c_batch, ACTIVATION: tl.constexpr, ADD_FIRST: tl.constexpr,
    SPLIT: tl.constexpr, JOIN_M: tl.constexpr, JOIN_N: tl.constexpr,
):  # fmt: skip
    """C of the SPLIT parts. Programs: blocks of columns, blocks of rows, batch."""
    batch = tl.program_id(2)
    rows = tl.program_id(1) * JOIN_M + tl.arange(0, JOIN_M)
    columns = tl.program_id(0) * JOIN_N + tl.arange(0, JOIN_N)
    inside = columns < n
    mask = (rows < m)[:, None] & inside[None, :]
    sums = tl.zeros([JOIN_M, JOIN_N], tl.float32)
    for split in tl.static_range(SPLIT):
        at = ((split * tl.num_programs(2) + batch).to(tl.int64) * m + rows[:, None]) * n + columns[None, :]
        sums += tl.load(parts + at, mask, other=0.0)
    to = batch.to(tl.int64) * c_batch + rows[:, None] * c_m + columns[None, :]
    v = finish(sums * alpha, bias, residual, pre, gate, to, columns, mask, inside, ACTIVATION, ADD_FIRST)
    tl.store(c + to, v.to(c.dtype.element_ty), mask)


@triton.jit
def matmul_bias_sums(bias_parts, dbias, bias_count, n, COLUMN_ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The gradient of a bias: the sum of its parts, blocks of COLUMN_ROWS of them in one order."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n
    lane = tl.arange(0, COLUMN_ROWS)
    sums = tl.zeros([COLUMN_ROWS, COLUMNS], tl.float32)
    for begin in range(0, bias_count, COLUMN_ROWS):
        mask = (begin + lane < bias_count)[:, None] & inside[None, :]
        sums += tl.load(bias_parts + (begin + lane)[:, None] * n + columns[None, :], mask, other=0.0)
    tl.store(dbias + columns, tl.sum(sums, 0).to(dbias.dtype.element_ty), inside)


#: Block sizes m, n and k, warps and stages, for elements of 2 bytes; k is halved for those of 4.
_SHAPES = (
    (128, 256, 64, 8, 3), (128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (256, 64, 64, 8, 3), (128, 64, 64, 4, 4),
    (64, 128, 64, 4, 4), (64, 64, 64, 4, 5), (32, 64, 64, 4, 5), (64, 32, 64, 4, 5), (16, 128, 64, 4, 4), (16, 32, 128, 2, 4),
)  # fmt: skip


def _configs(p: Problem) -> Sequence[Config]:
    """Tiles that don't overhang much and keep the GPU busy: the largest that make as many programs as it has multiprocessors."""
    d = p.dims
    high, wide = max(power(d["m"]), 16), max(power(d["n"]), 32)
    fits = [s for s in _SHAPES if s[0] <= high and s[1] <= wide and s[0] * s[1] <= _largest(p)] or [_SHAPES[-1]]
    out = []
    for m, n, k, warps, stages in fits:
        tiles = cdiv(d["m"], m) * cdiv(d["n"], n) * d["batch"]
        k = max(16, min(k if p.bytes_of("T") == 2 else k // 2, power(d["k"])))
        for split in _splits(p, tiles, k):
            sizes = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "SPLIT": split, "GROUP": GROUP}
            out.append((_waste(p, tiles * split, m * n, split), Config(sizes, warps, stages)))
    return [config for _, config in sorted(out, key=lambda pair: pair[0])]


def _largest(p: Problem) -> int:
    """Elements of a tile, which whatever follows the product has in registers a second time."""
    heavy = p.present & {"residual", "pre", "gate"} or p.flags.get("ACTIVATION", "none") not in ("none", "relu")
    return 128 * 128 if heavy or p.bytes_of("T") == 4 else 128 * 256


def _splits(p: Problem, tiles: int, block: int) -> list[int]:
    """1, and the power of two that fills the GPU, where the sum is long enough; the bias's gradient is not made of parts."""
    longest = p.dims["k"] // (block * 4)
    split = min(power(p.multiprocessors // tiles) if tiles < p.multiprocessors else 1, 16)
    while split > max(longest, 1):
        split //= 2
    return [1] if split == 1 or "dbias" in p.present else [split, 1]


def _waste(p: Problem, programs: int, area: int, split: int) -> float:
    """A guess at time per useful product: idle multiprocessors in the last wave, little reuse of operands, parts to add."""
    waves = cdiv(programs, p.multiprocessors)
    covered = programs // split * area / (p.dims["m"] * p.dims["n"] * p.dims["batch"])
    idle = waves * p.multiprocessors / programs
    return covered * idle * (1 + 2048 / area) * (1.1 if split > 1 else 1.0)


def _bias_count(p: Problem, c: Config) -> int:
    return cdiv(p.dims["m"], c["BLOCK_M"]) * p.dims["batch"]


def _bias_elements(p: Problem, c: Config) -> int:
    return _bias_count(p, c) * p.dims["n"] if "dbias" in p.present else 1


def _part_elements(p: Problem, c: Config) -> int:
    return c["SPLIT"] * p.dims["batch"] * p.dims["m"] * p.dims["n"] if c["SPLIT"] > 1 else 1


def _k_split(p: Problem, c: Config) -> int:
    return cdiv(cdiv(p.dims["k"], c["SPLIT"]), c["BLOCK_K"]) * c["BLOCK_K"]


def _even(p: Problem, c: Config) -> bool:
    return p.dims["k"] % (c["BLOCK_K"] * c["SPLIT"]) == 0


def refuse(p: Problem) -> str | None:
    """Return what no kernel of products takes."""
    d = p.dims
    if not d["m"] * d["n"] * d["batch"]:
        return "the result is empty"
    spans = ((d["m"], d["a_m"], d["k"], d["a_k"]), (d["k"], d["b_k"], d["n"], d["b_n"]), (d["m"], d["c_m"], d["n"], 1))
    if any((rows - 1) * down + (columns - 1) * across >= 1 << 31 for rows, down, columns, across in spans):
        return "a matrix has 2^31 elements or more"
    if "gate" in p.present and "pre" in p.present:
        return "there is one of gate and pre"
    if d["batch"] >= 1 << 16:
        return f"{d['batch']} matrices are more than a grid has"
    return None


def _moved(p: Problem, c: Config) -> int:
    """Rows and columns of the operands along a part of k, and the tile."""
    read = (c["BLOCK_M"] + c["BLOCK_N"]) * _k_split(p, c) * p.bytes_of("T")
    return read + c["BLOCK_M"] * c["BLOCK_N"] * (4 if c["SPLIT"] > 1 else p.bytes_of("C"))


def _grid(p: Problem, c: Config) -> tuple[int, ...]:
    tiles = cdiv(p.dims["m"], c["BLOCK_M"]) * cdiv(p.dims["n"], c["BLOCK_N"])
    return tiles, p.dims["batch"], c["SPLIT"]


#: What follows a product reads and writes.
FOLLOWING = (
    tensor("bias", "B", "in", "[n]", optional=True),
    tensor("residual", "C", "in", "like c: added after the activation, or before with ADD_FIRST", optional=True),
    tensor("pre", "C", "out", "like c: what the activation is applied to", optional=True),
    tensor("gate", "C", "in", "like c: the product is multiplied by activation_grad of it", optional=True),
    tensor("dbias", "B", "out", "[n]: the sum of c over batch and rows", optional=True),
)

matmul = Kernel(
    name="matmul",
    doc=__doc__,
    types={"T": FLOATS, "C": FLOATS, "B": FLOATS},
    flags={
        "ACTIVATION": ACTIVATIONS,
        "ADD_FIRST": (False, True),
        "PRECISION": ("ieee", "tf32", "tf32x3"),
        "UPCAST": (False, True),
    },
    arguments=(
        tensor("a", "T", "in", "[batch, m, k] of strides a_batch, a_m, a_k"),
        tensor("b", "T", "in", "[batch, k, n] of strides b_batch, b_k, b_n"),
        tensor("c", "C", "out", "[batch, m, n] of strides c_batch, c_m, 1"),
        *FOLLOWING,
        scratch("parts", "fp32", "[splits, batch, m, n]", _part_elements),
        scratch("bias_parts", "fp32", "[batch, tiles down, n]", _bias_elements),
        value("alpha", "factor of the product"),
        dim("batch", "matrices"),
        dim("m"),
        dim("n"),
        dim("k"),
        *(dim(name) for name in ("a_m", "a_k", "b_k", "b_n", "c_m")),
        *(dim(name, "0: one matrix for all", "i64") for name in ("a_batch", "b_batch", "c_batch")),
        derived("k_split", "of one part", _k_split),
        derived("bias_count", "of parts", _bias_count),
    ),
    stages=(
        Stage(matmul_tiles, _grid),
        Stage(
            matmul_joined,
            lambda p, c: (cdiv(p.dims["n"], 128), cdiv(p.dims["m"], 8), p.dims["batch"]),
            lambda p, c: c["SPLIT"] > 1,
            warps=4,
        ),
        Stage(matmul_bias_sums, lambda p, c: (cdiv(p.dims["n"], 64),), lambda p, c: "dbias" in p.present, warps=4),
    ),
    configs=_configs,
    constants=lambda p, c: {
        "EVEN_K": _even(p, c), "SUM_BIAS": "dbias" in p.present,
        "JOIN_M": 8, "JOIN_N": 128, "COLUMN_ROWS": 32, "COLUMNS": 64,
    },
    refuse=refuse,
    moved=_moved,
    warps=8,
)  # fmt: skip

KERNELS = (matmul,)
