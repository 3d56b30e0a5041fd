"""Memory of a GPU beside recordings, and what is given back where somebody else finds none."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graphdock.contracts import dtypes, errors
from graphdock.plugin.host import Host
from graphdock_cuda.compiled import source
from graphdock_cuda.device import CudaDevice
from graphdock_cuda.driver.api import Gemm
from graphdock_cuda.driver.errors import LibraryError
from graphdock_cuda.launch import Launch, u64
from graphdock_cuda.memory import Pinned, Pool
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install

ADD = source(name="add", code="GD_KERNEL(add)(float* x, i64 n) { GD_GRID_LOOP(i64, i, n) x[i] += 1; }")


@pytest.fixture
def device() -> Any:
    opened = install(Host(), toolkit(seed=5, memory=1 << 24))
    yield opened
    opened.driver.verify()  # type: ignore[attr-defined]


def elsewhere(do: Callable[[], object]) -> None:
    """Do it on another thread; what it raises is raised here."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            do()
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def names(device: CudaDevice) -> list[str]:
    """The calls of the driver since the last look."""
    driver: Any = device.driver
    found = [call.name for call in driver.log.calls]
    driver.log.reset()
    return found


# -- beside a recording


@pytest.mark.parametrize("how", ["an array that is collected", "memory that is settled", "memory that is taken"])
def test_what_goes_on_another_thread_is_freed_when_the_recording_has_ended(device: CudaDevice, how: str) -> None:
    queue, other = device.new_queue(), device.new_queue()
    with device.current():
        kept: list[Any] = [queue.empty(dtypes.float32, (64,)) for _ in range(3)]
        x = queue.empty(dtypes.float32, (64,))
        if how == "an array that is collected":
            kept[0] = [kept[0], kept]  # a ring
        before = device.pool.in_use

        def drop() -> None:
            nonlocal kept
            kept = []
            gc.collect()
            with device.current():
                if how == "memory that is taken":
                    other.empty(dtypes.float32, (64,))
                else:
                    device.pool.settle()

        def body() -> None:
            names(device)
            assert not gc.isenabled()  # what it frees may not be freed now
            elsewhere(drop)
            assert "free" not in names(device)
            queue.copy(x, x)

        replay = queue.capture(body)
        device.pool.settle()
        assert names(device).count("free") == 3 + (how == "memory that is taken")
        assert device.pool.in_use == before - 3 * 256
        replay()
        queue.synchronize()


def test_a_queue_that_joins_a_recording_frees_when_that_has_ended(device: CudaDevice) -> None:
    queue, member = device.new_queue(), device.new_queue()
    with device.current():
        kept = [member.empty(dtypes.float32, (64,))]
        x, y = queue.empty(dtypes.float32, (4,)), member.empty(dtypes.float32, (4,))
        event, back = queue.event(), member.event()

        def body() -> None:
            queue.record(event)
            member.wait(event)
            kept.clear()
            names(device)
            elsewhere(device.pool.settle)
            assert names(device) == []
            member.copy(y, y)
            member.record(back)
            queue.wait(back)
            queue.copy(x, x)

        replay = queue.capture(body)
        names(device)
        device.pool.settle()
        assert names(device) == ["free"]
        queue.wait(member.record())
        replay()
        queue.synchronize()


@pytest.mark.parametrize("fails", [True, False])
def test_streams_are_freed_on_again_after_a_recording_that_failed(device: CudaDevice, fails: bool) -> None:
    driver: Any = device.driver
    queue = device.new_queue()
    with device.current():
        kept = [queue.empty(dtypes.float32, (64,))]
        driver.faults.reset()
        driver.faults.at(1, 1, "capture_begin" if fails else "capture_end")
        with pytest.raises(errors.InternalError):
            queue.capture(kept.clear)
        kept.clear()
        names(device)
        device.pool.settle()
        assert names(device) == ["free"]


def test_what_a_queue_used_is_freed_behind_its_last_work(device: CudaDevice) -> None:
    """Its arguments are of no stream of its own; the work that writes them may still run when the queue goes."""
    queue = device.new_queue()
    with device.current():
        queue.set_arguments(b"x" * 64)
        del queue
        names(device)
        device.pool.settle()
        assert names(device) == ["stream_synchronize", "stream_destroy", "free"]


