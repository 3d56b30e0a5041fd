"""Copies and blocks of products of extents that only a call knows: columns in panels, rows side by side, and their sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.panels import ROWS, WAITS, Finish
from graphdock_llvm.pieces import Pieces, transposed

__all__ = ["BLOCKS", "LONG", "LONGEST", "TOGETHER", "Blocks", "OpenMatrices"]

#: Places of a pass at most, panels that a block of rows meets, and blocks whose sums are put by at most.
LONGEST, TOGETHER, BLOCKS = 256, 8, 64
#: Rows of the right matrix that one row meets at once, along so many panels, which are no more than a part has room for.
_ALONG, LONG = 8, 128
#: Parts that threads share, at most; multiplications from which they do; those that each has at least; panels and blocks likewise.
_PARTS, _SHARED, _LEAST, _PANELS, _STRIPS = 16, 1 << 22, 1 << 21, 4, 16


@dataclass(frozen=True, slots=True)
class OpenMatrices:
    """``rows x along`` times ``along x columns``; what is None, a call says.

    Attributes:
      left: strides of the left matrix down its rows and along; ``right``: along and from column to column. In elements, one of each
        is 1; None where it is the extent of the other axis, and that is not known.
    """

    rows: int | None
    along: int | None
    columns: int | None
    scalar: str
    left: tuple[int | None, int | None]
    right: tuple[int | None, int | None]

    @property
    def turned(self) -> bool:
        """Return whether the left matrix lies transposed."""
        return self.left[1] != 1

    def vectors(self, width: int) -> int:
        """Vectors of a panel: as many as two registers hold, or one where that is all."""
        return 2 if self.scalar == "float" and (self.columns is None or self.columns > width) else 1

    def parts(self, width: int, rows: int, along: int, columns: int) -> int:
        """Number of parts that threads share: of panels, or of rows where those are fewer."""
        work = rows * along * columns
        if work < _SHARED:
            return 1
        panels, blocks = -(-columns // (self.vectors(width) * width)), -(-rows // ROWS[width])
        most = min(max(panels // _PANELS, blocks // _STRIPS, 2), max(panels, blocks))
        return max(1, min(_PARTS, work // _LEAST, most))

    def room(self, width: int, rows: int, along: int, columns: int) -> int:
        """Bytes that a part has besides: of sums that are put by."""
        blocks = min(BLOCKS, -(-rows // ROWS[width])) if along > LONGEST else 0
        return blocks * TOGETHER * ROWS[width] * self.vectors(width) * width * (4 if self.scalar == "float" else 8)

    def open(self) -> Sequence[str]:
        """Names of the extents that a call says, in the order of their axes."""
        return [name for name, extent in self.named().items() if extent is None]

    def named(self) -> dict[str, int | None]:
        """All three extents by their names."""
        return {"rows": self.rows, "along": self.along, "columns": self.columns}


class Blocks(Pieces):
    """Prints the functions that a part of a product calls."""

    def __init__(self, e: Emitter, name: str, of: OpenMatrices, begin: Callable[[], None], finish: Finish) -> None:
        super().__init__(e, name, of.scalar, of.vectors(e.width), "%columns" if of.columns is None else str(of.columns))
        self.of, self.begin, self.finish, self.height = of, begin, finish, ROWS[e.width]
        self.rows, self.along = (n if k is None else str(k) for n, k in (("%rows", of.rows), ("%along", of.along)))
        self.step = self.height if of.turned else 1  # from place to place of rows that were copied, and from row to row
        self.down = 1 if of.turned else LONGEST + e.width
        self.align = gcd(64, self.height * self.wide * self.size)
        # few rows read the right matrix where it lies, but for rows that themselves lie across those of a transposed one
        self.direct = of.right[1] == 1 or not of.turned
        self.extents = "i64 %rows, i64 %along, i64 %columns"

    def blocks(self) -> list[str]:
        """Their texts."""
        texts = [self._finish(), self._pack(), self._turned_strip() if self.of.turned else self._strip()]
        for height in (self.height, WAITS):
            texts += [self._block(height, vectors) for vectors in range(1, self.vectors + 1)]
        texts += [self._direct()] if self.direct else []
        texts += [self._single()] if self.of.right[1] == 1 else []
        return texts

    # -- copies

    def _pack(self) -> str:
        """``pack(right, panel, begin, end, places, ...)``: panels from one on up to another, for so many places."""
        e = self.e

        def place(k: str) -> None:
            row = self.at("%right", (k, self._stride(self.of.right[0], self.columns)))

            def copy(j: str) -> None:
                first, panel = e.binary("mul", "i64", j, str(self.wide)), self._panel(j)
                for vector, mask in enumerate(self.masks(first)):
                    value = self.masked(self.at(row, (first, 1), (str(vector * e.width), 1)), mask)
                    where = self.at(panel, (k, self.wide), (str(vector * e.width), 1))
                    e.line(f"store {self.type} {value}, ptr {where}, align {self.align}")

            self.loop("%begin", "%end", copy)

        if self.of.right[1] == 1:
            self.loop("0", "%places", place, some=False)
        else:
            number = self._pieces("%places", e.width)
            self.loop("%begin", "%end", lambda j: self.loop("0", number, lambda n: self._square(j, n), some=False))
        given = f"ptr noalias %right, ptr noalias %panel, i64 %begin, i64 %end, i64 %places, {self.extents}"
        return self.function(f"void @{self.name}.pack({given})")

    def _panel(self, j: str) -> str:
        """Address of a panel of those from ``%begin`` on."""
        return self.at("%panel", (self.e.binary("sub", "i64", j, "%begin"), LONGEST * self.wide))

    def _square(self, j: str, number: str) -> None:
        """As many columns as places, turned; columns behind the last one repeat it, and are never stored."""
        e, across, panel = self.e, self._stride(self.of.right[1], self.along), self._panel(j)
        first = self.e.binary("mul", "i64", j, str(self.wide))
        last, k = e.binary("sub", "i64", self.columns, "1"), e.binary("mul", "i64", number, str(e.width))
        mask = self.lanes_below(e.binary("sub", "i64", "%places", k))
        for vector in range(self.vectors):
            rows = []
            for lane in range(e.width):
                column = e.binary("add", "i64", first, str(vector * e.width + lane))
                inside = e.value(f"icmp ult i64 {column}, {last}")
                column = e.value(f"select i1 {inside}, i64 {column}, i64 {last}")
                rows.append(self.masked(self.at("%right", (column, across), (k, 1)), mask))
            for place, row in enumerate(transposed(e, self.scalar, rows)):
                at = e.binary("add", "i64", k, str(place))
                where = self.at(panel, (at, self.wide), (str(vector * e.width), 1))
                e.line(f"store {self.type} {row}, ptr {where}, align {self.align}")

    def _strip(self) -> str:
        """``strip(left, strip, count, places, ...)``: places of so many rows, row by row."""
        e, down = self.e, self._stride(self.of.left[0], self.along)
        number = self._pieces("%places", e.width)

        def copy(r: str) -> None:
            row, to = self.at("%left", (r, down)), self.at("%strip", (r, self.down))

            def some(n: str) -> None:
                k = e.binary("mul", "i64", n, str(e.width))
                value = self.masked(self.at(row, (k, 1)), self.lanes_below(e.binary("sub", "i64", "%places", k)))
                e.line(f"store {self.type} {value}, ptr {self.at(to, (k, 1))}, align {self.size}")

            self.loop("0", number, some, some=False)

        self.loop("0", "%count", copy)
        return self._strip_function()

    def _turned_strip(self) -> str:
        """The same of a transposed matrix: so many rows, side by side for each place."""
        e, step = self.e, self._stride(self.of.left[1], self.rows)
        starts = range(0, self.height, e.width)
        masks = [self.lanes_below(e.binary("sub", "i64", "%count", str(r))) for r in starts]

        def copy(k: str) -> None:
            for r, mask in zip(starts, masks, strict=True):
                value = self.masked(self.at("%left", (k, step), (str(r), 1)), mask)
                # lanes behind a block's last row are overwritten by the next place
                e.line(
                    f"store {self.type} {value}, ptr {self.at('%strip', (k, self.step), (str(r), 1))}, align {self.size}"
                )

        self.loop("0", "%places", copy, some=False)
        return self._strip_function()

    def _strip_function(self) -> str:
        given = f"ptr noalias %left, ptr noalias %strip, i64 %count, i64 %places, {self.extents}"
        return self.function(f"void @{self.name}.strip({given})")

    def _stride(self, known: int | None, extent: str) -> str:
        return extent if known is None else str(known)

    # -- blocks of rows

    def _block(self, height: int, vectors: int) -> str:
        """``block(strip, panel, tile, places, again)``: sums of so many rows, which go on where they were if that is again."""
        e, label, count = self.e, self.label(), height * vectors
        tile = [self._of_tile(i // vectors, i % vectors) for i in range(count)]
        e.line(f"br i1 %again, label %{label}.on, label %{label}.in")
        e.label(f"{label}.on")
        before = [e.value(f"load {self.type}, ptr {where}, align {self.align}") for where in tile]
        e.line(f"br label %{label}.in")
        e.label(f"{label}.in")
        starts = [e.name("start") for _ in range(count)]
        for start, value in zip(starts, before, strict=True):
            e.line(f"{start} = phi {self.type} [ zeroinitializer, %entry ], [ {value}, %{label}.on ]")

        def visit(k: str, sums: Sequence[str]) -> list[str]:
            panel, over = self.at("%panel", (k, self.wide)), e.binary("mul", "i64", k, str(self.step))
            columns = [
                e.value(f"load {self.type}, ptr {self.at(panel, (str(v * e.width), 1))}, align {self.align}")
                for v in range(vectors)
            ]
            rows = [self.at(self.at("%strip", (str(r), self.down)), (over, 1)) for r in range(height)]
            return self._outer(rows, columns, sums)

        for where, value in zip(tile, self._summed("%places", starts, visit), strict=True):
            e.line(f"store {self.type} {value}, ptr {where}, align {self.align}")
        given = "ptr noalias %strip, ptr noalias %panel, ptr noalias %tile, i64 %places, i1 %again"
        return self.function(f"void @{self.name}.block{height}x{vectors}({given})")

    def _direct(self) -> str:
        """``direct(left, right, tile, first, ...)``: sums of few rows for the columns of two panels, or for a vector of those of a
        transposed matrix, by the right matrix where it lies."""
        e, last = self.e, self.e.binary("sub", "i64", self.rows, "1")
        down, step = self._stride(self.of.left[0], self.along), self._stride(self.of.left[1], self.rows)
        rows = [self.at("%left", (self._least(str(r), last), down)) for r in range(WAITS)]
        if self.of.right[1] == 1:
            masks = [m for at in (0, self.wide) for m in self.masks(e.binary("add", "i64", "%first", str(at)))]
            across = self._stride(self.of.right[0], self.columns)

            def visit(k: str, sums: Sequence[str]) -> list[str]:
                row = self.at("%right", (k, across), ("%first", 1))
                columns = [self.masked(self.at(row, (str(v * e.width), 1)), mask) for v, mask in enumerate(masks)]
                return self._outer([self.at(row, (k, step)) for row in rows], columns, sums)

            ends = self._summed(self.along, ["zeroinitializer"] * (WAITS * len(masks)), visit)
            for number, value in enumerate(ends):
                panel, vector = divmod(number % len(masks), self.vectors)
                where = self._of_tile(panel * self.height + number // len(masks), vector)
                e.line(f"store {self.type} {value}, ptr {where}, align {self.align}")
        else:
            self._dots(rows)
        return self.function(
            f"void @{self.name}.direct(ptr %left, ptr %right, ptr noalias %tile, i64 %first, {self.extents})"
        )

    def _single(self) -> str:
        """``single(left, right, tile, first, vectors, ...)``: sums of one row for so many vectors of columns, side by side,
        by some rows of the right matrix at once, along these."""
        e, across = self.e, self._stride(self.of.right[0], self.columns)
        step = self._stride(self.of.left[1], self.rows)

        def clear(v: str) -> None:
            where = self.at("%tile", (v, e.width))
            e.line(f"store {self.type} zeroinitializer, ptr {where}, align {self.align}")

        def add(k: str, count: int) -> None:
            places = [e.binary("add", "i64", k, str(i)) for i in range(count)]
            lefts = [self.at("%left", (place, step)) for place in places]
            factors = [e.value(f"load {self.scalar}, ptr {left}, align {self.size}") for left in lefts]
            factors = [e.broadcast(self.scalar, factor) for factor in factors]
            rows = [self.at("%right", (place, across), ("%first", 1)) for place in places]

            def visit(v: str) -> None:
                at, where = e.binary("mul", "i64", v, str(e.width)), self.at("%tile", (v, e.width))
                mask = self.lanes_below(e.binary("sub", "i64", left, at))
                value = e.value(f"load {self.type}, ptr {where}, align {self.align}")
                for row, factor in zip(rows, factors, strict=True):
                    column = self.masked(self.at(row, (at, 1)), mask)
                    value = e.math("fmuladd", self.scalar, factor, column, value)
                e.line(f"store {self.type} {value}, ptr {where}, align {self.align}")

            self.loop("0", "%vectors", visit)

        left = e.binary("sub", "i64", self.columns, "%first")
        self.loop("0", "%vectors", clear)
        whole = e.binary("udiv", "i64", self.along, str(_ALONG))
        self.loop("0", whole, lambda q: add(e.binary("mul", "i64", q, str(_ALONG)), _ALONG), some=False)
        self.loop(e.binary("mul", "i64", whole, str(_ALONG)), self.along, lambda k: add(k, 1), some=False)
        given = "ptr %left, ptr %right, ptr noalias %tile, i64 %first, i64 %vectors"
        return self.function(f"void @{self.name}.single({given}, {self.extents})")

    def _dots(self, rows: Sequence[str]) -> None:
        """Products of rows by rows, vector by vector along both: their sums are turned, and so added lane by lane."""
        e, across = self.e, self._stride(self.of.right[1], self.along)
        last, number = e.binary("sub", "i64", self.columns, "1"), self._pieces(self.along, e.width)
        columns = []
        for lane in range(e.width):
            column = self._least(e.binary("add", "i64", "%first", str(lane)), last)
            columns.append(self.at("%right", (column, across)))
        for r, row in enumerate(rows):
            label = self.label()
            e.line(f"br i1 {e.value(f'icmp ult i64 {r}, {self.rows}')}, label %{label}, label %{label}.past")
            e.label(label)

            def visit(n: str, sums: Sequence[str], row: str = row) -> list[str]:
                k = e.binary("mul", "i64", n, str(e.width))
                mask = self.lanes_below(e.binary("sub", "i64", self.along, k))
                factor = self.masked(self.at(row, (k, 1)), mask)
                others = [self.masked(self.at(column, (k, 1)), mask) for column in columns]
                return [e.math("fmuladd", self.scalar, factor, o, s) for o, s in zip(others, sums, strict=True)]

            found = transposed(e, self.scalar, self._summed(number, ["zeroinitializer"] * e.width, visit))
            while len(found) > 1:
                half = len(found) // 2
                found = [e.binary("fadd", self.type, a, b) for a, b in zip(found[:half], found[half:], strict=True)]
            e.line(f"store {self.type} {found[0]}, ptr {self._of_tile(r, 0)}, align {self.align}")
            e.line(f"br label %{label}.past")
            e.label(f"{label}.past")

    def _outer(self, rows: Sequence[str], columns: Sequence[str], sums: Sequence[str]) -> list[str]:
        """Sums with one place more: of a factor at each address, and vectors of columns."""
        e, following, left = self.e, [], iter(sums)
        for row in rows:
            factor = e.broadcast(self.scalar, e.value(f"load {self.scalar}, ptr {row}, align {self.size}"))
            following += [e.math("fmuladd", self.scalar, factor, column, next(left)) for column in columns]
        return following

    def _summed(
        self, number: str, starts: Sequence[str], visit: Callable[[str, Sequence[str]], list[str]]
    ) -> list[str]:
        """Vectors as they have become in a loop of so many turns, or none."""
        e, label, type_ = self.e, self.label(), self.type
        sums, ends = [[e.name(what) for _ in starts] for what in ("sum", "end")]
        e.line(f"br label %{label}.begin")
        e.label(f"{label}.begin")
        e.line(f"br i1 {e.value(f'icmp ugt i64 {number}, 0')}, label %{label}, label %{label}.out")
        e.label(label)
        at = len(e.lines)
        following = visit(f"%{label}.i", sums)
        e.line(f"%{label}.next = add i64 %{label}.i, 1")
        e.line(f"br i1 {e.value(f'icmp ult i64 %{label}.next, {number}')}, label %{label}, label %{label}.out")
        pairs = zip(sums, starts, following, strict=True)
        e.lines[at:at] = [
            f"  %{label}.i = phi i64 [ 0, %{label}.begin ], [ %{label}.next, %{label} ]",
            *[f"  {s} = phi {type_} [ {start}, %{label}.begin ], [ {f}, %{label} ]" for s, start, f in pairs],
        ]
        e.label(f"{label}.out")
        for end, start, value in zip(ends, starts, following, strict=True):
            e.line(f"{end} = phi {type_} [ {start}, %{label}.begin ], [ {value}, %{label} ]")
        return ends

    def _of_tile(self, row: int, vector: int) -> str:
        return self.at("%tile", (str(row * self.wide + vector * self.e.width), 1))

    def _finish(self) -> str:
        """``finish(table, tile, row, count, first, ...)``: what is done with so many rows of a tile."""
        e, masks = self.e, self.masks("%first")
        self.begin()

        def visit(r: str) -> None:
            values = []
            for vector, mask in enumerate(masks):
                where = self.at("%tile", (r, self.wide), (str(vector * e.width), 1))
                values.append((e.value(f"load {self.type}, ptr {where}, align {self.align}"), mask))
            self.finish(e.binary("add", "i64", "%row", r), "%first", values)

        self.loop("0", "%count", visit)
        given = f"ptr %table, ptr %tile, i64 %row, i64 %count, i64 %first, {self.extents}"
        return self.function(f"void @{self.name}.finish({given})")

    def _pieces(self, count: str, size: int | str) -> str:
        """Number of pieces of a size that a number makes, rounded up."""
        e = self.e
        more = e.binary("sub", "i64", str(size), "1")
        return e.binary("udiv", "i64", e.binary("add", "i64", count, more), str(size))

    def _least(self, a: str, b: str) -> str:
        return self.e.value(f"select i1 {self.e.value(f'icmp ult i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def _most(self, a: str, b: str) -> str:
        return self.e.value(f"select i1 {self.e.value(f'icmp ugt i64 {a}, {b}')}, i64 {a}, i64 {b}")
