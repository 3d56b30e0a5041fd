"""Segments: shared memory of one machine, by which large frames travel between its processes with a single copy.

A segment is memory without a name in any folder (``memfd_create``), which its reader opens by its maker's ``/proc``: nothing of it
is left once both are gone, however they end. Its first byte says whether somebody reads it; the reader clears it when the last
array over it is gone, and the maker fills it anew.
"""

from __future__ import annotations

import atexit
import ctypes
import mmap
import os
import re
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from graphdock.contracts import errors
from graphdock.locks import new_lock

__all__ = ["LEAST", "Segments", "machine", "opened"]

#: Bytes from which on a frame travels so.
LEAST = 1 << 20
#: Process and descriptor of its maker's, and a number that no other one has.
_NAME = re.compile(r"([0-9]{1,10})/([0-9]{1,10})/([0-9a-f]{16})", re.ASCII)
#: Bytes before the data.
_HEAD = 4096
#: Mappings of others' segments that are kept for the next message.
_KEPT = 16


def machine() -> bytes:
    """Name that two processes have in common that can open each other's segments; empty where there are none."""
    own = Path("/proc/self")
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
        spaces = [os.readlink(own / "ns" / kind).encode() for kind in ("pid", "user")]
        allowed = [line for line in (own / "status").read_bytes().splitlines() if line.startswith(b"CapPrm")]
        return b" ".join([boot, *spaces, *allowed, b"%d" % own.stat().st_uid]) if hasattr(os, "memfd_create") else b""
    except OSError:
        return b""


class _Segment:
    """One piece of memory. Raises OSError: there is no room for it."""

    def __init__(self, size: int) -> None:
        self.size, self.reader = size, b""
        number = os.urandom(8).hex()
        self._fd = os.memfd_create(f"graphdock-{number}")
        self.name = f"{os.getpid()}/{self._fd}/{number}"
        try:
            os.posix_fallocate(self._fd, 0, _HEAD + size)
            self.memory = mmap.mmap(self._fd, _HEAD + size)
        except OSError:
            self.remove()
            raise

    def remove(self) -> None:
        """Let nobody open it any more; who reads it still can."""
        os.close(self._fd)


class Segments:
    """The segments that this process has made. Any thread may call any method."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._made: list[_Segment] = []
        self._process = os.getpid()
        atexit.register(self.close)

    def lend(self, frames: Sequence[Any], reader: bytes) -> tuple[list[Any], list[tuple[int, str, int]]]:
        """The frames without the large ones, and of each of these its number, segment and size. What has no room stays.

        Args:
          reader: for :meth:`forget`.
        """
        kept, lent = list(frames), []
        for number, frame in enumerate(frames):
            size = len(frame)
            segment = self._take(size, reader) if size >= LEAST else None
            if segment is not None:
                np.frombuffer(segment.memory, np.uint8, size, _HEAD)[:] = np.frombuffer(frame, np.uint8)
                kept[number] = b""
                lent.append((number, segment.name, size))
        return kept, lent

    def _take(self, size: int, reader: bytes) -> _Segment | None:
        with self._lock:
            fits = [s for s in self._made if not s.memory[0] and size <= s.size <= 4 * size]
            found = min(fits, key=lambda s: s.size, default=None)
            if found is None:
                try:
                    found = _Segment(size)
                except OSError:
                    return None
                self._made.append(found)
            found.memory[0], found.reader = 1, reader
            return found

    def forget(self, reader: bytes) -> None:
        """Give up what a reader that is lost has not given back."""
        with self._lock:
            lost = [s for s in self._made if s.reader == reader and s.memory[0]]
            self._made = [s for s in self._made if s not in lost]
        for segment in lost:
            segment.remove()

    def close(self) -> None:
        """Remove all."""
        with self._lock:
            made, self._made = self._made, []
        if os.getpid() == self._process:
            for segment in made:
                segment.remove()


_mappings: dict[str, mmap.mmap] = {}
_lock = new_lock()


def opened(frames: Sequence[Any], lent: Sequence[Any]) -> list[Any]:
    """The frames with those that were lent, which can be written. Raises DataLossError: there is no such segment."""
    found = list(frames)
    for number, name, size in lent:
        memory = _mapping(name)
        if not 0 <= size <= len(memory) - _HEAD:
            raise errors.DataLossError(f"the segment {name} has no {size} bytes")
        view = (ctypes.c_char * size).from_buffer(memory, _HEAD)
        weakref.finalize(view, _give_back, memory)
        found[number] = view
    return found


def _give_back(memory: mmap.mmap) -> None:
    memory[0] = 0


def _mapping(name: str) -> mmap.mmap:
    with _lock:
        found = _mappings.get(name)
        if found is not None:
            return found
        try:
            path = _path(name)
            if path is None:
                raise errors.DataLossError(f"{name!r} is no segment")
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise errors.DataLossError(f"the segment {name} can't be opened: {error}") from None
        try:
            made = _mappings[name] = mmap.mmap(fd, 0)
        finally:
            os.close(fd)
        for other in [n for n in _mappings if n != name and not _path(n)] + list(_mappings)[:-_KEPT]:
            _mappings.pop(other, None)
        return made


def _path(name: str) -> str | None:
    """Path where a segment is opened; None where its maker has none of that name: it has removed it, or is gone."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    path = f"/proc/{found[1]}/fd/{found[2]}"
    try:
        return path if os.readlink(path) == f"/memfd:graphdock-{found[3]} (deleted)" else None
    except OSError:
        return None
