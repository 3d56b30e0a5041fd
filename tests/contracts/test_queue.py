"""The queue half of the device contract: what the base classes do by themselves, over a queue that runs at once."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from graphdock.contracts import Device, DeviceInfo, Queue, QueuedDevice, dtypes
from graphdock.errors import DeviceLostError, InvalidArgumentError, UnavailableError


class PromptQueue(Queue):
    """Does everything where it is called, and writes down what was called."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.name = f"prompt/{len(device.queues)}"
        self.failing: Exception | None = None
        self.arguments = np.zeros(device.argument_bytes, np.uint8)

    def _note(self, what: str) -> None:
        assert self.device.current is self or what in ("fence", "free")
        self.device.calls.append(what)

    def copy(self, src, dst):
        self._note("copy")
        np.copyto(dst, src)

    def from_host(self, array, dst):
        self._note("from_host")
        assert array.size == 0 or np.may_share_memory(array, self.device.staged[-1])
        if self.failing is not None:
            raise self.failing
        np.copyto(dst, array)
        array.view(np.uint8)[...] = 0xFF  # its content is the device's until the fence, and unspecified after it

    def to_host(self, src, dst):
        self._note("to_host")
        np.copyto(dst, src)

    def allocate(self, nbytes):
        self._note("allocate")
        return np.empty(nbytes, np.uint8)

    def free(self, storage):
        self._note("free")

    def event(self):
        return [None]

    def record(self, event=None):
        return event or self.event()

    def wait(self, event):
        pass

    def synchronize(self):
        self._note("fence")

    def set_arguments(self, data):
        self.arguments[: len(data)] = np.frombuffer(data, np.uint8)


class PromptDevice(QueuedDevice):
    argument_bytes = 64

    def __init__(self):
        super().__init__(DeviceInfo("prompt"))
        self.queues = []
        self.calls = []
        self.staged = []
        self.current = "whatever was there"

    def allocate(self, nbytes, align=64):
        assert align == self.alignment
        return np.empty(nbytes, np.uint8)

    def view(self, storage, offset, dtype, shape):
        return np.ndarray(shape, dtype.np, storage, offset)

    def new_queue(self):
        self.queues.append(PromptQueue(self))
        return self.queues[-1]

    def activate(self, queue=None):
        previous, self.current = self.current, queue or self.queue
        return previous

    def restore(self, previous):
        self.current = previous

    def staging(self, nbytes):
        self.staged.append(np.full(nbytes, 0xFF, np.uint8))
        return self.staged[-1]

    def passed(self, event):
        return True

    def wait_host(self, event):
        pass

    def synchronize(self):
        pass


@pytest.fixture
def device():
    return PromptDevice()


def test_copies_outside_of_steps_are_fenced_and_leave_what_was_current(device):
    want = np.arange(6, dtype=np.float32).reshape(2, 3)
    buffer, other = device.empty(dtypes.float32, (2, 3)), device.empty(dtypes.float32, (2, 3))
    device.from_host(want, buffer)
    device.copy(buffer, other)
    got = np.empty((2, 3), np.float32)
    device.to_host(other, got)
    assert got.tolist() == want.tolist()
    assert device.calls == ["from_host", "fence", "copy", "fence", "to_host", "fence"]
    assert device.current == "whatever was there"


def test_they_use_one_private_queue_that_is_made_when_first_asked_for(device):
    assert device.queues == []
    queue = device.queue
    device.copy(np.zeros(1), np.zeros(1))
    assert device.queues == [queue]
    assert device.queue is queue


def test_they_fence_after_a_refused_call(device):
    device.queue.failing = RuntimeError("refused")
    with pytest.raises(RuntimeError, match="refused"):
        device.from_host(np.zeros(2), np.zeros(2))
    assert device.calls == ["from_host", "fence"]
    assert device.current == "whatever was there"


def test_they_take_turns(device):
    """No call of another thread comes between a copy and its fence."""
    array = np.zeros(3, np.float32)

    def work() -> None:
        for _ in range(200):
            device.from_host(array, np.zeros(3, np.float32))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert device.calls == ["from_host", "fence"] * 800


def test_staging_memory_is_kept_for_the_next_copy_of_any_dtype(device):
    for array in (np.arange(8, dtype=np.int32), np.ones((2, 2), np.float64), np.array(True), np.zeros((0, 3))):
        dst = np.empty_like(array)
        device.from_host(array, dst)
        assert dst.tolist() == array.tolist()
    assert [m.nbytes for m in device.staged] == [32]


def test_a_large_slot_is_not_kept(device, monkeypatch):
    monkeypatch.setattr("graphdock.contracts.queue._KEPT_BYTES", 100)
    for _ in range(2):
        device.from_host(np.ones(200, np.uint8), np.empty(200, np.uint8))
    assert len(device.staged) == 2


def test_strings_are_refused(device):
    with pytest.raises(InvalidArgumentError, match="can't hold Python objects"):
        device.from_host(np.array([b"a"], object), np.empty(1, object))


def test_an_empty_buffer_of_a_queue_is_a_view_of_its_allocation(device):
    device.activate(device.queue)
    buffer = device.queue.empty(dtypes.int64, (3, 2))
    assert (buffer.shape, buffer.dtype) == ((3, 2), np.int64)
    assert device.queue.empty(dtypes.int64, (0,)).shape == (0,)
    assert device.calls == ["allocate", "allocate"]


def test_a_measurement_is_fenced_on_both_sides(device):
    seconds = device.queue.measure(lambda: device.calls.append("work"))
    assert device.calls == ["fence", "work", "fence"]
    assert seconds >= 0


def test_capture_and_extent_are_optional(device):
    assert device.queue.capture(lambda: device.calls.append("body")) is None
    assert device.calls == []
    assert device.extent(np.zeros(1)) is None


def test_what_a_class_says_of_its_devices(device):
    assert (device.stream_slots, device.alignment, PromptDevice.argument_bytes) == (2, 256, 64)
    assert Device.alignment == 64


def test_typed_facts_need_no_device():
    info = DeviceInfo("chip", architecture="sm_90", multiprocessors=132)
    assert (info.architecture, info.multiprocessors) == ("sm_90", 132)
    assert (info.shared_memory_bytes, info.warp_size) == (None, None)


def test_a_lost_device_says_which_and_why():
    error = DeviceLostError("chip:1", "an illegal address", op="y", site="train.py:3")
    assert isinstance(error, UnavailableError)
    assert (error.device, error.reason) == ("chip:1", "an illegal address")
    assert "chip:1 is lost: an illegal address" in str(error) and "op: y, made at train.py:3" in str(error)
