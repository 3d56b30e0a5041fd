"""Last access to each byte of a memory space, in as few pieces as there are boundaries between accesses."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["Cell", "Shadow"]

T = TypeVar("T")


@dataclass(slots=True)
class Cell(Generic[T]):
    """Bytes from ``start`` to ``stop`` with one history: the last write, and the last read of each agent since."""

    start: int
    stop: int
    write: T | None = None
    reads: dict[int, T] = field(default_factory=dict)


class Shadow(Generic[T]):
    """One memory space. Not locked. A write over many pieces makes them one."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._cells: list[Cell[T]] = []

    def __len__(self) -> int:
        return len(self._cells)

    def read(self, start: int, stop: int, agent: int, access: T, against: Callable[[Cell[T]], None]) -> None:
        """Shows each piece of the range to ``against``, then notes the read. A byte that nobody touched before is not shown."""
        if start >= stop:
            return
        first, last = self._cut(start, stop)
        for at in range(first, last):
            against(self._cells[at])
        for cell in self._filled(first, last, start, stop):
            cell.reads[agent] = access

    def write(self, start: int, stop: int, access: T, against: Callable[[Cell[T]], None]) -> None:
        """Shows each piece of the range to ``against``, then notes the write in place of all that was there."""
        if start >= stop:
            return
        first, last = self._cut(start, stop)
        for at in range(first, last):
            against(self._cells[at])
        self._cells[first:last] = [Cell(start, stop, access)]
        self._starts[first:last] = [start]

    def clear(self, start: int, stop: int) -> None:
        """Nobody has touched the range."""
        if start < stop:
            first, last = self._cut(start, stop)
            del self._cells[first:last], self._starts[first:last]

    def _cut(self, start: int, stop: int) -> tuple[int, int]:
        """The slice of the pieces that lie within the range, after those on its edges are cut in two."""
        self._split(start)
        self._split(stop)
        first = bisect_left(self._starts, start)
        return first, bisect_left(self._starts, stop, first)

    def _split(self, at: int) -> None:
        index = bisect_right(self._starts, at) - 1
        if index < 0:
            return
        cell = self._cells[index]
        if cell.start < at < cell.stop:
            self._cells.insert(index + 1, Cell(at, cell.stop, cell.write, dict(cell.reads)))
            self._starts.insert(index + 1, at)
            cell.stop = at

    def _filled(self, first: int, last: int, start: int, stop: int) -> Iterator[Cell[T]]:
        """The pieces of the slice, and new ones for the gaps between them."""
        inside = self._cells[first:last]
        whole: list[Cell[T]] = []
        at = start
        for cell in inside:
            if at < cell.start:
                whole.append(Cell(at, cell.start))
            whole.append(cell)
            at = cell.stop
        if at < stop:
            whole.append(Cell(at, stop))
        if len(whole) != len(inside):
            self._cells[first:last] = whole
            self._starts[first:last] = [c.start for c in whole]
        return iter(whole)
