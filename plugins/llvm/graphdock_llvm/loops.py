"""Printer of a whole loop as one function of LLVM's text.

The function is ``void region(ptr table, ptr numbers)``: the table holds the addresses of what the loop is given, then of its
results; the numbers are how many threads may compute, the address of the pool's function, and that of ``int64_t poll(void)``, which
is called now and then and says whether to stop: results are unspecified then.

Each program is a function that is put where it is called. Buffers lie on the stack, so that single numbers end in registers. A loop
variable that a step makes has two buffers where it is long, which change places; a short one is copied.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from graphdock.contracts import LoopBuffer, LoopProgram, LoopStep, RegionProgram

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.printer import Printed, print_functions

__all__ = ["print_loop", "too_large"]

#: Bytes of all buffers of a loop, and of one that is copied in place of changing places.
_STACK, _COPIED = 128 * 1024, 256
#: Work between two polls, some milliseconds; its unit is an element of a step.
_POLLED = 1 << 23
_MEMCPY = "llvm.memcpy.p0.p0.i64"


def too_large(loop: LoopProgram) -> str | None:
    """Reason why a loop is not compiled: its buffers would not fit on the stack."""
    size = _size_of(loop)
    return f"its buffers are {size} bytes, which a step drives from outside" if size > _STACK else None


def _size_of(loop: LoopProgram) -> int:
    inner = [s.program for s in (*loop.condition, *loop.body) if isinstance(s.program, LoopProgram)]
    own = sum(_bytes(b) for b in loop.buffers if b.value is None) + sum(_bytes(loop.buffers[v]) for v in loop.variables)
    return own + sum(map(_size_of, inner))


def print_loop(loop: LoopProgram, width: int) -> tuple[str, bool]:
    """A module with the function ``region``, and whether any of its programs is in parts, which threads share."""
    printer = _Printer(width)
    return printer.module(loop), printer.shared


class _Printer:
    def __init__(self, width: int) -> None:
        self.width, self.e, self.shared = width, Emitter(width), False
        self.heads: list[str] = []  # what the function begins with: memory of its own
        self.constants: list[str] = []
        self.functions: list[str] = []
        self.helpers: dict[str, str] = {}
        self.printed: dict[tuple[Any, ...], str] = {}
        self.count = 0
        self.block = "begin"

    def module(self, loop: LoopProgram) -> str:
        e = self.e
        slots = len(loop.given)
        given = [self._load_slot("%table", i) for i in range(slots)]
        results = [self._load_slot("%table", slots + i) for i in range(len(loop.results))]
        e.line(f"%poll = load ptr, ptr {e.value('getelementptr i64, ptr %numbers, i64 2')}")
        self.heads.append("%left = alloca i64")
        e.line(f"store i64 {_POLLED}, ptr %left")
        self._loop(loop, given, results)
        body = "\n".join([*(f"  {h}" for h in self.heads), "  br label %begin", "begin:", *e.lines, "  ret void"])
        whole = f"define void @region(ptr %table, ptr %numbers) {{\nentry:\n{body}\nstopped:\n  ret void\n}}\n"
        declared = sorted(e.declarations.values())
        return "\n".join([*declared, *self.constants, *self.helpers.values(), *self.functions, whole])

    def _loop(self, loop: LoopProgram, given: Sequence[str], results: Sequence[str]) -> None:
        """All iterations, from the addresses that are given to those of the results."""
        e = self.e
        self.count += 1
        name, buffers = f"loop{self.count}", loop.buffers
        address: dict[int, str] = dict(zip(loop.given, given, strict=True))
        made = {n for s in loop.body for n in s.outputs}
        moved = [n for v, n in zip(loop.variables, loop.following, strict=True) if v != n]
        swapped = {
            v: n
            for v, n in zip(loop.variables, loop.following, strict=True)
            if n in made and moved.count(n) == 1 and _bytes(buffers[v]) > _COPIED
        }
        for number, buffer in enumerate(buffers):
            if buffer.value is not None:
                address[number] = self._constant(buffer)
            elif number not in address:
                address[number] = self._room(buffer)
        for variable, first in zip(loop.variables, loop.initial, strict=True):
            self._copy(address[first], address[variable], _bytes(buffers[variable]))
        turns = None
        if loop.limit is not None:
            self.heads.append(f"%{name}.turns = alloca i64")
            turns = f"%{name}.turns"
            e.line(f"store i64 0, ptr {turns}")
        e.line(f"br label %{name}")
        before = self.block
        self._begin(name)
        at, phis = len(e.lines), {}
        for variable, following in swapped.items():
            phis[variable] = address[variable], address[following], e.name("now"), e.name("next")
            address[variable], address[following] = phis[variable][2:]
        for step in loop.condition:
            self._step(step, address)
        test = e.value(f"load i8, ptr {address[loop.test]}")
        e.line(f"br i1 {e.value(f'icmp ne i8 {test}, 0')}, label %{name}.on, label %{name}.end")
        self._begin(f"{name}.on")
        if turns is not None:
            turn = e.value(f"load i64, ptr {turns}")
            e.line(f"store i64 {e.binary('add', 'i64', turn, '1')}, ptr {turns}")
            e.line(f"br i1 {e.value(f'icmp slt i64 {turn}, {loop.limit}')}, label %{name}.poll, label %{name}.end")
            self._begin(f"{name}.poll")
        self._poll(name, sum(_work(s) for s in (*loop.condition, *loop.body)))
        for step in loop.body:
            self._step(step, address)
        self._advance(loop, address, swapped)
        e.line(f"br label %{name}")
        rows = []
        for here, there, now, following_name in phis.values():
            rows.append(f"  {now} = phi ptr [ {here}, %{before} ], [ {following_name}, %{self.block} ]")
            rows.append(f"  {following_name} = phi ptr [ {there}, %{before} ], [ {now}, %{self.block} ]")
        e.lines[at:at] = rows
        self._begin(f"{name}.end")
        for result, place in zip(loop.results, results, strict=True):
            variable = loop.variables[result]
            self._copy(address[variable], place, _bytes(buffers[variable]))

    def _advance(self, loop: LoopProgram, address: Mapping[int, str], swapped: Mapping[int, int]) -> None:
        """Every loop variable becomes its next value, all at once."""
        pairs = [(v, n) for v, n in zip(loop.variables, loop.following, strict=True) if v != n and v not in swapped]
        sources = {n: address[n] for _, n in pairs}
        for number in sources:
            if number in loop.variables:  # which may change before it is read, so that what it was is kept
                kept = self._room(loop.buffers[number])
                self._copy(address[number], kept, _bytes(loop.buffers[number]))
                sources[number] = kept
        for variable, following in pairs:
            self._copy(sources[following], address[variable], _bytes(loop.buffers[variable]))

    def _poll(self, name: str, work: int) -> None:
        """Leave all loops when the step must stop."""
        e = self.e
        left = e.binary("sub", "i64", e.value("load i64, ptr %left"), str(work))
        e.line(f"store i64 {left}, ptr %left")
        e.line(f"br i1 {e.value(f'icmp slt i64 {left}, 0')}, label %{name}.ask, label %{name}.body")
        self._begin(f"{name}.ask")
        e.line(f"store i64 {_POLLED}, ptr %left")
        stop = e.value("call i64 %poll()")
        e.line(f"br i1 {e.value(f'icmp ne i64 {stop}, 0')}, label %stopped, label %{name}.body")
        self._begin(f"{name}.body")

    def _step(self, step: LoopStep, address: Mapping[int, str]) -> None:
        buffers = [address[n] for n in step.inputs], [address[n] for n in step.outputs]
        if isinstance(step.program, LoopProgram):
            self._loop(step.program, *buffers)
            return
        function = self._function(step.program, len(step.inputs))
        table = self.e.name("table")
        self.heads.append(f"{table} = alloca ptr, i64 {sum(map(len, buffers))}")
        for slot, buffer in enumerate([*buffers[0], *buffers[1]]):
            self.e.line(f"store ptr {buffer}, ptr {self.e.value(f'getelementptr ptr, ptr {table}, i64 {slot}')}")
        self.e.line(f"call void @{function}(ptr {table}, ptr %numbers)")

    def _function(self, program: RegionProgram, count: int) -> str:
        """The name of the function of a program, which stands in the module once."""
        shapes = tuple(i.shape for i in program.inputs), tuple(o.shape for o in program.outputs)
        key = program.structure(), tuple(a.extent for a in program.axes), count, shapes
        found = self.printed.get(key)
        if found is None:
            found = self.printed[key] = f"step{len(self.printed)}"
            printed: Printed = print_functions(program, count, self.width, found, "internal")
            self.e.declarations |= printed.declarations
            self.helpers |= printed.helpers
            self.functions += printed.functions
            self.shared = self.shared or printed.shared
        return found

    # -- memory

    def _begin(self, block: str) -> None:
        self.e.label(block)
        self.block = block

    def _load_slot(self, table: str, slot: int) -> str:
        return self.e.value(f"load ptr, ptr {self.e.value(f'getelementptr ptr, ptr {table}, i64 {slot}')}")

    def _room(self, buffer: LoopBuffer) -> str:
        name = self.e.name("room")
        self.heads.append(f"{name} = alloca [{_bytes(buffer)} x i8], align 64")
        return name

    def _constant(self, buffer: LoopBuffer) -> str:
        data = "".join(f"\\{byte:02X}" for byte in buffer.value.tobytes())
        name = f"@c{len(self.constants)}"
        self.constants.append(f'{name} = internal constant [{_bytes(buffer)} x i8] c"{data}", align 64')
        return name

    def _copy(self, source: str, target: str, size: int) -> None:
        self.e.run(_MEMCPY, ("ptr", target), ("ptr", source), ("i64", str(size)), ("i1", "false"))


def _bytes(buffer: LoopBuffer) -> int:
    return math.prod(buffer.shape) * buffer.dtype.size


def _work(step: LoopStep) -> int:
    """Elements of a step; a loop within counts its own."""
    if isinstance(step.program, LoopProgram):
        return 1
    return math.prod(a.extent or 1 for a in step.program.axes)
