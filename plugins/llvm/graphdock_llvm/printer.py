"""Printer of a region program as one function of LLVM's text: loops over rows, and vectors along each row.

The function is ``void region(ptr table, ptr numbers)``: the table holds the addresses of the region's inputs, variables that it
writes among them, then of its outputs. Where every input and output has all axes, or none, the space is one row. A reduction goes
along the row: one loop for those that need no other, then one for those that need these, and so on; then one that writes what has
the last axis; then what lacks it. What two loops need and is dear to compute is kept in a row of its own, where a row is short.
What is the same along it is computed before its loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from graphdock.contracts import REDUCTIONS, RegionInput, RegionOutput, RegionProgram

from graphdock_llvm.emitter import HALVES, SCALARS, Emitter
from graphdock_llvm.primitives import DEAR, columns_of, combine, emit, horizontal, identity, is_flat
from graphdock_llvm.products import Product, emit_product, products_of

__all__ = ["print_region"]

#: Bytes of a row that is kept between two loops, at most: all that are kept fit the first cache.
_KEPT = 16 * 1024
#: Rows that are kept, at most.
_ROWS = 4


def print_region(program: RegionProgram, count: int, width: int) -> str:
    """A module with the function ``region``.

    Args:
      count: how many inputs the region has: its outputs' addresses follow theirs.
      width: lanes of a vector.
    """
    return _Printer(program, count, width).module()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a loop stands in a row: its first element, and which lanes are in the row (None: all)."""

    at: str
    mask: str | None


