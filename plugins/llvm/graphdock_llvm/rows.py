"""Loops along one row in LLVM's text, of known length and of a length that only a call knows; extents as operands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import zip_longest

from graphdock.contracts import RegionProgram

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.schedule import TOGETHER, Schedule
from graphdock_llvm.vectors import Place, in_memory

__all__ = ["Rows"]

#: Vectors that are added to each other before they are added to the others, in rows that are longer.
_LONG = 512
#: Lines that a vector takes, between which two are visited side by side: with fewer memory is waited for, with more registers lack.
_FEW, _MANY = 12, 64


class Rows:
    """The row of a program whose function is being printed.

    Attributes:
      e: emits lines. ``plan``: what a row takes. ``length``: elements of the row that loops go along; None where a call knows it.
      sizes: extents of the axes: numbers, or values of the function.
      ragged: of a row of unknown length what whole vectors hold, and the mask of the rest. ``rest``: whether there is one.
      padded: elements of a row that is kept, in whole vectors.
      between: a part of the one row, from one place to another; None for all of it.
      parts: in how many parts threads share the rows, where that is known. ``in_parts``: whether they do. ``open``: whether an
        extent is unknown.
      memory: where rows of unknown length are kept, each part's for itself. ``share``: which part this is, and of how many.
      block: which is being filled. ``loops``: how many there were.
      places: axis of a loop around the one along a row -> where it is.
    """

    def __init__(self, program: RegionProgram, width: int) -> None:
        self.e, self.plan = Emitter(width), Schedule(program, width)
        self.program = self.plan.program
        self.length = self.plan.length
        self.sizes: list[str] = []
        self.ragged: tuple[str, str] | None = None
        self.rest = self.padded = ""
        self.between: tuple[str, str] | None = None
        self.parts, self.in_parts, self.open = 1, False, bool(self.plan.open)
        self.memory, self.share = "", ("0", "1")
        self.block, self.loops = "entry", 0
        self.places: dict[int, str] = {}

    # -- extents

    def _measure(self, numbers: str) -> None:
        """Load the extents that the program does not say, at the begin of a function."""
        e, at = self.e, {axis: 3 + k for k, axis in enumerate(self.plan.open)}
        self.sizes = [
            str(a.extent) if axis not in at else self._number_at(numbers, at[axis])
            for axis, a in enumerate(self.program.axes)
        ]
        if self.length is None:
            length = self._times(self.sizes if self.plan.flat else self.sizes[-1:])
            whole = e.binary("and", "i64", length, str(-e.width))
            rest = e.convert("trunc", "i64", e.binary("sub", "i64", length, whole), "i32")
            mask = e.value(f"icmp ult {e.vector('i32')} {e.lanes('i32')}, {e.broadcast('i32', rest)}")
            self.ragged = whole, mask
            self.rest = e.value(f"icmp ne i32 {rest}, 0")
            self.padded = e.binary("and", "i64", e.binary("add", "i64", length, str(TOGETHER - 1)), str(-TOGETHER))
            if self.plan.room:
                self.memory = e.convert("inttoptr", "i64", self._number_at(numbers, 3 + len(at)), "ptr")
        else:
            self.padded = str(-(-self.length // e.width) * e.width)

    def _room(self, number: int, some: bool = False) -> str:
        """Address of a row of a term: on the stack, or where the call says."""
        e, dtype = self.e, self.program.terms[number].dtype
        scalar, (part, parts) = in_memory(dtype.name), self.share
        if self.length is not None:
            return e.value(f"alloca {scalar}, i64 {self.padded}, align 64")
        offset = self._times((self.padded, parts, str(self.plan.rooms[number, some])))
        first = e.value(f"getelementptr i8, ptr {self.memory}, i64 {offset}")
        return e.value(f"getelementptr {scalar}, ptr {first}, i64 {self._times((part, self.padded))}")

    def _parts(self, numbers: str) -> str:
        """In how many parts the rows are shared."""
        return self._number_at(numbers, 2) if self.open else str(self.parts)

    def _number_at(self, numbers: str, index: int) -> str:
        return self.e.value(f"load i64, ptr {self.e.value(f'getelementptr i64, ptr {numbers}, i64 {index}')}")

    def _times(self, factors: Iterable[str]) -> str:
        """The product of extents."""
        known, result = 1, ""
        for factor in factors:
            if factor.isdigit():
                known *= int(factor)
            else:
                result = self.e.binary("mul", "i64", result, factor) if result else factor
        if not result or known == 1:
            return result or str(known)
        return self.e.binary("mul", "i64", result, str(known))

    def _splat(self, size: str) -> str:
        """An extent, or a product of some, in every lane."""
        return self.e.constant("i64", int(size)) if size.isdigit() else self.e.broadcast("i64", size)

    # -- loops

    def _loop(
        self,
        accumulators: list[str],
        types: Sequence[str],
        visit: Callable[[Place, Sequence[str]], list[str]],
        sums: Collection[int] = (),
    ) -> list[str]:
        """Visit a row, a vector at a time and then what is left; the accumulators after it.

        Args:
          sums: which accumulators are sums of floating numbers; some vectors are added before they are added to the others.
        """
        if self.length is None:
            return self._ragged_loop(accumulators, types, visit, sums)
        e, tail = self.e, self.length % self.e.width
        whole = self.length - tail
        if whole:
            self.loops += 1
            head = f"loop{self.loops}"
            e.line(f"br label %{head}")
            edges = self.between or ("0", str(whole))
            long = sums if whole > _LONG * e.width else ()
            accumulators, _ = self._whole(head, edges, accumulators, types, visit, long)
            e.label(f"{head}.past")
            self.block = f"{head}.past"
        if tail and self.between is not None:  # the last part's
            name = f"tail{self.loops}"
            last = e.value(f"icmp eq i64 {self.between[1]}, {whole}")
            e.line(f"br i1 {last}, label %{name}, label %{name}.past")
            e.label(name)
        if tail:
            accumulators = visit(Place(str(whole), e.first_lanes(tail)), accumulators)
        if tail and self.between is not None:
            e.line(f"br label %{name}.past")
            e.label(f"{name}.past")
            self.block = f"{name}.past"
        return accumulators

    def _whole(
        self,
        name: str,
        edges: tuple[str, str],
        accumulators: Sequence[str],
        types: Sequence[str],
        visit: Callable[[Place, Sequence[str]], list[str]],
        sums: Collection[int],
    ) -> tuple[list[str], str]:
        """Visit whole vectors from the block ``name`` on, one at least, and go to ``name.past``; the accumulators, and from where.

        One sum of a million float32 would lose half of its digits: where ``sums`` has any, it is one of sums of ``_LONG`` vectors.
        """
        e, (begin, past), before, at = self.e, edges, self.block, f"%at{self.loops}"
        first, some, end, starts = begin, name, f"{name}.past", list(accumulators)
        entered, stop, leaves = before, past, end
        totals, outer = [e.name("sum") for _ in accumulators], 0
        if sums:
            first, some, entered, leaves = f"{at}.first", f"{name}.some", name, f"{name}.sum"
            starts = ["zeroinitializer" if k in sums else total for k, total in enumerate(totals)]
            e.label(name)
            outer = len(e.lines)
            far = e.binary("add", "i64", first, str(_LONG * e.width))
            stop = e.call("llvm.umin.i64", "i64", ("i64", past), ("i64", far))
            e.line(f"br label %{some}")
        e.label(some)
        carried, inner = [e.name("acc") for _ in accumulators], len(e.lines)
        following = visit(Place(at, None), carried)
        step = e.width
        if not carried and self._paired(e.lines[inner:]):
            self._beside(inner, at, visit)
            step *= 2
        e.line(f"{at}.next = add i64 {at}, {step}")
        e.line(f"br i1 {e.value(f'icmp ult i64 {at}.next, {stop}')}, label %{some}, label %{leaves}")
        e.lines[inner:inner] = self._phis(
            [(at, "i64", first, f"{at}.next"), *zip(carried, types, starts, following, strict=True)], entered, some
        )
        if not sums:
            return following, some
        e.label(leaves)
        following = [
            e.binary("fadd", types[k], totals[k], value) if k in sums else value for k, value in enumerate(following)
        ]
        e.lines[outer:outer] = self._phis(
            [(first, "i64", begin, f"{at}.next"), *zip(totals, types, accumulators, following, strict=True)],
            before,
            leaves,
        )
        e.line(f"br i1 {e.value(f'icmp ult i64 {at}.next, {past}')}, label %{name}, label %{end}")
        return following, leaves

    def _paired(self, lines: Sequence[str]) -> bool:
        """Return whether vectors that take these lines are visited two at a time: they are one block, and even in number."""
        if self.length is None or not _FEW < len(lines) < _MANY or any(line.endswith(":") for line in lines):
            return False
        return self.length // self.e.width % (2 if self.between is None else 2 * self.parts) == 0

    def _beside(self, first: int, at: str, visit: Callable[[Place, Sequence[str]], list[str]]) -> None:
        """Visit the vector behind that which the lines from ``first`` on visit, line by line beside it."""
        e = self.e
        one, e.lines[first:] = e.lines[first:], []
        other = e.binary("add", "i64", at, str(e.width))
        begin = len(e.lines)
        visit(Place(other, None), [])
        two, e.lines[begin:] = e.lines[begin:], []
        e.lines += [line for lines in zip_longest(one, two) for line in lines if line is not None]

    @staticmethod
    def _phis(rows: Iterable[tuple[str, str, str, str]], before: str, block: str) -> list[str]:
        """Values of a loop: name, type, what it begins as and what follows."""
        return [f"  {n} = phi {t} [ {start}, %{before} ], [ {next_}, %{block} ]" for n, t, start, next_ in rows]

    def _ragged_loop(
        self,
        accumulators: list[str],
        types: Sequence[str],
        visit: Callable[[Place, Sequence[str]], list[str]],
        sums: Collection[int],
    ) -> list[str]:
        """The same of a row whose length only a call knows."""
        assert self.ragged is not None
        e, (whole, mask) = self.e, self.ragged
        self.loops += 1
        name, before = f"loop{self.loops}", self.block
        begin, past = self.between or ("0", whole)
        e.line(f"br i1 {e.value(f'icmp ult i64 {begin}, {past}')}, label %{name}, label %{name}.past")
        following, last_block = self._whole(name, (begin, past), accumulators, types, visit, sums)
        e.label(f"{name}.past")
        accumulators = self._joined(types, (accumulators, before), (following, last_block))
        last = self.rest
        if self.between is not None:  # the last part's
            last = e.binary("and", "i1", last, e.value(f"icmp eq i64 {past}, {whole}"))
        e.line(f"br i1 {last}, label %{name}.tail, label %{name}.end")
        e.label(f"{name}.tail")
        following = visit(Place(whole, mask), accumulators)
        e.line(f"br label %{name}.end")
        e.label(f"{name}.end")
        self.block = f"{name}.end"
        return self._joined(types, (accumulators, f"{name}.past"), (following, f"{name}.tail"))

    def _joined(self, types: Sequence[str], *ways: tuple[Sequence[str], str]) -> list[str]:
        """Values that are one or the other, by the block that they come from."""
        (first, one), (second, other) = ways
        return [
            self.e.value(f"phi {type_} [ {a}, %{one} ], [ {b}, %{other} ]")
            for type_, a, b in zip(types, first, second, strict=True)
        ]
