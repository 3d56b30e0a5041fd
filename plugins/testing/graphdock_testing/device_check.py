"""The device part of conformance: memory, copies, queues, events and recordings of a device, without any kernel.

Each check is a function of an open device and asks what the contract promises (:mod:`graphdock.contracts.device`,
:mod:`graphdock.contracts.queue`) and a step relies on. Checks of queues queue work first and fence last, so that a device that runs
late does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from graphdock.contracts.device import Device
from graphdock.contracts.queue import Queue, QueuedDevice
from graphdock.dtypes import ALL
from graphdock.errors import GraphdockError, InvalidArgumentError, ResourceExhaustedError, UnimplementedError

from graphdock_testing.adversary.events import LATE_CHECKS
from graphdock_testing.case import ConformanceError
from graphdock_testing.driver.detector import RaceError
from graphdock_testing.numeric import same_bits

__all__ = ["CHECKS", "QUEUE_CHECKS", "check_device", "checks_of"]

Array = np.ndarray[Any, Any]
_FLOAT = ALL["float32"]
_BYTE = ALL["uint8"]
_DTYPES = ("bool", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")


def _numbers(count: int, start: float = 0.0) -> Array:
    return np.arange(start, start + count, dtype=np.float32)


def _buffer(device: Device, array: Array) -> Any:
    made = device.empty(_FLOAT, array.shape)
    device.from_host(array, made)
    return made


def _read(device: Device, buffer: Any, shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    host = np.full(shape, 77, dtype)
    device.to_host(buffer, host)
    return host


def _same(got: Array, want: Array, what: str) -> None:
    if not same_bits(got, want):
        raise ConformanceError(f"{what}: got {got.ravel()[:8].tolist()}, expected {want.ravel()[:8].tolist()}")


# -- any device


def _round_trip(device: Device) -> None:
    """What from_host brings, to_host takes back, whatever the dtype and shape; the array may be reused at once."""
    for name in _DTYPES:
        dtype = ALL[name]
        for shape in ((), (1,), (5,), (0,), (3, 1, 2)):
            bits = np.random.default_rng(len(shape)).integers(0, 2, (*shape, dtype.size), np.uint8)
            array = np.ascontiguousarray(bits).view(dtype.np).reshape(shape)
            sent = array.copy()
            try:
                buffer = device.empty(dtype, shape)
            except (InvalidArgumentError, UnimplementedError):
                if name == "float32":
                    raise
                break  # it does not hold this dtype
            device.from_host(sent, buffer)
            sent[...] = 0
            if tuple(device.shape_of(buffer)) != shape:
                raise ConformanceError(f"shape_of a buffer of shape {shape} is {device.shape_of(buffer)}")
            found = device.dtype_of(buffer)
            if found is not None and found != dtype.np:
                raise ConformanceError(f"dtype_of a buffer of {name} is {found}")
            _same(_read(device, buffer, shape, dtype.np), array, f"{name}{list(shape)} there and back")


def _copies(device: Device) -> None:
    """copy gives the target what the source has, and leaves the source alone."""
    source, target = _buffer(device, _numbers(6)), _buffer(device, _numbers(6, 10))
    device.copy(source, target)
    device.from_host(_numbers(6, 20), source)
    _same(_read(device, target, (6,)), _numbers(6), "the target of a copy, after the source was written")
    _same(_read(device, source, (6,)), _numbers(6, 20), "the source of a copy")


def _views(device: Device) -> None:
    """Views of one block lie where they were asked for, side by side, and are the block's own memory."""
    align = device.alignment
    storage = device.allocate(4 * align, align)
    count = align // 4
    views = [device.view(storage, i * align, _FLOAT, (count,)) for i in range(4)]
    for i in (3, 0, 2, 1):
        device.from_host(_numbers(count, 100.0 * i), views[i])
    for i, view in enumerate(views):
        _same(_read(device, view, (count,)), _numbers(count, 100.0 * i), f"view {i} of a block")
    whole = device.view(storage, 0, _FLOAT, (4, count))
    want = np.stack([_numbers(count, 100.0 * i) for i in range(4)])
    _same(_read(device, whole, (4, count)), want, "a view of the whole block")
    tail = device.view(storage, 3 * align, _BYTE, (align,))
    _same(_read(device, tail, (align,), np.uint8), want[3].view(np.uint8), "bytes of the last part of a block")


