"""Matrix products whose programs stay: one to a multiprocessor, which walks over tiles of C. Imports triton.

Operands and C are told to Hopper's copy engine (TMA) by descriptors that each program makes in global scratch memory. One thread
asks for a tile; it comes into shared memory while tensor cores multiply the one before, past the end of C too: the first tiles of
the next one are on their way while this one's epilogue is computed (Tillet and others, Triton's tutorial 9, 2024; the tiles' order
is that of tutorial 3). What lies beyond a matrix is read as zero and not written.

An operand whose rows are not those of the product is told as it lies, and turned where tensor cores read it.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from graphdock_triton.kernels import matmul as plain
from graphdock_triton.kernels.functions import ACTIVATIONS, product
from graphdock_triton.kernels.matmul import finish, matmul_bias_sums
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

__all__ = ["KERNELS", "matmul_persistent"]


@triton.jit
def _described(
    x, count, rows, columns, batch_stride, row_stride, BATCHED: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr
):
    """A descriptor of ``count`` matrices, read and written by blocks of HIGH rows and WIDE columns."""
    if BATCHED:
        return tl.make_tensor_descriptor(x, [count, rows, columns], [batch_stride, row_stride, 1], [1, HIGH, WIDE])
    else:
        return tl.make_tensor_descriptor(x, [rows, columns], [row_stride, 1], [HIGH, WIDE])


@triton.jit
def _tile(
    described, batch, row, column, BATCHED: tl.constexpr, TURNED: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr
):
    """[HIGH, WIDE] of a matrix; TURNED: of its transpose."""
    if BATCHED:
        if TURNED:
            return described.load([batch, column, row]).reshape(WIDE, HIGH).T
        else:
            return described.load([batch, row, column]).reshape(HIGH, WIDE)
    elif TURNED:
        return described.load([column, row]).T
    else:
        return described.load([row, column])


@triton.jit
def _end(
    v, c, described, bias, residual, pre, gate, bias_parts, m, n, c_m, c_batch, batch, row, column, part,
    ACTIVATION: tl.constexpr, ADD_FIRST: tl.constexpr, BATCHED: tl.constexpr, SUM_BIAS: tl.constexpr,
    HIGH: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Apply what follows the product, to a float32 tile [HIGH, WIDE] that begins at ``row`` and ``column``, and its place in C."""
    rows = row + tl.arange(0, HIGH)
    columns = column + tl.arange(0, WIDE)
    inside = columns < n
    mask = (rows < m)[:, None] & inside[None, :]
    matrix = batch.to(tl.int64) * c_batch  # by itself, so that offsets within it have 32 bits
    if residual is not None:
        residual += matrix
    if pre is not None:
        pre += matrix
    if gate is not None:
        gate += matrix
    to = rows[:, None] * c_m + columns[None, :]
    v = finish(v, bias, residual, pre, gate, to, columns, mask, inside, ACTIVATION, ADD_FIRST)
    if SUM_BIAS:
        tl.store(bias_parts + part * n + columns, tl.sum(tl.where(mask, v, 0.0), 0), inside)
    if described is None:
        tl.store(c + matrix + to, v.to(c.dtype.element_ty), mask)
    elif BATCHED:
        described.store([batch, row, column], v.to(c.dtype.element_ty).reshape(1, HIGH, WIDE))
    else:
        described.store([row, column], v.to(c.dtype.element_ty))


