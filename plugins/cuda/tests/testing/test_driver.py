"""The fake driver as a whole."""

from __future__ import annotations

import inspect
import threading

import numpy as np
import pytest
from graphdock_cuda.driver.api import Blas, Compiler, Driver
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing import Emulator, FakeBlas, FakeDriver, toolkit


def test_it_has_every_call_of_the_protocol_with_its_parameters():
    for protocol, fake in ((Driver, FakeDriver), (Compiler, Emulator), (Blas, FakeBlas)):
        for name, wanted in inspect.getmembers(protocol, inspect.isfunction):
            if not name.startswith("_"):
                assert str(inspect.signature(getattr(fake, name))) == str(inspect.signature(wanted)), name


def test_a_toolkit(build):
    tools = toolkit(gpus=3, memory=1 << 20, capability=(8, 0))
    driver = tools.driver
    assert driver.device_count() == 3
    facts = driver.properties(2)
    assert (facts.memory, facts.architecture, facts.pci) == (1 << 20, "sm_80", "0000:02:00.0")
    assert driver.memory_info(1) == (1 << 20, 1 << 20)
    assert driver.driver_version() == driver.runtime_version() == 13000
    assert tools.compiler.version.startswith("emulator")
    assert isinstance(tools.blas(), FakeBlas)


def test_without_a_gpu(build):
    driver = toolkit(gpus=0, cupy=False).driver
    with pytest.raises(CudaError) as caught:
        driver.device_count()
    assert caught.value.status == 100
    assert not driver.live


def test_the_current_device_is_of_a_thread(rigs):
    driver = rigs(gpus=2).driver
    driver.set_device(1)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(driver.get_device()))
    thread.start()
    thread.join()
    assert (driver.get_device(), seen) == (1, [0])
    with pytest.raises(CudaError) as caught:
        driver.set_device(2)
    assert caught.value.status == 101


def test_calls_from_many_threads(rig):
    code = "GD_KERNEL(add)(i64* x) { atomic_add(x, i64(1)); }"
    d = rig.driver
    add, x = rig.kernel(code, "add"), rig.put(np.zeros(1, "i8"))
    streams, failures = [d.stream() for _ in range(4)], []

    def work(stream: int) -> None:
        try:
            d.set_device(0)
            for _ in range(20):
                rig.launch(add, x, stream=stream)
                d.stream_synchronize(stream)
        except CudaError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert rig.get(x, 1, "i8")[0] == 4 * 20 * 32


def test_the_same_seed_runs_the_same(rigs):
    def trace(seed: int) -> list[bool]:
        rig = rigs(seed=seed)
        d, event = rig.driver, rig.driver.event()
        memory = d.malloc(8, rig.s)
        answers = []
        for _ in range(20):
            d.fill(memory, 1, 8, rig.s)
            d.event_record(event, rig.s)
            answers.append(d.event_query(event))
        return answers

    assert trace(3) == trace(3)
    assert len({tuple(trace(seed)) for seed in range(5)}) > 1


def test_nothing_is_left_when_all_was_given_back(rig):
    d = rig.driver
    code = "GD_KERNEL(k)(float* x) { x[threadIdx.x] = 1; }"
    module = d.load(rig.build(code))
    function = d.function(module, "k")
    event, host, memory = d.event(), d.host_alloc(8), d.malloc(128, rig.s)
    d.capture_begin(rig.s)
    rig.launch(function, memory)
    graph = d.capture_end(rig.s)
    executable = d.instantiate(graph, rig.s)
    assert len(d.live) == 7
    d.graph_destroy(graph)
    d.graph_launch(executable, rig.s)
    d.graph_exec_destroy(executable)  # what was launched still runs
    d.free(memory, rig.s)
    d.stream_synchronize(rig.s)
    d.unload(module)
    d.event_destroy(event)
    d.host_free(host)
    d.stream_destroy(rig.s)
    assert not d.live
    d.verify()
