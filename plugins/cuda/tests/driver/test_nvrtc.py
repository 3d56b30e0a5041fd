"""NVRTC compiles where there is no GPU."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from graphdock_cuda.driver.errors import CompileError
from graphdock_cuda.driver.nvrtc import Nvrtc, find_libraries
from graphdock_cuda.source import part, prelude

EVERYTHING = """
GD_KERNEL(everything)(half_t* h, bfloat16_t* b, float* f, double* d, i64* l, complex64* c, complex128* z, u8* u, bool* o, i64 n) {
  GD_DYNAMIC_SHARED(float, s);
  GD_GRID_LOOP(i64, i, n) {
    store(&h[i], load(&h[i]) + 1.0f), store(&h[i], d[i]), store(&b[i], d[i]), store(&b[i], load(&b[i]) * limits<half_t>::highest());
    l[i] = floor_div(l[i], i64(3)) + floor_mod(l[i], l[i]) + wrap_mul(l[i], limits<i64>::lowest());
    f[i] = floor_div(f[i], 2.f) + floor_mod(f[i], INFINITY), d[i] = floor_mod(d[i], 2.0) + limits<double>::nan();
    c[i] = pow(exp(c[i]), log(c[i])) / sqrt(c[i]) + tanh(c[i]) * tan(sin(c[i]));
    z[i] = rsqrt(cosh(z[i]) + sinh(z[i])) * abs(z[i]) + cos(z[i]) * polar(1.0, angle(z[i]));
    atomic_add(&h[i], h[0]), atomic_add(&b[0], b[1]), atomic_add(&u[0], u8(1)), atomic_add(&c[0], c[1]), atomic_add(&l[0], l[1]);
    atomic_update(&d[0], 3.0, max_op()), atomic_update(&u[0], u8(3), max_op());
    s[threadIdx.x] = limits<float>::bottom();
    store_pack(h, load_pack(h + 8));
    o[i] = block_reduce(o[i], all_op()), f[i] = block_exclusive_scan(f[i], sum_op(), 0.f);
    c[i] = block_inclusive_scan(c[i], sum_op());
    z[i] = block_reduce(z[i], product_op());
    const divider by{3, 1431655766u, 2};
    i64 dims[8], at[8];
    unravel(i, dims, 3, at);
    l[i] += by.mod(7) + offset_of(i, dims, at, 3);
    if (i < 0) __trap();
    assert(f[i] == f[i]);
  }
}
"""


@pytest.fixture(scope="module")
def nvrtc():
    if not find_libraries():
        pytest.skip("needs the nvidia-cuda-nvrtc wheel")
    return Nvrtc()


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_100"])
@pytest.mark.sampled(2)
def test_the_prelude_compiles_for_every_architecture(nvrtc, architecture):
    image = nvrtc.compile(prelude() + EVERYTHING, "everything.cu", architecture)
    assert image[:4] == b"\x7fELF"
    assert struct.unpack_from("<H", image, 18) == (190,)  # EM_CUDA
    assert b"everything" in image


def test_a_source_that_does_not_compile(nvrtc):
    with pytest.raises(CompileError, match=r"broken\.cu\(2\): error: identifier \"missing\" is undefined") as caught:
        nvrtc.compile('#line 1 "broken.cu"\n\nint here = missing;', "broken.cu", "sm_80")
    assert caught.value.name == "broken.cu"
    assert "missing" in caught.value.source


def test_an_architecture_that_it_does_not_know(nvrtc):
    with pytest.raises(CompileError, match="knows no sm_10"):
        nvrtc.compile("", "empty", "sm_10")


def test_its_version_names_the_release_and_the_options(nvrtc):
    assert nvrtc.version.startswith("nvrtc 1")
    assert "-std=c++17" in nvrtc.version
    assert 80 in nvrtc.architectures


@pytest.fixture
def places(tmp_path, monkeypatch):
    """No libraries but those that a test makes: ``places("nvidia/cu13/lib/libnvrtc.so.13")`` below site-packages."""
    monkeypatch.setattr("graphdock_cuda.driver.nvrtc._SYSTEM", ())
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.delenv("CUDA_HOME", raising=False)

    def make(*names: str) -> list[Path]:
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        return [tmp_path / name for name in names]

    return make


def test_wheels_of_either_cuda_are_found_the_newest_first(places):
    old, new = places("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "nvidia/cu13/lib/libnvrtc.so.13")
    places("nvidia/cu13/lib/libnvrtc-builtins.so.13.0", "nvidia/cu13/lib/libnvrtc.alt.so.13")
    assert find_libraries() == [new, old]


def test_a_toolkit_comes_after_wheels(places, tmp_path, monkeypatch):
    wheel, own = places("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "toolkit/lib64/libnvrtc.so.13")
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "toolkit"))
    assert find_libraries() == [wheel, own]


def test_a_link_and_its_file_are_one_library(places, tmp_path):
    (file,) = places("nvidia/cu13/lib/libnvrtc.so.13.0.1")
    (file.parent / "libnvrtc.so.13").symlink_to(file)
    assert len(find_libraries()) == 1


def test_a_library_newer_than_the_driver_is_passed_over(places):
    places("nvidia/cu13/lib/libnvrtc.so.13")
    with pytest.raises(
        FileNotFoundError, match=r"no NVRTC of CUDA 12 or older; found only .*so\.13.*nvidia-cuda-nvrtc-cu12"
    ):
        Nvrtc(major=12)


def test_no_library_says_what_to_install(places):
    with pytest.raises(FileNotFoundError, match="no NVRTC: pip install nvidia-cuda-nvrtc, or set CUDA_PATH"):
        Nvrtc()


def test_the_kernel_of_conditions_is_finished_code(nvrtc: Nvrtc) -> None:
    """The function of the driver is left open; PTX, which a driver that is older than the compiler refuses, is not handed out."""
    made = nvrtc.compile(prelude() + part("condition.cuh"), "condition", "sm_90a")
    assert made.startswith(b"\x7fELF") and b"\0cudaGraphSetConditional\0" in made and b"\0set_condition\0" in made
    assert int.from_bytes(made[16:18], "little") == 2  # executable, not to be linked
