"""CupyDriver over a stand-in for CuPy's bindings, and the stand-in over an installed CuPy."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import errors
from graphdock.plugin.host import Host
from graphdock_cuda.driver.api import Properties
from graphdock_cuda.driver.errors import CudaError, LibraryError, explain
from graphdock_cuda.testing import FakeDriver, cupy_bindings, find_compiler, toolkit
from graphdock_cuda.testing.cupy_bindings import DRIVER, RUNTIME, CUDADriverError, CUDARuntimeError, FakeBehindCupy
from graphdock_cuda.testing.install import install

ADD = "GD_KERNEL(add)(i64* x) { atomic_add(x, i64(1)); }"


@pytest.fixture
def driver() -> Any:
    made: Any = toolkit(gpus=2, seed=1).driver
    assert isinstance(made, FakeBehindCupy)
    return made


@pytest.mark.parametrize(("module", "signatures"), [("runtime", RUNTIME), ("driver", DRIVER)])
def test_the_bindings_are_an_installed_cupys(module: str, signatures: str) -> None:
    real = getattr(pytest.importorskip("cupy_backends.cuda.api"), module, None) or pytest.importorskip(
        f"cupy_backends.cuda.api.{module}"
    )
    for line in signatures.strip().splitlines():
        name = line.partition("(")[0]
        assert getattr(real, name).__doc__.partition("\n")[0] == line
    for name, number in cupy_bindings._ATTRIBUTES.items():
        assert module == "driver" or getattr(real, f"cudaDevAttr{name}") == number
    assert module == "driver" or (real.cudaMemPoolAttrReleaseThreshold, real.CUDARuntimeError(600).status) == (4, 600)


#: What tells without a driver, and what hands out the status that the others raise.
TOLD, HANDED_OUT = {"driverGetVersion", "runtimeGetVersion"}, {"eventQuery"}


def test_an_installed_cupy_raises_but_for_queries() -> None:
    """Without a driver CUDA refuses every call, by 35: whether that is raised or handed out is CuPy's convention."""
    runtime = pytest.importorskip("cupy_backends.cuda.api.runtime")
    if runtime.driverGetVersion():
        pytest.skip("there is a driver, and calls with handles of nothing may do harm")
    for name, parameters in cupy_bindings._SIGNATURE.findall(RUNTIME):
        args = [0 for p in parameters.split(",") if p.strip()]
        if name in HANDED_OUT:
            assert getattr(runtime, name)(*args) == 35
        elif name not in TOLD:
            with pytest.raises(runtime.CUDARuntimeError) as caught:
                getattr(runtime, name)(*args)
            assert caught.value.status == 35, name
    assert runtime.CUDARuntimeError(700).status == 700


#: A library of the driver that takes the calls of ``THROUGH`` alone.
LIBCUDA = """
typedef unsigned long p; typedef unsigned u;
int cuGetErrorName(int e, const char** s) { *s = "NAME"; return 0; }
int cuGetErrorString(int e, const char** s) { *s = "text"; return 0; }
int cuModuleLoadData(p* m, const char* image) { *m = 5; return image[0] == 'x' ? 0 : 222; }
int cuModuleUnload(p m) { return m == 5 ? 0 : 400; }
int cuModuleGetFunction(p* f, p m, const char* n) { *f = 7; return m == 5 && n[0] == 'k' && !n[1] ? 0 : 500; }
int cuFuncSetAttribute(p f, int a, int v) { return f == 7 && a == 8 && v == 99 ? 0 : 1; }
int cuLaunchKernel(p f, u gx, u gy, u gz, u bx, u by, u bz, u shared, p stream, p params, p extra) {
  int dims = gx == 1 && gy == 2 && gz == 3 && bx == 4 && by == 5 && bz == 6;
  return f == 7 && dims && shared == 8 && stream == 9 && params == 10 && !extra ? 0 : 701;
}
"""
THROUGH = """
from graphdock_cuda.driver.cupy_driver import CupyDriver
driver = CupyDriver()
module = driver.load(b"x")
function = driver.function(module, "k")
driver.allow_shared(function, 99)
driver.launch(function, 1, 2, 3, 4, 5, 6, 8, 9, 10)
driver.unload(module)
print(module, function)
for do in (lambda: driver.load(b"y"), lambda: driver.unload(1), lambda: driver.function(5, "no"),
           lambda: driver.allow_shared(7, 98), lambda: driver.launch(7, 2, 1, 3, 4, 5, 6, 8, 9, 10)):
    try:
        do()
    except RuntimeError as error:
        print(error.status)
"""


