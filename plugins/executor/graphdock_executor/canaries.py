"""Debug mode: bytes on both sides of what a kernel writes, which a kernel that writes beyond its output changes.

Every planned buffer lies between two margins of its block, and so does every buffer that is made anew in each step. Right before
a kernel is called, the margins of its outputs and scratch buffers get a pattern and the buffers themselves poison; right after it,
the margins are compared. They are not counted as memory of a plan.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable

import numpy as np
from graphdock.contracts.device import Buffer, Device, Storage
from graphdock.dtypes import ALL

from graphdock_executor.device_error import asking
from graphdock_executor.storage import Root

__all__ = ["POISON", "Canaries", "Canary", "keeps", "margin_of"]

#: What no correct result contains: NaN as a float, -1 as an integer.
POISON = 0xFF
_MARK = 0xA5
_LEAST = 64


#: Device -> whether its memory keeps what is written there; a device for tests of plans may have none.
_keeping: weakref.WeakKeyDictionary[Device, bool] = weakref.WeakKeyDictionary()


def keeps(device: Device) -> bool:
    """Return whether anything that is copied into the device's memory is there when it is copied back.

    Raises:
      GraphdockError: what the device raises, with its name.
    """
    found = _keeping.get(device)
    if found is None:
        sent = np.arange(1, 9, dtype=np.uint8)
        back = np.zeros_like(sent)
        with asking(device, "keep 8 bytes"):
            buffer = device.empty(ALL["uint8"], sent.shape)
            device.from_host(sent, buffer)
            device.to_host(buffer, back)
        found = _keeping[device] = bool(back.any())
    return found


def margin_of(device: Device) -> int:
    """Bytes on each side of a buffer of the device: they keep its alignment."""
    return -(-_LEAST // device.alignment) * device.alignment


class Canary:
    """The margins of one buffer.

    Args:
      whole: bytes of the buffer and of ``margin`` bytes on each side of it.
    """

    __slots__ = ("_content", "_device", "_margin", "_nbytes", "_whole", "buffer")

    def __init__(self, device: Device, buffer: Buffer, whole: Buffer, nbytes: int, margin: int) -> None:
        self.buffer = buffer
        self._device, self._whole = device, whole
        self._nbytes, self._margin = nbytes, margin

    def set(self, mark: Callable[[np.ndarray], None] | None = None) -> None:
        """Mark the margins and poison the buffer. All work on it is done.

        Args:
          mark: is given the bytes of the buffer as the host has them, before they go there; :meth:`broken` renews them.
        """
        self._content = content = np.full(self._nbytes + 2 * self._margin, _MARK, np.uint8)
        inner = content[self._margin : self._margin + self._nbytes]
        inner[:] = POISON
        if mark is not None:
            mark(inner)
        self._device.from_host(content, self._whole)

    def broken(self) -> str | None:
        """Places where the margins were written, for a message; None where they were not."""
        content = self._content
        self._device.to_host(self._whole, content)
        after = self._margin + self._nbytes
        if (content[after:] != _MARK).any():
            count = int(np.flatnonzero(content[after:] != _MARK)[-1]) + 1
            return f"up to {count} bytes behind its end"
        if (content[: self._margin] != _MARK).any():
            count = self._margin - int(np.flatnonzero(content[: self._margin] != _MARK)[0])
            return f"up to {count} bytes before its beginning"
        return None


class Canaries:
    """The canaries of one instance, by buffer. One step at a time."""

    keeps = staticmethod(keeps)

    def __init__(self) -> None:
        self._planned: dict[int, Canary] = {}
        self._made: dict[str, Canary] = {}

    def of(self, buffer: Buffer) -> Canary | None:
        """The canary around this very buffer. That of a buffer made for one step is forgotten by this."""
        found = self._planned.get(id(buffer))
        if found is not None:
            return found
        for name, canary in self._made.items():
            if canary.buffer is buffer:
                return self._made.pop(name)
        return None

    def add(self, device: Device, storage: Storage, root: Root, buffer: Buffer) -> None:
        """A planned buffer, packed with margins."""
        if root.nbytes and keeps(device):
            canary = _around(device, storage, root.offset, buffer, root.nbytes)
            self._planned[id(buffer)] = canary

    def maker(self, device: Device, allocate: Callable[[int], Storage], root: Root) -> Callable[[], Buffer]:
        """Function that makes a buffer for one step, between margins. ``root`` has a known shape and elements that are bytes."""
        margin = margin_of(device)
        nbytes = root.dtype.size * math.prod(root.shape)

        def make() -> Buffer:
            storage = allocate(nbytes + 2 * margin)
            buffer = device.view(storage, margin, root.dtype, root.shape)
            self._made[root.name] = _around(device, storage, margin, buffer, nbytes)
            return buffer

        return make


def _around(device: Device, storage: Storage, offset: int, buffer: Buffer, nbytes: int) -> Canary:
    margin = margin_of(device)
    whole = device.view(storage, offset - margin, ALL["uint8"], (nbytes + 2 * margin,))
    return Canary(device, buffer, whole, nbytes, margin)