def _blocks(device: Device) -> None:
    """Blocks that are held together share nothing."""
    held = [_buffer(device, _numbers(5, 50.0 * i)) for i in range(8)]
    for i, buffer in enumerate(held):
        _same(_read(device, buffer, (5,)), _numbers(5, 50.0 * i), f"block {i} of 8")
    extent = getattr(device, "extent", None)
    places = [] if extent is None else sorted(p for p in map(extent, held) if p is not None)
    for (start, size), (following, _) in zip(places, places[1:], strict=False):
        if start + size > following:
            raise ConformanceError("two blocks that are held together overlap")
    for nbytes in (1, 5, 300):
        storage = device.allocate(nbytes, device.alignment)
        place = None if extent is None else extent(device.view(storage, 0, _BYTE, (nbytes,)))
        if place is not None and (place[0] % device.alignment or place[1] != nbytes):
            raise ConformanceError(
                f"a block of {nbytes} bytes begins at {place[0]:#x} and has {place[1]}; alignment is {device.alignment}"
            )


def _no_memory(device: Device) -> None:
    """A block that does not fit is refused as such, and the next one is given."""
    if not device.info.memory_bytes:
        return
    try:
        device.allocate(4 * device.info.memory_bytes, device.alignment)
    except ResourceExhaustedError:
        _same(_read(device, _buffer(device, _numbers(3)), (3,)), _numbers(3), "a buffer after a refused one")
    else:
        raise ConformanceError(f"it gave 4 times the {device.info.memory_bytes} bytes that it says it has")


def _refused(what: str, call: Callable[[], Any]) -> None:
    """Raise unless the call raises an error of graphdock's."""
    try:
        call()
    except GraphdockError:
        return
    raise ConformanceError(f"{what} was not refused")


def _ignored(value: Any) -> None:
    """For a body, which returns nothing."""


# -- devices with queues


@contextmanager
def _current(device: QueuedDevice, queue: Queue) -> Iterator[None]:
    previous = device.activate(queue)
    try:
        yield
    finally:
        device.restore(previous)


def _slot(device: QueuedDevice, array: Array) -> Array:
    slot = device.staging(array.nbytes)[: array.nbytes].view(array.dtype).reshape(array.shape)
    slot[...] = array
    return slot


def _queue_order(device: QueuedDevice) -> None:
    """Work of one queue runs in its order, copies to and from staging memory among it."""
    queue = device.new_queue()
    a, b, c = (_buffer(device, _numbers(6, start)) for start in (0, 10, 20))
    sent, back = _slot(device, _numbers(6, 30)), _slot(device, _numbers(6, 40))

    with _current(device, queue):
        queue.from_host(sent, a)
        queue.copy(a, b)
        queue.copy(c, a)
        queue.copy(b, c)
        queue.to_host(c, back)
    queue.synchronize()
    _same(np.array(back), _numbers(6, 30), "what went through three copies of a queue")
    _same(_read(device, a, (6,)), _numbers(6, 20), "a buffer written again behind its copy")


def _events(device: QueuedDevice) -> None:
    """A queue that waits for another one's event runs what comes then behind what was recorded, at its latest record."""
    first, second = device.new_queue(), device.new_queue()
    event = first.event()
    for turn in range(3):
        a, b, c = (_buffer(device, _numbers(6, start + 100 * turn)) for start in (0, 10, 20))
        with _current(device, first):
            first.copy(a, b)
        first.record(event)
        second.wait(event)
        with _current(device, second):
            second.copy(b, c)
        done = second.record()
        first.wait(done)
        with _current(device, first):
            first.copy(a, b)
        device.wait_host(done)
        if not device.passed(done) or not device.passed(event):
            raise ConformanceError("an event has not passed although the host waited for it, or for what waits for it")
        _same(
            _read(device, c, (6,)), _numbers(6, 100 * turn), f"what a second queue copied behind an event, turn {turn}"
        )
        first.synchronize()


def _fences(device: QueuedDevice) -> None:
    """Behind a fence the work of the queue is done; behind the device's, that of every queue."""
    queues = [device.new_queue(), device.new_queue()]
    sources = [_buffer(device, _numbers(6, 10.0 * i)) for i in range(2)]
    slots = [_slot(device, _numbers(6, 500)) for _ in queues]
    for queue, source, slot in zip(queues, sources, slots, strict=True):
        with _current(device, queue):
            queue.to_host(source, slot)
    queues[0].synchronize()
    _same(np.array(slots[0]), _numbers(6), "staging memory behind its queue's fence")
    device.synchronize()
    _same(np.array(slots[1]), _numbers(6, 10), "staging memory behind the device's fence")


