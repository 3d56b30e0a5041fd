"""Loops along a row of several axes: around those along its last axis, with accumulators that go through all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graphdock_llvm.rows import Rows
from graphdock_llvm.vectors import Place, in_memory

__all__ = ["Nests"]

#: Rows that are added to each other before they are added to the others: a power of two.
_TOGETHER = 64
#: Vectors of a row from which on it is added up by itself first.
_BY_ITSELF = 4


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop that is open: its block, that before it, where its first line is, what it carries, and as what that begins."""

    label: str
    before: str
    line: int
    carried: Sequence[str]
    starts: Sequence[str]
    size: str


class Nests(Rows):
    """Rows of which each may go along several axes."""

    def _nested(
        self,
        accumulators: list[str],
        types: Sequence[str],
        visit: Callable[[Place, Sequence[str]], list[str]],
        sums: Sequence[int],
        begin: Callable[[], None],
    ) -> list[str]:
        """Visit a row of several axes; the accumulators after it.

        Args:
          sums: which accumulators are sums of floating numbers: a row along the last axis is added up first, then some of them, so
            that no sum is one of more than some thousands.
          begin: is called at the begin of each row along the last axis.
        """
        e, count = self.e, len(accumulators)
        self.loops += 1
        name = f"nest{self.loops}"
        rows = [self.program.axes[axis].extent for axis in self.plan.nest]
        known = None not in rows and math.prod(n or 0 for n in rows) <= _TOGETHER
        folded = [] if known else list(sums)
        carried = [*types, *[types[k] for k in folded], *["i64"] * bool(folded)]
        values = [*accumulators, *["zeroinitializer" for _ in folded], *["0"] * bool(folded)]
        loops = []
        for axis in self.plan.nest:
            loops.append(self._open(f"{name}.{axis}", self.sizes[axis], values))
            self.places[axis], values = f"%{name}.{axis}.at", list(loops[-1].carried)
        begin()
        values[:count] = self._row(values[:count], types, visit, sums)
        if folded:
            values[count:] = self._fold_some(values, types, folded, count)
        for loop in reversed(loops):
            values = self._close(loop, carried, values)
        for place, k in enumerate(folded):
            values[k] = e.binary("fadd", types[k], values[count + place], values[k])
        return values[:count]

    def _kept_room(self, number: int) -> str:
        """Address of what is kept of a term for a row of several axes, or of one."""
        if not self.plan.nest:
            return self._room(number)
        scalar = in_memory(self.program.terms[number].dtype.name)
        room = self._times((*[self.sizes[axis] for axis in self.plan.nest], self.padded))
        return self.e.value(f"alloca {scalar}, i64 {room}, align 64")

    def _kept_row(self, number: int, room: str) -> str:
        """Address of the row along the last axis that the loops are at, in such a room."""
        e, at = self.e, "0"
        for axis in self.plan.nest:
            at = e.binary("add", "i64", e.binary("mul", "i64", at, self.sizes[axis]), self.places[axis])
        scalar = in_memory(self.program.terms[number].dtype.name)
        return e.value(f"getelementptr {scalar}, ptr {room}, i64 {e.binary('mul', 'i64', at, self.padded)}")

    def _row(
        self,
        accumulators: list[str],
        types: Sequence[str],
        visit: Callable[[Place, Sequence[str]], list[str]],
        sums: Sequence[int],
    ) -> list[str]:
        """One row along the last axis."""
        apart = sums if self.length is None or self.length >= _BY_ITSELF * self.e.width else ()
        starts = ["zeroinitializer" if k in apart else value for k, value in enumerate(accumulators)]
        following = self._loop(starts, types, visit, sums)
        return [
            self.e.binary("fadd", types[k], accumulators[k], value) if k in apart else value
            for k, value in enumerate(following)
        ]

    def _fold_some(self, values: list[str], types: Sequence[str], folded: Sequence[int], count: int) -> list[str]:
        """Add what some rows gave to what all gave, once there are enough of them; what all gave, and how many rows there were.
        ``values`` of the rows begin again then."""
        e, following = self.e, list[str]()
        done = e.binary("add", "i64", values[-1], "1")
        full = e.value(f"icmp eq i64 {e.binary('and', 'i64', done, str(_TOGETHER - 1))}, 0")
        for place, k in enumerate(folded):
            zero, type_ = "zeroinitializer", types[k]
            more = e.value(f"select i1 {full}, {type_} {values[k]}, {type_} {zero}")
            following.append(e.binary("fadd", type_, values[count + place], more))
            values[k] = e.value(f"select i1 {full}, {type_} {zero}, {type_} {values[k]}")
        return [*following, done]

    def _open(self, label: str, size: str, values: Sequence[str]) -> _Loop:
        e, before = self.e, self.block
        if size.isdigit():
            e.line(f"br label %{label}")
        else:  # of no turn at all, it may be
            e.line(f"br i1 {e.value(f'icmp ugt i64 {size}, 0')}, label %{label}, label %{label}.past")
        e.label(label)
        self.block = label
        return _Loop(label, before, len(e.lines), [e.name("acc") for _ in values], values, size)

    def _close(self, loop: _Loop, types: Sequence[str], following: Sequence[str]) -> list[str]:
        e, label, end = self.e, loop.label, self.block
        at, after = f"%{label}.at", f"%{label}.next"
        e.line(f"{after} = add i64 {at}, 1")
        e.line(f"br i1 {e.value(f'icmp ult i64 {after}, {loop.size}')}, label %{label}, label %{label}.past")
        rows = [(at, "i64", "0", after), *zip(loop.carried, types, loop.starts, following, strict=True)]
        e.lines[loop.line : loop.line] = self._phis(rows, loop.before, end)
        e.label(f"{label}.past")
        self.block = f"{label}.past"
        if loop.size.isdigit():
            return list(following)
        return self._joined(types, (loop.starts, loop.before), (following, end))
