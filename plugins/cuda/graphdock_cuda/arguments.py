"""Sending the step arguments: by value, as parameters of a kernel, so that no replay reads a slot that was written since."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from graphdock_cuda.compiled import source
from graphdock_cuda.launch import Launch, i32, raw, u64

if TYPE_CHECKING:
    from graphdock_cuda.device import CudaDevice

__all__ = ["Sender"]

#: Bytes that one launch takes along; all parameters of a kernel must fit in 4 KiB.
SIZES = (64, 512, 4032)


class Sender:
    """Sends blocks of bytes to one address on one stream."""

    def __init__(self, device: CudaDevice, address: int, stream: int) -> None:
        self._device = device
        self._address = address
        self._stream = stream
        self._launches: dict[int, Launch] = {}

    def __call__(self, data: bytes | bytearray | memoryview) -> None:
        """Queue the copy of ``data``; it may be changed as soon as this returns."""
        view = memoryview(data).cast("B")
        at = 0
        while at < len(view):
            left = len(view) - at
            size = next((s for s in SIZES if s >= left), SIZES[-1])
            self._send(size, view[at : at + size], at)
            at += size

    def _send(self, size: int, chunk: memoryview, at: int) -> None:
        launch = self._launches.get(size)
        if launch is None:
            launch = self._launches[size] = self._made(size)
        ctypes.memmove(ctypes.addressof(launch.words), chunk.tobytes(), len(chunk))
        launch.words[launch.first[1]] = self._address + at
        launch.words[launch.first[2]] = -(-len(chunk) // 8)
        launch.run()

    def _made(self, size: int) -> Launch:
        device = self._device
        function = device.images.function(source("arguments.cuh"), f"set_arguments_{size}")
        params = (raw(bytes(size)), u64(0), i32(0))
        return Launch(device.driver, function, (1,), (128,), 0, params, self._stream)
