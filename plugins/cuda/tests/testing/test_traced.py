"""Races of kernels with kernels, by the bytes that traced images touch; code of compilers that fuse, and of newer ones."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from graphdock_cuda.source import prelude
from graphdock_cuda.testing import find_compiler, toolkit
from graphdock_testing.driver.detector import RaceError

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs g++")
#: y[i] = a product and a sum; y[n] the same, each rounded by name
CODE = """GD_KERNEL(line)(float* y, const float* x, i64 n) {
  GD_GRID_LOOP(i64, i, n) y[i] = x[i] * x[i] - 1.0f;
  if (threadIdx.x == 0) y[n] = __fadd_rn(__fmul_rn(x[0], x[0]), -1.0f);
}
"""


class Traced:
    """Two streams of a traced driver, and two arrays of 64 floats."""

    def __init__(self, seed: int = 1, **options: Any) -> None:
        self.tools = toolkit(seed=seed, traced=True, **options)
        self.driver: Any = self.tools.driver
        self.driver.set_device(0)
        image = self.tools.compiler.compile(prelude() + CODE, "test", "sm_90a")
        self.line = self.driver.function(self.driver.load(image), "line")
        self.a, self.b = self.driver.stream(), self.driver.stream()
        self.x, self.y = (self.driver.malloc(256, self.a) for _ in range(2))
        self.driver.fill(self.x, 0, 256, self.a)
        self.driver.stream_synchronize(self.a)

    def launch(self, y: int, x: int, count: int, stream: int) -> None:
        values = [ctypes.c_int64(v) for v in (y, x, count)]
        params = (ctypes.c_void_p * 3)(*map(ctypes.addressof, values))
        self.driver.launch(self.line, 1, 1, 1, 32, 1, 1, 0, stream, ctypes.addressof(params))

    def order(self) -> None:
        event = self.driver.event()
        self.driver.event_record(event, self.a)
        self.driver.stream_wait(self.b, event)

    def end(self) -> None:
        for stream in (self.b, self.a):
            self.driver.stream_synchronize(stream)
        self.driver.verify()


#: What the second kernel writes and reads, as offsets in bytes: of y, of x.
CLASHES = {
    "it reads what the first writes": lambda t: (t.x + 128, t.y),
    "it writes what the first reads": lambda t: (t.x, t.y + 128),
    "both write": lambda t: (t.y, t.x),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("clash", CLASHES)
@pytest.mark.sampled(2)
def test_kernels_that_nothing_orders_race_whichever_runs_first(clash: str, seed: int) -> None:
    for ordered in (True, False):
        t = Traced(seed)
        t.launch(t.y, t.x, 8, t.a)
        if ordered:
            t.order()
        t.launch(*CLASHES[clash](t), 8, t.b)
        if ordered:
            t.end()
        else:
            with pytest.raises(RaceError, match="line .* line .* nothing orders them"):
                t.end()


def test_kernels_that_read_the_same_and_write_parts_of_one_block_do_not_race() -> None:
    t = Traced()
    t.launch(t.y, t.x, 8, t.a)
    t.launch(t.y + 36, t.x, 8, t.b)  # the ninth float is the last of the first
    t.end()
    t.launch(t.y, t.x, 8, t.a)
    t.launch(t.y + 32, t.x, 8, t.b)
    with pytest.raises(RaceError, match="1 races"):
        t.end()


@pytest.mark.parametrize("ordered", [True, False])
def test_a_kernel_and_a_copy_in_recordings(ordered: bool) -> None:
    """Each launch of a graph stands where it was queued."""
    t = Traced()
    t.driver.capture_begin(t.a)
    t.launch(t.y, t.x, 8, t.a)
    graph = t.driver.instantiate(t.driver.capture_end(t.a), t.b)
    for _ in range(2):
        t.driver.graph_launch(graph, t.a)
        if ordered:
            t.order()
        t.driver.copy(t.x, t.y, 16, t.b)
        event = t.driver.event()
        t.driver.event_record(event, t.b)
        t.driver.stream_wait(t.a, event)
    if ordered:
        t.end()
    else:
        with pytest.raises(RaceError, match="copy d2d of 16 bytes"):
            t.end()


@pytest.mark.parametrize("fma", [False, True])
def test_products_and_sums_are_fused_where_a_compiler_may(fma: bool) -> None:
    """1 + 2**-12 squared has a last bit that a product of its own loses."""
    t = Traced(fma=fma)
    address = t.driver.host_alloc(256)
    held: np.ndarray = np.ctypeslib.as_array((ctypes.c_float * 64).from_address(address))
    held[:] = 1 + 2**-12
    t.driver.copy(t.x, address, 256, t.a)
    t.launch(t.y, t.x, 8, t.a)
    t.driver.copy(address, t.y, 256, t.a)
    t.end()
    assert (held[:8] == (2**-11 + 2**-24 if fma else 2**-11)).all()
    assert held[8] == 2**-11


@pytest.mark.parametrize(
    ("newest", "architecture", "loads"),
    [(12040, "sm_90a", True), (12040, "compute_90", False), (13050, "compute_90", True)],
)
def test_ptx_is_of_no_newer_cuda_than_the_drivers(newest: int, architecture: str, loads: bool) -> None:
    t = Traced(newest=newest)
    image = t.tools.compiler.compile(prelude() + CODE, "test", architecture)
    if loads:
        t.driver.load(image)
    else:
        with pytest.raises(Exception, match="222") as caught:
            t.driver.load(image)
        assert getattr(caught.value, "status", None) == 222
