"""Large products of extents that only a call knows, with what follows them element by element: in passes along what is summed over.

Columns are packed and rows are copied side by side for some hundred places at a time, so that what a part has on the stack is the
same for all extents. A block of rows meets several panels. Its sums are put by between two passes and go on where they were:
each element is one sum in the order of the axis, whatever the pass, the block and the thread, with the same bits as that of
:mod:`graphdock_llvm.panels`. What follows is computed in the last pass. No place at all gives zeros.
"""

from __future__ import annotations

from collections.abc import Callable

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.panels import WAITS, Finish
from graphdock_llvm.passes_blocks import BLOCKS, LONG, LONGEST, TOGETHER, Blocks, OpenMatrices

__all__ = ["print_passes"]


def print_passes(e: Emitter, name: str, matrices: OpenMatrices, begin: Callable[[], None], finish: Finish) -> str:
    """The function ``void name.panels(ptr table, ptr left, ptr right, i64 part, i64 parts, ptr room, ...)``, which computes one
    part of a product that has rows and columns, and what it calls: with a room for each part, and all three extents.

    Args:
      begin: emits what ``finish`` needs once for each tile. Both may read ``%table`` and ``%columns``.
    """
    return _Passes(e, name, matrices, begin, finish).text()


class _Passes(Blocks):
    def text(self) -> str:
        return "\n".join([*self.blocks(), self._part()])

    def _part(self) -> str:
        """``panels(table, left, right, part, parts, ...)``: some blocks of rows by some panels, in passes."""
        e, height, given = self.e, self.height, f"i64 {self.rows}, i64 {self.along}, i64 {self.columns}"
        room = TOGETHER * LONGEST * self.wide
        panel = e.value(f"alloca [{room} x {self.scalar}], align 64")
        strip = e.value(f"alloca [{height * (LONGEST + e.width)} x {self.scalar}], align 64")
        tile = e.value(f"alloca [{2 * height * self.wide} x {self.scalar}], align 64")
        blocks, panels = self._pieces(self.rows, height), self._pieces(self.columns, self.wide)
        by_panels = e.value(f"icmp ule i64 %parts, {panels}")
        rows, columns = self._edges(blocks, by_panels, False), self._edges(panels, by_panels, True)
        if self.direct:
            self._few(tile, panel, columns, given)
        # as many passes as there have to be, each of as many places as it can be less
        passes = self._most("1", self._pieces(self.along, LONGEST))
        places = e.binary("mul", "i64", self._pieces(self._pieces(self.along, passes), e.width), str(e.width))
        several = e.value(f"icmp ugt i64 {passes}, 1")
        mine, its = e.binary("sub", "i64", rows[1], rows[0]), e.binary("sub", "i64", columns[1], columns[0])
        chunks = e.value(f"select i1 {several}, i64 {self._pieces(mine, BLOCKS)}, i64 1")
        chunk = self._pieces(mine, chunks)
        its_own = e.binary("mul", "i64", "%part", self._least(str(BLOCKS), blocks))
        room_ = self.at("%room", (its_own, TOGETHER * height * self.wide))
        tiles = e.value(f"select i1 {several}, ptr {room_}, ptr {tile}")
        together = self._pieces(its, self._pieces(its, TOGETHER))

        def pass_(number: str, chunk_: tuple[str, str], group: tuple[str, str]) -> None:
            k = e.binary("mul", "i64", number, places)
            count = self._least(places, e.binary("sub", "i64", self.along, k))
            again = e.value(f"icmp ugt i64 {number}, 0")
            last = e.value(f"icmp eq i64 {e.binary('add', 'i64', number, '1')}, {passes}")
            right = self.at("%right", (k, self._stride(self.of.right[0], self.columns)))
            left = self.at("%left", (k, self._stride(self.of.left[1], self.rows)))

            def where(j: str) -> str:
                return self.at(panel, (e.binary("sub", "i64", j, group[0]), LONGEST * self.wide))

            def block(i: str) -> None:
                row = e.binary("mul", "i64", i, str(height))
                some = self._least(str(height), e.binary("sub", "i64", self.rows, row))
                few = e.value(f"icmp ule i64 {some}, {WAITS}")
                base = e.binary("mul", "i64", e.binary("sub", "i64", i, chunk_[0]), str(TOGETHER))
                its = self.at(left, (row, self._stride(self.of.left[0], self.along)))
                e.line(f"call void @{self.name}.strip(ptr {its}, ptr {strip}, i64 {some}, i64 {count}, {given})")

                def meet(j: str) -> None:
                    first = e.binary("mul", "i64", j, str(self.wide))
                    slot = e.binary("add", "i64", base, e.binary("sub", "i64", j, group[0]))
                    slot = e.value(f"select i1 {several}, i64 {slot}, i64 0")
                    tile = self.at(tiles, (slot, height * self.wide))
                    function = self._function_for(few, first)
                    e.line(f"call void {function}(ptr {strip}, ptr {where(j)}, ptr {tile}, i64 {count}, i1 {again})")
                    label = self.label()
                    e.line(f"br i1 {last}, label %{label}.last, label %{label}.done")
                    e.label(f"{label}.last")
                    told = f"ptr %table, ptr {tile}, i64 {row}, i64 {some}, i64 {first}, {given}"
                    e.line(f"call void @{self.name}.finish({told})")
                    e.line(f"br label %{label}.done")
                    e.label(f"{label}.done")

                self.loop(*group, meet)

            which = f"i64 {group[0]}, i64 {group[1]}, i64 {count}, {given}"
            e.line(f"call void @{self.name}.pack(ptr {right}, ptr {panel}, {which})")
            self.loop(*chunk_, block)

        def of_chunk(c: str) -> None:
            blocks_ = self._section(rows, c, chunk)
            groups = self._pieces(its, together)
            self.loop("0", groups, lambda g: of_group(blocks_, self._section(columns, g, together)))

        def of_group(blocks_: tuple[str, str], group: tuple[str, str]) -> None:
            self.loop("0", passes, lambda number: pass_(number, blocks_, group))

        self.loop("0", self._pieces(mine, chunk), of_chunk)
        if self.direct:
            e.line("br label %past")
            e.label("past")
        head = "ptr %table, ptr %left, ptr %right, i64 %part, i64 %parts, ptr %room"
        return self.function(f"void @{self.name}.panels({head}, {self.extents})")

    def _few(self, tile: str, row: str, panels: tuple[str, str], given: str) -> None:
        """Compute all of a part where rows are few; ``row`` has room for sums of one. Goes on where they are not."""
        e, turned = self.e, self.of.right[1] != 1
        e.line(f"br i1 {e.value(f'icmp ule i64 {self.rows}, {WAITS}')}, label %few, label %many")
        e.label("few")
        begin, end = (e.binary("mul", "i64", panel, str(self.wide)) for panel in panels)
        end = self._least(end, self.columns)

        def finish(first: str, panel: str, base: str, apart: int) -> None:
            at, label = e.binary("add", "i64", first, e.binary("mul", "i64", panel, str(self.wide))), self.label()
            e.line(f"br i1 {e.value(f'icmp ult i64 {at}, {end}')}, label %{label}, label %{label}.past")
            e.label(label)
            told = f"ptr %table, ptr {self.at(base, (panel, apart))}, i64 0, i64 {self.rows}, i64 {at}, {given}"
            e.line(f"call void @{self.name}.finish({told})")
            e.line(f"br label %{label}.past")
            e.label(f"{label}.past")

        def some(number: str) -> None:
            first = e.binary("add", "i64", begin, e.binary("mul", "i64", number, str(each)))
            for vector in range(self.vectors if turned else 1):
                to = self.at(tile, (str(vector * e.width), 1))
                its = e.binary("add", "i64", first, str(vector * e.width))
                e.line(f"call void @{self.name}.direct(ptr %left, ptr %right, ptr {to}, i64 {its}, {given})")
            for panel in range(each // self.wide):
                finish(first, str(panel), tile, self.height * self.wide)

        def single(number: str) -> None:
            first = e.binary("add", "i64", begin, e.binary("mul", "i64", number, str(together)))
            left = self._least(e.binary("sub", "i64", end, first), str(together))
            told = f"i64 {first}, i64 {self._pieces(left, e.width)}, {given}"
            e.line(f"call void @{self.name}.single(ptr %left, ptr %right, ptr {row}, {told})")
            self.loop("0", self._pieces(left, self.wide), lambda panel: finish(first, panel, row, self.wide))

        each, together = self.wide * (1 if turned else 2), LONG * self.wide
        count = e.binary("sub", "i64", end, begin)
        if not turned:
            e.line(f"br i1 {e.value(f'icmp eq i64 {self.rows}, 1')}, label %one, label %some")
            e.label("one")
            self.loop("0", self._pieces(count, together), single)
            e.line("br label %past")
            e.label("some")
        self.loop("0", self._pieces(count, each), some)
        e.line("br label %past")
        e.label("many")

    def _function_for(self, few: str, first: str) -> str:
        """The block for few rows or many, and for as many vectors as there are columns from one on."""
        e, names = self.e, [f"@{self.name}.block{height}x" for height in (WAITS, self.height)]
        if self.vectors == 1:
            return e.value(f"select i1 {few}, ptr {names[0]}1, ptr {names[1]}1")
        left = e.binary("sub", "i64", self.columns, first)
        narrow = e.value(f"icmp ule i64 {left}, {e.width}")
        kinds = [e.value(f"select i1 {narrow}, ptr {name}1, ptr {name}2") for name in names]
        return e.value(f"select i1 {few}, ptr {kinds[0]}, ptr {kinds[1]}")

    def _edges(self, count: str, by_panels: str, shared: bool) -> tuple[str, str]:
        """First and last of what a part has: a section of these, or all."""
        e, found = self.e, []
        for k, whole in ((0, "0"), (1, count)):
            edge = e.binary("mul", "i64", e.binary("add", "i64", "%part", str(k)), count)
            edge, both = e.binary("udiv", "i64", edge, "%parts"), ("{0}", "{1}") if shared else ("{1}", "{0}")
            one, other = (text.format(edge, whole) for text in both)
            found.append(e.value(f"select i1 {by_panels}, i64 {one}, i64 {other}"))
        return found[0], found[1]

    def _section(self, of: tuple[str, str], number: str, size: str) -> tuple[str, str]:
        """The edges of one of the sections of a range."""
        e = self.e
        begin = e.binary("add", "i64", of[0], e.binary("mul", "i64", number, size))
        return begin, self._least(e.binary("add", "i64", begin, size), of[1])
