"""The device over the emulated CUDA: memory, what is current, recordings, errors of kernels, step arguments."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graphdock.contracts import dtypes, errors
from graphdock.plugin.host import Host
from graphdock_cuda.bound import Bindings
from graphdock_cuda.compiled import source
from graphdock_cuda.device import CudaDevice
from graphdock_cuda.driver.api import Convolution
from graphdock_cuda.launch import Launch, Launcher, i32, i64, raw, u64
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install
from graphdock_cuda.work import ErrorWord

TWICE = source(name="twice", code="GD_KERNEL(twice)(float* x, i64 n) { GD_GRID_LOOP(i64, i, n) x[i] *= 2; }")


@pytest.fixture
def device() -> Any:
    opened = install(Host(), toolkit(seed=3, memory=1 << 22))
    yield opened
    opened.driver.verify()  # type: ignore[attr-defined]


def put(device: CudaDevice, array: np.ndarray) -> Any:
    buffer = device.empty(dtypes.ALL[array.dtype.name], array.shape)
    device.from_host(array, buffer)
    return buffer


def got(device: CudaDevice, buffer: Any) -> np.ndarray:
    array = np.empty(buffer.shape, buffer.dtype.np)
    device.to_host(buffer, array)
    return array


def test_memory_comes_back_when_its_last_reference_goes(device: CudaDevice) -> None:
    put(device, np.zeros(1, np.float32))  # makes the private queue
    gc.collect()
    device.pool.settle()
    before = device.pool.in_use
    buffer = put(device, np.arange(1000, dtype=np.float32))
    assert device.pool.in_use == before + 4000
    del buffer
    gc.collect()
    device.pool.settle()
    assert device.pool.in_use == before and device.pool.peak >= before + 4000


def test_too_much_memory_is_refused_with_what_is_in_use(device: CudaDevice) -> None:
    with pytest.raises(errors.ResourceExhaustedError) as found:
        device.allocate(1 << 23)
    assert "in use here" in str(found.value) and "free" in str(found.value)
    assert got(device, put(device, np.ones(3, np.float32))).sum() == 3


def test_the_limit_of_the_options_is_kept() -> None:
    tools = toolkit(seed=0)
    opened = install(Host(), tools)
    opened.pool.limit = opened.pool.in_use + 1024
    opened.allocate(512)
    with pytest.raises(errors.ResourceExhaustedError, match="the limit of this process"):
        opened.allocate(4096)


def test_a_block_is_freed_once(device: CudaDevice) -> None:
    queue = device.new_queue()
    with device.current():
        block = queue.allocate(64)
        with pytest.raises(errors.InvalidArgumentError, match="not of its allocate"):
            device.new_queue().free(block)
        queue.free(block)
        with pytest.raises(errors.FailedPreconditionError, match="twice|freed"):
            queue.free(block)
        with pytest.raises(errors.FailedPreconditionError, match="freed"):
            device.view(block, 0, dtypes.float32, (4,))


def test_a_view_beyond_its_block_and_of_strings_is_refused(device: CudaDevice) -> None:
    block = device.allocate(64)
    with pytest.raises(errors.InvalidArgumentError, match="beyond the end"):
        device.view(block, 32, dtypes.float32, (9,))
    with pytest.raises(errors.InvalidArgumentError, match="can't hold string"):
        device.view(block, 0, dtypes.string, (1,))


def test_host_code_is_told_that_it_reads_a_gpus_memory(device: CudaDevice) -> None:
    with pytest.raises(TypeError, match="as if it were a NumPy array"):
        np.asarray(put(device, np.ones(2, np.float32)))


def test_a_launch_is_packed_once_and_replayed(device: CudaDevice) -> None:
    queue, x = device.new_queue(), put(device, np.arange(5, dtype=np.float32))
    launch = Launcher(device).launch(
        queue, device.images.function(TWICE, "twice"), (1,), (32,), (u64(x.address), i64(5))
    )
    with device.current():
        launch.run()
        queue.synchronize()
        replay = queue.capture(launch.run)
        np.testing.assert_array_equal(got(device, x), np.arange(5) * 2)  # recording runs nothing
        replay()
        replay()
        queue.synchronize()
    np.testing.assert_array_equal(got(device, x), np.arange(5) * 8)
    assert queue.replays == 2


@pytest.mark.parametrize(
    "call", ["allocate", "synchronize", "set_arguments", "capture", "staging", "outside event", "convolution", "replay"]
)
def test_what_a_recording_forbids_is_refused_and_the_queue_goes_on(device: CudaDevice, call: str) -> None:
    queue, other = device.new_queue(), device.new_queue()
    x = put(device, np.ones(4, np.float32))
    outside = other.record()
    with device.current():
        replay = other.capture(lambda: None)
    dims = (1, 1, 1, 1)
    asked = Convolution("y", "float32", dims, dims, dims, (0, 0), (0, 0), (1, 1), (1, 1))
    calls = {
        "allocate": lambda: queue.allocate(64),
        "synchronize": queue.synchronize,
        "set_arguments": lambda: queue.set_arguments(b"x" * 8),
        "capture": lambda: queue.capture(lambda: None),
        "staging": lambda: device.staging(64),
        "outside event": lambda: queue.wait(outside),
        "convolution": lambda: device.convolution_plan(asked),
        "replay": replay,
    }

    def body() -> None:
        try:
            calls[call]()
        except errors.FailedPreconditionError:
            pass  # who swallows it still gets it from capture

    with device.current():
        with pytest.raises(errors.FailedPreconditionError, match="refused while"):
            queue.capture(body)
        queue.copy(x, x)
        queue.synchronize()


def test_a_recording_that_needs_code_begins_anew_when_that_is_loaded(device: CudaDevice) -> None:
    """A branch that no step took before is recorded all the same, with kernels that were loaded for none."""
    queue, x = device.new_queue(), put(device, np.arange(5, dtype=np.float32))
    sources = [
        TWICE,
        source(name="more", code="GD_KERNEL(more)(float* x, i64 n) { GD_GRID_LOOP(i64, i, n) x[i] += 1; }"),
    ]
    tried: list[int] = []

    def body() -> None:
        tried.append(len(tried))
        for each in sources:
            function = device.images.function(each, each.name)
            Launcher(device).launch(queue, function, (1,), (32,), (u64(x.address), i64(5))).run()

    with device.current():
        queue.capture(body)()
        queue.synchronize()
        np.testing.assert_array_equal(got(device, x), np.arange(5) * 2 + 1)
        assert len(tried) == 3

        broken = source(name="broken", code="this is no C++")
        with pytest.raises(errors.KernelRefused, match="does not compile"):
            queue.capture(lambda: device.images.function(broken, "broken"))  # type: ignore[arg-type, return-value]
        queue.capture(lambda: None)()


def test_an_error_within_a_recording_passes_through(device: CudaDevice) -> None:
    queue = device.new_queue()

    def body() -> None:
        raise KeyboardInterrupt

    with device.current():
        with pytest.raises(KeyboardInterrupt):
            queue.capture(body)
        queue.synchronize()
    assert gc.isenabled()


@pytest.mark.parametrize("nbytes", [0, 5, 8, 64, 72, 512, 4032, 4037, 4040, 65536])
def test_step_arguments_of_any_length_arrive(device: CudaDevice, nbytes: int) -> None:
    queue = device.new_queue()
    data = bytearray(np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8).tobytes())
    with device.current():
        queue.set_arguments(data)
        expected, data[:] = bytes(data), bytes(nbytes)  # free at once
        queue.synchronize()
    found = got(device, device.view(queue.arguments.block, 0, dtypes.uint8, (nbytes,)))
    assert found.tobytes() == expected


def test_step_arguments_that_are_too_long_are_refused(device: CudaDevice) -> None:
    with device.current(), pytest.raises(errors.InvalidArgumentError, match="too long"):
        device.new_queue().set_arguments(bytes(device.argument_bytes + 8))


def test_an_error_that_a_kernel_notes_is_raised_once_with_its_node(device: CudaDevice) -> None:
    class Node:
        origin, site = "lookup", "train.py:3"

    queue = device.new_queue()
    words = device.words.address(queue)
    code = device.words.code(Node(), lambda a, b: errors.InvalidArgumentError(f"index {a} of {b}"))  # type: ignore[arg-type]
    note = source(
        name="note",
        code="GD_KERNEL(note)(i64* words, i64 code) { words[0] = 7; words[1] = 5; __threadfence_system(); words[2] = code; }",
    )
    params = (u64(words), u64(code))
    launch = Launch(device.driver, device.images.function(note, "note"), (1,), (1,), 0, params, queue.stream)
    with device.current():
        launch.run()
        with pytest.raises(errors.InvalidArgumentError, match="index 7 of 5") as found:
            queue.synchronize()
        assert (found.value.op, found.value.site) == ("lookup", "train.py:3")
        queue.synchronize()


@pytest.mark.parametrize("refusals", [1, 2])
def test_a_fence_that_is_refused_waits_all_the_same(device: CudaDevice, refusals: int) -> None:
    """Whoever called it takes it that the work is done."""
    driver: Any = device.driver
    queue, x, got = device.new_queue(), put(device, np.ones(256, np.float32)), device.staging(1024).view(np.float32)
    got[:] = 0
    with device.current():
        queue.to_host(x, got)
        driver.faults.reset()
        for number in range(1, refusals + 1):
            driver.faults.at(number, 801, "stream_synchronize")
        with pytest.raises(errors.InternalError, match="run what was queued on cuda:0: not supported") as raised:
            queue.synchronize()
    told = "\n".join([*getattr(raised.value, "__notes__", ()), *getattr(raised.value.__cause__, "__notes__", ())])
    assert ("and again" in told) == (refusals == 2)
    assert (got == 1).all() == (refusals == 1)
    queue.synchronize()


def test_a_source_that_does_not_compile_is_told_with_the_compilers_log(device: CudaDevice) -> None:
    broken = source(name="broken", code="GD_KERNEL(broken)(float* x) { x[0] = nonsense; }")
    with pytest.raises(errors.KernelRefused, match="nonsense"):
        device.images.function(broken, "broken")


def test_a_kernel_that_fails_loses_the_device(device: CudaDevice) -> None:
    trap = source(name="trap", code="GD_KERNEL(trap)(int n) { if (n > 1) __trap(); }")
    queue = device.new_queue()
    function = device.images.function(trap, "trap")
    launch = Launch(device.driver, function, (1,), (1,), 0, (i32(2),), queue.stream)
    with device.current():
        launch.run()
        for _ in range(2):
            with pytest.raises(errors.DeviceLostError):
                queue.synchronize()
    driver: Any = device.driver
    driver.log.reset()
    with pytest.raises(errors.DeviceLostError):
        device.allocate(16)
    assert not driver.log.calls  # it is asked nothing more
    device.driver.misuses.clear()  # type: ignore[attr-defined]


def test_another_devices_queue_is_not_made_current() -> None:
    host = Host()
    first = install(host, toolkit(gpus=2, seed=1))
    second = host.open_device("/device:cuda:1")
    with pytest.raises(errors.InvalidArgumentError, match="not its own"):
        first.activate(second.new_queue())


@pytest.mark.parametrize("before", [0, 1])
def test_what_was_current_on_a_thread_is_current_again(before: int) -> None:
    host = Host()
    first = install(host, toolkit(gpus=2, seed=1))
    second: Any = host.open_device("/device:cuda:1")
    driver, found = first.driver, []

    def work() -> None:
        driver.set_device(before)
        for device in (first, second, first):
            with device.current():
                found.append(driver.get_device())
                with second.current():
                    found.append(driver.get_device())
                found.append(driver.get_device())
            found.append(driver.get_device())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [0, 1, 0, before, 1, 1, 1, before, 0, 1, 0, before]


def test_work_on_one_gpu_opens_no_other() -> None:
    """A thread that has no context is on GPU 0, as far as the driver says; making that current again would open it."""
    driver: Any = toolkit(gpus=3, seed=1).driver
    tools = replace(toolkit(), driver=driver, blas=None)
    device = install(Host(), tools, 1)
    assert got(device, put(device, np.ones(3, np.float32))).sum() == 3
    with pytest.raises(errors.ResourceExhaustedError, match="of the GPU's"):
        device.allocate(1 << 40)
    assert driver.bindings.opened == {1}
    driver.set_device(0)
    with device.current():
        assert driver.get_device() == 1
    assert driver.get_device() == 0
    driver.verify()


def test_the_launch_service_has_a_version(device: CudaDevice) -> None:
    service = device.service("cuda-launch", 1)
    assert service.version == 1 and service.architecture == "sm_90a"
    with pytest.raises(errors.NotFoundError, match="version 2"):
        device.service("cuda-launch", 2)


def test_structs_travel_by_value(device: CudaDevice) -> None:
    code = "struct Pair { i32 a; i32 b; i64 c; }; GD_KERNEL(sum)(Pair p, i64* out) { *out = p.a + p.b + p.c; }"
    queue, out = device.new_queue(), put(device, np.zeros(1, np.int64))
    function = device.images.function(source(name="sum", code=code), "sum")
    packed = raw(i32(3) + i32(-5) + i64(1 << 40))
    launch = Launch(device.driver, function, (1,), (1,), 0, (packed, u64(out.address)), queue.stream)
    with device.current():
        launch.run()
        queue.synchronize()
    assert got(device, out)[0] == (1 << 40) - 2


def test_codes_of_error_words_are_reused_and_forgotten(device: CudaDevice) -> None:
    class Node:
        origin, site = "lookup", "train.py:3"

    bindings = Bindings(device, device.new_queue(), Node())  # type: ignore[arg-type]
    before = len(device.words._made)
    for step in range(1000):  # what is told in every step takes the codes of the step before
        bindings.again()
        codes = [bindings.code(ErrorWord(lambda a, b, n=step: errors.InvalidArgumentError(f"{n}"))) for _ in range(2)]
        assert len(set(codes)) == 2
    assert len(device.words._made) == before + 2

    def owner() -> None: ...

    bindings.end_with(owner)
    del owner
    assert len(device.words._made) == before


def test_a_kernel_of_another_package_notes_an_error_that_the_fence_raises(device: CudaDevice) -> None:
    class Node:
        origin, site = "lookup", "train.py:3"

    code = "GD_KERNEL(note)(i64* word, i64 code) { word[0] = 7; word[1] = 2; word[2] = code; }"
    queue, service = device.new_queue(), device.service("cuda-launch", 1)
    before = len(device.words._made)
    fault = service.fault(queue, Node(), lambda a, b: errors.InvalidArgumentError(f"{a} at {b}"))
    function = device.images.function(source(name="note", code=code), "note")
    note = service.launch(queue, function, (1,), (1,), (u64(fault.address), u64(fault.code)))
    with device.current():
        note.run()
        with pytest.raises(errors.InvalidArgumentError, match="7 at 2") as raised:
            queue.synchronize()
    assert (raised.value.op, raised.value.site) == ("lookup", "train.py:3")
    del fault
    assert len(device.words._made) == before


def test_codes_may_be_forgotten_by_the_collector_while_another_one_is_made(device: CudaDevice) -> None:
    """It runs finalizers of what nobody holds any more wherever something is made, on the thread that makes it."""
    held = [device.words.code(_Node(lambda: None), lambda a, b: errors.InvalidArgumentError(""))]
    done = threading.Event()

    def make() -> None:
        device.words.code(_Node(lambda: device.words.forget(held)), lambda a, b: errors.InvalidArgumentError(""))
        done.set()

    threading.Thread(target=make, daemon=True).start()
    assert done.wait(30), "it waits for itself"
    assert held[0] not in device.words._made


class _Node:
    """A node whose line of the user's is looked up, and meanwhile something happens."""

    origin = "lookup"

    def __init__(self, happens: Callable[[], None]) -> None:
        self._happens = happens

    @property
    def site(self) -> str:
        self._happens()
        return "train.py:3"


def test_memory_may_outlive_the_queue_in_whose_order_it_was_taken(
    device: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    destroyed: list[int] = []
    destroy = device.driver.stream_destroy
    monkeypatch.setattr(device.driver, "stream_destroy", lambda stream: (destroyed.append(stream), destroy(stream)))
    gc.collect()
    device.pool.settle()
    before = device.pool.in_use
    queue = device.new_queue()
    array, other = queue.empty(dtypes.float32, (64,)), queue.empty(dtypes.float32, (64,))
    stream = queue.stream
    del queue
    gc.collect()
    device.pool.settle()
    assert destroyed == [stream]
    del array
    device.pool.give(other.block)
    device.pool.settle()
    assert device.pool.in_use == before
