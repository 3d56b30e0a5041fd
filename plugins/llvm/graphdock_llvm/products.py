"""Small products of matrices: blocks of rows and vectors of columns in registers, along the axis that is summed over.

A product is computed whole before the loops over rows, into the output that it is, or into memory on the stack: what follows reads
it row by row. A right matrix whose columns do not lie side by side is copied there first. Large products pack and share
(:mod:`graphdock_llvm.panels`), or are left to the library's kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphdock.contracts import RegionInput, RegionOutput, RegionProgram, Term

from graphdock_llvm.emitter import SCALARS, Emitter

__all__ = ["Product", "emit_product", "products_of", "refused", "strides_of"]

#: Multiplications of one product, at most: beyond, a library's blocks win over one call less.
_LARGEST = 64 * 64 * 64
#: Columns, at most: the loops over them are written out.
_COLUMNS = 512
#: Bytes on the stack for one product, or for a copy of its right matrix.
_STACK = 64 * 1024
#: Vectors of columns at once, and accumulators in registers, for vectors of so many floats and more.
_VECTORS = 4
_ACCUMULATORS = {16: 24, 8: 12, 4: 12}


@dataclass(frozen=True, slots=True)
class Product:
    """``sum(left[row, along] * right[along, column], along)``: the inputs, and the axes; no row where the left one is a vector."""

    term: int
    left: int
    right: int
    row: int | None
    along: int
    column: int

    def extents(self, program: RegionProgram) -> tuple[int, int, int]:
        """Numbers of rows, of columns, and of products of each; 0 where only a call knows."""
        rows = 1 if self.row is None else program.axes[self.row].extent or 0
        return rows, program.axes[self.column].extent or 0, program.axes[self.along].extent or 0


def products_of(program: RegionProgram) -> dict[int, Product]:
    """The sums that are products of two inputs with columns along the last axis, by their terms."""
    found = {}
    for number, term in enumerate(program.terms):
        product = _product(program, number, term)
        if product is not None:
            found[number] = product
    return found


def _product(program: RegionProgram, number: int, term: Term) -> Product | None:
    last = len(program.axes) - 1
    if term.op != "sum" or len(term.value) != 1 or term.value[0] == last:
        return None
    (along,), factors = term.value, program.terms[term.args[0]]
    if factors.op != "mul" or any(program.terms[a].op != "input" for a in factors.args):
        return None
    sides = [(program.terms[a], program.terms[a].value) for a in factors.args]
    if last not in sides[1][0].axes:
        sides.reverse()
    (left, a), (right, b) = sides
    rows = [axis for axis in left.axes if axis != along]
    if not rows and program.axes[along].extent is None:
        return None  # columns that are weighted and added
    if set(right.axes) != {along, last} or last in left.axes or along not in left.axes or len(rows) > 1:
        return None
    return Product(number, a, b, rows[0] if rows else None, along, last)


def refused(program: RegionProgram, product: Product, width: int) -> str | None:
    """Reason why a product is not computed here; None where it is."""
    rows, columns, along = product.extents(program)
    sides = program.inputs[product.left], program.inputs[product.right]
    dtype = program.terms[product.term].dtype
    if any(side.dtype != dtype for side in sides) or dtype.name not in ("float32", "float64"):
        return f"a product of {sides[0].dtype} and {sides[1].dtype}"
    if None in (program.axes[a].extent for a in (product.row, product.along, product.column) if a is not None):
        return "a product of extents that only a step knows, beside what is none"
    if rows * columns * along > _LARGEST or columns > _COLUMNS:
        return f"a product of {rows} by {along} by {columns} is a kernel by itself"
    padded = -(-columns // width) * width * dtype.size
    written = any(o.term == product.term and o.into is None and o.dtype == dtype for o in program.outputs)
    copied = strides_of(sides[1])[product.column] != 1
    if copied and along * padded > _STACK or not written and rows * padded > _STACK:
        return f"a product of {rows} by {along} by {columns} with this much beside it is a kernel by itself"
    return None


def strides_of(part: RegionInput | RegionOutput) -> dict[int, int]:
    """Axis -> how many elements lie between two places along it; without those that only a call knows."""
    if isinstance(part, RegionInput) and part.strides is not None:
        pairs = zip(part.dims, part.strides, strict=True)
        return {dim: stride for dim, stride in pairs if dim is not None and isinstance(stride, int)}
    found, stride = {}, 1
    for size, dim in zip(reversed(part.shape), reversed(part.dims), strict=True):
        if dim is not None:
            found[dim] = stride
        if size is None:
            break
        stride *= size
    return found


class _Loops:
    """Counted loops whose labels begin with a product's name; ``block`` is the one that is being filled."""

    def __init__(self, e: Emitter, name: str, block: str) -> None:
        self.e, self.name, self.block, self._count = e, name, block, 0

    def begin(self, carried: Sequence[tuple[str, str]] = ()) -> tuple[str, list[str], tuple[str, str, int]]:
        """Open a loop: its counter, and what it carries, which begins as these (type, value)."""
        self._count += 1
        label, before, e = f"{self.name}.{self._count}", self.block, self.e
        e.line(f"br label %{label}")
        e.label(label)
        self.block, at = label, len(e.lines)
        return f"%{label}.i", [e.name("acc") for _ in carried], (label, before, at)

    def end(
        self,
        loop: tuple[str, str, int],
        count: int,
        carried: Sequence[tuple[str, str]] = (),
        names: Sequence[str] = (),
        following: Sequence[str] = (),
    ) -> None:
        """Close it after ``count`` turns."""
        label, before, at = loop
        e, end = self.e, self.block
        rows = [f"  %{label}.i = phi i64 [ 0, %{before} ], [ %{label}.n, %{end} ]"]
        for name, (type_, start), value in zip(names, carried, following, strict=True):
            rows.append(f"  {name} = phi {type_} [ {start}, %{before} ], [ {value}, %{end} ]")
        e.lines[at:at] = rows
        e.line(f"%{label}.n = add i64 %{label}.i, 1")
        e.line(f"%{label}.m = icmp ult i64 %{label}.n, {count}")
        e.line(f"br i1 %{label}.m, label %{label}, label %{label}.end")
        e.label(f"{label}.end")
        self.block = f"{label}.end"


