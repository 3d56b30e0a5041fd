"""Memory as a driver hands it out: blocks with addresses, reused at once, full of 0xFF before and after.

A :class:`Storage` is what a program holds, a :class:`Block` what work in a queue points at: queued work does not keep a storage
alive, as a real launch does not.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.dtypes import DType
from graphdock.errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError

from graphdock_testing.driver.detector import Range

__all__ = ["POISON", "Block", "Buffer", "Drops", "Idle", "Memory", "Storage", "bounds"]

Array = np.ndarray[Any, Any]

#: What memory is filled with before it is written and after it is given back: NaN as a float, -1 as an integer.
POISON = 0xFF
#: Bytes of unused blocks that are kept for the next allocation of one queue.
_KEPT = 1 << 28
_ALIGN = 256


def bounds(array: Array) -> tuple[int, int]:
    """First address of an array's elements and the one after the last, gaps included."""
    low = high = array.ctypes.data
    if not array.size:
        return low, low
    for dim, stride in zip(array.shape, array.strides, strict=True):
        reach = (dim - 1) * stride
        if reach < 0:
            low += reach
        else:
            high += reach
    return low, high + array.itemsize


class Block:
    """A piece of memory. ``life`` changes when it is given back, so that whoever froze its address can tell."""

    __slots__ = ("address", "bytes", "life", "number", "space")

    def __init__(self, space: str, number: int, address: int, nbytes: int, align: int = _ALIGN) -> None:
        raw = np.empty(nbytes + align, np.uint8)
        start = -raw.ctypes.data % align
        self.space = space
        self.number = number
        self.address = address
        self.bytes: Array = raw[start : start + nbytes]
        self.life = 0

    def range_of(self, array: Array) -> Range:
        """Where a view of this block lies, in addresses that no other block ever has."""
        low, high = bounds(array)
        first = self.address + low - self.bytes.ctypes.data
        return Range(self.space, first, first + high - low)

    def poison(self) -> None:
        self.bytes.fill(POISON)


#: Unused blocks by size.
Idle = dict[int, list[Block]]


class Storage:
    """A block that somebody holds. ``live`` ends with ``free``; ``owner`` is the queue that it follows, or None."""

    __slots__ = ("__weakref__", "block", "live", "nbytes", "owner")

    def __init__(self, block: Block, nbytes: int, owner: Any) -> None:
        self.block = block
        self.nbytes = nbytes
        self.owner = owner
        self.live = True

    def check(self) -> None:
        """Raises FailedPreconditionError when it was freed."""
        if not self.live:
            raise FailedPreconditionError(f"block {self.block.number} of {self.block.space} was freed")


class Drop(weakref.ref[Any]):
    """Of something that holds a block: what to do when it is gone. ``life`` tells whether the block was given back before."""

    __slots__ = ("block", "life", "nbytes", "owner")

    block: Block
    life: int
    nbytes: int
    owner: Any


class Drops:
    """Blocks whose holders went. That is noted without a line of Python, so that neither an interrupt nor a lock is in its way."""

    def __init__(self) -> None:
        self._gone: deque[Drop] = deque()
        self._held: set[Drop] = set()

    def watch(self, holder: Any, block: Block, nbytes: int, owner: Any) -> None:
        """``holder`` holds the block from now on."""
        drop = Drop(holder, self._gone.append)
        drop.block, drop.life, drop.nbytes, drop.owner = block, block.life, nbytes, owner
        self._held.add(drop)

    def take(self) -> Drop | None:
        """The next that went since the last call; None when there is none."""
        if not self._gone:
            return None
        drop = self._gone.popleft()
        self._held.discard(drop)
        return drop


class Buffer:
    """A device's own array. ``array`` is what kernels of the device see; host code that takes it for an array fails.

    ``range`` is where it lies.
    """

    __slots__ = ("array", "range", "storage")

    def __init__(self, storage: Storage, array: Array) -> None:
        self.storage = storage
        self.array = array
        self.range = storage.block.range_of(array)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"host code reads a buffer of {self.storage.block.space} as if it were a NumPy array")


class Memory:
    """One memory space. Not locked: its driver is.

    Attributes:
      space: its name.
      limit: bytes that may be in use at once; 0 for as many as there are.
      in_use: bytes that were allocated and not given back.
    """

    def __init__(self, space: str, limit: int = 0) -> None:
        self.space = space
        self.limit = limit
        self.in_use = 0
        self.idle: Idle = {}
        self._blocks = 0
        self._next_address = 1 << 20

    def take(self, nbytes: int, align: int, idle: Idle) -> Block:
        """A block, of the unused ones if one fits: the one that was given back last. Its content is left as it is."""
        if self.limit and self.in_use + nbytes > self.limit:
            raise ResourceExhaustedError(
                f"{self.space} has no {nbytes} bytes left", got=f"{self.in_use} of {self.limit} bytes in use"
            )
        size = max(_ALIGN, 1 << (nbytes - 1).bit_length() if nbytes > 1 else 1)
        self.in_use += nbytes
        unused = idle.get(size, [])
        for at in range(len(unused) - 1, -1, -1):
            if unused[at].bytes.ctypes.data % align == 0:
                return unused.pop(at)
        self._blocks += 1
        block = Block(self.space, self._blocks, self._next_address, size, max(align, _ALIGN))
        self._next_address += size
        return block

    def give(self, block: Block, nbytes: int, idle: Idle) -> None:
        """Take a block back, for the next ``take`` from the same unused ones."""
        self.in_use -= nbytes
        block.life += 1
        size = block.bytes.nbytes
        if sum(kind * len(blocks) for kind, blocks in idle.items()) + size <= _KEPT:
            idle.setdefault(size, []).append(block)

    def view(self, storage: Storage, offset: int, dtype: DType, shape: Sequence[int]) -> Buffer:
        """A buffer over a storage. Raises for Python objects, and beyond the storage's end."""
        if dtype.size == 0:
            raise InvalidArgumentError(f"{self.space} can't hold {dtype.name}", hint="keep strings on the cpu")
        storage.check()
        need = offset + dtype.size * math.prod(shape)
        if need > storage.nbytes or offset < 0:
            raise InvalidArgumentError(
                f"a view beyond the end of a block of {self.space}", expected=f"{storage.nbytes} bytes", got=f"{need}"
            )
        return Buffer(storage, np.ndarray(tuple(shape), dtype.np, storage.block.bytes, offset))
