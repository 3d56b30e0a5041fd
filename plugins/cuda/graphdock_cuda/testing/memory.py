"""Memory of the fake driver: real host memory at real addresses, between pages that nobody may touch.

A block ends where its last page ends, up to 256 bytes, so that a kernel that runs over the end stops there with a bad address, as
on a GPU. Bytes between are canaries. What is unused is full of 0xFF, and closed to everybody once the work that frees it has run.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["ALIGN", "Arena", "Block", "POISON"]

ALIGN = 256
#: What memory is filled with before it is written and after it is given back: NaN as a float, -1 as an integer.
POISON = 0xFF
_CANARY = 0xC5
_PAGE = mmap.PAGESIZE
#: Addresses that an arena has, many more than bytes that it may hand out.
_RESERVED = 1 << 36
#: Bytes before a block that are looked at.
_BEFORE = 512
_CLOSED, _OPEN = 0, mmap.PROT_READ | mmap.PROT_WRITE

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


@dataclass(eq=False, slots=True)
class Region:
    """Pages of an arena. ``block`` is the latest that lies there."""

    start: int
    stop: int
    open: bool = False
    block: Block | None = None


@dataclass(eq=False, slots=True)
class Block:
    """Memory that was handed out. ``number`` is its own for ever; ``live`` ends when it is given back."""

    space: str
    number: int
    address: int
    nbytes: int
    region: Region
    live: bool = True

    @property
    def end(self) -> int:
        return self.address + self.nbytes

    def __str__(self) -> str:
        state = "" if self.live else ", which was freed"
        return f"block {self.number} of {self.space} ({self.nbytes} bytes at {self.address:#x}{state})"

    def poison(self) -> None:
        ctypes.memset(self.address, POISON, self.nbytes)

    def guard(self) -> None:
        """Put canaries around it."""
        before = max(self.region.start, self.address - _BEFORE)
        ctypes.memset(before, _CANARY, self.address - before)
        ctypes.memset(self.end, _CANARY, self.region.stop - self.end)

    def intact(self) -> bool:
        """Return whether nobody wrote right before it or right behind it. Its region is open."""
        before = max(self.region.start, self.address - _BEFORE)
        first, last = self.address - before, self.region.stop - self.end
        return (
            ctypes.string_at(before, first) == bytes([_CANARY]) * first
            and ctypes.string_at(self.end, last) == bytes([_CANARY]) * last
        )


def _unmap(base: int, blocks: set[Block]) -> None:
    """Give addresses back, but for those of blocks that somebody still has: an array over pinned memory outlives its driver."""
    at, stop = base, base + _RESERVED
    for region in sorted((block.region for block in blocks), key=lambda region: region.start):
        if at < region.start:
            _libc.munmap(at, region.start - at)
        at = region.stop
    _libc.munmap(at, stop - at)


class Arena:
    """One memory space. Not locked: its driver is.

    Attributes:
      space: its name.
      limit: bytes that may be in use at once; 0 for as many as there are.
      in_use: bytes that were handed out and not given back.
      blocks: live ones.
      base, stop: the addresses that its blocks have.
    """

    def __init__(self, space: str, limit: int = 0) -> None:
        self.space = space
        self.limit = limit
        self.in_use = 0
        self.blocks: set[Block] = set()
        self._made = 0
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        base = _libc.mmap(None, _RESERVED, _CLOSED, flags, -1, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(os.strerror(ctypes.get_errno()))
        kept = set() if limit else self.blocks  # nobody has an array over a GPU's memory, which is limited
        weakref.finalize(self, _unmap, base, kept).atexit = False
        self.base: int = base
        self.stop = base + _RESERVED
        self._next = base + _PAGE
        self._starts: list[int] = []
        self._regions: list[Region] = []
        #: Unused regions by size: who freed them, and whether their last work is done.
        self._idle: dict[int, list[tuple[Region, Any, Callable[[], bool]]]] = {}

    def take(self, nbytes: int, owner: Any) -> Block | None:
        """A block for work in the order of ``owner``: of the memory that it freed last, or whose last work is done.

        None where there is no memory.
        """
        if self.limit and self.in_use + nbytes > self.limit:
            return None
        rounded = -(-nbytes // ALIGN) * ALIGN
        size = max(_PAGE, 1 << (rounded - 1).bit_length())
        region, busy = self._reuse(size, owner)
        region = region or self._new(size)
        if region is None:
            return None
        self._made += 1
        fresh = not region.open
        if fresh:
            _libc.mprotect(region.start, size, _OPEN)
            region.open = True
        block = region.block = Block(self.space, self._made, region.stop - rounded, nbytes, region)
        if not busy:  # else ``clear`` does it, between the work that is queued on what was there and this block's
            block.guard()
        if fresh:
            block.poison()
        self.in_use += nbytes
        self.blocks.add(block)
        return block

    def give(self, block: Block, owner: Any, done: Callable[[], bool]) -> None:
        """Take a block back: ``owner`` may have it at once, others when ``done()``. ``clear`` follows in its time."""
        block.live = False
        self.in_use -= block.nbytes
        self.blocks.discard(block)
        size = block.region.stop - block.region.start
        self._idle.setdefault(size, []).append((block.region, owner, done))

    def clear(self, block: Block) -> None:
        """The work that frees the block runs: poison it, and close it unless somebody has it again."""
        region = block.region
        latest = region.block
        if latest is block:
            ctypes.memset(region.start, POISON, region.stop - region.start)
            _libc.mprotect(region.start, region.stop - region.start, _CLOSED)
            region.open = False
        elif latest is not None:
            latest.poison()
            latest.guard()

    def find(self, address: int) -> Block | None:
        """The block at an address, live or the latest that was there; its end counts as inside."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        region = self._regions[at]
        block = region.block
        return block if block is not None and block.address <= address <= region.stop else None

    def _reuse(self, size: int, owner: Any) -> tuple[Region | None, bool]:
        """A region that was given back, and whether work on it may still be queued."""
        idle = self._idle.get(size, [])
        for at in range(len(idle) - 1, -1, -1):
            region, freed_by, done = idle[at]
            idle_now = done()
            if freed_by is owner or idle_now:
                del idle[at]
                return region, not idle_now
        return None, False

    def _new(self, size: int) -> Region | None:
        if self._next + size + _PAGE > self.stop:
            return None
        region = Region(self._next, self._next + size)
        self._next += size + _PAGE
        self._starts.append(region.start)
        self._regions.append(region)
        return region
