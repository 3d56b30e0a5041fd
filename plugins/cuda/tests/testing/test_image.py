"""Images of the emulator, opened."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from graphdock_cuda.testing.image import Image

CODE = """
struct Odd { char c[5]; };
template <class T> GD_DEVICE T* tile() { __shared__ T values[16]; return values; }
GD_KERNEL(first)(i32 a, Odd b, double* c) {
  __shared__ double s[8];
  s[threadIdx.x] = a; __syncthreads(); c[0] = s[a] + tile<float>()[a]; }
extern "C" __global__ void __launch_bounds__(2 * 64) second(const float* x) { tile<float>()[1] = x[0]; }
"""


def test_kernels_with_their_parameters_and_bounds(build):
    image = Image(build(CODE))
    assert list(image.kernels) == ["first", "second"]
    assert (image.kernels["first"].sizes, image.kernels["first"].bound) == ((4, 5, 8), 1024)
    assert (image.kernels["second"].sizes, image.kernels["second"].bound) == ((8,), 128)


def test_shared_variables_are_found_in_templates_too(build):
    assert Image(build(CODE)).fixed_shared == 64 + 64
    assert Image(build("GD_KERNEL(k)() {}")).fixed_shared == 0


def test_what_is_no_image():
    for bad in (b"", b"\x7fELF" + bytes(100)):
        with pytest.raises(ValueError, match="not an image"):
            Image(bad)


def run_on(image: Image, kernel: str, row: np.ndarray) -> None:
    """One block of a kernel that takes a pointer, with a thread for each element of ``row``."""
    pointer = ctypes.c_void_p(row.ctypes.data)
    params = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
    image.run(image.kernels[kernel], (1, 1, 1), (row.size, 1, 1), 0, ctypes.addressof(params))


def test_a_kernel_without_parameters_runs_in_each_block(build):
    image = Image(
        build(
            "i64 ran[6];\nGD_KERNEL(k)() { if (threadIdx.x == 6) ran[blockIdx.x] += blockDim.x; }\n"
            "GD_KERNEL(told)(i64* x) { x[threadIdx.x] = ran[threadIdx.x]; }"
        )
    )
    assert image.kernels["k"].sizes == ()
    image.run(image.kernels["k"], (5, 1, 1), (7, 1, 1), 0, 0)
    found = np.full(6, -1, np.int64)
    run_on(image, "told", found)
    assert found.tolist() == [7, 7, 7, 7, 7, 0]


def test_it_runs_from_any_thread(build):
    import threading

    image = Image(build("GD_KERNEL(k)(i64* x) { x[threadIdx.x] = block_reduce(i64(threadIdx.x), sum_op()); }"))
    found = np.zeros((4, 64), np.int64)
    threads = [threading.Thread(target=run_on, args=(image, "k", row)) for row in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found == 2016).all()


def test_a_closed_image_has_no_kernels(build):
    image = Image(build("GD_KERNEL(k)() {}"))
    image.close()
    assert not image.kernels


def test_an_open_image_leaves_no_file_behind(build, tmp_path, monkeypatch):
    """A process that ends, however it does, leaves nothing in the temporary folder; two images are two libraries all the same."""
    image = build(CODE)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first, second = Image(image), Image(image)
    assert not list(tmp_path.iterdir())
    assert first._library._handle != second._library._handle
    with pytest.raises(ValueError, match="not an image"):
        Image(b"nothing")
    assert not list(tmp_path.iterdir())
