"""Order of what a region program computes: stages of a row, what is kept between them, in how many parts threads share it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphdock.contracts import REDUCTIONS, RegionInput, RegionOutput, RegionProgram

from graphdock_llvm.merging import merged
from graphdock_llvm.primitives import DEAR, columns_of, is_flat, nest_of, what_forbids
from graphdock_llvm.products import products_of

__all__ = ["TOGETHER", "Schedule", "Stage", "forbidden", "parts_of_work", "repeated"]

#: Bytes of a row that is kept between two loops, at most: all that are kept fit the first cache.
_KEPT = 16 * 1024
#: Bytes of all that is kept of a row of several axes, at most: they fit the second cache.
_NEST = 256 * 1024
#: Elements of which a row of unknown length that is kept has a multiple, so that no two threads write one line of a cache.
TOGETHER = 64
#: Rows that are kept, at most.
_ROWS = 4
#: How often dear terms may be computed again, all together, for each of them.
_AGAIN = 1
#: Work that threads share (some 100 us), what each part has at least, and how many there are at most. Its unit is an element
#: that is read or written.
_WORTH, _LEAST, _PARTS = 1 << 20, 1 << 17, 16
#: Terms beyond which a core no longer has the next vector's in flight, and waits for each: three take the time of two elements.
_LONG = 64


@dataclass(frozen=True, slots=True)
class Stage:
    """One visit of a row: terms to compute, reductions that take them, and outputs that get them.

    Attributes:
      loops: goes along the row; else one element is written. ``columns``: reductions over rows that take one more.
    """

    targets: Sequence[int]
    reductions: Sequence[int]
    outputs: Sequence[int]
    loops: bool
    columns: Sequence[int] = ()


class Schedule:
    """The stages of a program for vectors of ``width`` lanes.

    Attributes:
      program: the one that is computed; where a row is of several axes, with as few as can be. ``groups``: for each of its axes
        those of the program that was given.
      nest: axes before the last one that a row goes along, too. ``divided``: the axis of rows that threads share.
      flat: the space is one row. ``products``: term -> product. ``columns``: reductions over rows. ``outer``: axis of the loops
        over rows -> its extent. ``length``: elements of a row. ``last``: the row's axis. Where only a call knows an extent, it and
        the length are None, and ``open`` names the axis.
      stages: what each row takes. ``behind``: what is done once, behind all rows.
      rooms: rows that a part needs for itself, where their length is unknown: a term, and whether it is of sums that are added to
        others later -> bytes before it per element of a row. ``room``: bytes of all.
    """

    def __init__(self, program: RegionProgram, width: int) -> None:
        self.width, self.groups = width, [[a] for a in range(len(program.axes))]
        if nest_of(program):
            program, self.groups = merged(program)
        self.program, self.nest = program, nest_of(program)[:-1]
        extents = [a.extent for a in program.axes]
        self.open = tuple([a for a, n in enumerate(extents) if n is None])
        self.flat = is_flat(program)
        self.products = products_of(program)
        self.columns = {n for n, reduced in columns_of(program).items() if reduced and not self.flat}
        summed = {p.along for p in self.products.values()}
        apart = {*summed, *self.nest}
        self.outer = {a: n for a, n in enumerate(extents[:-1]) if a not in apart and not self.flat}
        whole = [n for a, n in enumerate(extents) if a not in summed]
        self.length = _product(whole if self.flat else extents[-1:])
        self.last = len(extents) - 1
        self.divided = self._divided()
        self.stages, self.behind = self._stages()
        self.rooms, self.room = self._rooms()

    def divides(self) -> bool:
        """Return whether threads may share the loops over rows, or the one row."""
        if self.products or not self.stages or not (self.flat or self.outer):
            return False
        if self.flat and any(s.reductions or not s.loops for s in self.stages):
            return False
        return not self.sums_a_shared_row()

    def sums_a_shared_row(self) -> bool:
        """Return whether what is done behind all rows needs the reduction of a row that all of them share."""
        terms, last = self.program.terms, self.behind
        behind = self.needs(n for s in last for n in s.targets)
        read = {n for s in last for n in s.targets} | {a for n in behind for a in terms[n].args}
        return any(self.reduces(n) and n not in self.columns for n in read)

    def parts(self, extents: Sequence[int | None] = ()) -> int:
        """In how many parts threads share the loops over rows, or the one row: by the extents alone, so that all sums are the same
        on any number of threads.

        Args:
          extents: of all axes of the program that was given, where that does not say them.
        """
        if not self.divides():
            return 1
        given = [n or 0 for n in extents or [a.extent for a in self.program.axes]]
        found = [math.prod(given[a] for a in group) for group in self.groups] if extents else given
        length = math.prod(found) if self.flat else math.prod(found[a] for a in (*self.nest, self.last))
        rows = length // self.width if self.flat else found[self.divided]
        work = self._weight() * length * math.prod(found[a] for a in self.outer)
        return max(1, min(rows, parts_of_work(work)))

    def _divided(self) -> int:
        """The first axis of rows; the longest where each row is computed by itself."""
        if not self.nest or None in self.outer.values():
            return next(iter(self.outer), 0)
        return max(self.outer, key=lambda a: self.outer[a] or 0, default=0)

    def _weight(self) -> int:
        """Work of an element."""
        terms = self.program.terms
        needed = {n for s in self.stages for n in self.needs(s.targets)}
        moved = sum(terms[n].op == "input" for n in needed) + sum(len(s.outputs) for s in self.stages)
        return moved + 2 * sum(terms[n].op in DEAR for n in needed) + max(0, len(needed) - _LONG) * 2 // 3

    def _stages(self) -> tuple[list[Stage], list[Stage]]:
        """Stages that each row takes, and those that are done once, behind all rows."""
        terms = self.program.terms
        level = [0] * len(terms)
        for number, term in enumerate(terms):
            level[number] = max([level[a] for a in term.args], default=0) + self.reduces(number)
        reductions = [n for n in range(len(terms)) if self.reduces(n) and n not in self.columns]
        stages = [
            Stage([terms[n].args[0] for n in group], group, [], True)
            for depth in sorted({level[n] for n in reductions})
            if (group := [n for n in reductions if level[n] == depth])
        ]
        outputs = [k for k in range(len(self.program.outputs)) if k not in self.direct().values()]
        rows = set(self.outer)
        once = [k for k in outputs if rows and not rows & set(self.program.outputs[k].dims)]
        last: list[Stage] = []
        for found, some in ((stages, [k for k in outputs if k not in once]), (last, once)):
            along = [k for k in some if self.goes_along(self.program.outputs[k])]
            columns = sorted(self.columns) if found is stages else []
            for chosen, loops in ((along, True), ([k for k in some if k not in along], False)):
                if chosen or loops and columns:
                    targets = [self.program.outputs[k].term for k in chosen]
                    targets += [terms[n].args[0] for n in columns if loops]
                    found.append(Stage(targets, [], chosen, loops, columns if loops else ()))
        return stages, last

    def steady(self) -> list[int]:
        """Terms along the row that are dear to compute and the same for every row: those that others, which are not, take."""
        if self.flat or not self.outer or self.length is None:
            return []
        terms = self.program.terms
        same, dear, found = set[int](), set[int](), list[int]()
        for number, term in enumerate(terms):
            if self.reduces(number) or number in self.products or not set(term.axes) <= {self.last}:
                continue
            if same.issuperset(term.args):
                same.add(number)
                if term.op in DEAR or dear.intersection(term.args):
                    dear.add(number)
        for stage in self.stages:
            for number in self.needs(stage.targets):
                taken = [number] if number in stage.targets else []
                taken += [] if number in same else terms[number].args
                found += [n for n in taken if n in dear and self.last in terms[n].axes and n not in found]
        short = all(self.length * terms[n].dtype.size <= _KEPT and terms[n].dtype.name != "bool" for n in found)
        return found if short and len(found) <= _ROWS else []

    def kept(self) -> list[int]:
        """Dear terms along the row that several loops need."""
        terms, steady = self.program.terms, self.steady()
        seen: dict[int, int] = {}
        for stage in self.stages:
            if stage.loops:
                for number in self.needs(stage.targets):
                    seen[number] = seen.get(number, 0) + 1
        found = [
            n
            for n, times in seen.items()
            if times > 1
            and n not in steady
            and terms[n].op in DEAR
            and self.last in terms[n].axes
            and terms[n].dtype.name != "bool"
        ]
        if self.nest:
            return self._kept_of_nests(found)
        if self.length is None:
            short = [] if self.flat else found
        else:
            short = [n for n in found if self.length * terms[n].dtype.size <= _KEPT]
        return short[:_ROWS] if len(found) <= _ROWS else []

    def _kept_of_nests(self, found: Sequence[int]) -> list[int]:
        """As many of these terms as fit, along all axes of a row."""
        rows, room, kept = _product([self.program.axes[a].extent for a in self.nest]), _NEST, list[int]()
        for number in found if rows and self.length else ():
            size = (rows or 0) * _padded(self.length or 0, self.width) * self.program.terms[number].dtype.size
            if size <= room and len(kept) < _ROWS:
                room, kept = room - size, [*kept, number]
        return kept

    def adds_some_first(self, number: int) -> bool:
        """Return whether a reduction over rows adds some of them before it adds these to the others."""
        term = self.program.terms[number]
        return term.op == "sum" and term.dtype.is_floating

    def _rooms(self) -> tuple[dict[tuple[int, bool], int], int]:
        found: dict[tuple[int, bool], int] = {}
        taken = 0
        if self.length is None:
            wanted = [(n, some) for n in sorted(self.columns) for some in (False, True)]
            wanted += [(n, False) for n in self.kept()]
            for number, some in wanted:
                if not some or self.adds_some_first(number):
                    found[number, some] = taken
                    taken += self.program.terms[number].dtype.size
        return found, taken

    def needs(self, targets: Iterable[int]) -> list[int]:
        """The terms that a loop computes, in order: up to reductions, whose values are there."""
        seen: set[int] = set()
        stack = list(targets)
        while stack:
            number = stack.pop()
            if number not in seen and not self.reduces(number):
                seen.add(number)
                if number not in self.products:
                    stack.extend(self.program.terms[number].args)
        return sorted(seen)

    def reduces(self, number: int) -> bool:
        """Return whether a term is a reduction along rows: no product, which is there before."""
        return self.program.terms[number].op in REDUCTIONS and number not in self.products

    def direct(self) -> dict[int, int]:
        """Product -> the output that it is."""
        found: dict[int, int] = {}
        for k, out in enumerate(self.program.outputs):
            if out.term in self.products and out.into is None and out.dtype == self.program.terms[out.term].dtype:
                found.setdefault(out.term, k)
        return found

    def along(self, part: RegionInput | RegionOutput) -> bool:
        """Return whether it has an element for each place along the last axis, or of the one row."""
        dims = [d for d in part.dims if d is not None]
        return bool(dims) if self.flat else self.last in dims

    def goes_along(self, out: RegionOutput) -> bool:
        """Return whether it has more than one element for each row."""
        return self.along(out) or not set(self.nest).isdisjoint(out.dims)


def repeated(program: RegionProgram, width: int) -> dict[int, str]:
    """Reductions that stand so far behind others that loops would compute what is dear again and again, with the reason: what is
    not kept of a row is computed by each loop that needs it."""
    plan, terms = Schedule(program, width), program.terms
    kept = {*plan.kept(), *plan.steady()}
    row = set(range(len(plan.program.axes))) if plan.flat else {*plan.nest, plan.last}
    seen, again = set[int](), 0
    for place, stage in enumerate(plan.stages):
        needed = plan.needs(stage.targets) if stage.loops else []
        dear = {n for n in needed if terms[n].op in DEAR and n not in kept and row & set(plan.program.terms[n].axes)}
        again += len(seen & dear)
        seen |= dear
        if again > _AGAIN * len(seen):
            later = [n for s in plan.stages[place:] for n in s.reductions]
            return {
                n: f"{terms[n].op} stands behind others, where terms are computed once more for each" for n in later
            }
    return {}


def parts_of_work(work: int) -> int:
    """In how many parts threads share so many elements that are read or written."""
    return min(_PARTS, work // _LEAST) if work >= _WORTH else 1


def _padded(length: int, width: int) -> int:
    """Elements of a row that is kept, in whole vectors."""
    return -(-length // width) * width


def _product(extents: Sequence[int | None]) -> int | None:
    """Number of points along axes; None where one of their extents is not known."""
    known = [n for n in extents if n is not None]
    return math.prod(known) if len(known) == len(extents) else None


def forbidden(program: RegionProgram, width: int) -> str | None:
    """Reason why the program is not compiled; None where it is."""
    reason = what_forbids(program, width)
    unknown = any(a.extent is None for a in program.axes)
    if reason is None and unknown and Schedule(program, width).sums_a_shared_row():
        return "a sum of one row is read behind rows of which there may be none"
    return reason