@triton.jit
def matmul_walk(
    a, b, c, bias, residual, pre, gate, bias_parts, alpha,
    m, n, k, batch, a_row, b_row, c_m, a_step, b_step, c_batch, a_count, b_count,
    ACTIVATION: tl.constexpr, ADD_FIRST: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr,
    A_TURNED: tl.constexpr, B_TURNED: tl.constexpr, BATCHED: tl.constexpr, STORED: tl.constexpr, SUM_BIAS: tl.constexpr,
    GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, HALVES: tl.constexpr,
):  # fmt: skip
    """Tiles of C, of which each program has every so manyth. Programs: any number. HALVES: of a tile end one after the other."""
    if A_TURNED:
        left = _described(a, a_count, k, m, a_step, a_row, BATCHED, BLOCK_K, BLOCK_M)
    else:
        left = _described(a, a_count, m, k, a_step, a_row, BATCHED, BLOCK_M, BLOCK_K)
    if B_TURNED:
        right = _described(b, b_count, n, k, b_step, b_row, BATCHED, BLOCK_N, BLOCK_K)
    else:
        right = _described(b, b_count, k, n, b_step, b_row, BATCHED, BLOCK_K, BLOCK_N)
    WIDE: tl.constexpr = BLOCK_N // HALVES
    result = None
    if STORED:
        result = _described(c, batch, m, n, c_batch, c_m, BATCHED, BLOCK_M, WIDE)
    down = tl.cdiv(m, BLOCK_M)
    across = tl.cdiv(n, BLOCK_N)
    tiles = down * across
    # one loop of both: copies for the next tile begin before this one ends
    for number in tl.range(tl.program_id(0), tiles * batch, tl.num_programs(0), flatten=True):
        here = number // tiles
        tile = number % tiles
        first = tile // (GROUP * across) * GROUP
        high = min(down - first, GROUP)
        within = tile % (GROUP * across)
        tile_m = first + within % high
        row = tile_m * BLOCK_M
        column = within // high * BLOCK_N
        sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for at in range(0, k, BLOCK_K):
            x = _tile(left, min(here, a_count - 1), row, at, BATCHED, A_TURNED, BLOCK_M, BLOCK_K)
            y = _tile(right, min(here, b_count - 1), at, column, BATCHED, B_TURNED, BLOCK_K, BLOCK_N)
            sums = product(x, y, sums, PRECISION, UPCAST)
        sums *= alpha
        part = here * down + tile_m
        if HALVES == 2:
            near, far = tl.split(tl.permute(tl.reshape(sums, (BLOCK_M, 2, WIDE)), (0, 2, 1)))
            _end(near, c, result, bias, residual, pre, gate, bias_parts, m, n, c_m, c_batch, here, row, column, part,
                 ACTIVATION, ADD_FIRST, BATCHED, SUM_BIAS, BLOCK_M, WIDE)  # fmt: skip
            _end(far, c, result, bias, residual, pre, gate, bias_parts, m, n, c_m, c_batch, here, row, column + WIDE, part,
                 ACTIVATION, ADD_FIRST, BATCHED, SUM_BIAS, BLOCK_M, WIDE)  # fmt: skip
        else:
            _end(sums, c, result, bias, residual, pre, gate, bias_parts, m, n, c_m, c_batch, here, row, column, part,
                 ACTIVATION, ADD_FIRST, BATCHED, SUM_BIAS, BLOCK_M, WIDE)  # fmt: skip


#: Block sizes m, n and k, warps, stages, and parts that a tile ends in, for elements of 2 bytes; k is halved for those of 4.
_LIGHT = (
    (128, 256, 64, 8, 3, 1), (128, 256, 64, 8, 4, 2), (256, 128, 64, 8, 4, 2), (128, 128, 64, 8, 4, 1), (128, 64, 64, 4, 4, 1),
    (64, 128, 64, 4, 4, 1),
)  # fmt: skip
#: Where what follows has a tile in registers a second time: the parts end one after the other.
_HEAVY = ((128, 256, 64, 8, 3, 2), (128, 128, 64, 8, 4, 2), (128, 64, 64, 4, 4, 2), (64, 128, 64, 4, 4, 2))
#: Bytes of shared memory that a block may have, without what barriers and layouts take of it.
_SHARED = (227 << 10) - 2048
#: Where it is the better guess: tiles of C for each multiprocessor, and k, at least.
_WORTH = ((1.0, 128), (0.5, 2048))


def _turned(p: Problem) -> tuple[bool, bool]:
    """Return whether what lies side by side in a and b are not the rows of the product's operands."""
    return p.dims["a_k"] != 1, p.dims["b_n"] != 1


