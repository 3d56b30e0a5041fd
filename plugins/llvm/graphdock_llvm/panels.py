"""Large products of matrices with what follows them element by element: columns in packed panels, blocks of rows in registers.

A *panel* is some vectors of columns of the right matrix, copied once so that they lie side by side for each place along the axis
that is summed over; a right matrix that lies transposed is turned there, by squares. Each block of rows meets the panel in one loop
whose sums stay in registers over the whole axis, so that a tile of the product is whole when it leaves them: what follows, a bias,
an activation, a residual, is computed while it lies in the first cache. Rows of a transposed left matrix are copied block by block.

Threads share panels, or blocks of rows where panels are few. Every element is one sum in the order of the axis: on any number of
threads, and in whatever block it lies, its bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.pieces import Pieces, transposed

__all__ = ["ROWS", "WAITS", "Finish", "Matrices", "print_pack", "print_panels"]

#: Rows of a block at most, by lanes: 24 sums of 32 registers, 12 of 16. Blocks of fewer than the second take as long as one of so
#: many, for a sum waits for its last product; and what a block costs besides, in rows.
ROWS = {16: 12, 8: 6, 4: 6}
WAITS, _BLOCK = 4, 0.5
#: Rows of a part that copies all panels for itself, at least.
_TALL = 192
#: Parts that threads share, at most; multiplications from which they do; those that each has at least.
_PARTS, _SHARED, _LEAST, _LARGE = 16, 1 << 22, 1 << 19, 1 << 24
#: Panels that share a copy of rows of a transposed left matrix, and bytes that they may have for that.
_FOR_ONE, _LYING = 4, 256 * 1024


@dataclass(frozen=True, slots=True)
class Matrices:
    """``rows x along`` times ``along x columns``: extents, dtype's LLVM type, and strides in elements. No rows where a call
    says how many there are.

    Attributes:
      left: strides of the left matrix down its rows and along; ``right``: along and from column to column. One of each is 1.
      packed: the right matrix comes in panels, one behind the other.
    """

    rows: int | None
    along: int
    columns: int
    scalar: str
    left: tuple[int, int]
    right: tuple[int, int]
    packed: bool = False

    @property
    def direct(self) -> bool:
        """Return whether so few rows that a copy of the right matrix would cost more than they read it where it lies."""
        return self.rows is None and not self.packed and self.right[1] == 1

    @property
    def turned(self) -> bool:
        """Return whether the left matrix lies transposed."""
        return self.left[0] == 1 and self.left[1] != 1

    def height(self, width: int) -> int:
        """Rows of a block: as many as registers allow, or somewhat fewer where the last block is too small then."""
        rows = self.rows
        if rows is None:
            return ROWS[width]
        most = min(ROWS[width], rows)

        def cost(height: int) -> float:
            whole, rest = divmod(rows, height)
            return whole * (height + _BLOCK) + (max(rest, WAITS) + _BLOCK if rest else 0)

        return min(range(most, max(most * 2 // 3, 1) - 1, -1), key=cost)

    def wide(self, width: int) -> int:
        """Columns of a panel: as many as two registers hold, or one where that is all."""
        return width * (2 if self.scalar == "float" and self.columns > width else 1)

    def panels(self, width: int) -> int:
        """Number of panels."""
        return -(-self.columns // self.wide(width))

    def parts(self, width: int, rows: int | None = None) -> int:
        """Number of parts that threads share: of panels, or of rows where those are fewer, with copies of all panels for each.
        Each copies the rows of a transposed left matrix for itself: its parts are larger, and of some panels.

        Args:
          rows: how many there are, where only a call knows.
        """
        rows = (self.rows or 0) if rows is None else rows
        work = rows * self.along * self.columns
        if work < _SHARED:
            return 1
        panels = self.panels(width)
        size = self.along * self.wide(width) * (4 if self.scalar == "float" else 8)
        together = max(1, min(_FOR_ONE, _LYING // size))
        work = work // _LEAST if not self.turned else min(work // _LARGE, max(panels // together, rows // _TALL))
        return max(1, min(_PARTS, work, max(panels, rows // _TALL)))

    def kept(self, width: int) -> int:
        """Panels of one part that are there at once."""
        panels, parts = self.panels(width), self.parts(width)
        return 1 if not self.turned else -(-panels // parts) if panels >= parts else panels

    def room(self, width: int) -> int:
        """Bytes on the stack of a thread that computes a part."""
        copied = ROWS[width] if self.turned else 0
        size = 4 if self.scalar == "float" else 8
        own = 0 if self.packed else self.kept(width) * self.along
        return size * ((own + ROWS[width]) * self.wide(width) + self.along * copied)


#: Emits what is done with a row of a tile: of the row's number, the first column's, and (value, mask) of its vectors.
Finish: TypeAlias = "Callable[[str, str, Sequence[tuple[str, str]]], None]"


def print_panels(e: Emitter, name: str, matrices: Matrices, begin: Callable[[], None], finish: Finish) -> str:
    """The function ``void name.panels(ptr table, ptr left, ptr right, i64 part, i64 rows, i64 parts)``, which computes one part,
    and what it calls. It reads how many rows and parts there are where the matrices do not say it.

    Args:
      begin: emits what ``finish`` needs once for each tile. Both may read ``%table``.
    """
    return _Panels(e, name, matrices, begin, finish).text()


def print_pack(e: Emitter, name: str, matrices: Matrices) -> str:
    """The function ``void name.pack(ptr right, ptr panel, i64 first)``, which copies the columns from one on into a panel."""
    return _Panels(e, name, replace(matrices, packed=True), lambda: None, lambda *_: None).pack()


class _Panels(Pieces):
    def __init__(self, e: Emitter, name: str, matrices: Matrices, begin: Callable[[], None], finish: Finish) -> None:
        super().__init__(e, name, matrices.scalar, matrices.wide(e.width) // e.width, str(matrices.columns))
        self.of, self.begin, self.finish, self.height = matrices, begin, finish, matrices.height(e.width)
        self.align = self.size if matrices.packed else 64  # of panels
        self.turns_left = matrices.turned

    def text(self) -> str:
        texts = [self._finish(), *([] if self.of.packed else [self.pack()])]
        if self.turns_left:
            texts.append(self._strip())
        low = WAITS if self.of.rows is None else self.of.rows % self.height
        heights = {self.height, low} - {0}
        texts += [self._block(height) for height in sorted(heights)]
        texts += [self._block(WAITS, direct=True)] if self.of.direct else []
        return "\n".join([*texts, self._part()])

    # -- packing

    def pack(self) -> str:
        """``pack(right, panel, first)``: the columns from one on, vector by vector for each place."""
        e, along, (step, across) = self.e, self.of.along, self.of.right
        masks = self.masks("%first")
        if across == 1:

            def copy(k: str) -> None:
                for vector, mask in enumerate(masks):
                    column = e.binary("add", "i64", "%first", str(vector * e.width))
                    value = self.masked(self.at("%right", (k, step), (column, 1)), mask)
                    where = self.at("%panel", (k, self.wide), (str(vector * e.width), 1))
                    e.line(f"store {self.type} {value}, ptr {where}, align {self.align}")

            self.loop("0", str(along), copy)
        else:
            self._turned(masks)
        return self.function(f"void @{self.name}.pack(ptr noalias %right, ptr noalias %panel, i64 %first)")

    def _turned(self, masks: Sequence[str]) -> None:
        """Squares of as many columns as places, turned; columns behind the last one repeat it, and are never stored."""
        e, (_, across), along = self.e, self.of.right, self.of.along
        last = str(self.of.columns - 1)

        def square(vector: int, k: str, places: int) -> None:
            rows, mask = [], e.first_lanes(places)
            for lane in range(e.width):
                column = e.binary("add", "i64", "%first", str(vector * e.width + lane))
                inside = e.value(f"icmp ult i64 {column}, {last}")
                column = e.value(f"select i1 {inside}, i64 {column}, i64 {last}")
                where = self.at("%right", (column, across), (k, 1))
                whole = places == e.width
                rows.append(
                    e.value(f"load {self.type}, ptr {where}, align {self.size}") if whole else self.masked(where, mask)
                )
            for place, row in enumerate(transposed(e, self.of.scalar, rows)[:places]):
                at = e.binary("add", "i64", k, str(place))
                where = self.at("%panel", (at, self.wide), (str(vector * e.width), 1))
                e.line(f"store {self.type} {row}, ptr {where}, align {self.align}")

        def squares(vector: int, number: str) -> None:
            square(vector, e.binary("mul", "i64", number, str(e.width)), e.width)

        for vector in range(self.vectors):
            whole, rest = divmod(along, e.width)
            if whole:
                self.loop("0", str(whole), partial(squares, vector))
            if rest:
                square(vector, str(whole * e.width), rest)

    def _strip(self) -> str:
        """``strip(left, strip, rows)``: so many rows of a transposed matrix, side by side for each place."""
        e, of = self.e, self.of
        wide = -(-self.height // e.width) * e.width
        inside = e.broadcast("i64", "%rows")

        def copy(k: str) -> None:
            for r in range(0, wide, e.width):
                numbers = e.binary("add", e.vector("i64"), e.lanes("i64"), e.constant("i64", r))
                mask = e.value(f"icmp slt {e.vector('i64')} {numbers}, {inside}")
                value = self.masked(self.at("%left", (k, of.left[1]), (str(r), 1)), mask)
                self.store_masked(value, self.at("%strip", (k, self.height), (str(r), 1)), mask)

        self.loop("0", str(of.along), copy)
        return self.function(f"void @{self.name}.strip(ptr noalias %left, ptr noalias %strip, i64 %rows)")

    # -- blocks of rows

    def _block(self, height: int, direct: bool = False) -> str:
        """``block(left, panel, tile, rows)``: a tile of so many rows from an address on. Where a call says how many there are,
        and they are fewer, the last one is taken again. ``direct``, with a first column, takes the right matrix itself."""
        e, of, (down, step) = self.e, self.of, self.of.left
        if self.turns_left:
            down, step = 1, self.height
        numbers = [str(r) for r in range(height)]
        if of.rows is None:
            last = e.binary("sub", "i64", "%rows", "1")
            inside = [e.value(f"icmp ult i64 {r}, {last}") for r in numbers]
            numbers = [e.value(f"select i1 {i}, i64 {r}, i64 {last}") for i, r in zip(inside, numbers, strict=True)]
        starts = [self.at("%left", (r, down)) for r in numbers]
        masks = self.masks("%first") if direct else []
        label, sums = self.label(), [e.name("sum") for _ in range(height * self.vectors)]
        e.line(f"br label %{label}.in")
        e.label(f"{label}.in")
        e.line(f"br label %{label}")
        e.label(label)
        at = len(e.lines)
        if direct:
            row = self.at("%right", (f"%{label}.i", of.right[0]), ("%first", 1))
            columns = [self.masked(self.at(row, (str(v * e.width), 1)), masks[v]) for v in range(self.vectors)]
        else:
            columns = [
                e.value(
                    f"load {self.type}, ptr "
                    + self.at("%panel", (f"%{label}.i", self.wide), (str(v * e.width), 1))
                    + f", align {self.align}"
                )
                for v in range(self.vectors)
            ]
        over = e.binary("mul", "i64", f"%{label}.i", str(step))
        following = []
        for r in range(height):
            value = e.value(f"load {of.scalar}, ptr {self.at(starts[r], (over, 1))}, align {self.size}")
            factor = e.broadcast(of.scalar, value)
            following += [
                e.math("fmuladd", of.scalar, factor, columns[v], sums[r * self.vectors + v])
                for v in range(self.vectors)
            ]
        phis = [f"  %{label}.i = phi i64 [ 0, %{label}.in ], [ %{label}.next, %{label} ]"]
        phis += [
            f"  {s} = phi {self.type} [ zeroinitializer, %{label}.in ], [ {f}, %{label} ]"
            for s, f in zip(sums, following, strict=True)
        ]
        e.lines[at:at] = phis
        e.line(f"%{label}.next = add i64 %{label}.i, 1")
        e.line(f"%{label}.more = icmp ult i64 %{label}.next, {of.along}")
        e.line(f"br i1 %{label}.more, label %{label}, label %{label}.out")
        e.label(f"{label}.out")
        for number, value in enumerate(following):
            e.line(f"store {self.type} {value}, ptr {self.at('%tile', (str(number * e.width), 1))}, align 64")
        if direct:
            given = "ptr %left, ptr %right, ptr noalias %tile, i64 %rows, i64 %first"
            return self.function(f"void @{self.name}.direct({given})")
        given = "ptr %left, ptr noalias %panel, ptr noalias %tile, i64 %rows"
        return self.function(f"void @{self.name}.block{height}({given})")

    def _finish(self) -> str:
        """``finish(table, tile, row, rows, first)``: what is done with so many rows of a tile."""
        e = self.e
        masks = self.masks("%first")
        self.begin()

        def visit(r: str) -> None:
            values = []
            for vector, mask in enumerate(masks):
                where = self.at("%tile", (r, self.wide), (str(vector * e.width), 1))
                values.append((e.value(f"load {self.type}, ptr {where}, align 64"), mask))
            self.finish(e.binary("add", "i64", "%row", r), "%first", values)

        self.loop("0", "%rows", visit)
        return self.function(f"void @{self.name}.finish(ptr %table, ptr %tile, i64 %row, i64 %rows, i64 %first)")

    # -- a part

    def _part(self) -> str:
        """``panels(table, left, right, part)``: panel by panel; with a transposed left matrix all panels, then block by block."""
        e, of, height = self.e, self.of, self.height
        panels, parts, kept = of.panels(e.width), of.parts(e.width), of.kept(e.width)
        if of.rows is None:
            most = e.binary("add", "i64", "%rows", str(height - 1))
            blocks = e.binary("udiv", "i64", most, str(height))
        else:
            blocks = str(-(-of.rows // height))
        by_panels = panels >= parts
        own = 0 if of.packed else kept * of.along * self.wide
        panel = e.value(f"alloca [{own} x {of.scalar}], align 64")
        tile = e.value(f"alloca [{height * self.wide} x {of.scalar}], align 64")
        strip = e.value(f"alloca [{of.along * height} x {of.scalar}], align 64") if self.turns_left else ""

        def edges(count: str, shared: bool) -> tuple[str, str]:
            if of.rows is not None and (not shared or parts == 1):
                return "0", count
            found = [e.binary("mul", "i64", e.binary("add", "i64", "%part", str(k)), count) for k in (0, 1)]
            number = "%parts" if of.rows is None else str(parts)
            begin, end = (e.binary("udiv", "i64", edge, number) for edge in found)
            if of.rows is None:  # by panels where these are as many as parts
                many = e.value(f"icmp {'ule' if shared else 'ugt'} i64 %parts, {panels}")
                begin = e.value(f"select i1 {many}, i64 {begin}, i64 0")
                end = e.value(f"select i1 {many}, i64 {end}, i64 {count}")
            return begin, end

        if of.rows is None:
            rows, columns = edges(blocks, False), edges(str(panels), True)
        else:
            rows, columns = edges(blocks, not by_panels), edges(str(panels), by_panels)

        def pack(j: str, where: str) -> str:
            first = e.binary("mul", "i64", j, str(self.wide))
            if not of.packed:
                e.line(f"call void @{self.name}.pack(ptr %right, ptr {where}, i64 {first})")
            return first

        def begin(i: str) -> tuple[str, str, str]:
            """The row that a block begins with, how many it has, and their address."""
            row = e.binary("mul", "i64", i, str(height))
            left, count = self.at("%left", (row, of.left[0])), str(height)
            if of.rows is None:
                rest = e.binary("sub", "i64", "%rows", row)
                whole = e.value(f"icmp ult i64 {rest}, {height}")
                count = e.value(f"select i1 {whole}, i64 {rest}, i64 {height}")
            elif of.rows % height:
                whole = e.value(f"icmp ult i64 {i}, {-(-of.rows // height) - 1}")
                count = e.value(f"select i1 {whole}, i64 {height}, i64 {of.rows % height}")
            if self.turns_left:
                e.line(f"call void @{self.name}.strip(ptr {left}, ptr {strip}, i64 {count})")
            return row, count, strip or left

        def visit(block: tuple[str, str, str], where: str, first: str) -> None:
            row, count, left = block
            low = WAITS if of.rows is None else of.rows % height
            given = f"(ptr {left}, ptr {where}, ptr {tile}, i64 {count})"
            if low:
                label = self.label()
                high = e.value(f"icmp ugt i64 {count}, {low}")
                e.line(f"br i1 {high}, label %{label}.{height}, label %{label}.{low}")
                for some in (height, low):
                    e.label(f"{label}.{some}")
                    e.line(f"call void @{self.name}.block{some}{given}")
                    e.line(f"br label %{label}.done")
                e.label(f"{label}.done")
            else:
                e.line(f"call void @{self.name}.block{height}{given}")
            e.line(f"call void @{self.name}.finish(ptr %table, ptr {tile}, i64 {row}, i64 {count}, i64 {first})")

        if not self.turns_left:

            def each(j: str) -> None:
                where = self.at("%right", (j, of.along * self.wide)) if of.packed else panel
                label = self.label()
                if of.direct:
                    first = e.binary("mul", "i64", j, str(self.wide))
                    few = e.value(f"icmp ule i64 %rows, {WAITS}")
                    e.line(f"br i1 {few}, label %{label}.direct, label %{label}.packed")
                    e.label(f"{label}.direct")
                    e.line(f"call void @{self.name}.direct(ptr %left, ptr %right, ptr {tile}, i64 %rows, i64 {first})")
                    e.line(f"call void @{self.name}.finish(ptr %table, ptr {tile}, i64 0, i64 %rows, i64 {first})")
                    e.line(f"br label %{label}.done")
                    e.label(f"{label}.packed")
                first = pack(j, where)
                self.loop(*rows, lambda i: visit(begin(i), where, first))
                if of.direct:
                    e.line(f"br label %{label}.done")
                    e.label(f"{label}.done")

            self.loop(*columns, each)
        else:

            def where(j: str) -> str:
                if of.packed:
                    return self.at("%right", (j, of.along * self.wide))
                return self.at(panel, (e.binary("sub", "i64", j, columns[0]), of.along * self.wide))

            def every(i: str) -> None:
                block = begin(i)
                self.loop(*columns, lambda j: visit(block, where(j), e.binary("mul", "i64", j, str(self.wide))))

            if not of.packed:
                self.loop(*columns, lambda j: (pack(j, where(j)), None)[1])
            self.loop(*rows, every)
        given = "ptr %table, ptr %left, ptr %right, i64 %part, i64 %rows, i64 %parts"
        return self.function(f"void @{self.name}.panels({given})")
