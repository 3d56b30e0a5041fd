"""Transfers between host arrays and device buffers of a shape that only the step knows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts.device import Device
from graphdock.contracts.queue import Queue, QueuedDevice
from graphdock.dtypes import DType

__all__ = ["pull", "push"]


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
