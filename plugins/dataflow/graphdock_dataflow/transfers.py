"""Copies of buffers between memory spaces, to and from the host's own small numbers too; waits for devices with queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import HOST_MEMORY, SCALAR, Device, DType, QueuedDevice
from graphdock.contracts.runtime.shape_checks import predicate_check

__all__ = ["copied", "copy_to", "fenced", "from_host", "mover", "read_only", "to_host"]


def to_host(device: Device, buffer: Any, dtype: DType) -> Any:
    """A buffer of a device's memory as a host array; of host memory the buffer itself."""
    if device.memory_space == HOST_MEMORY:
        return buffer
    made = np.empty(device.shape_of(buffer), dtype.np)
    device.to_host(buffer, made)
    return made


def from_host(device: Device, array: Any, dtype: DType) -> Any:
    """A new buffer with the elements of a host array; for host memory the array itself."""
    if device.memory_space == HOST_MEMORY:
        return array
    made = device.empty(dtype, array.shape)
    device.from_host(np.asarray(array, order="C"), made)
    return made


def copy_to(target: Any, device: Device, array: Any) -> None:
    """Write a host array into a buffer of a device."""
    if device.memory_space == HOST_MEMORY:
        np.copyto(target, array)
    else:
        device.from_host(np.asarray(array, order="C"), target)


def copied(device: Any, buffer: Any) -> Any:
    """A buffer of its own with the same elements."""
    if isinstance(buffer, np.ndarray):
        return np.array(buffer, order="C")
    made = device.empty_like(buffer)
    device.copy(buffer, made)
    return made


def read_only(buffer: Any) -> Any:
    """A host array as one that can't be written; any other buffer as it is."""
    if not isinstance(buffer, np.ndarray) or not buffer.flags.writeable:
        return buffer
    view = buffer.view()
    view.flags.writeable = False
    return view


def fenced(device: Device, compute: Callable[..., Any], streams: Sequence[Any]) -> Callable[..., Any]:
    """``compute`` of a kernel; of a device with queues one that gives its work to the private queue, and waits until it is done.

    Args:
      streams: random streams of the kernel, whose ordinals it finds in the queue's step arguments.
    """
    if not isinstance(device, QueuedDevice):
        return compute
    for i, stream in enumerate(streams):
        stream.slot = 8 * i

    def run(*args: Any) -> Any:
        with device.at_once() as queue:
            if streams:
                queue.set_arguments(b"".join([s.ordinal.to_bytes(8, "little") for s in streams]))
            return compute(*args)

    return run


class mover:
    """Function of a buffer that gives it in another memory space.

    Args:
      source, target: memory spaces, or the host's own small numbers. ``devices``: of each memory space one that copies there.
    """

    def __init__(self, source: str, target: str, dtype: DType, devices: Any) -> None:
        self._source, self._target, self._dtype, self._devices = source, target, dtype, devices

    def __call__(self, buffer: Any) -> Any:
        if self._target == SCALAR:
            if self._source != HOST_MEMORY:
                buffer = to_host(self._devices[self._source], buffer, self._dtype)
            predicate_check(buffer)
            return buffer.item()
        if self._source == SCALAR:
            host = np.array(buffer, self._dtype.np)
        else:
            host = to_host(self._devices[self._source], buffer, self._dtype)
        return from_host(self._devices[self._target], host, self._dtype)
