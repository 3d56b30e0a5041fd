"""Printer of a whole loop as one function of LLVM's text.

The function is ``void region(ptr table, ptr numbers)``: the table holds the addresses of what the loop is given, then of its
results, and of memory for large buffers; where it has histories (:mod:`graphdock_llvm.histories`) before that memory those of where
the elements of histories of histories begin, of the arrays of ledgers, and of counts. The numbers are how many threads may compute,
the address of the pool's function, that of ``int64_t poll(void)``, which is called now and then and says whether to stop: results
are unspecified then; and that of ``int64_t grow(int64_t *counts, int64_t ledger)``.

A history that is given is the address of its first tensor. Where there is no room for another row in a ledger ``grow`` makes some,
and puts the room's size and the addresses of the new arrays into the counts; or says that it can't.

Each program is a function that is put where it is called, but for large products, which have a stack of their own: their right
matrix is packed before the loop where it stays through all iterations. Short buffers lie on the stack, so that single numbers end
in registers. A loop variable that a step makes has two buffers where it is long, which change places; a short one is copied.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import LoopBuffer, LoopCopy, LoopProgram, LoopRows, LoopStep, RegionProgram

from graphdock_llvm.copies import print_copy
from graphdock_llvm.emitter import Emitter
from graphdock_llvm.histories import (
    COPIED,
    Counts,
    Histories,
    History,
    bytes_of,
    history_of_rows,
    rows_of_history,
)
from graphdock_llvm.ledgers import ledgers_of, needs_counts
from graphdock_llvm.packing import panels_of, room_of
from graphdock_llvm.panels import Matrices
from graphdock_llvm.printer import Printed
from graphdock_llvm.steps import print_packing, print_step

__all__ = ["PrintedLoop", "print_loop", "too_large"]


#: Bytes of all buffers of a loop, and of one that lies on the stack.
_MOST, _STACK = 16 * 1024 * 1024, 4096
#: Work between two polls, some milliseconds; its unit is an element of a step.
_POLLED = 1 << 23
_MEMCPY = "llvm.memcpy.p0.p0.i64"


def too_large(loop: LoopProgram) -> str | None:
    """Reason why a loop is not compiled: a step reuses buffers, and these lie side by side."""
    size = _size_of(loop)
    return f"its buffers are {size} bytes, which a step drives from outside" if size > _MOST else None


def _size_of(loop: LoopProgram) -> int:
    inner = [s.program for s in (*loop.condition, *loop.body) if isinstance(s.program, LoopProgram)]
    lying = {*loop.scans, *loop.given}
    own = sum(bytes_of(b) for i, b in enumerate(loop.buffers) if b.value is None and i not in lying)
    own += sum(bytes_of(loop.buffers[v]) for v in loop.variables)
    return own + sum(map(_size_of, inner))


@dataclass(frozen=True, slots=True)
class PrintedLoop:
    """A module with the function ``region``.

    Attributes:
      shared: whether any of its programs is in parts, which threads share. ``room``: bytes of memory that it is given.
    """

    text: str
    shared: bool
    room: int


def print_loop(loop: LoopProgram, width: int) -> PrintedLoop:
    """The function of a loop."""
    printer = _Printer(width)
    text = printer.module(loop)
    return PrintedLoop(text, printer.shared, printer.room)


class _Printer:
    def __init__(self, width: int) -> None:
        self.width, self.e, self.shared = width, Emitter(width), False
        self.heads: list[str] = []  # what the function begins with: memory of its own
        self.constants: list[str] = []
        self.functions: list[str] = []
        self.helpers: dict[str, str] = {}
        self.printed: dict[tuple[Any, ...], str] = {}
        self.count = self.room = 0
        self.counts: Counts | None = None
        self.block = "begin"

    def module(self, loop: LoopProgram) -> str:
        e = self.e
        counted = needs_counts(loop)
        slots = len(loop.given)
        given: list[str | History] = [self.load_slot("%table", i) for i in range(slots)]
        results = [self.load_slot("%table", slots + i) for i in range(len(loop.results))]
        for number, name in enumerate(("poll", "grow") if counted else ("poll",)):
            e.line(f"%{name} = load ptr, ptr {e.value(f'getelementptr i64, ptr %numbers, i64 {2 + number}')}")
        slot = slots + len(loop.results)
        self.heads.append("%left = alloca i64")
        if counted:
            slot = self._counts(loop, given, slot)
        e.line(f"store i64 {_POLLED}, ptr %left")
        self._loop(loop, given, results)
        if self.counts is not None:
            self.counts.end()
        if self.room:
            self.heads.insert(0, "%memory = load ptr, ptr %memory.at")
            self.heads.insert(0, f"%memory.at = getelementptr ptr, ptr %table, i64 {slot}")
        body = "\n".join([*(f"  {h}" for h in self.heads), "  br label %begin", "begin:", *e.lines, "  ret void"])
        whole = f"define void @region(ptr %table, ptr %numbers) {{\nentry:\n{body}\nstopped:\n  ret void\n}}\n"
        declared = sorted(e.declarations.values())
        return "\n".join([*declared, *self.constants, *self.helpers.values(), *self.functions, whole])

    def _counts(self, loop: LoopProgram, given: list[str | History], slot: int) -> int:
        """Read what the counts say, and from a slot of the table on where histories and ledgers lie. Return the slot behind."""
        read = [(i, n) for i, n in enumerate(loop.given) if n in loop.scans or loop.buffers[n].depth]
        places = []
        for i, number in read:
            begins = loop.buffers[number].depth - (number not in loop.scans)
            places.append([*(self.load_slot("%table", slot + k) for k in range(begins)), str(given[i])])
            slot += begins
        ledgers = ledgers_of(loop)
        firsts = [self.load_slot("%table", slot + i) for i in range(sum(len(x.kept) for x in ledgers))]
        slot += len(firsts)
        self.counts = Counts(self, self.load_slot("%table", slot), len(read), ledgers, firsts)
        for k, (i, _) in enumerate(read):
            given[i] = self.counts.given(k, places[k])
        return slot + 1

    def _loop(self, loop: LoopProgram, given: Sequence[str | History], results: Sequence[str]) -> list[History]:
        """All iterations, from what is given to the addresses of the results; the histories that it makes."""
        e = self.e
        self.count += 1
        name, buffers = f"loop{self.count}", loop.buffers
        address: dict[int, str] = {n: g for n, g in zip(loop.given, given, strict=True) if isinstance(g, str)}
        lists: dict[int, History] = {n: g for n, g in zip(loop.given, given, strict=True) if not isinstance(g, str)}
        histories = None
        if (loop.scans or loop.kept) and self.counts is not None:
            histories = Histories(self, loop, self.count - 1, self.counts, [lists.pop(n) for n in loop.scans])
        straight = {} if histories is None else histories.straight
        made = {n for s in loop.body for n in s.outputs}
        moved = [n for v, n in zip(loop.variables, loop.following, strict=True) if v != n]
        swapped = {
            v: n
            for v, n in zip(loop.variables, loop.following, strict=True)
            if n in made and n not in straight and moved.count(n) == 1 and bytes_of(buffers[v]) > COPIED
        }
        handed = {v: n for v, n in zip(loop.variables, loop.following, strict=True) if n in straight}
        for number, buffer in enumerate(buffers):
            if buffer.value is not None:
                address[number] = self._constant(buffer)
            elif number not in address and number not in straight and not buffer.depth:
                address[number] = self._room(buffer)
        for variable, first in zip(loop.variables, loop.initial, strict=True):
            self.copy(address[first], address[variable], bytes_of(buffers[variable]))
        panels = self._pack(loop, address)
        turns = None
        if loop.limit is not None or histories is not None:
            self.heads.append(f"%{name}.turns = alloca i64")
            turns = f"%{name}.turns"
            e.line(f"store i64 0, ptr {turns}")
        e.line(f"br label %{name}")
        before = self.block
        self.begin(name)
        at, phis = len(e.lines), {}
        for variable, following in swapped.items():
            phis[variable] = address[variable], address[following], e.name("now"), e.name("next")
            address[variable], address[following] = phis[variable][2:]
        lying = {v: (address[v], e.name("now")) for v in handed}
        address |= {v: now for v, (_, now) in lying.items()}
        for step in loop.condition:
            self._step(step, address, lists, buffers, panels)
        test = e.value(f"load i8, ptr {address[loop.test]}")
        e.line(f"br i1 {e.value(f'icmp ne i8 {test}, 0')}, label %{name}.on, label %{name}.end")
        self.begin(f"{name}.on")
        if turns is not None:
            turn = e.value(f"load i64, ptr {turns}")
            for number, limit in enumerate(self._limits(loop, histories)):
                e.line(f"br i1 {e.value(f'icmp slt i64 {turn}, {limit}')}, label %{name}.l{number}, label %{name}.end")
                self.begin(f"{name}.l{number}")
            e.line(f"store i64 {e.binary('add', 'i64', turn, '1')}, ptr {turns}")
            if histories is not None:
                histories.begin(name, turn, address, lists)
        self._poll(name, sum(_work(s) for s in (*loop.condition, *loop.body)))
        for step in loop.body:
            self._step(step, address, lists, buffers, panels)
        if histories is not None:
            histories.keep(address, lists)
        self._advance(loop, address, {*swapped, *handed})
        e.line(f"br label %{name}")
        rows = []
        for here, there, now, following_name in phis.values():
            rows.append(f"  {now} = phi ptr [ {here}, %{before} ], [ {following_name}, %{self.block} ]")
            rows.append(f"  {following_name} = phi ptr [ {there}, %{before} ], [ {now}, %{self.block} ]")
        for variable, (here, now) in lying.items():
            rows.append(f"  {now} = phi ptr [ {here}, %{before} ], [ {address[handed[variable]]}, %{self.block} ]")
        e.lines[at:at] = rows
        self.begin(f"{name}.end")
        made_histories = [] if histories is None else histories.end(e.value(f"load i64, ptr {turns}"))
        for result, place in zip(loop.results, results, strict=True):
            variable = loop.variables[result]
            self.copy(address[variable], place, bytes_of(buffers[variable]))
        return made_histories

    def _limits(self, loop: LoopProgram, histories: Histories | None) -> list[str]:
        """Numbers of iterations at most."""
        found = [] if loop.limit is None else [str(loop.limit)]
        return found if histories is None or not loop.scans else [*found, histories.rows]

    def _advance(self, loop: LoopProgram, address: Mapping[int, str], moved: Collection[int]) -> None:
        """Every loop variable becomes its next value, all at once; those that have ``moved`` have it already."""
        pairs = [(v, n) for v, n in zip(loop.variables, loop.following, strict=True) if v != n and v not in moved]
        sources = {n: address[n] for _, n in pairs}
        for number in sources:
            if number in loop.variables:  # which may change before it is read, so that what it was is kept
                kept = self._room(loop.buffers[number])
                self.copy(address[number], kept, bytes_of(loop.buffers[number]))
                sources[number] = kept
        for variable, following in pairs:
            self.copy(sources[following], address[variable], bytes_of(loop.buffers[variable]))

    def _poll(self, name: str, work: int) -> None:
        """Leave all loops when the step must stop."""
        e = self.e
        left = e.binary("sub", "i64", e.value("load i64, ptr %left"), str(work))
        e.line(f"store i64 {left}, ptr %left")
        e.line(f"br i1 {e.value(f'icmp slt i64 {left}, 0')}, label %{name}.ask, label %{name}.body")
        self.begin(f"{name}.ask")
        e.line(f"store i64 {_POLLED}, ptr %left")
        stop = e.value("call i64 %poll()")
        e.line(f"br i1 {e.value(f'icmp ne i64 {stop}, 0')}, label %stopped, label %{name}.body")
        self.begin(f"{name}.body")

    def _step(
        self,
        step: LoopStep,
        address: Mapping[int, str],
        lists: dict[int, History],
        of: Sequence[LoopBuffer],
        panels: Mapping[tuple[int, Matrices], str],
    ) -> None:
        if isinstance(step.program, LoopProgram):
            count = len(step.program.results)
            given = [lists[n] if n in lists else address[n] for n in step.inputs]
            made = self._loop(step.program, given, [address[n] for n in step.outputs[:count]])
            lists.update(zip(step.outputs[count:], made, strict=True))
            return
        if isinstance(step.program, LoopRows):
            self._rows(step.program, step.inputs[0], step.outputs[0], address, lists, of)
            return
        buffers = [address[n] for n in step.inputs], [address[n] for n in step.outputs]
        if isinstance(step.program, LoopCopy):
            size = of[step.outputs[0]].dtype.size
            self.e.line(f"call void @{self._copies(step.program, size)}(ptr {buffers[0][0]}, ptr {buffers[1][0]})")
            return
        packed: dict[int, str] = {}
        if panels:
            ready = [i for i, n in enumerate(step.inputs) if any(n == number for number, _ in panels)]
            wanted = panels_of(step.program, ready)
            where = None if wanted is None else panels.get((step.inputs[wanted[0]], wanted[1]))
            packed = {} if wanted is None or where is None else {wanted[0]: where}
        function = self._function(step.program, len(step.inputs), packed)
        self._call(function, [*(packed.get(k, b) for k, b in enumerate(buffers[0])), *buffers[1]])

    def _rows(
        self,
        rows: LoopRows,
        source: int,
        target: int,
        address: Mapping[int, str],
        lists: dict[int, History],
        of: Sequence[LoopBuffer],
    ) -> None:
        if of[target].depth:
            lists[target] = history_of_rows(self.e, rows, address[source], of[target])
            return
        assert self.counts is not None
        size = bytes_of(of[target]) // rows.count
        rows_of_history(self, rows, lists[source], address[target], size, self.counts)

    def _call(self, function: str, buffers: Sequence[str]) -> None:
        """Call a function of a table of addresses, and of the numbers."""
        table = self.e.name("table")
        self.heads.append(f"{table} = alloca ptr, i64 {len(buffers)}")
        for slot, buffer in enumerate(buffers):
            self.e.line(f"store ptr {buffer}, ptr {self.e.value(f'getelementptr ptr, ptr {table}, i64 {slot}')}")
        self.e.line(f"call void @{function}(ptr {table}, ptr %numbers)")

    def _function(self, program: RegionProgram, count: int, packed: Collection[int]) -> str:
        """The name of the function of a program, which stands in the module once."""
        shapes = tuple(i.shape for i in program.inputs), tuple(o.shape for o in program.outputs)
        key = program.structure(), tuple(a.extent for a in program.axes), count, shapes, tuple(packed)
        found = self.printed.get(key)
        if found is None:
            found = self.printed[key] = f"step{len(self.printed)}"
            self._include(print_step(program, count, self.width, found, packed))
        return found

    def _include(self, printed: Printed) -> None:
        self.e.declarations |= printed.declarations
        self.helpers |= printed.helpers
        self.functions += printed.functions
        self.shared = self.shared or printed.shared

    def _pack(self, loop: LoopProgram, address: Mapping[int, str]) -> dict[tuple[int, Matrices], str]:
        """Panels of the matrices that stay through all iterations, packed before them: where they lie."""
        stay = {n for n in loop.given if n not in loop.scans} | {
            n for n, b in enumerate(loop.buffers) if b.value is not None
        }
        found: dict[tuple[int, Matrices], str] = {}
        for step in (*loop.condition, *loop.body):
            if not isinstance(step.program, RegionProgram):
                continue
            wanted = panels_of(step.program, [i for i, n in enumerate(step.inputs) if n in stay])
            if wanted is None or step.inputs[wanted[0]] not in stay:
                continue
            number, of = step.inputs[wanted[0]], wanted[1]
            if (number, of) not in found:
                found[number, of] = self._memory(room_of(of) * loop.buffers[number].dtype.size)
                name = self.printed.get(("panels", of))
                if name is None:
                    name = self.printed["panels", of] = f"step{len(self.printed)}"
                    self._include(print_packing(of, name))
                self._call(name, [address[number], found[number, of]])
        return found

    def _copies(self, copy: LoopCopy, size: int) -> str:
        """The name of the function of a copy of elements of so many bytes, which stands in the module once."""
        found = self.printed.get((copy, size))
        if found is None:
            found = self.printed[copy, size] = f"step{len(self.printed)}"
            e = Emitter(self.width)
            print_copy(e, copy, size)
            body = "\n".join(e.lines)
            self.e.declarations |= e.declarations
            self.functions.append(
                f"define internal void @{found}(ptr %from, ptr %to) {{\nentry:\n{body}\n  ret void\n}}\n"
            )
        return found

    # -- memory

    def begin(self, block: str) -> None:
        self.e.label(block)
        self.block = block

    def load_slot(self, table: str, slot: int) -> str:
        return self.e.value(f"load ptr, ptr {self.e.value(f'getelementptr ptr, ptr {table}, i64 {slot}')}")

    def _room(self, buffer: LoopBuffer) -> str:
        if bytes_of(buffer) > _STACK:
            return self._memory(bytes_of(buffer))
        name = self.e.name("room")
        self.heads.append(f"{name} = alloca [{bytes_of(buffer)} x i8], align 64")
        return name

    def _memory(self, size: int) -> str:
        """Some of the memory that the function is given."""
        name = self.e.name("room")
        self.heads.append(f"{name} = getelementptr i8, ptr %memory, i64 {self.room}")
        self.room += -(-size // 64) * 64
        return name

    def _constant(self, buffer: LoopBuffer) -> str:
        data = "".join(f"\\{byte:02X}" for byte in buffer.value.tobytes())
        name = f"@c{len(self.constants)}"
        self.constants.append(f'{name} = internal constant [{bytes_of(buffer)} x i8] c"{data}", align 64')
        return name

    def copy(self, source: str, target: str, size: int | str) -> None:
        self.e.run(_MEMCPY, ("ptr", target), ("ptr", source), ("i64", str(size)), ("i1", "false"))


def _work(step: LoopStep) -> int:
    """Elements of a step; a loop within counts its own."""
    if isinstance(step.program, LoopProgram):
        return 1
    if isinstance(step.program, LoopCopy):
        return math.prod(step.program.shape)
    if isinstance(step.program, LoopRows):
        return step.program.count
    return math.prod(a.extent or 1 for a in step.program.axes)