def _freed_memory(device: QueuedDevice) -> None:
    """A freed block serves another owner, of this queue or of another, only behind the work that was queued on it."""
    queue, other = device.new_queue(), device.new_queue()
    a, b, c = (_buffer(device, _numbers(64, start)) for start in (0, 100, 200))

    with _current(device, queue):
        block = queue.allocate(256)
        view = device.view(block, 0, _FLOAT, (64,))
        queue.copy(a, view)
        queue.copy(view, b)
        queue.free(block)
        again = queue.allocate(256)
        queue.copy(c, device.view(again, 0, _FLOAT, (64,)))
        queue.free(again)
    with _current(device, other):
        others = device.view(other.allocate(256), 0, _FLOAT, (64,))
        other.copy(c, others)
    other.synchronize()
    mine = _buffer(device, _numbers(64, 300))
    queue.synchronize()
    _same(_read(device, others, (64,)), _numbers(64, 200), "a block of another queue")
    _same(_read(device, mine, (64,)), _numbers(64, 300), "a block of no queue")
    _refused("a second free of a block", lambda: queue.free(again))
    _same(_read(device, b, (64,)), _numbers(64), "what was copied from a block before it was freed")


def _step_arguments(device: QueuedDevice) -> None:
    """set_arguments takes effect in the order of the queue, and its source may be changed at once."""
    queue = device.new_queue()
    rounds = [bytearray(range(k, k + 16)) for k in (1, 50)]
    kept = [np.frombuffer(bytes(data), np.uint8) for data in rounds]
    targets = [device.empty(_BYTE, (device.argument_bytes,)) for _ in rounds]

    with _current(device, queue):
        for data, target in zip(rounds, targets, strict=True):
            queue.set_arguments(data)
            data[:] = bytes(16)
            queue.copy(queue.arguments, target)
    queue.synchronize()
    for target, want in zip(targets, kept, strict=True):
        got = _read(device, target, (device.argument_bytes,), np.uint8)[:16]
        _same(got, want, "the step arguments as work of the queue saw them")
    with _current(device, queue):
        too_many = bytes(device.argument_bytes + 1)
        _refused("more step arguments than there is room for", lambda: queue.set_arguments(too_many))


def _recordings(device: QueuedDevice) -> None:
    """Recording runs nothing; each replay reads what memory holds then; what a recording can't hold is refused."""
    queue = device.new_queue()
    a, b = _buffer(device, _numbers(6)), _buffer(device, _numbers(6, 10))
    with _current(device, queue):
        replay = queue.capture(lambda: queue.copy(a, b))
    if replay is None:
        return
    queue.synchronize()
    _same(_read(device, b, (6,)), _numbers(6, 10), "a buffer that a recording writes, before its first replay")
    for turn in (1, 2):
        device.from_host(_numbers(6, 100.0 * turn), a)
        with _current(device, queue):
            replay()
        queue.synchronize()
        _same(_read(device, b, (6,)), _numbers(6, 100.0 * turn), f"a buffer that a recording writes, replay {turn}")

    def fails() -> None:
        queue.copy(a, b)
        raise KeyError("of the body")

    with _current(device, queue):
        _refused("allocate within a recording", lambda: queue.capture(lambda: _ignored(queue.allocate(64))))
        _refused("a fence within a recording", lambda: queue.capture(queue.synchronize))
    try:
        with _current(device, queue):
            queue.capture(fails)
    except KeyError:
        pass
    else:
        raise ConformanceError("an error of a recorded body did not pass through capture")
    with _current(device, queue):
        queue.copy(b, a)
    queue.synchronize()
    _same(_read(device, a, (6,)), _numbers(6, 200), "a copy behind recordings that failed")


CHECKS: Mapping[str, Callable[[Any], None]] = {
    "round trip": _round_trip,
    "copy": _copies,
    "views": _views,
    "blocks": _blocks,
    "no memory": _no_memory,
}
QUEUE_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "order": _queue_order,
    "events": _events,
    "fences": _fences,
    "freed memory": _freed_memory,
    "step arguments": _step_arguments,
    "recordings": _recordings,
}


def checks_of(device: Device) -> Mapping[str, Callable[[Any], None]]:
    """What is checked of a device: its checks by name."""
    return {**CHECKS, **QUEUE_CHECKS, **LATE_CHECKS} if isinstance(device, QueuedDevice) else CHECKS


def check_device(device: Device, name: str) -> None:
    """Run one check.

    Raises:
      ConformanceError: what the device does otherwise, or raises.
    """
    try:
        previous = device.activate()
        try:
            checks_of(device)[name](device)
        finally:
            if isinstance(device, QueuedDevice):
                device.restore(previous)
    except (ConformanceError, RaceError):
        raise
    except Exception as error:  # whatever a device raises
        raise ConformanceError(f"{type(error).__name__}: {error}") from error
