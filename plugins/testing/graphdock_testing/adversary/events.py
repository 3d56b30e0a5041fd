"""The device checks of the adversary: what events, frees, arguments and threads promise, behind a queue that is busy.

Nothing here is told by a clock. Each check asks what can't be where the contract is kept: work behind a ``wait`` that is done while
the event has not passed, an event that has passed while what was queued before its record is not done, a block that two queues
hold. A device may do all its work at once: then nothing is late, and nothing is found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from graphdock.contracts.queue import Queue, QueuedDevice
from graphdock.dtypes import ALL

from graphdock_testing.adversary.load import Load, current
from graphdock_testing.case import ConformanceError

__all__ = ["LATE_CHECKS"]

_FLOAT, _COUNT, _ROUNDS, _STEPS = ALL["float32"], 256, 4, 24
#: Looks at an event after which its queue is fenced: behind its fence it has passed.
_LOOKS = 200_000
#: Loads, each four times as long as the one before, behind which a call that does not wait comes back once at least.
_TRIES = 3


def _full(device: QueuedDevice, value: float) -> Any:
    made = device.empty(_FLOAT, (_COUNT,))
    device.from_host(np.full(_COUNT, value, np.float32), made)
    return made


def _read(device: QueuedDevice, buffer: Any) -> float:
    host = np.empty(_COUNT, np.float32)
    device.to_host(buffer, host)
    return float(host[0]) if (host == host[0]).all() else float("nan")


def _grow(device: QueuedDevice, load: Load, event: Any) -> None:
    """Make the next load longer, where a queue that waits for nothing is not done before the event of this one has passed."""
    other = device.new_queue()
    a, b = _full(device, 1.0), _full(device, 2.0)
    with current(device, other):
        other.copy(a, b)
    other.synchronize()
    if device.passed(event):
        load.heavier()


def _any_passed(device: QueuedDevice, queue: Queue, *events: Any) -> None:
    """Return once one of the events has passed, the first of which was recorded on the queue.

    Raises:
      ConformanceError: none has, although the fence of the queue came back.
    """
    for _ in range(_LOOKS):
        if any(device.passed(event) for event in events):
            return
    queue.synchronize()
    if not any(device.passed(event) for event in events):
        raise ConformanceError("an event has not passed although the fence of its queue came back")


def _waits(device: QueuedDevice) -> None:
    """What a queue was given behind a wait has not run while the event has not passed."""
    load = Load(device)
    first, second = device.new_queue(), device.new_queue()
    event = first.event()
    for turn in range(_ROUNDS):
        a, b, c = _full(device, turn + 1.0), _full(device, -1.0), _full(device, -2.0)
        with current(device, first):
            load.put(first)
            first.copy(a, b)
        first.record(event)
        second.wait(event)
        with current(device, second):
            second.copy(b, c)
        behind = second.record()
        _grow(device, load, event)
        _any_passed(device, first, event, behind)
        if not device.passed(behind):
            device.wait_host(behind)
        early = not device.passed(event)
        device.wait_host(event)
        found = _read(device, c)
        first.synchronize()
        second.synchronize()
        if early or found != turn + 1.0:
            raise ConformanceError(
                f"round {turn + 1}: a queue did not wait for the event of a busy one: "
                + ("its work was done before the event had passed" if early else f"it copied {found}, for {turn + 1.0}")
            )


def _records(device: QueuedDevice) -> None:
    """An event passes only when all that was queued before its latest record is done."""
    load = Load(device)
    queue = device.new_queue()
    event = queue.event()
    for turn in range(_ROUNDS):
        a, b = _full(device, turn + 1.0), _full(device, -1.0)
        with current(device, queue):
            load.put(queue)
            queue.copy(a, b)
        queue.record(event)
        other = turn % 2 == 1
        if other:
            device.wait_host(event)
        _any_passed(device, queue, event)
        found = _read(device, b)
        queue.synchronize()
        if found != turn + 1.0:
            how = "wait_host came back" if other else "an event had passed"
            raise ConformanceError(f"round {turn + 1}: {how} while a copy from before its record had not run")


def _fences(device: QueuedDevice) -> None:
    """Behind a fence all work of a busy queue is done."""
    load = Load(device)
    for turn, fence in enumerate(("queue", "device")):
        queue = device.new_queue()
        a, b = _full(device, turn + 1.0), _full(device, -1.0)
        with current(device, queue):
            load.put(queue)
            queue.copy(a, b)
        (queue if fence == "queue" else device).synchronize()
        found = _read(device, b)
        queue.synchronize()
        if found != turn + 1.0:
            raise ConformanceError(f"the fence of the {fence} came back while a copy of a busy queue had not run")


def _pools(device: QueuedDevice) -> None:
    """A block that a busy queue has freed serves no other queue while work on it is queued."""
    load = Load(device)
    first, second = device.new_queue(), device.new_queue()
    said = 0
    for turn in range(2 * _ROUNDS):
        a, b, c = _full(device, turn + 1.0), _full(device, -1.0), _full(device, -9.0)
        with current(device, first):
            block = first.allocate(4 * _COUNT)
            view = device.view(block, 0, _FLOAT, (_COUNT,))
            first.copy(a, view)
            written = first.record()
            load.put(first)
            loaded = first.record()
            first.copy(view, b)
            first.free(block)
        del view, block
        device.wait_host(written)  # else the other queue may write before this one has, and nothing is to be seen
        held = []
        with current(device, second):
            for _ in range(4):
                other = second.allocate(4 * _COUNT)
                second.copy(c, device.view(other, 0, _FLOAT, (_COUNT,)))
                held.append(other)
        outside = [_full(device, -8.0) for _ in range(4)]
        second.synchronize()
        early = load.late and device.passed(loaded)
        if early:
            load.heavier()  # it was done before the other queue could write: this round says nothing
        said += not early
        first.synchronize()
        found = _read(device, b)
        del held, outside
        if found != turn + 1.0:
            raise ConformanceError(
                f"a block that a busy queue had freed was given to another one: a copy from before the free read {found}, "
                f"for {turn + 1.0}"
            )
        if said == _ROUNDS:
            return


def _arguments(device: QueuedDevice) -> None:
    """Step arguments are taken when they are set, and arrays of the host when from_host of the device returns."""
    load = Load(device)
    queue = device.new_queue()
    for turn in range(_ROUNDS):
        data = bytearray([turn + 1] * 16)
        target = device.empty(ALL["uint8"], (device.argument_bytes,))
        with current(device, queue):
            load.put(queue)
            queue.set_arguments(data)
            data[:] = bytes([99] * 16)
            queue.copy(queue.arguments, target)
        array = np.full(_COUNT, turn + 1.0, np.float32)
        sent = device.empty(_FLOAT, (_COUNT,))
        device.from_host(array, sent)
        array[...] = 99.0
        queue.synchronize()
        host = np.empty(device.argument_bytes, np.uint8)
        device.to_host(target, host)
        if host[0] != turn + 1:
            raise ConformanceError(f"set_arguments on a busy queue read its data late: {host[0]} for {turn + 1}")
        if (found := _read(device, sent)) != turn + 1.0:
            raise ConformanceError(f"from_host of the device read its array late: {found} for {turn + 1.0}")


def _calls(device: QueuedDevice) -> None:
    """What queues work returns while its queue is busy: at a load of some length, the load has not passed by then."""
    load, queue, other = Load(device), device.new_queue(), device.new_queue()
    a = _full(device, 1.0)
    slots = [device.staging(4 * _COUNT)[: 4 * _COUNT].view(np.float32) for _ in range(2)]
    calls: Mapping[str, Callable[[Any], object]] = {
        "from_host of staging memory": lambda busy: queue.from_host(slots[0], a),
        "to_host into staging memory": lambda busy: queue.to_host(a, slots[1]),
        "set_arguments": lambda busy: queue.set_arguments(b"1234567812345678"),
        "a wait of another queue": other.wait,
    }
    for name, call in calls.items():
        for _ in range(_TRIES):
            with current(device, queue):
                load.put(queue)
                event = queue.record()
                busy = not device.passed(event)
                call(event)
                waited = busy and device.passed(event)
            queue.synchronize()
            other.synchronize()
            if not waited:
                break
            load.heavier()
        else:
            raise ConformanceError(f"{name} comes back only when what its queue was given before is done")


def _threads(device: QueuedDevice) -> None:
    """What is current is current on its thread: another thread's queue gets nothing of it, and its work waits for none."""
    load = Load(device)
    for _ in range(2 * _ROUNDS):
        if not _threads_once(device, load):
            return
        load.heavier()  # it was done before the second copy was queued: this round says nothing


