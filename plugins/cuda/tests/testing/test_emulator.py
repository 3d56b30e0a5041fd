"""The compiler that makes CUDA C++ run on the CPU: what device code may use, and what ends a kernel."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_cuda.driver.errors import CompileError, CudaError
from graphdock_cuda.testing import Emulator
from graphdock_cuda.testing.emulator import kernels_of


def test_kernels_are_found_by_how_they_are_written():
    source = """
    extern "C" __global__ void first(float* x) {}
    extern "C" __global__ void __launch_bounds__(128, 2) second (int n) {}
    GD_KERNEL(third)(int n) {}
    // extern "C" __global__ void gone() {}
    /* GD_KERNEL(gone)() */
    #define GD_KERNEL(name) extern "C" __global__ void name
    __global__ void mangled() {}
    """
    assert kernels_of(source) == {"first": "0", "second": "128", "third": "0"}


def test_vector_add_by_a_grid_of_any_size(rig):
    code = """
    extern "C" __global__ void vadd(const float* __restrict__ a, const float* __restrict__ b, float* c, i64 n) {
      GD_GRID_LOOP(i64, i, n) c[i] = a[i] + b[i];
    }"""
    a, b = np.random.default_rng(0).standard_normal((2, 1000)).astype(np.float32)
    for grid, block in ((1, 1), (3, 7), (100, 256)):
        assert np.array_equal(rig.compute(code, "vadd", a, b, np.zeros_like(a), 1000, grid=grid, block=block)[2], a + b)


def test_indices_in_three_dimensions(rig):
    code = """
    GD_KERNEL(where)(u32* out) {
      const u32 block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      const u32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      out[block * blockDim.x * blockDim.y * blockDim.z + thread] += block * 1000 + thread;
    }"""
    (out,) = rig.compute(code, "where", np.zeros(24 * 30, "u4"), grid=(2, 3, 4), block=(5, 2, 3))
    assert np.array_equal(out, (np.arange(24)[:, None] * 1000 + np.arange(30)).reshape(-1))


def test_shuffles_and_votes(rig):
    code = """
    GD_KERNEL(all)(i32* out) {
      const int i = threadIdx.x;
      out[i] = __shfl_sync(~0u, i, 3, 8);
      out[32 + i] = __shfl_up_sync(~0u, i, 2, 16);
      out[64 + i] = __shfl_down_sync(~0u, i, 2, 16);
      out[96 + i] = __shfl_xor_sync(~0u, i, 5);
      out[128 + i] = __ballot_sync(~0u, i % 3 == 0);
      out[160 + i] = __any_sync(~0u, i == 40) * 2 + __all_sync(~0u, i < 32);
      out[192 + i] = __match_any_sync(~0u, i % 4);
      __syncwarp();
      if (i < 16) out[224 + i] = __ballot_sync(0xffffu, 1); else out[224 + i] = __shfl_sync(0xffff0000u, i, 20);
    }"""
    out = rig.compute(code, "all", np.zeros(256, "i4"))[0].reshape(8, 32)
    i = np.arange(32)
    assert np.array_equal(out[0], i // 8 * 8 + 3)
    assert np.array_equal(out[1], np.where(i % 16 < 2, i, i - 2))
    assert np.array_equal(out[2], np.where(i % 16 > 13, i, i + 2))
    assert np.array_equal(out[3], i ^ 5)
    assert (out[4].view("u4") == sum(1 << k for k in range(0, 32, 3))).all()
    assert (out[5] == 1).all()
    assert np.array_equal(out[6].view("u4"), [sum(1 << k for k in range(32) if k % 4 == j % 4) for j in i])
    assert out[7].tolist() == [0xFFFF] * 16 + [20] * 16


def test_barriers_with_a_vote_and_threads_that_ended(rig):
    code = """
    GD_KERNEL(vote)(i32* out) {
      const int i = threadIdx.x;
      if (i >= 60) return;
      out[i] = __syncthreads_count(i % 2) * 100 + __syncthreads_or(i == 59) * 10 + __syncthreads_and(i < 60);
      out[i] += __ballot_sync(~0u, 1) != 0;
    }"""
    (out,) = rig.compute(code, "vote", np.zeros(64, "i4"), block=64)
    assert out.tolist() == [3012] * 60 + [0] * 4


def test_atomics(rig):
    code = """
    GD_KERNEL(all)(i32* x, u32* y, u64* z, float* f) {
      const int i = threadIdx.x;
      atomicAdd(&x[0], i), atomicMin(&x[1], -i), atomicMax(&x[2], i), atomicOr(&x[3], 1 << i % 8), atomicAnd(&x[4], ~(1 << i % 8));
      atomicXor(&x[5], i), atomicSub(&x[6], i), atomicCAS(&x[7], i, i + 1);
      atomicInc(&y[0], 4), atomicDec(&y[1], 4);
      atomicAdd(&z[0], ~0ull), atomicExch(&z[1], 7ull), atomicAdd(&f[0], 0.5f);
    }"""
    x, y, z, f = rig.compute(code, "all", np.zeros(8, "i4"), np.zeros(2, "u4"), np.zeros(2, "u8"), np.zeros(1, "f4"))
    assert x.tolist()[:7] == [496, -31, 31, 255, 0, 0, -496]
    assert x[7] in (1, 32)  # by the order of the threads
    assert y.tolist() == [32 % 5, (0 - 32) % 5]
    assert z.tolist() == [2**64 - 32, 7]
    assert f[0] == 16


def test_intrinsics_of_integers_and_bits(rig):
    code = """
    GD_KERNEL(all)(const u64* x, u64* y, i64 n) {
      GD_GRID_LOOP(i64, i, n) {
        const u64 v = x[i]; const u32 low = u32(v), high = u32(v >> 32);
        u64* o = y + i * 16;
        o[0] = __popc(low), o[1] = __popcll(v), o[2] = __clz(low), o[3] = __clzll(v), o[4] = __ffs(low), o[5] = __ffsll(v);
        o[6] = __brev(low), o[7] = __brevll(v), o[8] = __umulhi(low, high), o[9] = __umul64hi(v, v + 1);
        o[10] = u64(__mul64hi(i64(v), i64(v) >> 3)), o[11] = u32(__mulhi(i32(low), i32(high)));
        o[12] = __byte_perm(low, high, 0x7415);
        o[13] = __funnelshift_l(low, high, 9), o[14] = __float_as_uint(__uint_as_float(low)), o[15] = min(low, 5u) + max(high, 7u);
      }
    }"""
    edges = np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    x = np.concatenate([np.random.default_rng(1).integers(0, 2**64 - 1, 20, np.uint64), edges])
    y = rig.compute(code, "all", x, np.zeros(x.size * 16, "u8"), x.size)[1].reshape(-1, 16)

    def signed(v: int, bits: int) -> int:
        return v - (1 << bits) if v >> (bits - 1) else v

    for v, found in zip(x.tolist(), y.tolist(), strict=True):
        low, high = v & 0xFFFFFFFF, v >> 32
        both = [*low.to_bytes(4, "little"), *high.to_bytes(4, "little")]
        assert found == [
            low.bit_count(),
            v.bit_count(),
            32 - low.bit_length(),
            64 - v.bit_length(),
            (low & -low).bit_length(),
            (v & -v).bit_length(),
            int(f"{low:032b}"[::-1], 2),
            int(f"{v:064b}"[::-1], 2),
            low * high >> 32,
            v * ((v + 1) % 2**64) >> 64,
            (signed(v, 64) * (signed(v, 64) >> 3) >> 64) % 2**64,
            (signed(low, 32) * signed(high, 32) >> 32) % 2**32,
            int.from_bytes([both[5], both[1], both[4], both[7]], "little"),
            (v << 9 >> 32) & 0xFFFFFFFF,
            low,
            (min(low, 5) + max(high, 7)) % 2**32,
        ]


def test_philox_by_64_bit_products(rig):
    """Ten rounds, against the known answers of Random123."""
    code = """
    GD_KERNEL(philox)(const u32* in, u32* out) {
      u32 c[4] = {in[0], in[1], in[2], in[3]}, k0 = in[4], k1 = in[5];
      for (int round = 0; round < 10; ++round) {
        const u32 h0 = __umulhi(0xD2511F53u, c[0]), l0 = 0xD2511F53u * c[0];
        const u32 h1 = __umulhi(0xCD9E8D57u, c[2]), l1 = 0xCD9E8D57u * c[2];
        c[0] = h1 ^ c[1] ^ k0, c[1] = l1, c[2] = h0 ^ c[3] ^ k1, c[3] = l0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
      }
      for (int i = 0; i < 4; ++i) out[i] = c[i];
    }"""
    for given, wanted in (
        ([0] * 6, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 6, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    ):
        out = rig.compute(code, "philox", np.array(given, "u4"), np.zeros(4, "u4"), block=1)[1]
        assert out.tolist() == wanted


def test_functions_are_overloaded_for_float(rig):
    """exp(float) is expf, not exp rounded: the same bits as the C library's, and as NumPy's within one."""
    code = """
    GD_KERNEL(all)(const float* x, float* y, double* z, i64 n) {
      static_assert(sizeof(exp(1.0f)) == 4 && sizeof(pow(1.0f, 2.0f)) == 4 && sizeof(exp(1.0)) == 8 && sizeof(rsqrt(1.0f)) == 4);
      GD_GRID_LOOP(i64, i, n) {
        float s, c;
        sincosf(x[i], &s, &c);
        y[i] = exp(x[i]) + s * c + rsqrtf(x[i]) + erff(x[i]) + lgammaf(x[i]) + __fdividef(x[i], 3.0f) + normcdff(x[i]);
        z[i] = tanh(static_cast<double>(x[i])) + isnan(x[i]) + isinf(x[i]) + fmax(x[i], NAN) + abs(-x[i]);
      }
    }"""
    x = np.linspace(0.5, 4, 20, dtype=np.float32)
    _, y, z = rig.compute(code, "all", x, np.zeros(20, "f4"), np.zeros(20), 20)
    import math

    wanted = [
        math.exp(v)
        + math.sin(v) * math.cos(v)
        + v**-0.5
        + math.erf(v)
        + math.lgamma(v)
        + v / 3
        + 0.5 * math.erfc(-v / 2**0.5)
        for v in x.tolist()
    ]
    np.testing.assert_allclose(y, wanted, rtol=1e-6)
    np.testing.assert_allclose(z, np.tanh(x.astype(float)) + 2 * x, rtol=1e-12)


def test_dynamic_shared_memory(rig):
    code = """
    GD_KERNEL(turn)(const double* x, double* y) {
      GD_DYNAMIC_SHARED(double, s);
      s[threadIdx.x] = x[threadIdx.x];
      __syncthreads();
      y[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
    }"""
    x = np.arange(64.0)
    assert np.array_equal(rig.compute(code, "turn", x, np.zeros(64), block=64, shared=512)[1], x[::-1])


def test_shared_memory_begins_poisoned_in_every_block(rig):
    code = """
    template <class T> GD_DEVICE T* tile() { __shared__ T values[4]; return values; }
    GD_KERNEL(peek)(u32* out) {
      __shared__ u32 fixed[4];
      GD_DYNAMIC_SHARED(u32, dynamic);
      out[blockIdx.x * 3] = fixed[1], out[blockIdx.x * 3 + 1] = dynamic[3], out[blockIdx.x * 3 + 2] = tile<u32>()[2];
      fixed[1] = dynamic[3] = tile<u32>()[2] = 7;
    }"""
    (out,) = rig.compute(code, "peek", np.zeros(6, "u4"), grid=2, block=1, shared=16)
    assert (out == 0xFFFFFFFF).all()


def test_threads_run_in_either_order(rigs):
    """So that a barrier that is missing is noticed."""
    code = """
    GD_KERNEL(lacking)(i32* out) {
      __shared__ i32 s[32];
      s[threadIdx.x] = threadIdx.x;
      out[threadIdx.x] = s[31 - threadIdx.x];
    }"""
    found = {rigs(seed=seed).compute(code, "lacking", np.zeros(32, "i4"))[0].tobytes() for seed in range(8)}
    assert len(found) == 2


def test_a_warp_runs_ahead(rigs):
    """As far as it comes: what another warp has not read yet is overwritten where a barrier is missing."""
    code = """
    GD_KERNEL(lacking)(i32* out) {
      __shared__ i32 sums[2];
      i32 total = 0;
      for (int round = 0; round < 3; ++round) {
        const i32 sum = warp_reduce(i32(threadIdx.x + round), sum_op());
        if (lane_id() == 0) sums[warp_id()] = sum;
        __syncthreads();
        total += sums[0] + sums[1];  // and no barrier behind it
      }
      out[threadIdx.x] = total;
    }"""
    found = {rigs(seed=seed).compute(code, "lacking", np.zeros(64, "i4"), block=64)[0].tobytes() for seed in range(8)}
    assert np.full(64, 3 * 2016 + 3 * 64, "i4").tobytes() in found
    assert len(found) > 1


FAILURES = {
    "a[threadIdx.x == 3 ? -(1ll << 44) : 0] = 1;": (
        700,
        "an address that is not this kernel's to use.*thread .3, 0, 0.",
    ),
    "*reinterpret_cast<volatile i32*>(8ull) = 1;": (700, r"\(0x8\)"),
    "if (threadIdx.x == 5) __trap();": (719, "trap in block .0, 0, 0., thread .5, 0, 0., test line 3"),
    "assert(threadIdx.x < 9);": (710, "threadIdx.x < 9 in"),
    "if (threadIdx.x < 9) __syncthreads();\n else __syncthreads();": (719, "divergent barrier.*line"),
    "if (threadIdx.x < 40) __syncthreads(); else __syncwarp(0xffffff00u);\nif (threadIdx.x == 40) __syncthreads();": (
        719,
        "divergent",
    ),
    "if (threadIdx.x < 9) __syncwarp(); else __syncthreads();": (719, "divergent collective: not every lane"),
    "__shfl_sync(threadIdx.x < 9 ? ~0u : 0x1ffu, 1, 0);": (719, "a lane is not in the mask"),
    "*reinterpret_cast<i64*>(a + 1) = 1;": (716, "a misaligned address in .*test line 3"),
    "a[0] = load_pack<i32>(a + 1).at[0];": (716, "a misaligned address"),
    "a[0] = 1 << (threadIdx.x + 1);": (719, "a shift by more bits.*thread .31, 0, 0."),
    "i32 t[4] = {}; a[0] = t[threadIdx.x];": (719, "an index beyond an array"),
    "a[0] = a[1] / (a[2] - a[2]);": (719, "an integer division by zero"),
    "a[0] = deep(a, 3000);": (700, "an address that is not"),
    "a[0] = reinterpret_cast<const bool*>(a)[4] ? 1 : 0;": (719, "a bool that is neither 0 nor 1"),
}


@pytest.mark.parametrize("order", range(4))
def test_what_ends_a_kernel(build, order):
    """One source for all; which thread is named, and of two things which comes first, is by the order."""
    from graphdock_cuda.testing.image import Image, KernelFailure

    image = Image(build(_failing_source()))
    a = np.full(64, -1, np.int32)
    import ctypes

    pointer = ctypes.c_void_p(a.ctypes.data)
    params = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
    for number, (body, (status, text)) in enumerate(FAILURES.items()):
        kernel = image.kernels[f"fail_{number}"]
        with pytest.raises(KernelFailure, match=None if order else text) as caught:
            image.run(kernel, (1, 1, 1), (64, 1, 1), 0, ctypes.addressof(params), order)
        assert caught.value.status == status, f"{body}: {caught.value}"
    # the next kernel runs as if nothing had been
    image.run(image.kernels["fine"], (1, 1, 1), (64, 1, 1), 0, ctypes.addressof(params), order)
    assert (a == np.arange(64)).all()


def _failing_source() -> str:
    kernels = "\n".join(
        f'#line 1 "test"\nGD_KERNEL(fail_{number})(i32* a)\n{{\n{body}\n}}' for number, body in enumerate(FAILURES)
    )
    deep = "__noinline__ i32 deep(i32* a, i32 n) { volatile i32 keep[16] = {n}; return n ? deep(a, n - 1) + keep[0] : a[0]; }\n"
    fine = "GD_KERNEL(fine)(i32* a) { __syncthreads(); a[threadIdx.x] = threadIdx.x; }\n"
    return deep + kernels + "\n" + fine


def test_a_source_that_does_not_compile_says_where(build):
    with pytest.raises(CompileError, match=r"mine:2:.*missing") as caught:
        Emulator().compile('#line 1 "mine"\n\nextern "C" __global__ void k() { missing(); }', "mine", "sm_90a")
    assert caught.value.name == "mine"


@pytest.mark.parametrize(
    ("source", "text"),
    [("int x;", "no kernel"), ("GD_KERNEL(k)(Big b) {}", "take 4096 bytes at most")],
)
def test_a_source_that_is_no_module(build, source, text):
    source = f'#define GD_KERNEL(name) extern "C" __global__ void name\nstruct Big {{ char a[4097]; }};\n{source}'
    with pytest.raises(CompileError, match=text):
        Emulator().compile(source, "mine", "sm_90a")


def test_the_architecture_is_known_to_the_source(build):
    image = Emulator().compile('static_assert(__CUDA_ARCH__ == 800);\nextern "C" __global__ void k() {}', "a", "sm_80")
    assert image[:4] == b"\x7fELF"


def test_without_a_compiler_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("graphdock_cuda.testing.emulator.find_compiler", lambda: None)
    with pytest.raises(RuntimeError, match=r"install g\+\+"):
        Emulator()


def test_a_failed_kernel_is_told_by_the_driver(rig):
    function = rig.kernel("GD_KERNEL(k)() { if (blockIdx.x == 2) __trap(); }", "k")
    rig.launch(function, grid=4)
    with pytest.raises(CudaError, match=r"k: trap in block \(2, 0, 0\), thread \((0|31), 0, 0\), test line 1"):
        rig.driver.stream_synchronize(rig.s)