def _row(p: Problem, name: str) -> int:
    """Elements from one row in memory to the next."""
    a_turned, b_turned = _turned(p)
    stride = {"a": "a_k" if a_turned else "a_m", "b": "b_n" if b_turned else "b_k", "c": "c_m"}[name]
    return p.dims[stride]


def _step(p: Problem, name: str) -> int:
    """Elements from one matrix to the next; of one that is for all its own."""
    a_turned, b_turned = _turned(p)
    rows = {"a": "k" if a_turned else "m", "b": "n" if b_turned else "k"}[name]
    return p.dims[f"{name}_batch"] or p.dims[rows] * _row(p, name)


def _count(p: Problem, name: str) -> int:
    return p.dims["batch"] if p.dims[f"{name}_batch"] else 1


def _is_stored(p: Problem) -> bool:
    """Return whether a descriptor can tell of C."""
    apart = [p.dims["c_m"], *([p.dims["c_batch"]] if p.dims["batch"] > 1 else [])]
    return all(n > 0 and n * p.bytes_of("C") % 16 == 0 for n in apart)


def _heavy(p: Problem) -> int:
    """Return how many times what follows the product has a tile in registers besides."""
    follows = len(p.present & {"residual", "pre", "gate"})
    return follows or int(p.flags.get("ACTIVATION", "none") not in ("none", "relu"))


def _configs(p: Problem) -> Sequence[Config]:
    """Tiles that fit into shared memory and overhang little, those that keep all multiprocessors busy first."""
    heavy, width = _heavy(p), p.bytes_of("T")
    out = []
    for m, n, k, warps, stages, parts in _HEAVY if heavy else _LIGHT:
        k = k if width == 2 else k // 2
        twice = (heavy and _is_stored(p)) or (parts > 1 and p.capability >= 100)
        result = m * n // parts * p.bytes_of("C") * (2 if twice else 1)
        if stages * (m + n) * k * width + result > _SHARED or (
            n > 128 and (heavy > 1 or (heavy and p.capability >= 100))
        ):
            continue
        c = Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "HALVES": parts, "GROUP": plain.GROUP}, warps, stages)
        rounds = cdiv(_tiles(p, c), p.multiprocessors)
        out.append((rounds * m * n * (1 + 2048 / (m * n)), c))
    return [config for _, config in sorted(out, key=lambda pair: pair[0])]


def _tiles(p: Problem, c: Config) -> int:
    return cdiv(p.dims["m"], c["BLOCK_M"]) * cdiv(p.dims["n"], c["BLOCK_N"]) * p.dims["batch"]


def _programs(p: Problem, c: Config) -> int:
    return min(_tiles(p, c), p.multiprocessors)


def _refuse(p: Problem) -> str | None:
    reason = plain.refuse(p)
    if reason:
        return reason
    if p.capability // 10 not in (9, 10):
        lacks = "no copies of tiles by descriptors" if p.capability < 90 else "too little shared memory"
        return f"a GPU of compute capability {p.capability / 10} has {lacks}"
    if p.types["T"] == "fp32" and p.flags.get("PRECISION", "ieee") != "tf32":
        return "float32 operands are not rounded, and tensor cores multiply rounded ones"
    for name, strides in (("a", ("a_m", "a_k")), ("b", ("b_k", "b_n"))):
        if 1 not in [p.dims[s] for s in strides]:
            return f"neither the rows nor the columns of {name} lie side by side"
        apart = [_row(p, name), *([_step(p, name)] if p.dims["batch"] > 1 else [])]
        if wrong := next((n for n in apart if n <= 0 or n * p.bytes_of("T") % 16), None):
            return f"rows or matrices of {name} lie {wrong * p.bytes_of('T')} bytes apart, which 16 does not divide"
    if astray := sorted(p.unaligned & {"a", "b", "c"}):
        return f"the address of {astray[0]} is no multiple of 16"
    return None