def test_nothing_is_loaded_and_planned_within_a_recording(device: CudaDevice) -> None:
    """Not even a second kernel of code that is there; the recording begins anew when it has been."""
    both = source(name="both", code="GD_KERNEL(one)(float* x) { *x += 1; } GD_KERNEL(two)(float* x) { *x += 2; }")
    queue = device.new_queue()
    asked = Gemm(1, 1, 1, "float32")
    with device.current():
        x = queue.empty(dtypes.float32, (1,))
        device.driver.fill(x.address, 0, 4, queue.stream)
        device.images.function(both, "one")
        begun: list[int] = []

        def body() -> None:
            begun.append(len(names(device)))
            function = device.images.function(both, "two")
            plan = device.gemm_plan(asked)
            assert plan is not None
            assert names(device) == []
            Launch(device.driver, function, (1,), (1,), 0, (u64(x.address),), queue.stream).run()

        queue.capture(body)()
        assert len(begun) == 3
        queue.synchronize()
    got = np.empty(1, np.float32)
    device.to_host(x, got)
    assert got == 2


# -- where there is no memory


class Library:
    """A matrix library that finds no memory, so many times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def plans(self, gemm: Gemm, workspace: int) -> Any:
        self.times -= 1
        if self.times >= 0:
            raise LibraryError("cublasLt", 3)
        return ()


def _use_up(device: CudaDevice, what: str, times: int) -> Callable[[], object]:
    """Something that finds no memory so many times."""
    driver: Any = device.driver
    queue = device.new_queue()
    if what == "a library":
        library = Library(times)
        device.toolkit = type(device.toolkit)(driver, device.toolkit.compiler, lambda: library)
        return lambda: device.gemm_plan(Gemm(2, 2, 2, "float32"))
    calls = {"code": ["load"] * times, "a graph": ["instantiate"] * times, "an upload": ["upload"] * times}[what]
    driver.faults.reset()
    for number, call in enumerate(calls, 1):
        driver.faults.at(number, 2, call)
    if what == "code":
        return lambda: device.images.function(ADD, "add")
    return lambda: queue.capture(lambda: None)


@pytest.mark.parametrize("what", ["a library", "code", "a graph", "an upload"])
def test_the_pool_gives_back_where_others_find_no_memory(device: CudaDevice, what: str) -> None:
    queue = device.new_queue()
    device.images.image(ADD).ready.result()
    with device.current():
        do = _use_up(device, what, 1)
        queue.empty(dtypes.float32, (64,))
        device.pool.relieve()
        queue.empty(dtypes.float32, (64,))
        names(device)
        do()
        found = [n for n in names(device) if n in ("free", "stream_synchronize", "trim")]
        # what was freed is given back once the host knows that it is free
        assert found == ["free", "stream_synchronize", "trim"]
        names(device)
        device.pool.relieve()
        assert names(device) == ["trim"]  # nothing was freed since


@pytest.mark.parametrize("what", ["a library", "code", "a graph", "an upload"])
def test_who_finds_no_memory_then_either_is_told(device: CudaDevice, what: str) -> None:
    driver: Any = device.driver
    with device.current():
        do = _use_up(device, what, 2)
        left = driver.live["executable"], driver.live["graph"]
        with pytest.raises(errors.ResourceExhaustedError, match="cuda:0 has no memory left to"):
            do()
        assert (driver.live["executable"], driver.live["graph"]) == left
        do()


def test_a_stream_that_is_recorded_is_not_waited_for_where_memory_is_given_back(device: CudaDevice) -> None:
    queue = device.new_queue()
    with device.current():
        kept = [queue.empty(dtypes.float32, (64,)), queue.empty(dtypes.float32, (64,))]
        kept.pop()
        device.pool.settle()

        def body() -> None:
            kept.clear()
            names(device)
            elsewhere(device.pool.relieve)
            assert names(device) == ["trim"]

        queue.capture(body)
        names(device)
        device.pool.relieve()
        assert names(device) == ["free", "stream_synchronize", "trim"]


def test_pinned_memory_that_is_kept_is_given_back_where_there_is_no_other() -> None:
    driver: Any = toolkit().driver
    pinned = Pinned(driver)
    pinned.take(8192)
    driver.faults.reset()
    driver.faults.at(1, 2, "host_alloc")
    assert pinned.take(1 << 16).nbytes == 1 << 16
    assert [c.name for c in driver.log.calls][-3:] == ["host_alloc", "host_free", "host_alloc"]
    driver.faults.reset()
    driver.faults.at(1, 2, "host_alloc")
    driver.faults.at(2, 2, "host_alloc")
    with pytest.raises(errors.ResourceExhaustedError, match="the host has no memory left to pin 131072 bytes"):
        pinned.take(100_000)
    driver.faults.at(3, 1, "host_alloc")
    with pytest.raises(errors.InternalError, match="invalid value"):
        pinned.take(100_000)


# -- on a device that is lost


@pytest.mark.parametrize("status", [700, 719])
def test_closing_after_a_device_was_lost_raises_nothing(status: int) -> None:
    device = install(Host(), toolkit())
    driver: Any = device.driver
    queue = device.new_queue()
    held = device.staging(4096), device.lasting(64), queue
    driver.lose(0, status)
    del held, queue
    device.close()
    device.close()
    assert not driver.live["pinned block"]


def test_another_failure_to_give_pinned_memory_back_is_told() -> None:
    driver: Any = toolkit().driver
    pinned = Pinned(driver)
    pinned.take(64)
    driver.faults.reset()
    driver.faults.at(1, 1, "host_free")
    with pytest.raises(errors.InternalError, match="free pinned memory on the host: invalid value"):
        pinned.close()


# -- pinned memory


def test_pinned_memory_is_handed_out_again_by_size_and_no_more_is_kept_than_so_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("graphdock_cuda.memory._KEPT_BYTES", 3 * 4096)
    driver: Any = toolkit().driver
    pinned = Pinned(driver)

    def address(nbytes: int) -> int:
        return int(pinned.take(nbytes).ctypes.data)

    first = address(1)
    assert {address(n) for n in (4096, 100, *range(9))} == {first} and driver.log.count("host_alloc") == 1
    assert address(4097) != first
    held = [pinned.take(4096) for _ in range(4)]
    assert len({h.ctypes.data for h in held}) == 4 and {h.nbytes for h in held} == {4096}
    assert [pinned.take(n).nbytes for n in (0, 1, 5000)] == [0, 1, 5000]
    del held
    pinned.take(1)
    assert driver.live["pinned block"] <= 4
    pinned.close()
    assert not driver.live["pinned block"]


def test_a_freed_block_is_counted_once(device: CudaDevice) -> None:
    queue = device.new_queue()
    with device.current():
        before = device.pool.in_use
        block = queue.allocate(1000)
        assert device.pool.in_use == before + 1000
        queue.free(block)
        assert device.pool.in_use == before
        del block
        device.pool.settle()
        assert device.pool.in_use == before
        array = queue.empty(dtypes.float32, (250,))
        part = device.view(array.block, 400, dtypes.float32, (10,))
        assert part.address == array.address + 400
        del array
        device.pool.settle()
        assert device.pool.in_use == before + 1000  # a view keeps its block
        del part
        device.pool.settle()
        assert device.pool.in_use == before


def test_the_limit_counts_what_is_in_use_and_may_be_reached() -> None:
    driver: Any = toolkit().driver
    driver.set_device(0)
    pool = Pool(driver, 0, 4096)
    pool.stream = stream = driver.stream()
    whole = pool.take(4096, stream)
    with pytest.raises(errors.ResourceExhaustedError, match="the limit of this process is 4096 bytes"):
        pool.take(1, stream)
    del whole
    assert pool.take(4096, stream).nbytes == pool.peak == 4096
    driver.faults.reset()
    driver.faults.at(1, 1, "malloc")
    with pytest.raises(errors.InternalError, match="allocate 8 bytes on cuda:0: invalid value"):
        pool.take(8, stream)
