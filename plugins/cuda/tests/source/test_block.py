"""Reductions, scans and atomics of block.cuh against NumPy, in every size of block."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

ELEMENTS = {
    "float": "f4",
    "double": "f8",
    "i64": "i8",
    "i32": "i4",
    "bool": "?",
    "complex64": "c8",
    "complex128": "c16",
}


def _values(dtype: str, n: int) -> np.ndarray:
    """Small whole numbers: every order of adding them up gives the same."""
    rng = np.random.default_rng(n)
    values = rng.integers(-8, 8, n)
    return (
        (values + 1j * rng.integers(-8, 8, n)).astype(dtype)
        if dtype[0] == "c"
        else (values % 2 if dtype == "?" else values).astype(dtype)
    )


def _op(ctype: str) -> str:
    return "any_op" if ctype == "bool" else "sum_op"


#: One source for all types: a compiler starts once.
REDUCTIONS = "".join(
    f"""
    GD_KERNEL(all_{ctype})(const {ctype}* x, {ctype}* y, {ctype}* lanes, {ctype}* upto, {ctype}* before, {ctype}* totals) {{
      const int i = threadIdx.x;
      lanes[i] = warp_reduce_all(x[i], {_op(ctype)}());
      y[i] = block_reduce(x[i], {_op(ctype)}());
      {ctype} total, other;
      upto[i] = block_inclusive_scan(x[i], {_op(ctype)}(), &total);
      before[i] = block_exclusive_scan(x[i], {_op(ctype)}(), {ctype}(), &other);
      totals[i] = other;
      if (i == 0) y[0] = total;
    }}"""
    for ctype in ELEMENTS
)


@pytest.mark.parametrize("ctype", ELEMENTS)
def test_reductions_and_scans(rig, ctype):
    for n in (32, 96, 1024):
        x = _values(ELEMENTS[ctype], n)
        zero = np.zeros_like(x)
        _, y, lanes, upto, before, totals = rig.compute(
            REDUCTIONS, f"all_{ctype}", x, zero, zero, zero, zero, zero, block=n
        )
        wanted = np.logical_or.accumulate(x) if ctype == "bool" else np.cumsum(x, dtype=x.dtype)
        np.testing.assert_array_equal(upto, wanted)
        np.testing.assert_array_equal(before, np.concatenate([[x.dtype.type(0)], wanted[:-1]]))
        np.testing.assert_array_equal(y, np.full(n, wanted[-1]))
        np.testing.assert_array_equal(totals, y)
        rows = x.reshape(-1, 32)
        np.testing.assert_array_equal(
            lanes, np.repeat(rows.any(1) if ctype == "bool" else rows.sum(1, dtype=x.dtype), 32)
        )


def test_operations_need_not_commute(rig):
    """Maps x -> a x + b, one after the other: the order of threads is kept."""
    code = """
    struct Map { i64 a, b; };
    struct Then { GD_DEVICE Map operator()(Map f, Map g) const { return {f.a * g.a, f.b * g.a + g.b}; } };
    GD_KERNEL(chain)(const Map* x, Map* all, Map* upto, Map* before) {
      const int i = threadIdx.x;
      all[i] = block_reduce(x[i], Then());
      upto[i] = block_inclusive_scan(x[i], Then());
      before[i] = block_exclusive_scan(x[i], Then(), Map{1, 0});
    }"""
    n = 160
    rng = np.random.default_rng(3)
    x = np.stack([rng.choice([-1, 1], n), rng.integers(-5, 5, n)], 1)
    running, upto = (1, 0), []
    for a, b in x.tolist():
        running = (running[0] * a, running[1] * a + b)
        upto.append(running)
    _, total, found, before = rig.compute(code, "chain", x, *[np.zeros_like(x)] * 3, block=n)
    assert found.tolist() == [list(pair) for pair in upto]
    assert total.tolist() == [list(upto[-1])] * n
    assert before.tolist() == [[1, 0], *[list(pair) for pair in upto[:-1]]]


def test_sums_repeat_to_the_bit(rigs):
    """Whatever the order in which threads run."""
    code = """
    GD_KERNEL(total)(const float* x, float* y) {
      y[threadIdx.x] = block_reduce(x[threadIdx.x], sum_op());
    }"""
    x = np.random.default_rng(4).standard_normal(512).astype(np.float32)
    sums = {rigs(seed=seed).compute(code, "total", x, np.zeros_like(x), block=512)[1].tobytes() for seed in range(6)}
    assert len(sums) == 1


def test_one_call_behind_the_other(rigs):
    """Each uses the same shared memory: a warp that is ahead waits until the others have read what they need."""
    code = """
    GD_KERNEL(many)(i64* y) {
      const i64 i = threadIdx.x;
      i64 all = 0, before, upto;
      for (int round = 0; round < 3; ++round) {
        all += block_reduce(i + round, sum_op());
        upto = block_inclusive_scan(3 * i, sum_op());
        before = block_exclusive_scan(7 * i, sum_op(), i64(0));
        all += 7 * upto - 3 * before - 21 * i;
      }
      y[i] = all;
    }"""
    n = 128
    for seed in range(8):
        y = rigs(seed=seed).compute(code, "many", np.zeros(n, "i8"), block=n)[0]
        assert (y == 3 * n * (n - 1) // 2 + 3 * n).all()


def test_shuffles_of_any_size(rig):
    code = """
    struct Three { u32 a, b; u8 c; };
    GD_KERNEL(turn)(u8* one, double* two, u32* out) {
      const int i = threadIdx.x;
      one[i] = shuffle_xor(one[i], 1), two[i] = shuffle_up(two[i], 3);
      const Three t = shuffle(Three{u32(i), u32(2 * i), u8(i)}, 5);
      out[i] = t.a + t.b + t.c;
    }"""
    one, two, out = rig.compute(code, "turn", np.arange(32, dtype="u1"), np.arange(32.0), np.zeros(32, "u4"))
    assert np.array_equal(one, np.arange(32) ^ 1)
    assert two.tolist() == [0, 1, 2, *range(29)]
    assert (out == 20).all()


ATOMIC = {
    "float": "f4",
    "double": "f8",
    "i32": "i4",
    "i64": "i8",
    "u32": "u4",
    "u64": "u8",
    "i16": "i2",
    "u8": "u1",
    "half_t": "f2",
    "bfloat16_t": ml_dtypes.bfloat16,
    "complex64": "c8",
    "complex128": "c16",
}


SUMS = "".join(
    f"""
    GD_KERNEL(add_{ctype})(const {ctype}* x, const i32* at, {ctype}* y, i64 n) {{
      GD_GRID_LOOP(i64, i, n) atomic_add(&y[at[i]], x[i]);
    }}"""
    for ctype in ATOMIC
)


@pytest.mark.parametrize("ctype", ATOMIC)
def test_atomic_sums(rig, ctype):
    rng = np.random.default_rng(5)
    x = rng.integers(0, 4, 100).astype(ATOMIC[ctype])
    at = rng.integers(0, 5, 100).astype(np.int32)
    wanted = np.zeros(5, ATOMIC[ctype])
    np.add.at(wanted, at, x)
    _, _, y = rig.compute(SUMS, f"add_{ctype}", x, at, np.zeros(5, ATOMIC[ctype]), 100, grid=2)
    np.testing.assert_array_equal(y.astype("c16"), wanted.astype("c16"))


@pytest.mark.parametrize(("ctype", "dtype"), [("double", "f8"), ("float", "f4"), ("i16", "i2"), ("i8", "i1")])
def test_atomic_updates_by_any_operation(rig, ctype, dtype):
    code = f"""
    GD_KERNEL(most)(const {ctype}* x, {ctype}* y) {{ atomic_update(&y[threadIdx.x % 3], x[threadIdx.x], max_op()); }}"""
    x = np.random.default_rng(6).permutation(96).astype(dtype)
    y = rig.compute(code, "most", x, np.full(3, -1, dtype), block=96)[1]
    assert np.array_equal(y, x.reshape(-1, 3).max(0))