def test_calls_of_the_driver_arrive_through_an_installed_cupy(tmp_path: Path) -> None:
    """In their order, and what the driver's library answers is raised: CuPy loads it by its name."""
    pytest.importorskip("cupy_backends.cuda.api.driver")
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("needs g++")
    build = [compiler, "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", str(tmp_path / "libcuda.so.1")]
    subprocess.run(build, input=LIBCUDA, text=True, check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", THROUGH], env=environment, capture_output=True, text=True)
    assert run.stdout.split() == ["5", "7", "222", "400", "500", "1", "701"], run.stdout + run.stderr


def test_every_call_of_the_driver_is_bound(driver: Any) -> None:
    """By CupyDriver itself: what it lacked, the fake behind it would answer."""
    from graphdock_cuda.driver.api import Driver

    for name in vars(Driver):
        if not name.startswith("_"):
            assert name in vars(driver) or hasattr(type(driver), name), name


def test_an_event_that_is_not_reached_is_not_ready(driver: Any) -> None:
    """CuPy's eventQuery returns CUDA's status, and raises nothing."""
    driver.set_device(0)
    stream, event = driver.stream(), driver.event()
    memory, answers = driver.malloc(8, stream), set()
    for _ in range(30):
        driver.fill(memory, 1, 8, stream)
        driver.event_record(event, stream)
        answers.add(driver.event_query(event))
    assert answers == {True, False}
    driver.stream_synchronize(stream)
    assert driver.event_query(event) is True
    driver.lose(0)
    with pytest.raises(CUDARuntimeError) as caught:
        driver.event_query(event)
    assert caught.value.status == 719


def test_counting_devices_opens_none(driver: Any) -> None:
    assert driver.device_count() == 2
    assert not driver.bindings.opened and not driver.bindings.pools
    assert driver.memory_info(1)[1] == driver.properties(1).memory  # whatever is current before
    assert driver.bindings.opened == {1}
    for _ in range(2):
        driver.set_device(1)
    assert driver.bindings.pools == {1: {4: 2**64 - 1}}
    assert (driver.bindings.opened, driver.get_device()) == ({1}, 1)
    assert driver.memory_info(0)[1] == driver.properties(0).memory
    assert driver.get_device() == 1


def test_what_is_known_of_a_device() -> None:
    facts = Properties("One", (8, 6), 1 << 20, 3, 5 << 10, 64, 11, 12, 13, 14, "0000:0f:00.0")
    driver = FakeBehindCupy(FakeDriver([facts], 1, False))
    assert driver.properties(0) == facts


def test_a_gpu_is_asked_for_its_own_way_to_a_peer_and_let_into_the_peers_pool(
    driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(driver.bindings.runtime, "deviceCanAccessPeer", lambda *pair: asked.append(pair) or 1)
    monkeypatch.setattr(driver, "_allow", lambda pool, device: asked.append((pool - cupy_bindings._POOL, device)))
    driver.set_device(1)
    assert driver.can_access_peer(1, 0) is True
    driver.enable_peer(0)
    assert asked == [(1, 0), (0, 1)]


def test_a_recording_that_ends_within_a_body_is_given_up(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver.bindings, "leave", lambda stream: True)
    driver.set_device(0)
    stream = driver.stream()
    driver.capture_begin(stream)
    driver.log.reset()
    with pytest.raises(CudaError) as caught:
        driver.capture_end(stream)
    assert caught.value.status == 901 and not driver.log.calls


def test_reaching_a_peer_twice_is_reaching_it(driver: Any) -> None:
    driver.set_device(0)
    assert driver.can_access_peer(0, 1) is True
    driver.enable_peer(1)
    driver.enable_peer(1)
    with pytest.raises(CUDARuntimeError) as caught:
        driver.enable_peer(0)
    assert caught.value.status == 101


@pytest.mark.parametrize("call", ["make_executable", "upload"])
def test_a_graph_is_uploaded_or_gone(driver: Any, call: str) -> None:
    driver.set_device(0)
    stream = driver.stream()
    memory = driver.malloc(8, stream)
    driver.capture_begin(stream)
    driver.fill(memory, 1, 8, stream)
    graph = driver.capture_end(stream)
    driver.faults.reset()
    driver.faults.at(1, 2, call="instantiate" if call == "make_executable" else call)
    with pytest.raises(CUDARuntimeError) as caught:
        driver.instantiate(graph, stream)
    assert caught.value.status == 2 and not driver.live["executable"]
    driver.log.reset()
    driver.instantiate(graph, stream)
    assert [c.name for c in driver.log.calls] == ["instantiate", "upload"]


def test_arguments_are_what_cython_takes(driver: Any) -> None:
    with pytest.raises(TypeError, match="takes 2 positional arguments, 1 given"):
        driver.bindings.runtime.mallocAsync(8)
    with pytest.raises(OverflowError, match="-1 does not fit size_t"):
        driver.malloc(-1, 0)
    with pytest.raises(TypeError, match="an integer is required, got 8.0"):
        driver.malloc(8.0, 0)
    with pytest.raises(TypeError, match="expected bytes"):
        driver.load("text")


def test_code_on_a_thread_without_a_context_is_refused(rigs: Any) -> None:
    rig, failures = rigs(), []
    image = rig.build(ADD)

    def work(entered: bool) -> None:
        try:
            if entered:
                rig.driver.set_device(0)
            rig.driver.function(rig.driver.load(image), "add")
        except CudaError as error:
            failures.append((entered, error.status))

    for entered in (True, False):
        thread = threading.Thread(target=work, args=(entered,))
        thread.start()
        thread.join()
    assert failures == [(False, 201)]


def test_random_numbers_on_a_new_thread() -> None:
    """Its device is 0 from the beginning, and yet it has no context before it asks for one."""
    tools, host = toolkit(seed=2), Host()
    install(host, tools)
    with tf.Graph(host=host).as_default():
        x = tf.random_uniform([4], seed=1)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        with tf.Session(config=config, host=host) as session:
            found: list[np.ndarray] = []
            thread = threading.Thread(target=lambda: found.append(session.run(x)))
            thread.start()
            thread.join()
            assert found[0].shape == (4,)
    tools.driver.verify()  # type: ignore[attr-defined]


def test_cublas_numbers_are_not_cudas() -> None:
    raised = explain(LibraryError("cublasLtMatmul", 13), "cuda:0", "multiply")
    assert isinstance(raised, errors.InternalError)
    assert "cublasLtMatmul: execution failed (cuBLAS status 13)" in str(raised) and "CUDA error" not in str(raised)
    assert isinstance(explain(LibraryError("cublasLt", 3), "cuda:0", "multiply"), errors.ResourceExhaustedError)
    assert isinstance(explain(CUDADriverError(700), "cuda:0", "multiply"), errors.DeviceLostError)


def test_a_fake_is_a_driver_of_its_own(driver: Any) -> None:
    assert isinstance(driver.fake, FakeDriver) and driver.scheduler is driver.fake.scheduler