def _threads_once(device: QueuedDevice, load: Load) -> bool:
    """Return whether the load was done too early to say anything."""
    queues = [device.new_queue() for _ in range(2)]
    sources = [_full(device, 1.0 + i) for i in range(2)]
    targets, between = [_full(device, -1.0) for _ in range(2)], _full(device, -2.0)
    errors: list[BaseException] = []
    turns = [threading.Event(), threading.Event(), threading.Event()]

    def second() -> None:
        try:
            turns[0].wait()
            with current(device, queues[1]):
                queues[1].copy(sources[1], targets[1])
                turns[1].set()
                turns[2].wait()
        except Exception as error:  # noqa: BLE001 - raised below, on the thread that checks
            errors.append(error)
        finally:
            turns[1].set()

    thread = threading.Thread(target=second, name="graphdock-adversary")
    thread.start()
    try:
        with current(device, queues[0]):
            load.put(queues[0])
            loaded = queues[0].record()
            queues[0].copy(sources[0], between)
            turns[0].set()
            turns[1].wait()
            queues[0].copy(between, targets[0])  # still this thread's queue, and behind its load
            queues[1].synchronize()  # a copy that it should not have been given is done too
            early = load.late and device.passed(loaded)
    finally:
        turns[0].set()
        turns[2].set()
        thread.join()
    for queue in queues:
        queue.synchronize()
    if errors:
        raise ConformanceError(f"a second thread can't use its queue: {type(errors[0]).__name__}: {errors[0]}")
    for source, target in zip((1.0, 2.0), targets, strict=True):
        if (found := _read(device, target)) != source:
            raise ConformanceError(f"two threads use two queues, and a copy gave {found} for {source}")
    return early


def _leaks(device: QueuedDevice) -> None:
    """Blocks that are freed, and buffers that nobody refers to, are there again: steps may follow one another for ever."""
    if not device.info.memory_bytes:
        return
    size = max(device.info.memory_bytes // 8, 1)
    if size > 1 << 28:
        return  # more than this is no device for tests
    queue = device.new_queue()
    for step in range(_STEPS):
        try:
            with current(device, queue):
                block = queue.allocate(size)
                queue.free(block)
                made = queue.empty(ALL["uint8"], (size,))
                del block, made
            queue.synchronize()
        except Exception as error:
            raise ConformanceError(
                f"step {step + 1} of {_STEPS} has no memory, though each gave its blocks back: {error}"
            ) from error


#: What is checked of a device with queues, beside :data:`graphdock_testing.device_check.QUEUE_CHECKS`.
LATE_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "late waits": _waits,
    "late records": _records,
    "late fences": _fences,
    "late frees": _pools,
    "late arguments": _arguments,
    "late calls": _calls,
    "threads": _threads,
    "leaks": _leaks,
}
