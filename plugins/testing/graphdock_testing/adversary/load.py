"""Load: copies of large buffers that keep a queue busy for far longer than what is checked behind it takes.

A device that runs its work at once, or when it is asked, as the fake driver does, is loaded by one copy: what is queued first runs
first. One that has threads or hardware of its own is measured, so that work behind the load can't be done before whoever does not
wait for it: the margin is a hundredfold, and whoever finds the load done too early loads four times as much.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from graphdock.contracts.queue import Queue, QueuedDevice
from graphdock.dtypes import ALL

__all__ = ["Load", "current"]

_BYTE = ALL["uint8"]
_BYTES = 1 << 24
#: Seconds that a load lasts at first, and copies that it is at most.
_LASTS, _MOST = 0.05, 4096
#: Loads, each four times as long as the one before, that are all done when they are queued where nothing is late.
_LOOKS = 3


@contextmanager
def current(device: QueuedDevice, queue: Queue) -> Iterator[None]:
    """With the queue current on this thread."""
    previous = device.activate(queue)
    try:
        yield
    finally:
        device.restore(previous)


class Load:
    """What keeps queues of a device busy.

    Attributes:
      copies: of 16 MiB each, that one load is.
      late: work goes on after the host has queued it. Of a device that does all at once, nothing is ever late.
    """

    def __init__(self, device: QueuedDevice) -> None:
        self.device = device
        size = min(_BYTES, device.info.memory_bytes // 64 or _BYTES)
        self._buffers = [device.empty(_BYTE, (size,)) for _ in range(2)]
        for buffer in self._buffers:
            device.from_host(np.zeros(size, np.uint8), buffer)
        self.late = False
        self.copies = self._enough()
        queue, first = device.new_queue(), self.copies
        for _ in range(_LOOKS):
            with current(device, queue):
                self.put(queue)
            self.late = not device.passed(queue.record())
            queue.synchronize()
            if self.late or self.copies == 1:
                break
            self.copies *= 4
        else:
            self.copies = first  # the length of a load is nothing to a device that is never late

    def _enough(self) -> int:
        """How many copies last as long as a load is to last; 1 where the device runs nothing by itself."""
        queue = self.device.new_queue()
        each = 0.0
        for count in (1, 3):  # the first copy of a buffer may take longer than those to come
            began = time.perf_counter()
            with current(self.device, queue):
                for _ in range(count):
                    self._copy(queue)
            queue.synchronize()
            each = (time.perf_counter() - began) / count
        return min(int(_LASTS / max(each, 1e-6)) + 1, _MOST)

    def _copy(self, queue: Queue) -> None:
        queue.copy(self._buffers[0], self._buffers[1])

    def put(self, queue: Queue) -> None:
        """Queue a load. The queue is current."""
        for _ in range(self.copies):
            self._copy(queue)

    def close(self) -> None:
        """Give its memory back: plans that it was queued in may live on. No queue is at work on it."""
        self._buffers.clear()

    def heavier(self) -> None:
        """Make the loads to come four times as long."""
        self.copies = min(4 * self.copies, _MOST) if self.late else self.copies
