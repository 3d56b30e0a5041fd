"""The toy device: memory of its own, a synchronous queue, and a counter of launches."""

import threading
from collections import Counter

import numpy as np
from graphdock.contracts import Device, DeviceFactory, DeviceInfo, errors

__all__ = ["LAUNCHES", "ToyBuffer", "ToyDevice", "ToyFactory", "count"]

#: Kernel's short name -> how often it ran, on all toy devices of the process.
LAUNCHES: Counter = Counter()
_lock = threading.Lock()


def count(kernel):
    """Count one launch."""
    with _lock:
        LAUNCHES[kernel] += 1


class ToyBuffer:
    """An array on a toy device. Nobody but the toy's own kernels looks inside."""

    __slots__ = ("array", "space")

    def __init__(self, array, space):
        self.array = array
        self.space = space

    @property
    def shape(self):
        return self.array.shape


class ToyDevice(Device):
    """``copies`` counts transfers by direction: ``from_host``, ``to_host``, ``copy``."""

    def __init__(self, info, memory):
        super().__init__(info)
        self.memory = memory
        self.copies = Counter()

    def allocate(self, nbytes, align=64):
        if nbytes > self.memory:
            raise errors.ResourceExhaustedError(f"{self!r} holds {self.memory} bytes, not {nbytes}")
        block = np.empty(nbytes + align, np.uint8)
        start = -block.ctypes.data % align
        return block[start : start + nbytes]

    def view(self, storage, offset, dtype, shape):
        return ToyBuffer(np.ndarray(tuple(shape), dtype.np, storage, offset), self.memory_space)

    def wrap(self, array):
        """A buffer for an array that a kernel made."""
        return ToyBuffer(np.asarray(array), self.memory_space)

    def copy(self, src, dst):
        self.copies["copy"] += 1
        np.copyto(dst.array, src.array)

    def from_host(self, array, dst):
        self.copies["from_host"] += 1
        np.copyto(dst.array, array)

    def to_host(self, src, dst):
        self.copies["to_host"] += 1
        np.copyto(dst, src.array)


class ToyFactory(DeviceFactory):
    device_type = "toy"
    virtual = True

    def probe(self):
        return [DeviceInfo("toy", 0, 1 << 30, {"arch": "numpy"})]

    def open(self, info, options):
        return ToyDevice(info, options["memory"])
