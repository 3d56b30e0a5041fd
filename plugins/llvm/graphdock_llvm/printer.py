"""Printer of a region program as one function of LLVM's text: loops over rows, and vectors along each row.

The function is ``void region(ptr table, ptr numbers)``: the table holds the addresses of the region's inputs, variables that it
writes among them, then of its outputs, then of the words of its random streams; the numbers are how many threads may compute, and
the address of the intra-op pool's function; then, of a program whose extents are not all known, in how many parts its rows are
shared, these extents in the order of their axes, and the address of memory for rows of unknown length. A function of such a program
goes along nothing where an extent is 0.

Where every input and output has all axes, or none, the space is one row. Where reductions go over the last axis and others, a row
is what lies along all of these (:mod:`graphdock_llvm.nests`). A reduction goes
along the row: one loop for those that need no other, then one for those that need these, and so on; then one that writes what has
the last axis; then what lacks it. What two loops need and is dear to compute is kept in a row of its own, where a row is short.
What is the same along it is computed before its loops.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphdock.contracts import WORDS, Multiple, RegionInput, RegionOutput, RegionProgram, Term

from graphdock_llvm.draws import emit_draw
from graphdock_llvm.emitter import SCALARS
from graphdock_llvm.nests import Nests
from graphdock_llvm.primitives import combine, emit, horizontal, identity
from graphdock_llvm.products import Product, emit_product
from graphdock_llvm.schedule import Stage
from graphdock_llvm.vectors import (
    Place,
    address,
    held,
    in_memory,
    input_address,
    load,
    size_of,
    store,
    strides,
)

__all__ = ["ALONE", "Printed", "is_brief", "print_functions", "print_region", "shares"]

#: The numbers of a call on the calling thread alone.
ALONE = (1, 0)

#: Rows that are added to each other before they are added to the others: a power of two.
_TOGETHER = 64

#: Terms times elements that take some microseconds at most, so that Python's lock is kept meanwhile.
_BRIEF = 1 << 16


def print_region(program: RegionProgram, count: int, width: int) -> str:
    """A module with the function ``region``.

    Args:
      count: how many inputs the region has: its outputs' addresses follow theirs.
      width: lanes of a vector.
    """
    return print_functions(program, count, width).text()


def shares(program: RegionProgram, count: int, width: int) -> bool:
    """Return whether the function of a program is in parts, which threads share."""
    return print_functions(program, count, width).shared


@dataclass(frozen=True, slots=True)
class Printed:
    """A function of LLVM's text, with what it needs: ``declarations`` of intrinsics, and ``helpers``, by name.

    Attributes:
      functions: in order; the last one is that which was asked for. ``shared``: whether it is in parts, which threads share.
    """

    declarations: dict[str, str]
    helpers: dict[str, str]
    functions: tuple[str, ...]
    shared: bool

    def text(self) -> str:
        """A module of it."""
        return "\n".join([*sorted(self.declarations.values()), *self.helpers.values(), *self.functions])


def print_functions(program: RegionProgram, count: int, width: int, name: str = "region", linkage: str = "") -> Printed:
    """The function of a program under a name; ``linkage`` is what LLVM is told of it. See :func:`print_region`."""
    printer = _Printer(program, count, width, name, linkage)
    functions = printer.functions()
    return Printed(printer.e.declarations, printer.e.functions, functions, printer.in_parts)


def is_brief(program: RegionProgram) -> bool:
    """Return whether the program is computed in some microseconds."""
    return len(program.terms) * math.prod(a.extent or 1 for a in program.axes) <= _BRIEF


class _Printer(Nests):
    def __init__(self, program: RegionProgram, count: int, width: int, name: str, linkage: str) -> None:
        super().__init__(program, width)
        self.count, self.name = count, name
        self.head = f"{linkage}{' ' if linkage else ''}void @{name}(ptr %table, ptr %numbers)"
        self.fixed: dict[int, str] = {}  # reduction -> its value in every lane
        self.made: dict[int, tuple[str, int]] = {}  # product -> where its first row begins, and how far apart rows are
        self.rows: dict[int, str] = {}  # term -> the row in which it is kept, once it was computed
        self.partial: dict[
            int, str
        ] = {}  # sum over rows -> the row that gets some of them, and is added to its own then
        self.counter = ""  # address of how many rows there were

    # -- structure

    def functions(self) -> tuple[str, ...]:
        stages, last = self.plan.stages, self.plan.behind
        if not self.open:
            self.parts = self.plan.parts()
        self.in_parts = self.plan.divides() if self.open else self.parts > 1
        if self.in_parts:
            return self._shared(stages, last)
        self._measure("%numbers")
        tables = self._tables()
        for product in self.plan.products.values():
            self._product(product, tables)
        self._begin_columns({n: self._room(n) for n in self.plan.columns})
        self._visit(stages, tables)
        self._end(last, tables)
        return (self._function(self.head),)

    def _shared(self, stages: Sequence[Stage], last: Sequence[Stage]) -> tuple[str, ...]:
        """The rows in parts, which threads share: each has rows of its own for what is reduced over rows, combined behind them."""
        e, columns = self.e, sorted(self.plan.columns)
        scalars = {n: in_memory(self.program.terms[n].dtype.name) for n in columns}
        e.line("%table = load ptr, ptr %frame")
        numbers = ""
        if self.open:
            numbers = e.value(f"load ptr, ptr {e.value(f'getelementptr ptr, ptr %frame, i64 {len(columns) + 1}')}")
        self._measure(numbers)
        tables, parts, rows = self._tables(), self._parts(numbers), dict[int, str]()
        self.share = "%part", parts
        for k, number in enumerate(columns):
            row = e.value(f"load ptr, ptr {e.value(f'getelementptr ptr, ptr %frame, i64 {k + 1}')}")
            offset = e.binary("mul", "i64", "%part", self.padded)
            rows[number] = e.value(f"getelementptr {scalars[number]}, ptr {row}, i64 {offset}")
        self._begin_columns(rows)
        if not self.plan.flat:
            whole = self.sizes[self.plan.divided]
        elif self.ragged is not None:
            whole = e.binary("udiv", "i64", self.ragged[0], str(e.width))
        else:
            whole = str((self.length or 0) // e.width)
        edges = [e.binary("mul", "i64", e.binary("add", "i64", "%part", str(k)), whole) for k in (0, 1)]
        begin, end = (e.binary("udiv", "i64", edge, parts) for edge in edges)
        if self.plan.flat:
            begin, end = (e.binary("mul", "i64", edge, str(e.width)) for edge in (begin, end))
        self._visit(stages, tables, (begin, end))
        part = self._function(f"internal void @{self.name}.part(ptr %frame, i64 %part)")
        self.block, self.fixed, self.rows = "entry", {}, {}
        frame = e.value(f"alloca ptr, i64 {len(columns) + 1 + self.open}")
        e.line(f"store ptr %table, ptr {frame}")
        self._measure("%numbers")
        parts = self._parts("%numbers")
        self.share = "0", parts
        room = self._times((parts, self.padded)) if columns else ""
        for k, number in enumerate(columns):
            on_stack = self.length is not None
            self.rows[number] = (
                e.value(f"alloca {scalars[number]}, i64 {room}, align 64") if on_stack else self._room(number)
            )
            e.line(f"store ptr {self.rows[number]}, ptr {e.value(f'getelementptr ptr, ptr {frame}, i64 {k + 1}')}")
        if self.open:
            e.line(f"store ptr %numbers, ptr {e.value(f'getelementptr ptr, ptr {frame}, i64 {len(columns) + 1}')}")
        threads = e.value("load i64, ptr %numbers")
        run = e.value(f"load ptr, ptr {e.value('getelementptr i64, ptr %numbers, i64 1')}")
        e.line(f"br i1 {e.value(f'icmp ugt i64 {threads}, 1')}, label %share, label %alone")
        e.label("share")
        e.line(f"call void {run}(ptr @{self.name}.part, ptr {frame}, i64 {parts}, i64 {threads})")
        e.line("br label %shared")
        e.label("alone")
        e.line("%at = phi i64 [ 0, %entry ], [ %at.next, %alone ]")
        e.line(f"call void @{self.name}.part(ptr {frame}, i64 %at)")
        e.line("%at.next = add i64 %at, 1")
        e.line(f"br i1 {e.value(f'icmp ult i64 %at.next, {parts}')}, label %alone, label %shared")
        e.label("shared")
        self.block = "shared"
        for number in columns:
            self._combine_columns(number, parts)
        self._end(last, self._tables() if last else [])
        return part, self._function(self.head)

    def _function(self, head: str) -> str:
        """A function of the lines that were emitted since the last one."""
        body, self.e.lines = "\n".join([*self.e.lines, "  ret void"]), []
        return f"define {head} {{\nentry:\n{body}\n}}\n"

    def _tables(self) -> list[str]:
        """Addresses of the program's inputs, then of its outputs; those that go into variables are the last."""
        tables = [input_address(self.e, i) for i in self.program.inputs]
        outs = enumerate(self.program.outputs)
        return tables + [address(self.e, self.count + k if o.into is None else o.into) for k, o in outs]

    def _visit(self, stages: Sequence[Stage], tables: Sequence[str], between: tuple[str, str] | None = None) -> None:
        """All that is done for each row; ``between`` two places of the first axis, or of the one row."""
        e = self.e
        kept = self.plan.kept()
        for number in kept:
            self.rows[number] = self._kept_room(number)
        if self.partial:
            self.counter = e.value("alloca i64")
            e.line(f"store i64 0, ptr {self.counter}")
        ends = {axis: ("0", self.sizes[axis]) for axis in self.plan.outer} if stages else {}
        self.between = between if self.plan.flat else None
        ready = self._steady(tables) if stages else set()
        if between is not None and not self.plan.flat:
            ends[self.plan.divided] = between
        some = [edges for axis, edges in ends.items() if axis in self.plan.open]
        if some:  # else there is nothing to visit
            tests = [e.value(f"icmp ult i64 {begin}, {end}") for begin, end in some]
            e.line(
                f"br i1 {functools.reduce(lambda a, b: e.binary('and', 'i1', a, b), tests)}, label %visit, label %past"
            )
            e.label("visit")
            self.block = "visit"
        for axis, (begin, _) in ends.items():
            e.line(f"br label %outer{axis}")
            e.label(f"outer{axis}")
            e.line(f"%i{axis} = phi i64 [ {begin}, %{self.block} ], [ %next{axis}, %end{axis} ]")
            self.block, self.places[axis] = f"outer{axis}", f"%i{axis}"
        self._find_bases(stages, tables)
        for stage in stages:
            self._stage(stage, ready)
            ready.update(n for n in kept if n in self.plan.needs(stage.targets))
        if self.partial:
            self._fold_sometimes()
        for axis, (_, end) in reversed(ends.items()):
            e.line(f"br label %end{axis}")
            e.label(f"end{axis}")
            e.line(f"%next{axis} = add i64 %i{axis}, 1")
            e.line(f"%more{axis} = icmp ult i64 %next{axis}, {end}")
            e.line(f"br i1 %more{axis}, label %outer{axis}, label %done{axis}")
            e.label(f"done{axis}")
            self.block = f"done{axis}"
        self._fold()
        self.partial = {}
        if some:
            e.line("br label %past")
            e.label("past")
            self.block, self.fixed = "past", {}

    def _steady(self, tables: Sequence[str]) -> set[int]:
        """Compute what is dear and the same for every row, into rows that are kept."""
        numbers, inputs = self.plan.steady(), self.program.inputs
        if numbers:
            self.rows |= {n: self._room(n) for n in numbers}
            read = [t.value for n in self.plan.needs(numbers) if (t := self.program.terms[n]).op == "input"]
            self.bases = {n: self._base(inputs[n], tables[n], ()) for n in read}
            self._loop([], [], lambda place, _: [] if self._values(numbers, place, set()) else [])
        return set(numbers)

    def _end(self, stages: Sequence[Stage], tables: Sequence[str]) -> None:
        """All that is done once, behind all rows."""
        self.fixed = {n: v for n, v in self.fixed.items() if not set(self.plan.outer) & set(self.program.terms[n].axes)}
        self.between = None
        self._find_bases(stages, tables)
        for stage in stages:
            self._stage(stage, set(self.plan.columns))

    def _find_bases(self, stages: Sequence[Stage], tables: Sequence[str]) -> None:
        """Addresses of the row, of what the stages read and write."""
        parts: list[RegionInput | RegionOutput] = [*self.program.inputs, *self.program.outputs]
        terms = self.program.terms
        needed = self.plan.needs(n for s in stages for n in s.targets)
        used = {t.value for n in needed if (t := terms[n]).op == "input"}
        used |= {len(self.program.inputs) + k for s in stages for k in s.outputs}
        self.bases = {n: self._base(parts[n], tables[n], self.plan.outer) for n in sorted(used)}

    def _begin_columns(self, rows: Mapping[int, str]) -> None:
        """Rows for the results of reductions over rows, which they begin as."""
        self.rows |= rows
        self.partial = {n: self._room(n, some=True) for n in rows if self.plan.adds_some_first(n)}
        begun = [*rows.items(), *self.partial.items()]

        def visit(place: Place, _: Sequence[str]) -> list[str]:
            for number, row in begun:
                self._begin_again(number, row, place)
            return []

        if begun:
            self._along_whole(visit)

    def _begin_again(self, number: int, row: str, place: Place) -> None:
        term = self.program.terms[number]
        name = term.dtype.name
        store(self.e, name, self.e.constant(SCALARS[name], identity(term)), row, place)

    def _along_whole(self, visit: Callable[[Place, Sequence[str]], list[str]]) -> None:
        """Visit a row that is kept: all vectors of one of known length are whole."""
        length = self.length
        self.length = None if length is None else int(self.padded)
        self._loop([], [], visit)
        self.length = length

    def _fold_sometimes(self) -> None:
        """Behind each row: those of some rows are added. One sum of a million float32 would lose half of its digits."""
        e, self.loops = self.e, self.loops + 1
        name = f"fold{self.loops}"
        done = e.value(f"load i64, ptr {self.counter}")
        done = e.binary("add", "i64", done, "1")
        e.line(f"store i64 {done}, ptr {self.counter}")
        full = e.value(f"icmp eq i64 {e.binary('and', 'i64', done, str(_TOGETHER - 1))}, 0")
        e.line(f"br i1 {full}, label %{name}, label %{name}.past")
        e.label(name)
        self.block = name
        self._fold()
        e.line(f"br label %{name}.past")
        e.label(f"{name}.past")
        self.block = f"{name}.past"

    def _fold(self) -> None:
        """Add what some rows gave to what all gave, and begin with others."""
        if not self.partial:
            return
        for number, row in self.partial.items():
            term = self.program.terms[number]

            def visit(
                place: Place, _: Sequence[str], term: Term = term, row: str = row, number: int = number
            ) -> list[str]:
                name = term.dtype.name
                value = combine(
                    self.e, term, load(self.e, name, self.rows[number], place), load(self.e, name, row, place)
                )
                store(self.e, name, value, self.rows[number], place)
                self._begin_again(number, row, place)
                return []

            self._along_whole(visit)

    def _combine_columns(self, number: int, parts: str) -> None:
        """The rows of all parts as one, in their order, in the place of the first."""
        e, term, row = self.e, self.program.terms[number], self.rows[number]
        name = term.dtype.name
        others: Sequence[str] = [self._times((str(part), self.padded)) for part in range(1, self.parts)]
        if self.open:  # a loop over the parts around that of the row
            head, end = f"%part.after{number}", f"parts{number}"
            first, before = e.value(f"icmp ugt i64 {parts}, 1"), self.block
            e.line(f"br i1 {first}, label %{end}, label %{end}.past")
            e.label(end)
            e.line(f"{head}.at = phi i64 [ 1, %{before} ], [ {head}, %{end}.end ]")
            self.block, others = end, [e.binary("mul", "i64", f"{head}.at", self.padded)]

        def visit(place: Place, _: Sequence[str]) -> list[str]:
            value = load(self.e, name, row, place)
            for other in others:
                at = e.binary("add", "i64", place.at, other)
                value = combine(e, term, value, load(self.e, name, row, Place(at, None)))
            store(self.e, name, value, row, place)
            return []

        self._along_whole(visit)
        if self.open:
            e.line(f"br label %{end}.end")
            e.label(f"{end}.end")
            e.line(f"{head} = add i64 {head}.at, 1")
            e.line(f"br i1 {e.value(f'icmp ult i64 {head}, {parts}')}, label %{end}, label %{end}.past")
            e.label(f"{end}.past")
            self.block = f"{end}.past"

    # -- products

    def _product(self, product: Product, tables: Sequence[str]) -> None:
        """Compute a product, before all loops."""
        rows, columns, _ = product.extents(self.program)
        direct = self.plan.direct().get(product.term)
        if direct is None:
            gap = columns if self.plan.flat else -(-columns // self.e.width) * self.e.width
            scalar = SCALARS[self.program.terms[product.term].dtype.name]
            target = self.e.value(f"alloca {scalar}, i64 {rows * gap}, align 64")
        else:
            gap, target = columns, tables[len(self.program.inputs) + direct]
        sides = tables[product.left], tables[product.right]
        self.block = emit_product(self.e, self.program, product, sides, target, gap, self.block)
        self.made[product.term] = target, gap

    def _row_of(self, product: Product) -> str:
        """Address of the row of a product that the loops are at."""
        base, gap = self.made[product.term]
        if product.row is None or self.plan.flat:
            return base
        offset = self.e.value(f"mul i64 %i{product.row}, {gap}")
        scalar = SCALARS[self.program.terms[product.term].dtype.name]
        return self.e.value(f"getelementptr {scalar}, ptr {base}, i64 {offset}")

    # -- memory

    def _base(self, part: RegionInput | RegionOutput, table: str, axes: Collection[int]) -> str:
        """Address of the first element where the loops along these axes are."""
        if self.plan.flat:
            return table
        stride, base = "1", table
        lies = strides(part)
        for place, dim in reversed([*enumerate(part.dims)]):
            if place == 0 and isinstance(part, RegionInput) and part.indices is not None:
                offset = self.e.binary("mul", "i64", self._row_number(part.indices, axes), stride)
                base = self.e.value(f"getelementptr {in_memory(part.dtype.name)}, ptr {base}, i64 {offset}")
            if dim is None:
                continue
            if dim in axes:
                step = stride if lies is None else self._stride(lies[place])
                offset = self.e.binary("mul", "i64", self.places[dim], step)
                base = self.e.value(f"getelementptr {in_memory(part.dtype.name)}, ptr {base}, i64 {offset}")
            stride = self._times((stride, self.sizes[dim])) if lies is None else ""
        return base

    def _row_number(self, number: int, axes: Collection[int]) -> str:
        """Number of the row that an input of indices says where the loops are: within the tensor, whatever others write."""
        e, indices = self.e, self.program.inputs[number]
        scalar = SCALARS[indices.dtype.name]
        index = e.value(f"load {scalar}, ptr {self._base(indices, input_address(e, indices), axes)}")
        index = index if scalar == "i64" else e.value(f"sext {scalar} {index} to i64")
        last = min(i.shape[0] or 1 for i in self.program.inputs if i.indices == number) - 1
        return e.call("llvm.umin.i64", "i64", ("i64", index), ("i64", str(last)))

    def _stride(self, stride: int | Multiple) -> str:
        if isinstance(stride, int):
            return str(stride)
        return self._times((str(stride.factor), *[self.sizes[axis] for axis in stride.axes]))

    def _input(self, number: int, place: Place) -> str:
        part, base, e = self.program.inputs[number], self.bases[number], self.e
        name = part.dtype.name
        if self.plan.along(part):
            return load(self.e, name, base, place)
        scalar = in_memory(name)
        return held(self.e, name, e.broadcast(scalar, e.value(f"load {scalar}, ptr {base}, align {size_of(scalar)}")))

    # -- loops

    def _stage(self, stage: Stage, ready: set[int]) -> None:
        terms, e = self.program.terms, self.e
        if stage.loops:
            self._hoist(stage.targets, {*self.plan.nest, self.plan.last})
        starts = [e.constant(SCALARS[terms[n].dtype.name], identity(terms[n])) for n in stage.reductions]

        def visit(place: Place, accumulators: Sequence[str]) -> list[str]:
            values = self._values(stage.targets, place, ready)
            for k in stage.outputs:
                out = self.program.outputs[k]
                base = self.bases[len(self.program.inputs) + k]
                if stage.loops and not self.plan.along(out):  # of one element for each row of a nest
                    store(self.e, out.dtype.name, values[out.term], base, Place("0", e.first_lanes(1)))
                    continue
                store(self.e, out.dtype.name, values[out.term], base, place)
            for number in stage.columns:
                row = self.partial.get(number, self.rows[number])
                term, whole = terms[number], Place(place.at, None)
                sum_ = combine(e, term, load(self.e, term.dtype.name, row, whole), values[term.args[0]])
                store(self.e, term.dtype.name, sum_, row, whole)
            following = []
            for number, accumulator in zip(stage.reductions, accumulators, strict=True):
                term, value = terms[number], values[terms[number].args[0]]
                if place.mask is not None:
                    scalar = SCALARS[term.dtype.name]
                    value = e.select(place.mask, e.of(term.dtype), value, e.constant(scalar, identity(term)))
                following.append(combine(e, term, accumulator, value))
            return following

        if not stage.loops:
            visit(Place("0", e.first_lanes(1)), ())
            return
        types = [e.of(terms[n].dtype) for n in stage.reductions]
        sums = [k for k, n in enumerate(stage.reductions) if self.plan.adds_some_first(n)]
        if self.plan.nest:
            found = self._nest(stage, starts, types, visit, sums)
        else:
            found = self._loop(starts, types, visit, sums)
        for number, value in zip(stage.reductions, found, strict=True):
            self.fixed[number] = horizontal(e, terms[number], value)

    def _nest(
        self,
        stage: Stage,
        starts: list[str],
        types: Sequence[str],
        visit: Callable[[Place, Sequence[str]], list[str]],
        sums: Sequence[int],
    ) -> list[str]:
        """The loops of a stage along all axes of a row."""
        parts: list[RegionInput | RegionOutput] = [*self.program.inputs, *self.program.outputs]
        bases, fixed, rows = self.bases, self.fixed, self.rows

        def begin() -> None:
            self.rows = rows | {n: self._kept_row(n, rows[n]) for n in self.plan.kept()}
            self.bases = {n: self._base(parts[n], base, self.plan.nest) for n, base in bases.items()}
            self.fixed = dict(fixed)
            self._hoist(stage.targets, {self.plan.last})

        found = self._nested(starts, types, visit, sums, begin)
        self.bases, self.fixed, self.rows = bases, fixed, rows
        return found

    def _hoist(self, targets: Sequence[int], row: Collection[int]) -> None:
        """Compute what a loop needs and what is the same along the row, which goes along these axes; loads among it can't move past
        the loop's stores later."""
        axis = set(range(len(self.program.axes))) if self.plan.flat else set(row)
        same = [
            n
            for n in self.plan.needs(targets)
            if n not in self.fixed and not axis.intersection(self.program.terms[n].axes)
        ]
        self.fixed |= self._values(same, Place("0", None), set())

    # -- terms

    def _values(self, targets: Sequence[int], place: Place, ready: set[int]) -> dict[int, str]:
        """Values of the targets at a place of the row, and of all that they need."""
        terms, e = self.program.terms, self.e
        values = dict(self.fixed)
        wanted = self._wanted(targets, ready)
        for number in wanted:
            term = terms[number]
            if number in ready:
                values[number] = load(self.e, term.dtype.name, self.rows[number], Place(place.at, None))
                continue
            if number in self.plan.products:
                values[number] = load(self.e, term.dtype.name, self._row_of(self.plan.products[number]), place)
            elif term.op == "input":
                values[number] = self._input(term.value, place)
            elif term.op == "literal":
                values[number] = e.constant(SCALARS[term.dtype.name], term.value)
            elif term.op == "extent":
                values[number] = self._splat(self.sizes[term.value])
            elif term.op == "stream":
                values[number] = self._word(*term.value)
            elif term.op == "draw":
                values[number] = emit_draw(e, term.dtype.name, [values[a] for a in term.args])
            elif term.op in ("index", "place"):
                axes = (term.value,) if term.op == "index" else term.axes
                values[number] = self._number(axes, place)
            else:
                values[number] = emit(e, self.program, term, [values[a] for a in term.args])
            if number in self.rows:
                store(self.e, term.dtype.name, values[number], self.rows[number], Place(place.at, None))
        return values

    def _wanted(self, targets: Iterable[int], ready: set[int]) -> list[int]:
        """The terms to compute, in order: none that only a kept one needs."""
        seen: set[int] = set()
        stack = list(targets)
        while stack:
            number = stack.pop()
            if number in seen or number in self.fixed:
                continue
            seen.add(number)
            if number not in ready and number not in self.plan.products:
                stack.extend(self.program.terms[number].args)
        return sorted(seen)

    def _word(self, stream: int, word: str) -> str:
        """A word of a stream, in every lane."""
        words = address(self.e, self.count + len(self.program.made))
        at = stream * len(WORDS) + WORDS.index(word)
        where = self.e.value(f"getelementptr i64, ptr {words}, i64 {at}")
        return self.e.broadcast("i64", self.e.value(f"load i64, ptr {where}"))

    def _number(self, axes: Sequence[int], place: Place) -> str:
        """Number of a point among those of some axes, row by row."""
        e, type_ = self.e, self.e.vector("i64")
        if self.plan.flat:  # of all axes
            return e.binary("add", type_, e.broadcast("i64", place.at), e.lanes("i64"))
        total, stride = "zeroinitializer", "1"
        for axis in reversed(axes):
            if axis == self.plan.last:
                part = e.binary("add", type_, e.broadcast("i64", place.at), e.lanes("i64"))
            else:
                part = e.broadcast("i64", self.places[axis])
            part = e.binary("mul", type_, part, self._splat(stride))
            total = e.binary("add", type_, total, part)
            stride = self._times((stride, self.sizes[axis]))
        return total
