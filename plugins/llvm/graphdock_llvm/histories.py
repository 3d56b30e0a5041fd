"""Histories of loops that are printed: rows that iterations read from the last one on, and rows that they add."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from graphdock.contracts import LoopBuffer, LoopProgram, LoopRows

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.ledgers import Ledger

__all__ = [
    "COPIED",
    "DIFFERENT",
    "EXPECTED",
    "FIRST_COUNT",
    "FOUND",
    "WRONG",
    "WRONG_ROWS",
    "Counts",
    "Histories",
    "History",
    "Stored",
    "bytes_of",
    "history_of_rows",
    "rows_of_history",
]

#: Places of the counts of a loop with histories: what is wrong, the numbers that say how, and the first of the others.
WRONG, EXPECTED, FOUND, FIRST_COUNT = range(4)
#: What may be wrong: histories of different lengths, a history of another number of elements than the rows that it is to be.
DIFFERENT, WRONG_ROWS = 1, 2
#: Bytes of a buffer that is copied, at most, in place of changing places, or of being made where it is kept.
COPIED = 256


def bytes_of(buffer: LoopBuffer) -> int:
    """Bytes of all elements; a history has none of its own."""
    return 0 if buffer.depth else math.prod(buffer.shape) * buffer.dtype.size


class LoopPrinter(Protocol):
    """Printer of the loop: lines of its function, and those that begin it."""

    e: Emitter
    heads: list[str]

    def begin(self, block: str) -> None: ...

    def copy(self, source: str, target: str, size: int | str) -> None: ...


@dataclass(frozen=True, slots=True)
class Stored:
    """Elements of histories, one behind the other.

    Attributes:
      first: gives the address of the first one; of one more than there are numbers, where the elements are histories of ``within``.
      stride: bytes from one to the next. ``gapless``: whether they are tensors that lie side by side, in this order.
    """

    first: Callable[[], str]
    stride: str = "8"
    within: Stored | None = None
    gapless: bool = False

    def at(self, e: Emitter, place: str) -> str | History:
        """The address of an element, or the history that it is."""
        offset = e.binary("mul", "i64", place, self.stride)
        address = e.value(f"getelementptr i8, ptr {self.first()}, i64 {offset}")
        if self.within is None:
            return address
        begin = e.value(f"load i64, ptr {address}")
        end = e.value(f"load i64, ptr {e.value(f'getelementptr i64, ptr {address}, i64 1')}")
        return History(self.within, begin, end)


@dataclass(frozen=True, slots=True)
class History:
    """A history, while code is printed: elements of a store, from one to before another."""

    store: Stored
    begin: str
    end: str

    def length(self, e: Emitter) -> str:
        """Number of its elements."""
        return self.end if self.begin == "0" else e.binary("sub", "i64", self.end, self.begin)


class Counts:
    """The numbers that a function with histories is told and says, and the ledgers of its loops.

    The counts are, in order: what was wrong, and two numbers that say how; how many elements each given history has, and how many
    bytes lie between its tensors; and for each ledger for how many rows there is room, and how many there are in the end, with the
    addresses of its arrays where ``grow`` has made more room.
    """

    def __init__(self, printer: LoopPrinter, place: str, given: int, ledgers: Sequence[Ledger], firsts: Sequence[str]):
        self.printer, self.place, self.ledgers = printer, place, ledgers
        self.rooms: list[int] = []  # where in the counts each ledger begins
        at, e = FIRST_COUNT + 2 * given, printer.e
        for ledger in ledgers:
            self.rooms.append(at)
            at += 2 + len(ledger.kept) if ledger.kept else 0
        self.size = at
        self.stores: list[tuple[Stored, ...]] = [() for _ in ledgers]
        left = iter(firsts)
        for number, ledger in reversed(list(enumerate(ledgers))):
            if not ledger.kept:
                continue
            for i, kept in enumerate(ledger.kept):
                printer.heads.append(f"%ledger{number}.{i} = alloca ptr")
                size = str(math.prod(kept.shape) * kept.dtype.size)
                within = None if kept.of is None else self.stores[kept.of[0]][kept.of[1]]
                self.stores[number] += (Stored(self._loader(number, i), size, within, kept.of is None),)
            printer.heads += [f"%ledger{number}.{what} = alloca i64" for what in ("room", "total", "most")]
        for number, ledger in enumerate(ledgers):
            if ledger.kept:
                for i in range(len(ledger.kept)):
                    e.line(f"store ptr {next(left)}, ptr %ledger{number}.{i}")
                e.line(f"store i64 {self.load(self.rooms[number])}, ptr %ledger{number}.room")
                for what in ("total", "most"):
                    e.line(f"store i64 0, ptr %ledger{number}.{what}")

    def _loader(self, number: int, array: int) -> Callable[[], str]:
        return lambda: self.printer.e.value(f"load ptr, ptr %ledger{number}.{array}")

    def at(self, number: int) -> str:
        """The address of a count."""
        return self.printer.e.value(f"getelementptr i64, ptr {self.place}, i64 {number}")

    def load(self, number: int) -> str:
        """A count."""
        return self.printer.e.value(f"load i64, ptr {self.at(number)}")

    def given(self, number: int, places: Sequence[str]) -> History:
        """A history that the function is given: how long it is, where its tensors lie, and before that where histories begin."""
        at = FIRST_COUNT + 2 * number
        *starts, tensors = places
        store = Stored(lambda: tensors, self.load(at + 1))
        for begin in reversed(starts):
            store = Stored(lambda begin=begin: begin, within=store)  # type: ignore[misc]
        return History(store, "0", self.load(at))

    def restart(self, number: int) -> None:
        """Begin a ledger, and those that follow it."""
        if number:  # of one within a loop it is asked how many rows it had at most
            self.printer.e.line(f"store i64 {self._most(number)}, ptr %ledger{number}.most")
        self.printer.e.line(f"store i64 0, ptr %ledger{number}.total")
        for other in self.ledgers[number].follow:
            self.restart(other)

    def _most(self, number: int) -> str:
        """Number of rows that a ledger has, or has had."""
        e = self.printer.e
        total, most = (e.value(f"load i64, ptr %ledger{number}.{what}") for what in ("total", "most"))
        return e.call("llvm.smax.i64", "i64", ("i64", total), ("i64", most))

    def refuse_unless(self, condition: str, wrong: int, expected: str, found: str) -> None:
        """Leave the function where something is wrong."""
        e = self.printer.e
        name = e.name("right")[1:]
        e.line(f"br i1 {condition}, label %{name}, label %{name}.not")
        self.printer.begin(f"{name}.not")
        for place, value in ((WRONG, str(wrong)), (EXPECTED, expected), (FOUND, found)):
            e.line(f"store i64 {value}, ptr {self.at(place)}")
        e.line("br label %stopped")
        self.printer.begin(name)

    def end(self) -> None:
        """Say how many rows each ledger has, or has had at most."""
        for number, ledger in enumerate(self.ledgers):
            if ledger.kept:
                self.printer.e.line(f"store i64 {self._most(number)}, ptr {self.at(self.rooms[number] + 1)}")


class Histories:
    """Histories of one loop.

    Attributes:
      rows: how many iterations there are at most, because those that are read have so many elements.
      straight: buffers that steps make and that are kept, long ones: they are made where they are kept -> number of the history.
    """

    def __init__(self, printer: LoopPrinter, loop: LoopProgram, number: int, counts: Counts, read: Sequence[History]):
        self.printer, self.loop, self.counts, self.read = printer, loop, counts, read
        self.number, self.ledger, e = number, counts.ledgers[number], printer.e
        self.rows = ""
        for history in read:
            length = history.length(e)
            if self.rows and (history.begin, history.end) != (read[0].begin, read[0].end):
                same = e.value(f"icmp eq i64 {self.rows}, {length}")
                counts.refuse_unless(same, DIFFERENT, self.rows, length)
            self.rows = self.rows or length
        self.before = "0"
        if loop.kept:
            if not self.ledger.goes_on:
                counts.restart(number)
            else:
                self.before = e.value(f"load i64, ptr %ledger{number}.total")
        made = {n for s in loop.body for n in s.outputs}
        self.straight: dict[int, int] = {}
        for i, (kept, _) in enumerate(loop.kept):
            if kept in made and bytes_of(loop.buffers[kept]) > COPIED:
                self.straight.setdefault(kept, i)
        self._place = ""

    def begin(self, name: str, turn: str, address: dict[int, str], lists: dict[int, History]) -> None:
        """Beginning of an iteration: there is room for what it keeps, and the elements that it reads are found."""
        e, loop, printer, counts, mine = self.printer.e, self.loop, self.printer, self.counts, self.number
        if loop.kept:
            self._place = turn if self.before == "0" else e.binary("add", "i64", self.before, turn)
            full = e.value(f"icmp sge i64 {self._place}, {e.value(f'load i64, ptr %ledger{mine}.room')}")
            e.line(f"br i1 {full}, label %{name}.full, label %{name}.kept")
            printer.begin(f"{name}.full")
            failed = e.value(f"call i64 %grow(ptr {counts.place}, i64 {mine})")
            e.line(f"br i1 {e.value(f'icmp ne i64 {failed}, 0')}, label %stopped, label %{name}.more")
            printer.begin(f"{name}.more")
            e.line(f"store i64 {counts.load(counts.rooms[mine])}, ptr %ledger{mine}.room")
            for i in range(len(loop.kept)):
                moved = e.value(f"load ptr, ptr {counts.at(counts.rooms[mine] + 2 + i)}")
                e.line(f"store ptr {moved}, ptr %ledger{mine}.{i}")
            e.line(f"br label %{name}.kept")
            printer.begin(f"{name}.kept")
        places: dict[str, str] = {}
        for number, history in zip(loop.scans, self.read, strict=True):
            if history.end not in places:
                last = e.binary("sub", "i64", history.end, "1")
                places[history.end] = e.binary("sub", "i64", last, turn)
            element = history.store.at(e, places[history.end])
            if isinstance(element, str):
                address[number] = element
            else:
                lists[number] = element
        for number, i in self.straight.items():
            address[number] = self._row(i)

    def _row(self, kept: int) -> str:
        """Address of the row of this iteration in an array of the ledger."""
        row = self.counts.stores[self.number][kept]
        store = Stored(row.first, row.stride)
        place = self._place if row.within is None else self.printer.e.binary("add", "i64", self._place, "1")
        address = store.at(self.printer.e, place)
        assert isinstance(address, str)
        return address

    def keep(self, address: Mapping[int, str], lists: Mapping[int, History]) -> None:
        """Add what the iteration keeps, before loop variables become their next values."""
        for i, (number, _) in enumerate(self.loop.kept):
            if self.loop.buffers[number].depth:
                self.printer.e.line(f"store i64 {lists[number].end}, ptr {self._row(i)}")
                continue
            size = bytes_of(self.loop.buffers[number])
            if size and self.straight.get(number) != i:
                self.printer.copy(address[number], self._row(i), size)

    def end(self, turns: str) -> list[History]:
        """There is no iteration any more: the histories that were made."""
        if not self.loop.kept:
            return []
        e = self.printer.e
        total = turns if self.before == "0" else e.binary("add", "i64", self.before, turns)
        e.line(f"store i64 {total}, ptr %ledger{self.number}.total")
        return [History(store, self.before, total) for store in self.counts.stores[self.number]]


def history_of_rows(e: Emitter, rows: LoopRows, tensor: str, made: LoopBuffer) -> History:
    """The rows of a tensor, where they lie."""
    size = math.prod(made.shape) * made.dtype.size
    if not rows.backwards:
        return History(Stored(lambda: tensor, str(size), gapless=True), "0", str(rows.count))
    last = e.value(f"getelementptr i8, ptr {tensor}, i64 {(rows.count - 1) * size}")
    return History(Stored(lambda: last, str(-size)), "0", str(rows.count))


def rows_of_history(
    printer: LoopPrinter, rows: LoopRows, history: History, target: str, size: int, counts: Counts
) -> None:
    """Copy the elements of a history, each of so many bytes, to the rows of a tensor."""
    e = printer.e
    length = history.length(e)
    same = e.value(f"icmp eq i64 {length}, {rows.count}")
    counts.refuse_unless(same, WRONG_ROWS, str(rows.count), length)
    if history.store.gapless and not rows.backwards:
        first = history.store.at(e, history.begin)
        assert isinstance(first, str)
        printer.copy(first, target, size * rows.count)
        return
    name = e.name("rows")[1:]
    printer.heads.append(f"%{name}.at = alloca i64")
    e.line(f"store i64 0, ptr %{name}.at")
    e.line(f"br label %{name}")
    printer.begin(name)
    row = e.value(f"load i64, ptr %{name}.at")
    if rows.backwards:
        place = e.binary("sub", "i64", e.binary("sub", "i64", history.end, "1"), row)
    else:
        place = e.binary("add", "i64", history.begin, row)
    source = history.store.at(e, place)
    assert isinstance(source, str)
    there = e.value(f"getelementptr i8, ptr {target}, i64 {e.binary('mul', 'i64', row, str(size))}")
    printer.copy(source, there, size)
    following = e.binary("add", "i64", row, "1")
    e.line(f"store i64 {following}, ptr %{name}.at")
    e.line(f"br i1 {e.value(f'icmp slt i64 {following}, {rows.count}')}, label %{name}, label %{name}.done")
    printer.begin(f"{name}.done")