class _Printer:
    def __init__(self, program: RegionProgram, count: int, width: int) -> None:
        self.program, self.count, self.e = program, count, Emitter(width)
        extents = [a.extent or 0 for a in program.axes]
        self.flat = is_flat(program)
        self.products = products_of(program)
        self.columns = {n for n, reduced in columns_of(program).items() if reduced and not self.flat}
        summed = {p.along for p in self.products.values()}
        self.outer = {a: n for a, n in enumerate(extents[:-1]) if a not in summed and not self.flat}
        whole = [n for a, n in enumerate(extents) if a not in summed]
        self.length = math.prod(whole) if self.flat else extents[-1] if extents else 1
        self.last = len(extents) - 1
        self.fixed: dict[int, str] = {}  # reduction -> its value in every lane
        self.made: dict[int, tuple[str, int]] = {}  # product -> where its first row begins, and how far apart rows are
        self.rows: dict[int, str] = {}  # term -> the row in which it is kept, once it was computed
        self.block = "entry"
        self.loops = 0

    # -- structure

    def module(self) -> str:
        e = self.e
        tables = [self._address(i.source) for i in self.program.inputs]
        outs = enumerate(self.program.outputs)  # those that go into variables are the last
        tables += [self._address(self.count + k if o.into is None else o.into) for k, o in outs]
        stages, last = self._stages()
        for product in self.products.values():
            self._product(product, tables)
        kept = self._kept(stages)
        for number in kept:
            scalar = _memory(self.program.terms[number].dtype.name)
            size = -(-self.length // e.width) * e.width
            self.rows[number] = e.value(f"alloca {scalar}, i64 {size}, align 64")
        for number in self.columns:
            self._begin_columns(number)
        for axis in self.outer if stages else ():
            e.line(f"br label %outer{axis}")
            e.label(f"outer{axis}")
            e.line(f"%i{axis} = phi i64 [ 0, %{self.block} ], [ %next{axis}, %end{axis} ]")
            self.block = f"outer{axis}"
        parts: list[RegionInput | RegionOutput] = [*self.program.inputs, *self.program.outputs]
        used = {
            t.value
            for n in self._needs(n for s in (*stages, *last) for n in s.targets)
            if (t := self.program.terms[n]).op == "input"
        }
        used |= {len(self.program.inputs) + k for s in (*stages, *last) for k in s.outputs}
        self.bases = {n: self._base(parts[n], tables[n]) for n in sorted(used)}
        ready: set[int] = set()
        for stage in stages:
            self._stage(stage, ready)
            ready.update(n for n in kept if n in self._needs(stage.targets))
        for axis in reversed(self.outer) if stages else ():
            e.line(f"br label %end{axis}")
            e.label(f"end{axis}")
            e.line(f"%next{axis} = add i64 %i{axis}, 1")
            e.line(f"%more{axis} = icmp ult i64 %next{axis}, {self.outer[axis]}")
            e.line(f"br i1 %more{axis}, label %outer{axis}, label %done{axis}")
            e.label(f"done{axis}")
            self.block = f"done{axis}"
        self.fixed = {n: v for n, v in self.fixed.items() if not set(self.outer) & set(self.program.terms[n].axes)}
        for stage in last:
            self._stage(stage, set(self.columns))
        e.line("ret void")
        body = "\n".join(e.lines)
        return "\n".join(
            [
                *sorted(e.declarations.values()),
                "define void @region(ptr %table, ptr %numbers) {",
                "entry:",
                body,
                "}",
                "",
            ]
        )

    def _begin_columns(self, number: int) -> None:
        """A row for the results of a reduction over rows, which it begins as."""
        e, term = self.e, self.program.terms[number]
        name, size = term.dtype.name, -(-self.length // self.e.width) * self.e.width
        self.rows[number] = e.value(f"alloca {_memory(name)}, i64 {size}, align 64")
        start = e.constant(SCALARS[name], identity(term))
        for at in range(0, size, e.width):
            self._store(name, start, self.rows[number], _Place(str(at), None))

    def _stages(self) -> tuple[list[_Stage], list[_Stage]]:
        """What each row takes, and what is done once, behind all rows."""
        terms = self.program.terms
        level = [0] * len(terms)
        for number, term in enumerate(terms):
            level[number] = max([level[a] for a in term.args], default=0) + self._reduces(number)
        reductions = [n for n in range(len(terms)) if self._reduces(n) and n not in self.columns]
        stages = [
            _Stage([terms[n].args[0] for n in group], group, [], True)
            for depth in sorted({level[n] for n in reductions})
            if (group := [n for n in reductions if level[n] == depth])
        ]
        outputs = [k for k in range(len(self.program.outputs)) if k not in self._direct().values()]
        rows = set(self.outer)
        once = [k for k in outputs if rows and not rows & set(self.program.outputs[k].dims)]
        last: list[_Stage] = []
        for found, some in ((stages, [k for k in outputs if k not in once]), (last, once)):
            along = [k for k in some if self._along(self.program.outputs[k])]
            columns = sorted(self.columns) if found is stages else []
            for chosen, loops in ((along, True), ([k for k in some if k not in along], False)):
                if chosen or loops and columns:
                    targets = [self.program.outputs[k].term for k in chosen]
                    targets += [terms[n].args[0] for n in columns if loops]
                    found.append(_Stage(targets, [], chosen, loops, columns if loops else ()))
        return stages, last

    def _kept(self, stages: Sequence[_Stage]) -> list[int]:
        """Dear terms along the row that several loops need."""
        terms = self.program.terms
        seen: dict[int, int] = {}
        for stage in stages:
            if stage.loops:
                for number in self._needs(stage.targets):
                    seen[number] = seen.get(number, 0) + 1
        found = [
            n
            for n, times in seen.items()
            if times > 1 and terms[n].op in DEAR and self.last in terms[n].axes and terms[n].dtype.name != "bool"
        ]
        short = [n for n in found if self.length * terms[n].dtype.size <= _KEPT]
        return short[:_ROWS] if len(found) <= _ROWS else []

    def _needs(self, targets: Iterable[int]) -> list[int]:
        """The terms that a loop computes, in order: up to reductions, whose values are there."""
        seen: set[int] = set()
        stack = list(targets)
        while stack:
            number = stack.pop()
            if number not in seen and not self._reduces(number):
                seen.add(number)
                if number not in self.products:
                    stack.extend(self.program.terms[number].args)
        return sorted(seen)

    def _reduces(self, number: int) -> bool:
        """Whether a term is a reduction along rows: no product, which is there before."""
        return self.program.terms[number].op in REDUCTIONS and number not in self.products

    # -- products

    def _direct(self) -> dict[int, int]:
        """Product -> the output that it is."""
        found: dict[int, int] = {}
        for k, out in enumerate(self.program.outputs):
            if out.term in self.products and out.into is None and out.dtype == self.program.terms[out.term].dtype:
                found.setdefault(out.term, k)
        return found

    def _product(self, product: Product, tables: Sequence[str]) -> None:
        """Compute a product, before all loops."""
        rows, columns, _ = product.extents(self.program)
        direct = self._direct().get(product.term)
        if direct is None:
            gap = columns if self.flat else -(-columns // self.e.width) * self.e.width
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
        if product.row is None or self.flat:
            return base
        offset = self.e.value(f"mul i64 %i{product.row}, {gap}")
        scalar = SCALARS[self.program.terms[product.term].dtype.name]
        return self.e.value(f"getelementptr {scalar}, ptr {base}, i64 {offset}")

    # -- memory

    def _address(self, slot: int) -> str:
        where = self.e.value(f"getelementptr ptr, ptr %table, i64 {slot}")
        return self.e.value(f"load ptr, ptr {where}")

    def _along(self, part: RegionInput | RegionOutput) -> bool:
        """Whether it has an element for each of the row."""
        dims = [d for d in part.dims if d is not None]
        return bool(dims) if self.flat else self.last in dims

    def _base(self, part: RegionInput | RegionOutput, table: str) -> str:
        """Address of the row's first element."""
        if self.flat:
            return table
        stride, base = 1, table
        for size, dim in zip(reversed(part.shape), reversed(part.dims), strict=True):
            if dim is not None and dim != self.last:
                offset = self.e.value(f"mul i64 %i{dim}, {stride}")
                base = self.e.value(f"getelementptr {_memory(part.dtype.name)}, ptr {base}, i64 {offset}")
            stride *= size or 0
        return base

    def _load(self, name: str, address: str, place: _Place) -> str:
        """A vector from memory, as it is held."""
        e, scalar = self.e, _memory(name)
        type_, size = e.vector(scalar), _size(scalar)
        where = e.value(f"getelementptr {scalar}, ptr {address}, i64 {place.at}")
        if place.mask is None:
            value = e.value(f"load {type_}, ptr {where}, align {size}")
        else:
            bits = e.vector("i1")
            args = (("ptr", where), ("i32", str(size)), (bits, place.mask), (type_, "zeroinitializer"))
            value = e.call(f"llvm.masked.load.{e.overload(scalar)}.p0", type_, *args)
        return self._held(name, value)

    def _held(self, name: str, value: str) -> str:
        """A vector of elements in memory, as terms hold them."""
        e, type_ = self.e, self.e.vector(_memory(name))
        if name == "bool":
            return e.value(f"icmp ne {type_} {value}, zeroinitializer")
        return e.convert("fpext", type_, value, e.of("float32")) if name in HALVES else value

    def _store(self, name: str, value: str, address: str, place: _Place) -> None:
        e, scalar = self.e, _memory(name)
        type_, size = e.vector(scalar), _size(scalar)
        if name == "bool":
            value = e.convert("zext", e.of(name), value, type_)
        elif name in HALVES:
            value = e.convert("fptrunc", e.of("float32"), value, type_)
        where = e.value(f"getelementptr {scalar}, ptr {address}, i64 {place.at}")
        if place.mask is None:
            e.line(f"store {type_} {value}, ptr {where}, align {size}")
            return
        args = ((type_, value), ("ptr", where), ("i32", str(size)), (e.vector("i1"), place.mask))
        e.run(f"llvm.masked.store.{e.overload(scalar)}.p0", *args)

    def _input(self, number: int, place: _Place) -> str:
        part, base, e = self.program.inputs[number], self.bases[number], self.e
        name = part.dtype.name
        if self._along(part):
            return self._load(name, base, place)
        scalar = _memory(name)
        return self._held(name, e.broadcast(scalar, e.value(f"load {scalar}, ptr {base}, align {_size(scalar)}")))

    # -- loops

    def _stage(self, stage: _Stage, ready: set[int]) -> None:
        terms, e = self.program.terms, self.e
        if stage.loops:
            self._hoist(stage.targets)
        starts = [e.constant(SCALARS[terms[n].dtype.name], identity(terms[n])) for n in stage.reductions]

        def visit(place: _Place, accumulators: Sequence[str]) -> list[str]:
            values = self._values(stage.targets, place, ready)
            for k in stage.outputs:
                out = self.program.outputs[k]
                base = self.bases[len(self.program.inputs) + k]
                self._store(out.dtype.name, values[out.term], base, place)
            for number in stage.columns:
                term, row, whole = terms[number], self.rows[number], _Place(place.at, None)
                sum_ = combine(e, term, self._load(term.dtype.name, row, whole), values[term.args[0]])
                self._store(term.dtype.name, sum_, row, whole)
            following = []
            for number, accumulator in zip(stage.reductions, accumulators, strict=True):
                term, value = terms[number], values[terms[number].args[0]]
                if place.mask is not None:
                    scalar = SCALARS[term.dtype.name]
                    value = e.select(place.mask, e.of(term.dtype), value, e.constant(scalar, identity(term)))
                following.append(combine(e, term, accumulator, value))
            return following

        if not stage.loops:
            visit(_Place("0", e.first_lanes(1)), ())
            return
        types = [e.of(terms[n].dtype) for n in stage.reductions]
        for number, value in zip(stage.reductions, self._loop(starts, types, visit), strict=True):
            self.fixed[number] = horizontal(e, terms[number], value)

    def _hoist(self, targets: Sequence[int]) -> None:
        """Compute what a loop needs and what is the same along the row; loads among it can't move past the loop's stores later."""
        axis = set(range(len(self.program.axes))) if self.flat else {self.last}
        same = [
            n for n in self._needs(targets) if n not in self.fixed and not axis.intersection(self.program.terms[n].axes)
        ]
        self.fixed |= self._values(same, _Place("0", None), set())

    def _loop(
        self, accumulators: list[str], types: Sequence[str], visit: Callable[[_Place, Sequence[str]], list[str]]
    ) -> list[str]:
        """Visit a row, a vector at a time and then what is left; the accumulators after it."""
        e, tail = self.e, self.length % self.e.width
        whole = self.length - tail
        if whole:
            self.loops += 1
            head, end, before = f"loop{self.loops}", f"past{self.loops}", self.block
            e.line(f"br label %{head}")
            e.label(head)
            at = f"%at{self.loops}"
            carried = [e.name("acc") for _ in accumulators]
            phi = len(e.lines)
            following = visit(_Place(at, None), carried)
            rows = [f"  {at} = phi i64 [ 0, %{before} ], [ {at}.next, %{head} ]"]
            for name, type_, start, value in zip(carried, types, accumulators, following, strict=True):
                rows.append(f"  {name} = phi {type_} [ {start}, %{before} ], [ {value}, %{head} ]")
            e.lines[phi:phi] = rows
            e.line(f"{at}.next = add i64 {at}, {e.width}")
            e.line(f"{at}.more = icmp ult i64 {at}.next, {whole}")
            e.line(f"br i1 {at}.more, label %{head}, label %{end}")
            e.label(end)
            self.block, accumulators = end, following
        if tail:
            accumulators = visit(_Place(str(whole), e.first_lanes(tail)), accumulators)
        return accumulators

    # -- terms

    def _values(self, targets: Sequence[int], place: _Place, ready: set[int]) -> dict[int, str]:
        """Values of the targets at a place of the row, and of all that they need."""
        terms, e = self.program.terms, self.e
        values = dict(self.fixed)
        wanted = self._wanted(targets, ready)
        for number in wanted:
            term = terms[number]
            if number in ready:
                values[number] = self._load(term.dtype.name, self.rows[number], _Place(place.at, None))
                continue
            if number in self.products:
                values[number] = self._load(term.dtype.name, self._row_of(self.products[number]), place)
            elif term.op == "input":
                values[number] = self._input(term.value, place)
            elif term.op == "literal":
                values[number] = e.constant(SCALARS[term.dtype.name], term.value)
            elif term.op == "extent":
                values[number] = e.constant("i64", self.program.axes[term.value].extent or 0)
            elif term.op in ("index", "place"):
                axes = (term.value,) if term.op == "index" else term.axes
                values[number] = self._number(axes, place)
            else:
                values[number] = emit(e, self.program, term, [values[a] for a in term.args])
            if number in self.rows:
                self._store(term.dtype.name, values[number], self.rows[number], _Place(place.at, None))
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
            if number not in ready and number not in self.products:
                stack.extend(self.program.terms[number].args)
        return sorted(seen)

    def _number(self, axes: Sequence[int], place: _Place) -> str:
        """Number of a point among those of some axes, row by row."""
        e, type_ = self.e, self.e.vector("i64")
        total, stride = "zeroinitializer", 1
        for axis in reversed(axes):
            if axis == self.last:
                part = e.binary("add", type_, e.broadcast("i64", place.at), e.lanes("i64"))
            else:
                part = e.broadcast("i64", f"%i{axis}")
            part = e.binary("mul", type_, part, e.constant("i64", stride))
            total = e.binary("add", type_, total, part)
            stride *= self.program.axes[axis].extent or 0
        return total


@dataclass(frozen=True, slots=True)
class _Stage:
    """One visit of a row: terms to compute, reductions that take them, and outputs that get them.

    Attributes:
      loops: goes along the row; else one element is written. ``columns``: reductions over rows that take one more.
    """

    targets: Sequence[int]
    reductions: Sequence[int]
    outputs: Sequence[int]
    loops: bool
    columns: Sequence[int] = ()


def _memory(name: str) -> str:
    """LLVM's type of an element in memory."""
    return "i8" if name == "bool" else HALVES.get(name) or SCALARS[name]


def _size(scalar: str) -> int:
    return {"half": 2, "bfloat": 2, "float": 4, "double": 8}.get(scalar) or int(scalar[1:]) // 8
