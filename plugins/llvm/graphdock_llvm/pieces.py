"""Pieces of text that printers of products share: functions, loops, addresses, and vectors of which some lanes are there."""

from __future__ import annotations

from collections.abc import Callable

from graphdock_llvm.emitter import Emitter

__all__ = ["Pieces", "transposed"]


def transposed(e: Emitter, scalar: str, rows: list[str]) -> list[str]:
    """A square of vectors, turned by swapping halves, quarters, ..."""
    type_, half = e.vector(scalar), e.width // 2
    while half:
        swapped = list(rows)
        for i in range(e.width):
            if i & half:
                continue
            a, b = rows[i], rows[i + half]
            low = [lane if not lane & half else lane - half + e.width for lane in range(e.width)]
            high = [lane + half if not lane & half else lane + e.width for lane in range(e.width)]
            for target, lanes in ((i, low), (i + half, high)):
                mask = ", ".join(f"i32 {lane}" for lane in lanes)
                swapped[target] = e.value(f"shufflevector {type_} {a}, {type_} {b}, <{e.width} x i32> <{mask}>")
        rows, half = swapped, half // 2
    return rows


class Pieces:
    """Prints functions over matrices of one type, in panels of so many vectors of columns.

    Args:
      scalar: LLVM's type of an element. ``columns``: how many there are, as a number or a name.
    """

    def __init__(self, e: Emitter, name: str, scalar: str, vectors: int, columns: str) -> None:
        self.e, self.name, self.scalar = e, name, scalar
        self.vectors, self.wide, self.columns = vectors, vectors * e.width, columns
        self.type, self.size = e.vector(scalar), 4 if scalar == "float" else 8
        self.labels = 0

    def function(self, head: str) -> str:
        """An internal function of the lines so far."""
        body, self.e.lines = "\n".join(self.e.lines), []
        return f"define internal {head} {{\nentry:\n{body}\n  ret void\n}}\n"

    def loop(self, begin: str, end: str, visit: Callable[[str], None], some: bool = True) -> None:
        """``for i in range(begin, end)``, where there is one at least, or not (``some=False``)."""
        e, label = self.e, self.label()
        e.line(f"br label %{label}.in")
        e.label(f"{label}.in")
        if some:
            e.line(f"br label %{label}")
        else:
            e.line(f"br i1 {e.value(f'icmp ult i64 {begin}, {end}')}, label %{label}, label %{label}.out")
        e.label(label)
        at = len(e.lines)
        visit(f"%{label}.i")
        e.line(f"br label %{label}.end")
        e.label(f"{label}.end")
        e.lines.insert(at, f"  %{label}.i = phi i64 [ {begin}, %{label}.in ], [ %{label}.next, %{label}.end ]")
        e.line(f"%{label}.next = add i64 %{label}.i, 1")
        e.line(f"%{label}.more = icmp ult i64 %{label}.next, {end}")
        e.line(f"br i1 %{label}.more, label %{label}, label %{label}.out")
        e.label(f"{label}.out")

    def label(self) -> str:
        """A new label."""
        self.labels += 1
        return f"l{self.labels}"

    def at(self, base: str, *offsets: tuple[str, int | str]) -> str:
        """The address ``base + sum(number * stride)``."""
        e = self.e
        for number, stride in offsets:
            by = number if str(stride) == "1" else e.binary("mul", "i64", number, str(stride))
            base = e.value(f"getelementptr {self.scalar}, ptr {base}, i64 {by}")
        return base

    def masks(self, first: str) -> list[str]:
        """Masks of the lanes of a panel's vectors that are columns."""
        e, masks = self.e, []
        for vector in range(self.vectors):
            at = e.binary("add", "i64", first, str(vector * e.width))
            masks.append(self.lanes_below(e.binary("sub", "i64", self.columns, at)))
        return masks

    def lanes_below(self, count: str) -> str:
        """Mask of so many lanes, none where it is negative."""
        e = self.e
        return e.value(f"icmp slt {e.vector('i64')} {e.lanes('i64')}, {e.broadcast('i64', count)}")

    def masked(self, where: str, mask: str) -> str:
        """A vector of which some lanes are read; the others are 0."""
        args = (("ptr", where), ("i32", str(self.size)), (self.e.vector("i1"), mask), (self.type, "zeroinitializer"))
        return self.e.call(f"llvm.masked.load.{self.e.overload(self.scalar)}.p0", self.type, *args)

    def store_masked(self, value: str, where: str, mask: str) -> None:
        """Write some lanes of a vector."""
        args = ((self.type, value), ("ptr", where), ("i32", str(self.size)), (self.e.vector("i1"), mask))
        self.e.run(f"llvm.masked.store.{self.e.overload(self.scalar)}.p0", *args)
