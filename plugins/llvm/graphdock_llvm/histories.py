"""Histories of a loop that is printed: rows that its iterations read from the last one on, and rows that they add."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from graphdock.contracts import LoopBuffer, LoopProgram

from graphdock_llvm.emitter import Emitter

__all__ = ["COPIED", "ITERATIONS", "ROOM", "ROWS", "STRIDES", "Histories", "bytes_of"]

#: Places of the counts of a loop with histories, and of the first of the distances between rows.
ROWS, ROOM, ITERATIONS, STRIDES = range(4)
#: Bytes of a buffer that is copied, at most, in place of changing places, or of being made where it is kept.
COPIED = 256


def bytes_of(buffer: LoopBuffer) -> int:
    """Bytes of all elements."""
    return math.prod(buffer.shape) * buffer.dtype.size


class LoopPrinter(Protocol):
    """Printer of the loop: lines of its function, and those that begin it."""

    e: Emitter
    heads: list[str]

    def begin(self, block: str) -> None: ...

    def copy(self, source: str, target: str, size: int) -> None: ...


class Histories:
    """Histories of one loop.

    Attributes:
      rows: how many iterations there are at most, because those that are read have so many rows.
      straight: buffers that steps make and that are kept, long ones: they are made where they are kept -> number of the history.
    """

    def __init__(self, printer: LoopPrinter, loop: LoopProgram, places: Sequence[str]) -> None:
        self.printer, self.loop, e = printer, loop, printer.e
        *firsts, self.counts = places
        self.rows = self._count(ROWS) if loop.scans else ""
        self.strides = [self._count(STRIDES + i) for i in range(len(loop.scans))]
        self.firsts = [f"%first{i}" for i in range(len(firsts))]
        printer.heads += [f"{first} = alloca ptr" for first in self.firsts]
        for first, given in zip(self.firsts, firsts, strict=True):
            e.line(f"store ptr {given}, ptr {first}")
        if firsts:
            printer.heads.append("%room.left = alloca i64")
            e.line(f"store i64 {self._count(ROOM)}, ptr %room.left")
        made = {n for s in loop.body for n in s.outputs}
        self.straight: dict[int, int] = {}
        for i, (number, _) in enumerate(loop.kept):
            if number in made and bytes_of(loop.buffers[number]) > COPIED:
                self.straight.setdefault(number, i)
        self._turn = ""

    def _at(self, number: int) -> str:
        return self.printer.e.value(f"getelementptr i64, ptr {self.counts}, i64 {number}")

    def _count(self, number: int) -> str:
        return self.printer.e.value(f"load i64, ptr {self._at(number)}")

    def begin(self, name: str, turn: str, address: dict[int, str]) -> None:
        """Beginning of an iteration: there is room for what it keeps, and the elements that it reads are found."""
        e, loop, printer = self.printer.e, self.loop, self.printer
        self._turn = turn
        if loop.kept:
            full = e.value(f"icmp sge i64 {turn}, {e.value('load i64, ptr %room.left')}")
            e.line(f"br i1 {full}, label %{name}.full, label %{name}.kept")
            printer.begin(f"{name}.full")
            failed = e.value(f"call i64 %grow(ptr {self.counts})")
            e.line(f"br i1 {e.value(f'icmp ne i64 {failed}, 0')}, label %stopped, label %{name}.more")
            printer.begin(f"{name}.more")
            e.line(f"store i64 {self._count(ROOM)}, ptr %room.left")
            for i, first in enumerate(self.firsts):
                e.line(f"store ptr {e.value(f'load ptr, ptr {self._at(STRIDES + len(loop.scans) + i)}')}, ptr {first}")
            e.line(f"br label %{name}.kept")
            printer.begin(f"{name}.kept")
        if loop.scans:
            place = e.binary("sub", "i64", e.binary("sub", "i64", self.rows, "1"), turn)
        for number, stride in zip(loop.scans, self.strides, strict=True):
            offset = e.binary("mul", "i64", place, stride)
            address[number] = e.value(f"getelementptr i8, ptr {address[number]}, i64 {offset}")
        for number, history in self.straight.items():
            address[number] = self._row(history)

    def _row(self, history: int) -> str:
        """Address of the row of this iteration in a history that is made."""
        e = self.printer.e
        size = bytes_of(self.loop.buffers[self.loop.kept[history][0]])
        first = e.value(f"load ptr, ptr {self.firsts[history]}")
        return e.value(f"getelementptr i8, ptr {first}, i64 {e.binary('mul', 'i64', self._turn, str(size))}")

    def keep(self, address: Mapping[int, str]) -> None:
        """Add what the iteration keeps, before loop variables become their next values."""
        for i, (number, _) in enumerate(self.loop.kept):
            size = bytes_of(self.loop.buffers[number])
            if size and self.straight.get(number) != i:
                self.printer.copy(address[number], self._row(i), size)

    def end(self, turns: str) -> None:
        """There is no iteration any more."""
        self.printer.e.line(f"store i64 {turns}, ptr {self._at(ITERATIONS)}")
