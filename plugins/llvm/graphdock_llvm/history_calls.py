"""One call of a loop with histories: rows of those that it is given, and memory for the rows of those that it makes."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from graphdock.contracts import DType, RaggedHistory, RowHistory, TensorHistory, errors

from graphdock_llvm.histories import DIFFERENT, FIRST_COUNT, FOUND, WRONG, WRONG_ROWS
from graphdock_llvm.ledgers import Ledger

__all__ = ["HistoryCall", "Rows", "different", "rows_of"]

#: Bytes of rows from which on their memory is used again. Whether this Python counts references, and under a lock; and what it says
#: of an array that is known here alone: the list, a variable, and its argument.
_RECYCLED = 1 << 17
_COUNTS = hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()
_MINE = 3


_Made: TypeAlias = RowHistory | RaggedHistory | TensorHistory


class HistoryCall:
    """One call, or several one after another.

    Attributes:
      counts: what the function is told and says. ``arrays``: of all ledgers, with room for some rows more.
      totals: after a call, how many rows each ledger has.
    """

    def __init__(self, ledgers: Sequence[Ledger], told: int) -> None:
        self._ledgers = ledgers
        self._places: list[int] = []  # in the counts, of each ledger; in the arrays
        self._firsts: list[int] = []
        size, arrays = FIRST_COUNT + told, 0
        for ledger in ledgers:
            self._places.append(size)
            self._firsts.append(arrays)
            size += 2 + len(ledger.kept) if ledger.kept else 0
            arrays += len(ledger.kept)
        self.counts = np.zeros(size, np.int64)
        self.address = self.counts.ctypes.data
        self._keeping = [(number, ledger) for number, ledger in enumerate(ledgers) if ledger.kept]
        self.arrays: list[Any] = []
        self.totals: list[int] = [0 for _ in ledgers]
        self._before: list[Any] = []  # in which loop variables may still lie
        self._last: list[Any] = [None] * arrays

    def begin(self, told: Sequence[int], rooms: Sequence[int]) -> None:
        """Tell what is known of histories that are read, and make room for some rows in each ledger."""
        if told:
            self.counts[FIRST_COUNT : FIRST_COUNT + len(told)] = told
        self.arrays = []
        for number, _ in self._keeping:
            self.counts[self._places[number]] = rooms[number]
            self.arrays += self._empty(number, rooms[number])

    def _empty(self, ledger: int, room: int) -> list[Any]:
        """Memory for so many rows of a ledger: that of the last call, if it is not far too large and nobody knows of it any more. A
        new one would be zeroed by the system, page by page."""
        made = []
        for i, kept in enumerate(self._ledgers[ledger].kept, self._firsts[ledger]):
            last, rows = self._last[i], room + kept.before
            if (
                last is None
                or not rows <= len(last) <= 2 * rows
                or not _COUNTS
                or sys.getrefcount(last) > _MINE
                or weakref.getweakrefcount(last)
            ):
                last = np.empty((rows, *kept.shape), kept.dtype.np)
                self._last[i] = last if last.nbytes >= _RECYCLED else None
            array = last[:rows]
            if kept.before:
                array[0] = 0
            made.append(array)
        return made

    def grow(self, ledger: int) -> None:
        """Room for twice as many rows."""
        place, first = self._places[ledger], self._firsts[ledger]
        room = int(self.counts[place])
        more = self._empty(ledger, 2 * room)
        end = first + len(more)
        for rows, larger in zip(self.arrays[first:end], more, strict=True):
            larger[: len(rows)] = rows
        self._before.append(self.arrays[first:end])
        self.arrays[first:end] = more
        self.counts[place] = 2 * room
        self.counts[place + 2 : place + 2 + len(more)] = [rows.ctypes.data for rows in more]

    def end(self) -> list[_Made]:
        """The histories that were made. Raises InvalidArgumentError where those that were read were wrong."""
        arrays, self.arrays = self.arrays, []
        if self._before:
            self._before.clear()
        if self.counts[WRONG]:
            wrong, expected, found = self.counts[WRONG : FOUND + 1].tolist()
            self.counts[WRONG] = 0
            if wrong == DIFFERENT:
                raise different(expected, found)
            assert wrong == WRONG_ROWS
            raise errors.InvalidArgumentError(
                "HistoryStack: another number of elements than expected", expected=str(expected), got=str(found)
            )
        for number, _ in self._keeping:
            self.totals[number] = int(self.counts[self._places[number] + 1])
        return [self._history(arrays, 0, i) for i in range(len(self._ledgers[0].kept))]

    def _history(self, arrays: Sequence[Any], ledger: int, index: int) -> _Made:
        kept = self._ledgers[ledger].kept[index]
        array, count = arrays[self._firsts[ledger] + index], self.totals[ledger]
        if kept.of is None:
            return RowHistory(array, count)
        elements = self._history(arrays, *kept.of)
        if kept.rows is None:
            assert not isinstance(elements, TensorHistory)
            return RaggedHistory(array, elements, count)
        assert isinstance(elements, RowHistory)
        rows = elements.array.reshape(-1, *kept.rows)
        return TensorHistory(array[: count + 1] * (len(rows) // max(len(elements.array), 1)), rows)


def different(first: int, other: int) -> errors.InvalidArgumentError:
    """The error of a loop that reads histories of these lengths."""
    return errors.InvalidArgumentError("a loop reads histories of different lengths", got=f"{first} and {other}")


@dataclass(frozen=True, slots=True)
class Rows:
    """A history as arrays.

    Attributes:
      begins: for a history of histories where each begins and the last one ends, then the same of those, and so on.
      tensors: one array of which each row is contiguous. ``count``: of the history's own elements.
    """

    begins: list[Any]
    tensors: Any
    count: int


def rows_of(history: Any, depth: int, shape: tuple[int, ...], dtype: DType) -> Rows:
    """The elements of a history of some depth, of a list or of rows, as arrays.

    Raises:
      ShapeError: an element is of another shape.
    """
    begins, elements, count = [], history, len(history)
    for _ in range(depth - 1):
        if isinstance(elements, RaggedHistory):
            begins.append(elements.starts)
            elements = elements.elements
        else:
            ends = np.cumsum([0, *map(len, elements)], dtype=np.int64)
            begins.append(ends)
            elements = [e for one in elements for e in one] if len(elements) != 1 else elements[0]
    if isinstance(elements, RowHistory):
        return Rows(begins, elements.array, count)
    if dtype.kind == "V":
        return Rows(begins, np.empty((len(elements), 0), np.uint8), count)
    tensors = np.empty((len(elements), *shape), dtype.np)
    for place, element in enumerate(elements):
        if np.shape(element) != shape:
            raise errors.ShapeError(
                "an element of a history has another shape", expected=str(shape), got=str(np.shape(element))
            )
        tensors[place] = element
    return Rows(begins, tensors, count)
