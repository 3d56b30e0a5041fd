"""Launches with their arguments packed once. The service ``cuda-launch``, which other packages' kernels use too."""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphdock.contracts import PlanNode

from graphdock_cuda.driver.api import Driver

if TYPE_CHECKING:
    from graphdock_cuda.device import CudaDevice
    from graphdock_cuda.error_words import MakeError

__all__ = ["Fault", "Launch", "Launcher", "Param", "f32", "f64", "i32", "i64", "raw", "u32", "u64"]

#: Bytes of each parameter in the packed block; a longer one takes as many such slots as it needs.
_SLOT = 8

Param = bytes


def i32(value: int) -> Param:
    return struct.pack("<i", value)


def u32(value: int) -> Param:
    return struct.pack("<I", value)


def i64(value: int) -> Param:
    return struct.pack("<q", value)


def u64(value: int) -> Param:
    return struct.pack("<Q", value)


def f32(value: float) -> Param:
    return struct.pack("<f", value)


def f64(value: float) -> Param:
    return struct.pack("<d", value)


def raw(data: bytes | bytearray | memoryview) -> Param:
    """A struct by value, laid out as the compiler lays it out."""
    return bytes(data)


class Launch:
    """One launch: function, grid, block, and a block of arguments at one address.

    Args:
      params: one per parameter of the kernel: its bytes.

    Attributes:
      words: the block as 64-bit words, to change arguments of 8 bytes; ``first``: the word of each parameter.
      run: queues it on ``stream``. Raises what the driver raises.
    """

    __slots__ = ("first", "run", "words")

    def __init__(
        self,
        driver: Driver,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        params: Sequence[Param],
        stream: int,
    ) -> None:
        first, at = [], 0
        for param in params:
            first.append(at)
            at += -(-len(param) // _SLOT)
        words = (ctypes.c_uint64 * max(at, 1))()
        base = ctypes.addressof(words)
        for word, param in zip(first, params, strict=True):
            ctypes.memmove(base + _SLOT * word, param, len(param))
        pointers = (ctypes.c_void_p * max(len(first), 1))(*(base + _SLOT * word for word in first))
        gx, gy, gz = (*grid, 1, 1)[:3]
        bx, by, bz = (*block, 1, 1)[:3]
        launch, address = driver.launch, ctypes.addressof(pointers)

        def run(keep: Any = (words, pointers)) -> None:  # whoever runs it keeps what it points at
            launch(function, gx, gy, gz, bx, by, bz, shared, stream, address)

        self.run: Callable[[], None] = run
        self.words: Any = words
        self.first = first


class Fault:
    """An error that a kernel may find in values, for as long as this is kept.

    The kernel writes two int64 numbers to ``address`` and then ``code`` behind them; the queue's next fence raises the error.
    """

    __slots__ = ("__weakref__", "address", "code")

    def __init__(self, address: int, code: int) -> None:
        self.address = address
        self.code = code


class Launcher:
    """Service for packages that bring kernels for CUDA devices: version 1 of the service ``cuda-launch``.

    Attributes:
      architecture: to compile for, ``sm_90a``. ``multiprocessors``, ``shared_memory``: of the GPU.
    """

    version = 1

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self.architecture = device.architecture
        self.multiprocessors = device.info.multiprocessors
        self.shared_memory = device.info.shared_memory_bytes

    def function(self, key: str, image: bytes, name: str, shared: int = 0) -> int:
        """A kernel of a cubin. ``key`` names the cubin for good; ``shared``: bytes of dynamic shared memory per block.

        Raises DeviceLostError, InternalError.
        """
        return self._device.images.load(key, image, name, shared)

    def launch(
        self,
        queue: Any,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        params: Sequence[Param],
        shared: int = 0,
    ) -> Launch:
        """A launch on a queue's stream; ``run`` queues it, as often as wanted, within recordings too."""
        return Launch(self._device.driver, function, grid, block, shared, params, queue.stream)

    def fault(self, queue: Any, node: PlanNode, make: MakeError) -> Fault:
        """Return what a kernel of ``node`` is told to note an error with. ``make``: the error, of the two numbers that were
        noted.
        """
        words = self._device.words
        code = words.code(node, make)
        made = Fault(words.address(queue), code)
        weakref.finalize(made, words.forget, (code,)).atexit = False
        return made