def _decline(p: Problem) -> str | None:
    if p.capability // 10 != 9:
        return f"compute capability {p.capability / 10} is not that of Hopper, for which it is a guess"
    if p.types["T"] == "fp32" and (p.dims["a_k"] != 1 or p.dims["b_k"] != 1):
        return "tensor cores read float32 along k alone, and k does not lie side by side in both operands"
    tiles = _tiles(p, _configs(p)[0])
    if any(tiles > each * p.multiprocessors and p.dims["k"] >= k for each, k in _WORTH):
        return None
    return f"the result has {tiles} tiles for {p.multiprocessors} multiprocessors, and k is {p.dims['k']}"


def _bias_count(p: Problem, c: Config) -> int:
    return cdiv(p.dims["m"], c["BLOCK_M"]) * p.dims["batch"]


def _bias_elements(p: Problem, c: Config) -> int:
    return _bias_count(p, c) * p.dims["n"] if "dbias" in p.present else 1


def _moved(p: Problem, c: Config) -> int:
    """Return what the tiles of one program read along k and write."""
    read = (c["BLOCK_M"] + c["BLOCK_N"]) * p.dims["k"] * p.bytes_of("T")
    return cdiv(_tiles(p, c), _programs(p, c)) * (read + c["BLOCK_M"] * c["BLOCK_N"] * p.bytes_of("C"))


def _constants(p: Problem, c: Config) -> dict[str, object]:
    a_turned, b_turned = _turned(p)
    return {
        "A_TURNED": a_turned, "B_TURNED": b_turned, "BATCHED": p.dims["batch"] > 1, "STORED": _is_stored(p),
        "SUM_BIAS": "dbias" in p.present, "COLUMN_ROWS": 32, "COLUMNS": 64,
    }  # fmt: skip


matmul_persistent = Kernel(
    name="matmul_persistent",
    doc=__doc__,
    types={"T": FLOATS, "C": FLOATS, "B": FLOATS},
    flags={
        "ACTIVATION": ACTIVATIONS,
        "ADD_FIRST": (False, True),
        "PRECISION": ("ieee", "tf32"),
        "UPCAST": (False, True),
    },
    arguments=(
        tensor("a", "T", "in", "[batch, m, k] of strides a_batch, a_m, a_k, of which one of the last two is 1"),
        tensor("b", "T", "in", "[batch, k, n] of strides b_batch, b_k, b_n, of which one of the last two is 1"),
        tensor("c", "C", "out", "[batch, m, n] of strides c_batch, c_m, 1"),
        *plain.FOLLOWING,
        scratch("bias_parts", "fp32", "[batch, tiles down, n]", _bias_elements),
        value("alpha", "factor of the product"),
        dim("batch", "matrices"),
        dim("m"),
        dim("n"),
        dim("k"),
        dim("c_m"),
        dim("c_batch", type="i64"),
        derived("a_row", "in memory", lambda p, c: _row(p, "a")),
        derived("b_row", "in memory", lambda p, c: _row(p, "b")),
        derived("a_step", "in memory", lambda p, c: _step(p, "a"), "i64"),
        derived("b_step", "in memory", lambda p, c: _step(p, "b"), "i64"),
        derived("a_count", "matrices", lambda p, c: _count(p, "a")),
        derived("b_count", "matrices", lambda p, c: _count(p, "b")),
        derived("bias_count", "of parts", _bias_count),
    ),
    stages=(
        Stage(matmul_walk, lambda p, c: (_programs(p, c),), descriptors=3),
        Stage(matmul_bias_sums, lambda p, c: (cdiv(p.dims["n"], 64),), lambda p, c: "dbias" in p.present, warps=4),
    ),
    configs=_configs,
    constants=_constants,
    refuse=_refuse,
    moved=_moved,
    warps=8,
    instead_of="matmul",
    decline=_decline,
    aligned=("a", "b", "c"),
)  # fmt: skip

KERNELS = (matmul_persistent,)
