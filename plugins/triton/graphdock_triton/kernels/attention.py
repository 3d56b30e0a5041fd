"""Attention without its matrix of scores, forward and backward. Imports triton.

softmax(scale q k^T + bias) v by blocks of keys (Dao and others, "FlashAttention", 2022; Dao, "FlashAttention-2", 2023; tutorial
6 of Triton). Exponentials are of base 2. What is kept for the gradient is the logarithm of each row's sum. dk and dv are summed by
one program per block of keys, dq by one per block of queries: no atomics. Heads of k and v may serve several heads of q (Ainslie
and others, "GQA", 2023), whose gradients are then added by the same program, in order.

Causal means that query i sees the keys up to i + keys - queries; a bias of flags says which keys are seen. The score of a key that
is not seen is ``hidden``, whatever the product is. A row of nothing but -inf is NaN as softmax's is. Blocks that causality hides
whole are left out where their weights are 0: where the logarithm of the row's sum is far above ``hidden``.

With a stream weights are dropped: each draws its own number, as of a matrix [batch, heads, queries, keys], forward and backward.
Sums of exponentials, and what is kept for the gradient, are those of all weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import triton
import triton.language as tl

from graphdock_triton.kernels.dropout import kept_of
from graphdock_triton.kernels.functions import product
from graphdock_triton.kernels.spec import (
    FLOATS,
    Argument,
    Config,
    Kernel,
    Problem,
    Stage,
    cdiv,
    dim,
    power,
    scratch,
    tensor,
    value,
)

__all__ = ["KERNELS", "attention", "attention_grad"]

_LOG2_E = tl.constexpr(1.4426950408889634)
#: A weight of 2^-160 is 0 in float32.
_FAR = tl.constexpr(160.0)


@triton.jit
def _tile(base, rows, columns, step, count, depth, EVEN: tl.constexpr):
    """[rows, columns] of a matrix whose rows are ``step`` apart; zero outside of [count, depth]."""
    at = base + rows[:, None] * step + columns[None, :]
    if EVEN:
        return tl.load(at, (rows < count)[:, None], other=0.0)
    return tl.load(at, (rows < count)[:, None] & (columns < depth)[None, :], other=0.0)


@triton.jit
def _scores(
    left, right, query, key, queries, keys, scale, hidden, bias, bias_q, bias_k,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Scores in base 2 of rows of left and right, -inf outside of both; and which of them are seen.

    ``query`` and ``key``: numbers of queries and keys, one of them [rows of left, 1], the other [1, rows of right]. MASKED: some
    may lie outside, or be hidden by causality.
    """
    s = product(left, right.T, tl.zeros([left.shape[0], right.shape[0]], tl.float32), PRECISION, UPCAST) * (
        scale * _LOG2_E
    )
    inside = (query < queries) & (key < keys)
    seen = inside
    if CAUSAL:
        seen = seen & (query + (keys - queries) >= key)
    if bias is not None:
        laid = tl.load(bias + query * bias_q + key * bias_k, inside, other=0.0)
        if bias.dtype.element_ty == tl.int1:
            seen = seen & (laid != 0)
            s = tl.where(seen, s, hidden * _LOG2_E)
        else:
            s += laid.to(tl.float32) * _LOG2_E
    if MASKED:
        s = tl.where(inside, tl.where(seen, s, hidden * _LOG2_E), float("-inf"))
    return s, seen


@triton.jit
def _near(logs, hidden):
    """Return whether what is hidden has a weight, or is no number, in one of some rows. ``logs``: at most the logarithms of
    their sums.
    """
    return tl.max(tl.where(logs - hidden * _LOG2_E > _FAR, 0, 1), 0) > 0


@triton.jit
def _weights(s, seen, log, query, queries, keys, hidden, bias, CAUSAL: tl.constexpr):
    """Softmax of scores, of the logarithm of each row's sum.

    One that is large has lost how many keys are hidden where they have all of the weight: all of them by a mask, those behind the
    query by causality alone.
    """
    count = keys + 0 * query
    if CAUSAL and bias is None:
        count = keys - tl.minimum(tl.maximum(query + 1 + keys - queries, 0), keys)
    count = tl.maximum(count, 1).to(tl.float32)
    all_hidden = hidden * _LOG2_E + tl.log2(count)
    most = tl.where(tl.abs(hidden) > 4096.0, 2.4e-7 * tl.abs(all_hidden), -1.0)
    most = tl.where(tl.abs(hidden) < float("inf"), most, -1.0)
    p = tl.exp2(s - log)
    p_hidden = tl.where(tl.abs(log - all_hidden) <= most, 1.0 / count, p)
    return tl.where(s == float("-inf"), p, tl.where(seen, p, p_hidden))


