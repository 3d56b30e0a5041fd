"""Types, conversions and arithmetic of base.cuh against NumPy and ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

HALVES = """
GD_KERNEL(widen)(const half_t* h, const bfloat16_t* b, float* fh, float* fb, i64 n) {
  GD_GRID_LOOP(i64, i, n) fh[i] = load(&h[i]), fb[i] = load(&b[i]);
}
GD_KERNEL(narrow)(const float* f, half_t* h, bfloat16_t* b, i64 n) {
  GD_GRID_LOOP(i64, i, n) store(&h[i], f[i]), store(&b[i], f[i]);
}
GD_KERNEL(narrow_double)(const double* f, half_t* h, bfloat16_t* b, i64 n) {
  GD_GRID_LOOP(i64, i, n) store(&h[i], f[i]), store(&b[i], f[i]);
}
"""
BF16 = ml_dtypes.bfloat16


def assert_same_bits(found: np.ndarray, wanted: np.ndarray) -> None:
    """The same bits, but for those of a NaN."""
    nan = np.isnan(wanted.astype(np.float32))
    assert np.array_equal(np.isnan(found.astype(np.float32)), nan)
    assert np.array_equal(found.view(np.uint16)[~nan], wanted.view(np.uint16)[~nan])


def test_every_half_widens_to_its_value(rig):
    bits = np.arange(65536, dtype=np.uint16)
    half, brain = bits.view(np.float16), bits.view(BF16)
    _, _, fh, fb = rig.compute(
        HALVES, "widen", half, brain, np.zeros(65536, "f4"), np.zeros(65536, "f4"), 65536, block=256
    )
    np.testing.assert_array_equal(fh, half.astype(np.float32))
    np.testing.assert_array_equal(fb, brain.astype(np.float32))
    assert np.array_equal(np.signbit(fh), np.signbit(half))


def test_narrowing_rounds_to_nearest_even(rig):
    """Every half, the middles between neighbours, and what lies right beside these."""
    with np.errstate(all="ignore"):
        exact = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
        exact_bf = (np.arange(65536, dtype=np.uint32) << 16).view(np.float32)
        middles = (exact[:-1] + exact[1:]) / 2
        middles_bf = ((np.arange(65536, dtype=np.uint32) << 16) + 0x8000).view(np.float32)
        rng = np.random.default_rng(0)
        any_bits = rng.integers(0, 1 << 32, 1 << 17, np.uint32).view(np.float32)
        f = np.concatenate([exact, exact_bf, middles, middles_bf, any_bits])
        f = np.concatenate([f, np.nextafter(f, np.float32(np.inf)), np.nextafter(f, np.float32(-np.inf))])
        n = f.size
        _, h, b = rig.compute(HALVES, "narrow", f, np.zeros(n, "f2"), np.zeros(n, BF16), n, grid=8, block=256)
        assert_same_bits(h, f.astype(np.float16))
        assert_same_bits(b, f.astype(BF16))


def test_narrowing_a_double_rounds_once_to_float16(rig):
    with np.errstate(all="ignore"):
        rng = np.random.default_rng(1)
        f = rng.standard_normal(1 << 16) * 10.0 ** rng.uniform(-9, 6, 1 << 16)
        # right beside the middle of two halves: rounding to float first would land on it
        middle = 1 + 2.0**-11
        f = np.concatenate(
            [f, [middle, middle + 2.0**-40, middle - 2.0**-40, 2.0**-25, 2.0**-25 + 2.0**-60, 65520, 65519.999999]]
        )
        n = f.size
        _, h, b = rig.compute(HALVES, "narrow_double", f, np.zeros(n, "f2"), np.zeros(n, BF16), n, grid=8, block=256)
        assert_same_bits(h, f.astype(np.float16))
        assert_same_bits(b, f.astype(BF16))


CTYPES = {"i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64"}


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u8"])
def test_division_of_integers_is_numpys(rig, dtype):
    t = CTYPES[dtype]
    code = f"""
    GD_KERNEL(divide)(const {t}* a, const {t}* b, {t}* q, {t}* r, {t}* t, {t}* m, {t}* w, i64 n) {{
      GD_GRID_LOOP(i64, i, n) {{
        q[i] = floor_div(a[i], b[i]), r[i] = floor_mod(a[i], b[i]), t[i] = trunc_div(a[i], b[i]), m[i] = trunc_mod(a[i], b[i]);
        w[i] = wrap_sub(wrap_mul(a[i], b[i]), wrap_neg(wrap_add(a[i], b[i])));
      }}
    }}"""
    info = np.iinfo(dtype)
    edge = np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min // 2, info.max // 3 + 1], dtype)
    edge = np.concatenate([edge, -edge]) if info.min else edge
    a, b = (x.reshape(-1) for x in np.meshgrid(edge, edge))
    zero = np.zeros_like(a)
    _, _, q, r, t, m, w = rig.compute(code, "divide", a, b, zero, zero, zero, zero, zero, a.size)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(q, np.floor_divide(a, b))
        np.testing.assert_array_equal(r, np.mod(a, b))
        np.testing.assert_array_equal(m, np.fmod(a, b))
        np.testing.assert_array_equal(t[b != 0], ((a - np.fmod(a, b)) // np.where(b == 0, 1, b))[b != 0])
        assert (t[b == 0] == 0).all()
        np.testing.assert_array_equal(w, a * b + (a + b))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_division_of_floats_is_numpys(rig, dtype):
    t = "float" if dtype == "f4" else "double"
    code = f"""
    GD_KERNEL(divide)(const {t}* a, const {t}* b, {t}* q, {t}* r, i64 n) {{
      GD_GRID_LOOP(i64, i, n) q[i] = floor_div(a[i], b[i]), r[i] = floor_mod(a[i], b[i]);
    }}"""
    edge = np.array([0.0, -0.0, 1, -1, 0.1, -0.1, 3, -3, 2.5, 1e30, -1e-30, np.inf, -np.inf, np.nan], dtype)
    a, b = (x.reshape(-1) for x in np.meshgrid(edge, edge))
    _, _, q, r = rig.compute(code, "divide", a, b, np.zeros_like(a), np.zeros_like(a), a.size)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(q, np.floor_divide(a, b))
        np.testing.assert_array_equal(r, np.mod(a, b))
        assert np.array_equal(np.signbit(r[~np.isnan(r)]), np.signbit(np.mod(a, b)[~np.isnan(r)]))


def test_limits_are_numpys(rig):
    kinds = {**CTYPES, "f4": "float", "f8": "double", "f2": "half_t", BF16: "bfloat16_t"}
    lines = [
        f"out[{4 * i}] = limits<{t}>::lowest(), out[{4 * i + 1}] = limits<{t}>::highest(), "
        f"out[{4 * i + 2}] = limits<{t}>::bottom(), out[{4 * i + 3}] = limits<{t}>::top();"
        for i, t in enumerate(kinds.values())
    ]
    (out,) = rig.compute(
        f"GD_KERNEL(facts)(double* out) {{ {' '.join(lines)} }}", "facts", np.zeros(4 * len(kinds)), block=1
    )
    for row, dtype in zip(out.reshape(-1, 4), kinds, strict=True):
        if np.dtype(dtype).kind in "iu":
            info = np.iinfo(dtype)
            assert row.tolist() == [float(info.min), float(info.max)] * 2
        else:
            info = ml_dtypes.finfo(dtype)
            assert row.tolist() == [float(info.min), float(info.max), -np.inf, np.inf]


def test_offsets_of_broadcast_indices(rig):
    code = """
    struct Dims { i64 dims[8], strides[8]; };
    struct Fast { divider dims[8]; u32 strides[8]; };
    GD_KERNEL(offsets)(Dims d, Fast f, i64* slow, u32* fast, i64* last, i64 n, i32 rank) {
      GD_GRID_LOOP(i64, i, n) {
        i64 at[8];
        unravel(i, d.dims, rank, at);
        last[i] = at[rank - 1];
        slow[i] = offset_of(i, d.dims, d.strides, rank);
        fast[i] = offset_of(static_cast<u32>(i), f.dims, f.strides, rank);
      }
    }"""
    shape, strides = (3, 1, 5, 7), (0, 9, 7, 1)
    n = int(np.prod(shape))
    rank = len(shape)
    dims = np.array([*shape, 0, 0, 0, 0, *strides, 0, 0, 0, 0], np.int64).tobytes()
    dividers = []
    for d in shape:
        shift = (d - 1).bit_length()
        dividers += [d, ((1 << 32) * ((1 << shift) - d)) // d + 1, shift]
    fast = np.array([*dividers, *[0] * 12, *strides, 0, 0, 0, 0], np.uint32).tobytes()
    slow, quick, last = rig.compute(
        code, "offsets", dims, fast, np.zeros(n, "i8"), np.zeros(n, "u4"), np.zeros(n, "i8"), n, np.int32(rank)
    )
    at = np.indices(shape).reshape(rank, -1)
    wanted = (at * np.array(strides)[:, None]).sum(0)
    np.testing.assert_array_equal(slow, wanted)
    np.testing.assert_array_equal(quick, wanted)
    np.testing.assert_array_equal(last, at[-1])


def test_dividers_divide_every_number(rig):
    """Granlund and Montgomery's: all n < 2^31, here those around multiples."""
    code = """
    struct Div { divider d; };
    GD_KERNEL(divide)(Div d, const u32* n, u32* q, i64 count) { GD_GRID_LOOP(i64, i, count) q[i] = d.d.div(n[i]); }"""
    rng = np.random.default_rng(2)
    for d in (1, 2, 3, 7, 10, 641, 65535, 65536, 1_000_003, 2**31 - 1):
        shift = (d - 1).bit_length()
        many = rng.integers(0, 2**31, 200) // d * d
        n = np.clip(np.concatenate([many, many - 1, [0, d - 1, d, 2**31 - 1]]), 0, 2**31 - 1).astype(np.uint32)
        magic = ((1 << 32) * ((1 << shift) - d)) // d + 1
        _, q = rig.compute(code, "divide", np.array([d, magic, shift], np.uint32).tobytes(), n, n, n.size)
        np.testing.assert_array_equal(q, n // d)


def test_packs_move_sixteen_bytes(rig):
    code = """
    GD_KERNEL(move)(const half_t* x, half_t* y) {
      static_assert(sizeof(pack<half_t>) == 16 && vector_width<double>::value == 2 && vector_width<complex128>::value == 1);
      store_pack(y + 8 * threadIdx.x, load_pack(x + 8 * threadIdx.x));
    }"""
    x = np.arange(256, dtype=np.float16)
    assert np.array_equal(rig.compute(code, "move", x, np.zeros_like(x))[1], x)


def test_nan_wins_in_maximum_and_minimum(rig):
    code = """
    GD_KERNEL(most)(const float* a, const float* b, float* x, float* y, i64 n) {
      GD_GRID_LOOP(i64, i, n) x[i] = maximum(a[i], b[i]), y[i] = minimum(a[i], b[i]);
    }"""
    edge = np.array([0, 1, -1, np.inf, -np.inf, np.nan], np.float32)
    a, b = (x.reshape(-1).copy() for x in np.meshgrid(edge, edge))
    _, _, x, y = rig.compute(code, "most", a, b, np.zeros_like(a), np.zeros_like(a), a.size)
    np.testing.assert_array_equal(x, np.maximum(a, b))
    np.testing.assert_array_equal(y, np.minimum(a, b))