def emit_product(
    e: Emitter, program: RegionProgram, product: Product, sides: tuple[str, str], target: str, gap: int, block: str
) -> str:
    """Emit the product of two addresses into a third, whose rows begin ``gap`` elements apart; the block that goes on.

    A target that is padded to whole vectors is written in whole vectors, one without gaps up to its last column.
    """
    rows, columns, along = product.extents(program)
    scalar = SCALARS[program.terms[product.term].dtype.name]
    loops = _Loops(e, f"product{product.term}", block)
    left, right = (strides_of(program.inputs[i]) for i in (product.left, product.right))
    source, step = sides[1], right[product.along]
    if right[product.column] != 1:
        source, step = (
            _turned(e, loops, scalar, source, right, product, columns, along),
            -(-columns // e.width) * e.width,
        )
    down = left.get(product.row, 0) if product.row is not None else 0
    for first in range(0, columns, _VECTORS * e.width):
        count = min(_VECTORS, -(-(columns - first) // e.width))
        height = min(rows, max(1, _ACCUMULATORS[e.width] // count))
        block_ = _Block(e, loops, scalar, first, count, columns, gap, (down, left[product.along], step), along)
        whole = rows // height
        if whole:
            at, _, loop = loops.begin()
            block_.emit(e.binary("mul", "i64", at, str(height)), height, sides[0], source, target)
            loops.end(loop, whole)
        if rows % height:
            block_.emit(str(whole * height), rows % height, sides[0], source, target)
    return loops.block


def _turned(
    e: Emitter,
    loops: _Loops,
    scalar: str,
    source: str,
    right: dict[int, int],
    product: Product,
    columns: int,
    along: int,
) -> str:
    """The right matrix with its columns side by side, padded to whole vectors."""
    padded = -(-columns // e.width) * e.width
    turned = e.value(f"alloca {scalar}, i64 {along * padded}, align 64")
    column, _, outer = loops.begin()
    place, _, inner = loops.begin()
    from_ = e.binary(
        "add",
        "i64",
        e.binary("mul", "i64", column, str(right[product.column])),
        e.binary("mul", "i64", place, str(right[product.along])),
    )
    value = e.value(f"load {scalar}, ptr {e.value(f'getelementptr {scalar}, ptr {source}, i64 {from_}')}")
    to = e.binary("add", "i64", e.binary("mul", "i64", place, str(padded)), column)
    e.line(f"store {scalar} {value}, ptr {e.value(f'getelementptr {scalar}, ptr {turned}, i64 {to}')}")
    loops.end(inner, along)
    loops.end(outer, columns)
    return turned


@dataclass(frozen=True, slots=True)
class _Block:
    """Some vectors of columns, from ``first`` on; ``strides`` of the left matrix down and along, and of the right one along."""

    e: Emitter
    loops: _Loops
    scalar: str
    first: int
    count: int
    columns: int
    gap: int
    strides: tuple[int, int, int]
    along: int

    def emit(self, row: str, height: int, left: str, right: str, target: str) -> None:
        """So many rows from one on."""
        e, type_, (down, along, step) = self.e, self.e.vector(self.scalar), self.strides
        starts = [
            e.value(
                f"getelementptr {self.scalar}, ptr {left}, i64 "
                + e.binary("mul", "i64", e.binary("add", "i64", row, str(r)), str(down))
            )
            for r in range(height)
        ]
        carried = [(type_, "zeroinitializer")] * (height * self.count)
        at, sums, loop = self.loops.begin(carried)
        over = e.binary("mul", "i64", at, str(step))
        columns = [self._load(right, over, c) for c in range(self.count)]
        across = e.binary("mul", "i64", at, str(along))
        following = []
        for r in range(height):
            element = e.value(f"getelementptr {self.scalar}, ptr {starts[r]}, i64 {across}")
            factor = e.broadcast(self.scalar, e.value(f"load {self.scalar}, ptr {element}"))
            following += [
                e.math("fmuladd", self.scalar, factor, columns[c], sums[r * self.count + c]) for c in range(self.count)
            ]
        self.loops.end(loop, self.along, carried, sums, following)
        for r in range(height):
            place = e.binary("mul", "i64", e.binary("add", "i64", row, str(r)), str(self.gap))
            for c in range(self.count):
                self._store(target, place, c, following[r * self.count + c])

    def _mask(self, vector: int, padded: bool = False) -> str | None:
        left = self.columns - self.first - vector * self.e.width
        return None if padded or left >= self.e.width else self.e.first_lanes(left)

    def _where(self, base: str, offset: str, vector: int) -> str:
        e = self.e
        at = e.binary("add", "i64", offset, str(self.first + vector * e.width))
        return e.value(f"getelementptr {self.scalar}, ptr {base}, i64 {at}")

    def _load(self, base: str, offset: str, vector: int) -> str:
        e, type_ = self.e, self.e.vector(self.scalar)
        where, size = self._where(base, offset, vector), {"float": 4, "double": 8}[self.scalar]
        mask = self._mask(vector)
        if mask is None:
            return e.value(f"load {type_}, ptr {where}, align {size}")
        args = (("ptr", where), ("i32", str(size)), (e.vector("i1"), mask), (type_, "zeroinitializer"))
        return e.call(f"llvm.masked.load.{e.overload(self.scalar)}.p0", type_, *args)

    def _store(self, base: str, offset: str, vector: int, value: str) -> None:
        e, type_ = self.e, self.e.vector(self.scalar)
        where, size = self._where(base, offset, vector), {"float": 4, "double": 8}[self.scalar]
        mask = self._mask(vector, self.gap % e.width == 0 and self.gap > self.columns)
        if mask is None:
            e.line(f"store {type_} {value}, ptr {where}, align {size}")
            return
        args = ((type_, value), ("ptr", where), ("i32", str(size)), (e.vector("i1"), mask))
        e.run(f"llvm.masked.store.{e.overload(self.scalar)}.p0", *args)
