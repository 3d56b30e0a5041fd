"""Transfers between host arrays and device buffers of a shape that only the step knows, and calls of kernels on copies of variables
that live in other memory spaces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.contracts.device import Device
from graphdock.contracts.queue import Queue, QueuedDevice
from graphdock.dtypes import DType

__all__ = ["RemoteVariable", "pull", "push", "run_on_copies"]


def pull(worker: Device | Queue, buffer: Any, dtype: DType) -> Any:
    """A device buffer of a shape that only the step knows, as a new host array. Waits for the queue."""
    if isinstance(worker, Queue):
        slot = _slot(worker.device, dtype, worker.device.shape_of(buffer))
        worker.to_host(buffer, slot)
        worker.synchronize()
        return slot.copy()
    out = np.empty(worker.shape_of(buffer), dtype.np)
    worker.to_host(buffer, out)
    return out


def push(worker: Device | Queue, array: Any, dtype: DType) -> Any:
    """A host array of a shape that only the step knows, as a new device buffer. Waits for the queue, which reads it late."""
    buffer = worker.empty(dtype, array.shape)
    if isinstance(worker, Queue):
        slot = _slot(worker.device, dtype, array.shape)
        slot[...] = array
        worker.from_host(slot, buffer)
        worker.synchronize()
    else:
        worker.from_host(np.ascontiguousarray(array), buffer)
    return buffer


def _slot(device: QueuedDevice, dtype: DType, shape: Sequence[int]) -> Any:
    """Staging memory for one array."""
    count = math.prod(shape)
    return device.staging(max(count * dtype.size, 1))[: count * dtype.size].view(dtype.np).reshape(shape)


@dataclass(frozen=True, slots=True)
class RemoteVariable:
    """A variable among the arguments of a kernel elsewhere: where it stands there, and whether the kernel writes it."""

    positions: tuple[int, ...]
    dtype: DType
    writes: bool


def run_on_copies(
    kernel: Callable[..., Any], carried: Sequence[RemoteVariable], worker: Device | Queue, *rest: Any
) -> Any:
    """Call a kernel on copies of variables, and copy what it wrote back; all of it is done on return.

    Args:
      worker: the kernel's device, or its queue.
      rest: the same of each variable, and the arguments of the kernel.
    """
    count = len(carried)
    theirs, args = rest[:count], list(rest[count:])
    originals = []
    for item, other in zip(carried, theirs, strict=True):
        original = args[item.positions[0]]
        with _current(other):
            value = pull(other, original, item.dtype)
        with _current(worker):
            copy = push(worker, value, item.dtype)
        originals.append((original, copy))
        for position in item.positions:
            args[position] = copy
    with _current(worker):
        result = kernel(*args)
        worker.synchronize()
    for item, other, (original, copy) in zip(carried, theirs, originals, strict=True):
        if not item.writes:
            continue
        with _current(worker):
            value = pull(worker, copy, item.dtype)
        with _current(other):
            other.copy(push(other, value, item.dtype), original)
            other.synchronize()
    return result


@contextmanager
def _current(worker: Device | Queue) -> Iterator[None]:
    if isinstance(worker, Queue):
        previous = worker.device.activate(worker)
        try:
            yield
        finally:
            worker.device.restore(previous)
    else:
        worker.activate()
        yield
