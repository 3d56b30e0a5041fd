"""Modules, functions and launches of the fake driver."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.state import Misuse

CODE = """
struct Table { float* at[4]; i32 n; };
GD_KERNEL(add)(float* x, float by, i32 n) { if (threadIdx.x < n) x[threadIdx.x] += by; }
GD_KERNEL(add_all)(Table table, float by) { for (int i = 0; i < table.n; ++i) table.at[i][threadIdx.x] += by; }
GD_KERNEL(nothing)() {}
GD_KERNEL(wants)(i64* out) { GD_DYNAMIC_SHARED(i64, s); s[threadIdx.x] = 1; out[threadIdx.x] = s[threadIdx.x]; }
extern "C" __global__ void __launch_bounds__(64) bounded(float* x) { if (x) x[0] = 1; }
"""


def test_parameters_are_read_when_the_kernel_is_launched(rig):
    """The rig overwrites them afterwards."""
    function = rig.kernel(CODE, "add")
    x = rig.put(np.zeros(32, "f4"))
    rig.launch(function, x, 1.5, np.int32(8))
    assert rig.get(x, 32, "f4").tolist() == [1.5] * 8 + [0] * 24


def test_a_struct_by_value_and_the_pointers_in_it(rig):
    function = rig.kernel(CODE, "add_all")
    d = rig.driver
    a, b = rig.put(np.zeros(32, "f4")), rig.put(np.ones(32, "f4"))
    table = np.array([a, b, 0, 0, 2], "u8").tobytes()
    rig.launch(function, table, 1.0)
    assert (rig.get(a, 32, "f4") + rig.get(b, 32, "f4") == 3).all()
    d.free(b, rig.s)
    with pytest.raises(Misuse, match="add_all.*which was freed"):
        rig.launch(function, table, 1.0)


def test_a_parameter_without_an_address(rig):
    params = (ctypes.c_void_p * 3)()
    with pytest.raises(CudaError, match="add: parameter 0 has no address"):
        rig.driver.launch(rig.kernel(CODE, "add"), 1, 1, 1, 32, 1, 1, 0, rig.s, ctypes.addressof(params))


@pytest.mark.parametrize(
    ("grid", "block", "shared", "text"),
    [
        (0, 32, 0, "a grid of"),
        ((1, 65536), 32, 0, "a grid of"),
        ((1 << 31), 32, 0, "a grid of"),
        (1, 1025, 0, "a block of"),
        (1, (32, 64), 0, "a block of"),
        (1, (1, 1, 65), 0, "a block of"),
        (1, 0, 0, "a block of"),
        (1, 32, (48 << 10) + 1, "49153 bytes of shared memory, 49152 are allowed"),
    ],
)
def test_limits_of_a_launch(rig, grid, block, shared, text):
    with pytest.raises(Misuse, match=text) as caught:
        rig.launch(rig.kernel(CODE, "nothing"), grid=grid, block=block, shared=shared)
    assert caught.value.status == 1


def test_the_largest_grid_and_block(rig):
    function = rig.kernel("GD_KERNEL(count)(u32* n) { if (threadIdx.x + threadIdx.y == 0) atomicAdd(n, 1u); }", "count")
    n = rig.put(np.zeros(1, "u4"))
    rig.launch(function, n, grid=(1, 65535), block=1)
    rig.launch(function, n, grid=(2, 3, 4), block=(32, 32))
    assert rig.get(n, 1, "u4")[0] == 65535 + 24


def test_bounds_of_a_kernel(rig):
    function = rig.kernel(CODE, "bounded")
    rig.launch(function, 0, block=64)
    with pytest.raises(Misuse, match="65 threads, its bound is 64") as caught:
        rig.launch(function, 0, block=65)
    assert caught.value.status == 701


def test_much_shared_memory_must_be_allowed(rig):
    function = rig.kernel(CODE, "wants")
    out = rig.put(np.zeros(32, "i8"))
    d = rig.driver
    most = 227 << 10
    with pytest.raises(Misuse, match="are allowed"):
        rig.launch(function, out, shared=most)
    with pytest.raises(CudaError, match="232449 bytes"):
        d.allow_shared(function, most + 1)
    d.allow_shared(function, most)
    rig.launch(function, out, shared=most)
    assert rig.get(out, 32, "i8").tolist() == [1] * 32


def test_fixed_shared_memory_counts(rig):
    function = rig.kernel("GD_KERNEL(k)(i32* x) { __shared__ i32 s[1024]; s[threadIdx.x] = 1; x[0] = s[0]; }", "k")
    with pytest.raises(Misuse, match="45057 bytes of shared memory, 45056"):
        rig.launch(function, rig.put(np.zeros(1, "i4")), shared=(44 << 10) + 1)


def test_modules_of_equal_names_are_apart(rig):
    small = rig.kernel("GD_KERNEL(k)(i64 a, i32* out) { out[0] = a; }", "k")
    large = rig.kernel("GD_KERNEL(k)(uint4 a, i32* out) { out[0] = a.w; }", "k")
    out = rig.put(np.zeros(1, "i4"))
    rig.launch(small, 9, out, block=1)
    assert rig.get(out, 1, "i4")[0] == 9
    rig.launch(large, np.arange(4, dtype="i4").tobytes(), out, block=1)
    assert rig.get(out, 1, "i4")[0] == 3


def test_a_module_keeps_its_variables(rig):
    code = "__device__ i32 calls; __constant__ i32 step = 2; GD_KERNEL(k)(i32* out) { out[0] = calls += step; }"
    function, other = rig.kernel(code, "k"), rig.kernel(code, "k")
    out = rig.put(np.zeros(1, "i4"))
    for _ in range(3):
        rig.launch(function, out, block=1)
    assert rig.get(out, 1, "i4")[0] == 6
    rig.launch(other, out, block=1)
    assert rig.get(out, 1, "i4")[0] == 2


def test_what_is_no_image_and_no_kernel(rig):
    d = rig.driver
    with pytest.raises(CudaError, match="not an image") as caught:
        d.load(b"PTX")
    assert caught.value.status == 200
    with pytest.raises(CudaError, match="no kernel 'subtract'; there are add, add_all") as caught:
        rig.kernel(CODE, "subtract")
    assert caught.value.status == 500


def test_a_function_lives_as_long_as_its_module(rig):
    d = rig.driver
    module = d.load(rig.build(CODE))
    function = d.function(module, "nothing")
    assert d.function(module, "nothing") == function
    rig.launch(function)
    d.unload(module)  # after the launch has run
    with pytest.raises(Misuse, match="function .* was destroyed"):
        rig.launch(function)
    with pytest.raises(Misuse, match="module .* was destroyed"):
        d.unload(module)


def test_a_launch_is_of_the_current_device(rigs):
    rig = rigs(gpus=2)
    function = rig.kernel(CODE, "nothing")
    rig.driver.set_device(1)
    with pytest.raises(Misuse, match="nothing of cuda:0 on cuda:0/stream:0, while cuda:1 is current"):
        rig.launch(function)
    with pytest.raises(Misuse, match="of cuda:0 on cuda:1"):
        rig.launch(function, stream=rig.driver.stream())