@triton.jit
def _forward_blocks(
    sums, total, largest, q, k, v, bias, stream, rate, rows, first, begin, end,
    queries, keys, depth, k_row, v_row, bias_q, bias_k, scale, hidden,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr, EVEN: tl.constexpr,
    DRAW_BLOCKS: tl.constexpr, BLOCK_K: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Keys from ``begin`` to ``end``. ``first``: rows of all heads before this one."""
    lane = tl.arange(0, DEPTH)
    for at in range(begin, end, BLOCK_K):
        columns = at + tl.arange(0, BLOCK_K)
        tile = _tile(k, columns, lane, k_row, keys, depth, EVEN)
        s, _ = _scores(
            q, tile, rows[:, None], columns[None, :], queries, keys, scale, hidden, bias, bias_q, bias_k,
            CAUSAL, MASKED, PRECISION, UPCAST,
        )  # fmt: skip
        now = tl.maximum(largest, tl.max(s, 1))
        shift = tl.where(now == float("-inf"), 0.0, now)
        p = tl.exp2(s - shift[:, None])
        old = tl.exp2(largest - shift)
        total = total * old + tl.sum(p, 1)
        if stream is not None:
            p *= kept_of(stream, rate, first + rows, at, keys, BLOCK_K, DRAW_BLOCKS)
        tile = _tile(v, columns, lane, v_row, keys, depth, EVEN)
        sums = product(p.to(tile.dtype), tile, sums * old[:, None], PRECISION, UPCAST)
        largest = now
    return sums, total, largest


@triton.jit
def attention_forward(
    q, k, v, bias, stream, rate, factor, o, logs, scale, hidden, queries, keys, heads, shared, depth,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    bias_batch, bias_head, bias_q, bias_k,
    CAUSAL: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr, EVEN: tl.constexpr, DRAW_BLOCKS: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """o[batch, head, queries, depth] of a block of queries, the last blocks first: causal ones are the longest."""
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    rows = block * BLOCK_Q + tl.arange(0, BLOCK_Q)
    lane = tl.arange(0, DEPTH)
    k += batch * k_batch + (head // shared) * k_head
    v += batch * v_batch + (head // shared) * v_head
    if bias is not None:
        bias += batch * bias_batch + head * bias_head
    tile = _tile(q + batch * q_batch + head * q_head, rows, lane, q_row, queries, depth, EVEN)
    sums = tl.zeros([BLOCK_Q, DEPTH], tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    largest = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    before = tl.program_id(1).to(tl.int64) * queries
    # whole blocks that every row sees, then those at the edge
    whole = keys // BLOCK_K * BLOCK_K
    end = keys
    if CAUSAL:
        whole = min(whole, max(block * BLOCK_Q + 1 + keys - queries, 0) // BLOCK_K * BLOCK_K)
        end = min(keys, max((block + 1) * BLOCK_Q + keys - queries, 0))
    sums, total, largest = _forward_blocks(
        sums, total, largest, tile, k, v, bias, stream, rate, rows, before, 0, whole,
        queries, keys, depth, k_row, v_row, bias_q, bias_k, scale, hidden,
        CAUSAL, False, PRECISION, UPCAST, EVEN, DRAW_BLOCKS, BLOCK_K, DEPTH,
    )  # fmt: skip
    sums, total, largest = _forward_blocks(
        sums, total, largest, tile, k, v, bias, stream, rate, rows, before, whole, end,
        queries, keys, depth, k_row, v_row, bias_q, bias_k, scale, hidden,
        CAUSAL, True, PRECISION, UPCAST, EVEN, DRAW_BLOCKS, BLOCK_K, DEPTH,
    )  # fmt: skip
    inside = rows < queries
    if CAUSAL:
        rest = whole + tl.cdiv(max(end - whole, 0), BLOCK_K) * BLOCK_K
        last = tl.where(_near(tl.where(inside, largest, float("inf")), hidden), keys, rest)
        sums, total, largest = _forward_blocks(
            sums, total, largest, tile, k, v, bias, stream, rate, rows, before, rest, last,
            queries, keys, depth, k_row, v_row, bias_q, bias_k, scale, hidden,
            CAUSAL, True, PRECISION, UPCAST, EVEN, DRAW_BLOCKS, BLOCK_K, DEPTH,
        )  # fmt: skip
    if logs is not None:
        tl.store(logs + before + rows, largest + tl.log2(total), inside)
    if stream is not None:
        sums *= tl.load(factor).to(tl.float32)
    to = o + batch * o_batch + head * o_head + rows[:, None] * o_row + lane[None, :]
    tl.store(to, (sums / total[:, None]).to(o.dtype.element_ty), inside[:, None] & (lane < depth)[None, :])


@triton.jit
def attention_deltas(
    o, do, deltas, queries, heads, depth, o_batch, o_head, o_row, do_batch, do_head, do_row,
    DELTA_ROWS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """deltas[batch, head, queries]: the sum of o do over depth."""
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    rows = tl.program_id(0) * DELTA_ROWS + tl.arange(0, DELTA_ROWS)
    lane = tl.arange(0, DEPTH)
    left = _tile(o + batch * o_batch + head * o_head, rows, lane, o_row, queries, depth, False).to(tl.float32)
    right = _tile(do + batch * do_batch + head * do_head, rows, lane, do_row, queries, depth, False).to(tl.float32)
    tl.store(deltas + tl.program_id(1).to(tl.int64) * queries + rows, tl.sum(left * right, 1), rows < queries)


@triton.jit
def attention_backward_keys(
    q, k, v, bias, stream, rate, factor, do, logs, deltas, dk, dv, scale, hidden, queries, keys, heads, shared, depth,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, do_batch, do_head, do_row,
    dk_batch, dk_head, dk_row, dv_batch, dv_head, dv_row, bias_batch, bias_head, bias_q, bias_k,
    CAUSAL: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr, EVEN: tl.constexpr, DRAW_BLOCKS: tl.constexpr,
    KEYS_Q: tl.constexpr, KEYS_K: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """dk and dv of a block of keys, over all queries of the heads that share them."""
    groups = heads // shared
    batch = (tl.program_id(1) // groups).to(tl.int64)
    group = (tl.program_id(1) % groups).to(tl.int64)
    first = tl.program_id(0) * KEYS_K
    columns = first + tl.arange(0, KEYS_K)
    lane = tl.arange(0, DEPTH)
    key = _tile(k + batch * k_batch + group * k_head, columns, lane, k_row, keys, depth, EVEN)
    val = _tile(v + batch * v_batch + group * v_head, columns, lane, v_row, keys, depth, EVEN)
    to_k = tl.zeros([KEYS_K, DEPTH], tl.float32)
    to_v = tl.zeros([KEYS_K, DEPTH], tl.float32)
    begin = 0
    if CAUSAL:
        begin = max(first - (keys - queries), 0) // KEYS_Q * KEYS_Q
    for member in range(shared):
        head = group * shared + member
        here = (batch * heads + head) * queries
        part = bias
        if bias is not None:
            part = bias + batch * bias_batch + head * bias_head
        first_seen = begin
        if CAUSAL:
            # queries that see none of these keys, where what is hidden has weights
            for at in range(0, begin, KEYS_Q):
                rows = at + tl.arange(0, KEYS_Q)
                first_seen = tl.where(
                    _near(tl.load(logs + here + rows, rows < queries, other=float("inf")), hidden), 0, first_seen
                )
        for at in range(first_seen, queries, KEYS_Q):
            rows = at + tl.arange(0, KEYS_Q)
            inside = rows < queries
            query = _tile(q + batch * q_batch + head * q_head, rows, lane, q_row, queries, depth, EVEN)
            grad = _tile(do + batch * do_batch + head * do_head, rows, lane, do_row, queries, depth, EVEN)
            log = tl.load(logs + here + rows, inside, other=0.0)
            delta = tl.load(deltas + here + rows, inside, other=0.0)
            # keys down and queries across: what is multiplied next has keys down too
            s, seen = _scores(
                key, query, rows[None, :], columns[:, None], queries, keys, scale, hidden, part, bias_q, bias_k,
                CAUSAL, True, PRECISION, UPCAST,
            )  # fmt: skip
            p = _weights(s, seen, log[None, :], rows[None, :], queries, keys, hidden, bias, CAUSAL)
            if stream is None:
                to_v = product(p.to(grad.dtype), grad, to_v, PRECISION, UPCAST)
            dp = product(val, grad.T, tl.zeros([KEYS_K, KEYS_Q], tl.float32), PRECISION, UPCAST)
            if stream is not None:
                kept = kept_of(stream, rate, here + rows, first, keys, KEYS_K, DRAW_BLOCKS).T * tl.load(factor).to(
                    tl.float32
                )
                to_v = product((p * kept).to(grad.dtype), grad, to_v, PRECISION, UPCAST)
                dp *= kept
            ds = tl.where(seen, p * (dp - delta[None, :]), 0.0)
            to_k = product(ds.to(query.dtype), query, to_k, PRECISION, UPCAST)
    mask = (columns < keys)[:, None] & (lane < depth)[None, :]
    to = dk + batch * dk_batch + group * dk_head + columns[:, None] * dk_row + lane[None, :]
    tl.store(to, (to_k * scale).to(dk.dtype.element_ty), mask)
    to = dv + batch * dv_batch + group * dv_head + columns[:, None] * dv_row + lane[None, :]
    tl.store(to, to_v.to(dv.dtype.element_ty), mask)


@triton.jit
def attention_backward_queries(
    q, k, v, bias, stream, rate, factor, do, logs, deltas, dq, scale, hidden, queries, keys, heads, shared, depth,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, do_batch, do_head, do_row, dq_batch, dq_head, dq_row,
    bias_batch, bias_head, bias_q, bias_k,
    CAUSAL: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr, EVEN: tl.constexpr, DRAW_BLOCKS: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """dq of a block of queries, over all keys that they see."""
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    rows = block * BLOCK_Q + tl.arange(0, BLOCK_Q)
    inside = rows < queries
    lane = tl.arange(0, DEPTH)
    here = tl.program_id(1).to(tl.int64) * queries
    query = _tile(q + batch * q_batch + head * q_head, rows, lane, q_row, queries, depth, EVEN)
    grad = _tile(do + batch * do_batch + head * do_head, rows, lane, do_row, queries, depth, EVEN)
    log = tl.load(logs + here + rows, inside, other=0.0)
    delta = tl.load(deltas + here + rows, inside, other=0.0)
    if bias is not None:
        bias += batch * bias_batch + head * bias_head
    k += batch * k_batch + (head // shared) * k_head
    v += batch * v_batch + (head // shared) * v_head
    end = keys
    if CAUSAL:
        end = min(keys, max((block + 1) * BLOCK_Q + keys - queries, 0))
        end = tl.where(_near(tl.where(inside, log, float("inf")), hidden), keys, end)
    sums = tl.zeros([BLOCK_Q, DEPTH], tl.float32)
    for at in range(0, end, BLOCK_K):
        columns = at + tl.arange(0, BLOCK_K)
        key = _tile(k, columns, lane, k_row, keys, depth, EVEN)
        val = _tile(v, columns, lane, v_row, keys, depth, EVEN)
        s, seen = _scores(
            query, key, rows[:, None], columns[None, :], queries, keys, scale, hidden, bias, bias_q, bias_k,
            CAUSAL, True, PRECISION, UPCAST,
        )  # fmt: skip
        dp = product(grad, val.T, tl.zeros([BLOCK_Q, BLOCK_K], tl.float32), PRECISION, UPCAST)
        if stream is not None:
            dp *= kept_of(stream, rate, here + rows, at, keys, BLOCK_K, DRAW_BLOCKS) * tl.load(factor).to(tl.float32)
        ds = tl.where(
            seen,
            _weights(s, seen, log[:, None], rows[:, None], queries, keys, hidden, bias, CAUSAL) * (dp - delta[:, None]),
            0.0,
        )
        sums = product(ds.to(key.dtype), key, sums, PRECISION, UPCAST)
    to = dq + batch * dq_batch + head * dq_head + rows[:, None] * dq_row + lane[None, :]
    tl.store(to, (sums * scale).to(dq.dtype.element_ty), inside[:, None] & (lane < depth)[None, :])


def _depth(p: Problem) -> int:
    return max(power(p.dims["depth"]), 16)


def _configs(p: Problem) -> Sequence[Config]:
    """Queries, keys, warps, stages."""
    wide, deep = p.bytes_of("T") == 4, _depth(p)
    sizes: tuple[tuple[int, ...], ...]
    if wide:
        sizes = ((64, 32, 4, 2), (32, 32, 4, 2)) if deep <= 64 else ((32, 32, 4, 2), (16, 32, 4, 1))
    elif deep <= 64 and "stream" in p.present:  # random words take registers
        sizes = ((64, 64, 4, 3), (128, 32, 4, 4), (128, 64, 8, 3))
    elif deep <= 64:
        sizes = ((128, 64, 4, 3), (128, 128, 8, 3), (64, 64, 4, 3), (128, 32, 4, 4))
    elif deep <= 128:
        sizes = ((128, 64, 8, 3), (128, 128, 8, 2), (64, 64, 4, 3), (128, 32, 4, 3))
    else:
        sizes = ((64, 32, 4, 2), (64, 64, 8, 2), (128, 32, 8, 2))
    return [Config({"BLOCK_Q": q, "BLOCK_K": k}, warps, stages) for q, k, warps, stages in sizes]


def _moved(p: Problem, c: Config) -> int:
    """All keys and values, and a tile of queries and results."""
    return 2 * (p.dims["keys"] + c["BLOCK_Q"]) * p.dims["depth"] * p.bytes_of("T")


def _grad_configs(p: Problem) -> Sequence[Config]:
    """Queries and keys of dq's program, and of that of dk and dv."""
    wide, deep = p.bytes_of("T") == 4, _depth(p)
    sizes: tuple[tuple[int, ...], ...]
    if wide:
        sizes = ((32, 32, 32, 32, 4, 1), (16, 32, 32, 16, 4, 1))
    elif deep <= 64:
        sizes = ((128, 32, 32, 128, 8, 3), (64, 32, 32, 64, 4, 3), (64, 64, 64, 64, 4, 2), (128, 64, 64, 128, 8, 2))
    elif deep <= 128:
        sizes = ((128, 32, 32, 128, 8, 2), (64, 32, 32, 64, 8, 2), (64, 64, 64, 64, 8, 2))
    else:
        sizes = ((32, 32, 32, 32, 8, 1), (32, 32, 32, 32, 4, 1))
    dropped = "stream" in p.present and deep > 64  # random words take registers
    if (p.capability < 90 or dropped) and not wide and deep <= 128:  # products of registers, that hold less of a tile
        sizes = (sizes[1], sizes[0], *sizes[2:])
    names = ("BLOCK_Q", "BLOCK_K", "KEYS_Q", "KEYS_K")
    return [Config(dict(zip(names, s[:4], strict=True)), s[4], s[5]) for s in sizes]


def _refuse(p: Problem) -> str | None:
    d = p.dims
    if d["depth"] > 256:
        return f"heads are {d['depth']} wide: up to 256 fit"
    if not d["queries"] * d["keys"] * d["depth"] * d["batch"] * d["heads"]:
        return "there is nothing to attend to"
    if d["batch"] * d["heads"] >= 1 << 16:
        return f"{d['batch'] * d['heads']} heads are more than a grid has"
    if d["heads"] % d["shared"]:
        return f"{d['heads']} heads don't share those of k and v evenly"
    return None


def _strides(*names: str) -> tuple[Argument, ...]:
    return tuple(
        dim(f"{name}_{part}", "" if part == "row" else "0: the same for all", "i32" if part == "row" else "i64")
        for name in names
        for part in ("batch", "head", "row")
    )


_BIAS = (
    tensor(
        "bias",
        "B",
        "in",
        "[batch, heads, queries, keys] of four strides, which may be 0: added to scores, or flags of keys that are seen",
        optional=True,
    ),
    dim("bias_batch", "", "i64"),
    dim("bias_head", "", "i64"),
    dim("bias_q"),
    dim("bias_k"),
)
_SIZES = (
    value("scale", "factor of the scores"),
    value("hidden", "score of keys that are not seen"),
    dim("batch"),
    dim("queries"),
    dim("keys"),
    dim("heads", "of q"),
    dim("shared", "heads of q that share one of k and v"),
    dim("depth", "of a head"),
)
_DROPOUT = (
    tensor("stream", "u64", "in", "[5]: key, key2, outer, iteration, ordinal; weights are dropped", optional=True),
    tensor("rate", "fp32", "in", "[1]: what is dropped", optional=True),
    tensor("factor", "T", "in", "[1]: of the weights that stay", optional=True),
)
_FLAGS = {"CAUSAL": (False, True), "PRECISION": ("ieee", "tf32", "tf32x3"), "UPCAST": (False, True)}
_OPERANDS = (
    tensor("q", "T", "in", "[batch, heads, queries, depth] of strides q_batch, q_head, q_row, 1"),
    tensor("k", "T", "in", "[batch, heads / shared, keys, depth], likewise"),
    tensor("v", "T", "in", "like k"),
)


def _over(name: str, size: str) -> Callable[[Problem, Config], tuple[int, ...]]:
    """Blocks of a dim, for every head of q."""
    return lambda p, c: (cdiv(p.dims[size], c[name]), p.dims["batch"] * p.dims["heads"])


def _constants(p: Problem, c: Config) -> dict[str, int]:
    return {
        "DEPTH": _depth(p),
        "EVEN": _depth(p) == p.dims["depth"],
        "DELTA_ROWS": 64 if _depth(p) <= 64 else 16,
        "DRAW_BLOCKS": p.dims["keys"] % 8 == 0,
    }


def _rows(p: Problem, c: Config) -> int:
    return p.dims["batch"] * p.dims["heads"] * p.dims["queries"]


attention = Kernel(
    name="attention",
    doc=__doc__,
    types={"T": FLOATS, "B": (*FLOATS, "i1")},
    flags=_FLAGS,
    arguments=(
        *_OPERANDS,
        tensor("o", "T", "out", "like q"),
        tensor("logs", "fp32", "out", "[batch, heads, queries]: logarithm, base 2, of a row's sum", optional=True),
        *_strides("q", "k", "v", "o"),
        *_BIAS,
        *_DROPOUT,
        *_SIZES,
    ),
    stages=(Stage(attention_forward, _over("BLOCK_Q", "queries")),),
    configs=_configs,
    constants=_constants,
    refuse=_refuse,
    moved=_moved,
    warps=8,
)

attention_grad = Kernel(
    name="attention_grad",
    doc=__doc__,
    types={"T": FLOATS, "B": (*FLOATS, "i1")},
    flags=_FLAGS,
    arguments=(
        *_OPERANDS,
        tensor("o", "T", "in", "like q"),
        tensor("do", "T", "in", "like q"),
        tensor("logs", "fp32", "in", "[batch, heads, queries]: as attention gave it"),
        tensor("dq", "T", "out", "like q"),
        tensor("dk", "T", "out", "like k"),
        tensor("dv", "T", "out", "like k"),
        scratch("deltas", "fp32", "[batch, heads, queries]", _rows),
        *_strides("q", "k", "v", "o", "do", "dq", "dk", "dv"),
        *_BIAS,
        *_DROPOUT,
        *_SIZES,
    ),
    stages=(
        Stage(
            attention_deltas,
            lambda p, c: (cdiv(p.dims["queries"], _constants(p, c)["DELTA_ROWS"]), p.dims["batch"] * p.dims["heads"]),
            warps=4,
        ),
        Stage(
            attention_backward_keys,
            lambda p, c: (cdiv(p.dims["keys"], c["KEYS_K"]), p.dims["batch"] * p.dims["heads"] // p.dims["shared"]),
        ),
        Stage(attention_backward_queries, _over("BLOCK_Q", "queries")),
    ),
    configs=_grad_configs,
    constants=_constants,
    refuse=_refuse,
)

KERNELS = (attention, attention_grad)
