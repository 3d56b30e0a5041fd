"""A large product with what follows it element by element, as one function: which nodes and programs are that, and their text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from graphdock.contracts import REDUCTIONS, PlanNode, Region, RegionInput, RegionOutput, RegionProgram

from graphdock_llvm.emitter import SCALARS, Emitter
from graphdock_llvm.panels import Matrices, print_panels
from graphdock_llvm.passes import print_passes
from graphdock_llvm.passes_blocks import OpenMatrices
from graphdock_llvm.primitives import emit, unsupported
from graphdock_llvm.printer import Printed
from graphdock_llvm.products import Product, products_of, refused, strides_of
from graphdock_llvm.target import width as lanes
from graphdock_llvm.vectors import Place, address, held, in_memory, input_address, load, size_of, store

__all__ = ["Tiles", "nodes_of_a_tile", "parts_of", "print_tiles", "shared_by_parts", "tiles_of"]

#: Extents of a product from which on copies of its panels pay.
_LEAST = 16
#: Rows from which on a product by a matrix whose panels are there already is one, however many columns it has.
_FEW = 4
#: Multiplications up to which it is at most as slow as OpenBLAS's, by LLVM's type of its elements; of float32 whose left matrix
#: lies as it is, with so many lanes.
_MOST, _MOST_LYING, _LANES = {"float": 1 << 28, "double": 1 << 24}, 1 << 32, 8
#: Elements of a right matrix, at most, by which rows are multiplied that only a step counts.
_RIGHT = 1 << 20
#: Places of the axis that is summed over, at most, of a transposed left matrix where registers are not those of AVX-512.
_SHORT = 256
#: Columns, at most, of a product of places that only a step counts, that are too few for vectors; twice as many beside so few rows.
_NARROW, _LOW = 4, 256
#: Bytes on the stack of a thread: threads of some systems have half a megabyte.
_ROOM = 384 * 1024
_NUMBERED = frozenset(("index", "place", "stream", "draw"))


@dataclass(frozen=True, slots=True)
class Tiles:
    """The one product of a program, as matrices."""

    product: Product
    matrices: Matrices | OpenMatrices


def _matrices(
    program: RegionProgram, product: Product, width: int, packed: bool = False
) -> Matrices | OpenMatrices | None:
    """A product that is large, and computed here; None where it is small, or a library's. ``packed``: its right matrix comes in
    panels."""
    if product.row is None or refused(program, product, width) is None:
        return None
    found = _known(program, product, width, packed)
    return _open(program, product) if found is None and not packed else found


def _known(program: RegionProgram, product: Product, width: int, packed: bool) -> Matrices | None:
    """A product of extents that are known, but for that of the rows."""
    assert product.row is not None
    if None in (program.axes[product.along].extent, program.axes[product.column].extent):
        return None
    extents, dtype = product.extents(program), program.terms[product.term].dtype
    sides = [program.inputs[i] for i in (product.left, product.right)]
    if any(side.dtype != dtype for side in sides) or dtype.name not in ("float32", "float64"):
        return None
    rows, columns, along = extents
    known = program.axes[product.row].extent is not None
    if known and (rows < (_FEW if packed else _LEAST) or min(columns, along) < _LEAST):
        return None
    left, right = map(strides_of, sides)
    if not known and columns * along > _RIGHT:
        return None
    if left.keys() != {product.row, product.along} or right.keys() != {product.along, product.column}:
        return None
    found = Matrices(
        rows if known else None,
        along,
        columns,
        SCALARS[dtype.name],
        (left[product.row], left[product.along]),
        (right[product.along], right[product.column]),
    )
    lying = dtype.name == "float32" and not found.turned and width >= _LANES
    if known and rows * columns * along > (_MOST_LYING if lying else _MOST[found.scalar]):
        return None
    long = found.turned and width < 16 and along > _SHORT
    return found if found.room(width) <= _ROOM and not long else None


def _open(program: RegionProgram, product: Product) -> OpenMatrices | None:
    """A product with any extents that only a call knows, of matrices that lie row by row, or column by column."""
    assert product.row is not None
    axes = product.row, product.along, product.column
    rows, along, columns = (program.axes[a].extent for a in axes)
    sides, dtype = [program.inputs[i] for i in (product.left, product.right)], program.terms[product.term].dtype
    if None not in (rows, along, columns) or any(side.dtype != dtype or None in side.dims for side in sides):
        return None
    narrow = columns is not None and (
        columns <= _NARROW or columns <= 2 * _NARROW and rows is not None and rows <= _LOW
    )
    if dtype.name not in ("float32", "float64") or along is None and narrow:
        return None
    strides = []
    for side, (outer, inner) in zip(sides, (axes[:2], axes[1:]), strict=True):
        known = strides_of(side)
        if side.strides is None:
            known.setdefault(side.dims[-1], 1)  # type: ignore[arg-type]
        elif known.keys() != {outer, inner}:
            return None
        if 1 not in known.values():
            return None
        strides.append((known.get(outer), known.get(inner)))
    return OpenMatrices(rows, along, columns, SCALARS[dtype.name], *strides)


def nodes_of_a_tile(candidate: Region, nodes: Sequence[PlanNode], width: int) -> list[PlanNode]:
    """The first large product of a candidate that is computed here, and the nodes behind it that are computed in its tiles.

    What stays through a loop is packed before it.
    """
    stay = candidate.stays if candidate.step else ()
    program = candidate.program
    assert program is not None
    for number, product in products_of(program).items():
        alone = (
            sum(n.origin == program.terms[number].origin for n in nodes) == 1
        )  # no part of an op that was taken apart
        packed = program.inputs[product.right].source in stay and program.inputs[product.right].strides is None
        if alone and _matrices(program, product, width, packed) is not None:
            return _behind(program, number, product, nodes, unsupported(program, width))
    return []


def _behind(
    program: RegionProgram, number: int, product: Product, nodes: Sequence[PlanNode], reasons: dict[int, str]
) -> list[PlanNode]:
    """The node of a product, and those that follow it element by element: no way leads from them over another one and back."""
    terms: dict[str, list[int]] = {}
    for place, term in enumerate(program.terms):
        terms.setdefault(term.origin, []).append(place)
    origin, axes = program.terms[number].origin, (product.row, product.column)
    chosen: list[PlanNode] = []
    barred: set[PlanNode] = set()
    for node in nodes:
        before = {n for n in (*(v.node for v in node.inputs), *node.control, *node.order) if n is not None}
        if node.origin == origin:
            chosen.append(node)
        elif before.intersection(chosen) or before & barred:
            mine = [n for n in terms.get(node.origin, ()) if program.terms[n].op not in ("input", "literal")]
            fits = mine and not node.opdef.accesses and program.terms[mine[-1]].axes == axes
            fits = fits and not any(
                n in reasons or program.terms[n].op in REDUCTIONS or program.terms[n].op in _NUMBERED for n in mine
            )
            if fits and not before & barred:
                chosen.append(node)
            else:
                barred.add(node)
    return chosen


def tiles_of(program: RegionProgram, width: int, arranged: Collection[int] = ()) -> Tiles | None:
    """The product of a program that is a large one with what follows it in its tiles; None where the program is something else.

    Args:
      arranged: numbers of the inputs of its region that come in panels.
    """
    products = products_of(program)
    if len(products) != 1 or program.streams:
        return None
    ((number, product),) = products.items()
    packed = program.inputs[product.right].source in arranged
    matrices = _matrices(program, product, width, packed)
    if matrices is None:
        return None
    factors, reasons = set(program.terms[number].args), unsupported(program, width)
    axes = [product.row, product.column]
    for place, term in enumerate(program.terms):
        if place == number or place in factors or place == program.terms[number].args[0]:
            continue
        if term.op in REDUCTIONS or term.op in _NUMBERED:
            return None
        if term.op == "extent" and program.axes[term.value].extent is None:
            return None
        if place in reasons and not (term.op == "input" and term.value in (product.left, product.right)):
            return None
        if term.op == "input" and term.value not in (product.left, product.right):
            part = program.inputs[term.value]
            dims = [d for d in part.dims if d is not None]
            if (
                dims != [d for d in axes if d in dims]
                or part.strides is not None
                and not strides_of(part).keys() >= set(dims)
            ):
                return None
    if any([d for d in out.dims if d is not None] != axes or out.into is not None for out in program.outputs):
        return None
    return Tiles(product, replace(matrices, packed=True) if packed and isinstance(matrices, Matrices) else matrices)


def parts_of(tiles: Tiles, extents: Sequence[int | None]) -> tuple[int, int]:
    """Number of parts in which threads share a call, of extents that only it knows, and bytes that each has besides."""
    product, of = tiles.product, tiles.matrices
    assert product.row is not None
    rows, along, columns = (extents[a] or 0 for a in (product.row, product.along, product.column))
    if isinstance(of, Matrices):
        return of.parts(lanes(), rows), 0
    return of.parts(lanes(), rows, along, columns), of.room(lanes(), rows, along, columns)


def print_tiles(program: RegionProgram, tiles: Tiles, count: int, width: int) -> Printed:
    """The function ``region`` of such a program; see :func:`graphdock_llvm.printer.print_functions`."""
    e, of = Emitter(width), tiles.matrices
    finish = _Finish(e, program, tiles, count)
    sides = [program.inputs[i] for i in (tiles.product.left, tiles.product.right)]
    if isinstance(of, OpenMatrices):
        opened: Sequence[str] = of.open()
        panels = print_passes(e, "region", of, finish.begin, finish)
        counts = ", ".join(
            ["i64 %parts, ptr %room", *(f"i64 {'%' + k if v is None else v}" for k, v in of.named().items())]
        )
    else:
        opened, panels = ["rows"] if of.rows is None else [], print_panels(e, "region", of, finish.begin, finish)
        counts = "i64 %rows, i64 %parts" if opened else f"i64 {of.rows}, i64 {of.parts(width)}"
    begin = "define internal void @region.part(ptr %table, i64 %part) {\nentry:\n"
    if opened:
        begin = _BEGIN + "".join(map(_number, ["parts", *opened, "room.place"], range(2, 4 + len(opened))))
        begin += "  %room = inttoptr i64 %room.place to ptr\n"
    part = begin + _PART.replace("TYPE", of.scalar).replace("COUNTS", counts)
    for word, side in zip(("LEFT", "RIGHT"), sides, strict=True):
        part = part.replace(f"{word}.SLOT", str(side.source)).replace(f"{word}.PLACE", str(side.offset))
    shared = bool(opened) or of.parts(width) > 1  # type: ignore[call-arg]
    call = _open_call(opened) if opened else shared_by_parts(of.parts(width))  # type: ignore[call-arg]
    return Printed(e.declarations, e.functions, (panels, part, call), shared)


def _number(name: str, place: int) -> str:
    return f"  %{name}.at = getelementptr i64, ptr %numbers, i64 {place}\n  %{name} = load i64, ptr %{name}.at\n"


def _open_call(opened: Sequence[str]) -> str:
    """The function ``region`` of parts and extents that only the numbers say, where no row or column is nothing to do."""
    text, some = "".join(map(_number, ["parts", *opened], range(2, 3 + len(opened)))), "true"
    for name in opened:
        if name != "along":
            text += f"  %{name}.some = icmp ugt i64 %{name}, 0\n  %{name}.all = and i1 {some}, %{name}.some\n"
            some = f"%{name}.all"
    return _OPEN.replace("EXTENTS", text).replace("SOME", some)


_BEGIN = """define internal void @region.part(ptr %frame, i64 %part) {
entry:
  %table = load ptr, ptr %frame
  %numbers.at = getelementptr ptr, ptr %frame, i64 1
  %numbers = load ptr, ptr %numbers.at
"""
_PART = """  %left.at = getelementptr ptr, ptr %table, i64 LEFT.SLOT
  %right.at = getelementptr ptr, ptr %table, i64 RIGHT.SLOT
  %left.whole = load ptr, ptr %left.at
  %right.whole = load ptr, ptr %right.at
  %left = getelementptr TYPE, ptr %left.whole, i64 LEFT.PLACE
  %right = getelementptr TYPE, ptr %right.whole, i64 RIGHT.PLACE
  call void @region.panels(ptr %table, ptr %left, ptr %right, i64 %part, COUNTS)
  ret void
}
"""


def shared_by_parts(parts: int) -> str:
    """The function ``region`` of a table and numbers, whose threads call ``region.part`` for each part."""
    return _SHARED.replace("PARTS", str(parts))


_SHARED = """define void @region(ptr %table, ptr %numbers) {
entry:
  %threads = load i64, ptr %numbers
  %several = icmp ugt i64 %threads, 1
  br i1 %several, label %share, label %alone
share:
  %run.at = getelementptr i64, ptr %numbers, i64 1
  %run = load ptr, ptr %run.at
  call void %run(ptr @region.part, ptr %table, i64 PARTS, i64 %threads)
  ret void
alone:
  %at = phi i64 [ 0, %entry ], [ %next, %alone ]
  call void @region.part(ptr %table, i64 %at)
  %next = add i64 %at, 1
  %more = icmp ult i64 %next, PARTS
  br i1 %more, label %alone, label %end
end:
  ret void
}
"""


#: The same of parts and extents that only the numbers say.
_OPEN = """define void @region(ptr %table, ptr %numbers) {
entry:
  %frame = alloca ptr, i64 2
  store ptr %table, ptr %frame
  %second = getelementptr ptr, ptr %frame, i64 1
  store ptr %numbers, ptr %second
EXTENTS  br i1 SOME, label %begin, label %end
begin:
  %threads = load i64, ptr %numbers
  %many = icmp ugt i64 %threads, 1
  %cut = icmp ugt i64 %parts, 1
  %several = and i1 %many, %cut
  br i1 %several, label %share, label %alone
share:
  %run.at = getelementptr i64, ptr %numbers, i64 1
  %run = load ptr, ptr %run.at
  call void %run(ptr @region.part, ptr %frame, i64 %parts, i64 %threads)
  ret void
alone:
  %at = phi i64 [ 0, %begin ], [ %next, %alone ]
  call void @region.part(ptr %frame, i64 %at)
  %next = add i64 %at, 1
  %more = icmp ult i64 %next, %parts
  br i1 %more, label %alone, label %end
end:
  ret void
}
"""


class _Finish:
    """Emits what follows a product, vector by vector of a row of a tile."""

    def __init__(self, e: Emitter, program: RegionProgram, tiles: Tiles, count: int) -> None:
        self.e, self.program, self.product, self.count = e, program, tiles.product, count
        self.bases: dict[int, str] = {}

    def _needed(self) -> list[int]:
        seen: set[int] = set()
        stack = [o.term for o in self.program.outputs]
        while stack:
            number = stack.pop()
            if number not in seen:
                seen.add(number)
                if number != self.product.term:
                    stack.extend(self.program.terms[number].args)
        return sorted(seen)

    def begin(self) -> None:
        """Addresses of what is read and written."""
        e, program = self.e, self.program
        read = [t.value for n in self._needed() if (t := program.terms[n]).op == "input"]
        self.bases = {i: input_address(e, program.inputs[i]) for i in read}
        outs = range(len(program.outputs))
        self.bases |= {len(program.inputs) + k: address(e, self.count + k) for k in outs}

    def __call__(self, row: str, first: str, vectors: Sequence[tuple[str, str]]) -> None:
        e, program = self.e, self.program
        for number, (value, mask) in enumerate(vectors):
            at = e.binary("add", "i64", first, str(number * e.width))
            values = {self.product.term: value}
            for n in self._needed():
                term = program.terms[n]
                if n == self.product.term:
                    continue
                if term.op == "input":
                    values[n] = self._input(term.value, row, Place(at, mask))
                elif term.op == "literal":
                    values[n] = e.constant(SCALARS[term.dtype.name], term.value)
                elif term.op == "extent":
                    values[n] = e.constant("i64", program.axes[term.value].extent or 0)
                else:
                    values[n] = emit(e, program, term, [values[a] for a in term.args])
            for k, out in enumerate(program.outputs):
                where = self._row(out, self.bases[len(program.inputs) + k], row)
                store(e, out.dtype.name, values[out.term], where, Place(at, mask))

    def _row(self, part: RegionInput | RegionOutput, base: str, row: str) -> str:
        """Address of the row."""
        if self.product.row not in part.dims:
            return base
        unknown = self.program.axes[self.product.column].extent is None
        stride = strides_of(part).get(self.product.row, "%columns" if unknown else None)  # type: ignore[arg-type]
        offset = self.e.binary("mul", "i64", row, str(stride))
        return self.e.value(f"getelementptr {in_memory(part.dtype.name)}, ptr {base}, i64 {offset}")

    def _input(self, number: int, row: str, place: Place) -> str:
        e, part = self.e, self.program.inputs[number]
        name, base = part.dtype.name, self._row(part, self.bases[number], row)
        if self.product.column in part.dims:
            return load(e, name, base, place)
        scalar = in_memory(name)
        return held(e, name, e.broadcast(scalar, e.value(f"load {scalar}, ptr {base}, align {size_of(scalar)}")))
