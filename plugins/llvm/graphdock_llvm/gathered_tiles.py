"""Tiles of what :mod:`graphdock_llvm.gathered` computes: rows side by side times a panel, and where they go."""

from __future__ import annotations

from graphdock_llvm.gathered_copies import LONGEST, Copies

__all__ = ["Tiles"]


class Tiles(Copies):
    """Prints the functions that compute a tile, and that write it."""

    def _block(self, height: int, turned: bool) -> str:
        """``block(strip, panel, along, tile, result, outs, again, direct)``: a tile of so many rows.

        They are written where they belong where that is direct; rows that are there twice are read before any is written.
        """
        e, count = self.e, height * self.vectors
        down, step = (1, self.height) if turned else (LONGEST + self.lanes, 1)
        sums, ends = [e.name("sum") for _ in range(count)], [e.name("end") for _ in range(count)]
        following: list[str] = []
        self._fork(e.value("icmp ugt i64 %along, 0"), "place", "out")
        e.label("place")
        e.lines.append("  %k = phi i64 [ 0, %entry ], [ %k.next, %place ]")
        at = len(e.lines)
        panel, strip = self._at("float", "%panel", self._mul("%k", self.wide)), self._mul("%k", step)
        columns = [
            e.value(f"load {self.type}, ptr {self._at('float', panel, v * self.lanes)}, align 64")
            for v in range(self.vectors)
        ]
        for r in range(height):
            row = self._at("float", "%strip", r * down)
            factor = e.broadcast("float", e.value(f"load float, ptr {self._at('float', row, strip)}, align 4"))
            following += [
                e.math("fmuladd", "float", factor, columns[v], sums[r * self.vectors + v]) for v in range(self.vectors)
            ]
        e.line("%k.next = add i64 %k, 1")
        self._fork(e.value("icmp ult i64 %k.next, %along"), "place", "out")
        e.lines[at:at] = [
            f"  {s} = phi {self.type} [ zeroinitializer, %entry ], [ {f}, %place ]"
            for s, f in zip(sums, following, strict=True)
        ]
        e.label("out")
        e.lines += [
            f"  {end} = phi {self.type} [ zeroinitializer, %entry ], [ {value}, %place ]"
            for end, value in zip(ends, following, strict=True)
        ]
        self._fork("%direct", "there", "aside")
        e.label("aside")
        for number, value in enumerate(ends):
            e.line(f"store {self.type} {value}, ptr {self._at('float', '%tile', number * self.lanes)}, align 64")
        e.line("ret void")
        e.label("there")
        places = []
        for r in range(height):
            base = self._at("float", "%result", e.value(f"load i64, ptr {self._at('i64', '%outs', r)}"))
            places += [self._at("float", base, v * self.lanes) for v in range(self.vectors)]
        self._fork("%again", "more", "write")
        e.label("more")
        sums = [
            e.binary("fadd", self.type, end, e.value(f"load {self.type}, ptr {place}, align 4"))
            for end, place in zip(ends, places, strict=True)
        ]
        for made, to in ((sums, "write"), (ends, "")):
            for value, place in zip(made, places, strict=True):
                e.line(f"store {self.type} {value}, ptr {place}, align 4")
            e.line("ret void")
            if to:
                e.label(to)
        name = f"block{self.vectors}x{height}{'turned' if turned else ''}"
        given = "ptr noalias %strip, ptr noalias %panel, i64 %along, ptr noalias %tile, ptr %result, ptr %outs"
        return self._function(f"void @{name}({given}, i1 %again, i1 %direct)")

    def _finish(self) -> str:
        """``finish(out, outs, tile, rows, columns, bias, first, last, biased, relu)``: store rows of a tile where they belong."""
        e, type_ = self.e, self.type
        masks, flags = self._masks(), e.vector("i1")
        again, biased, relu = (e.broadcast("i1", f"%{name}") for name in ("again", "biased", "relu"))
        bias = [
            self._masked(self._at("float", "%bias", v * self.lanes), e.binary("and", flags, mask, biased))
            for v, mask in enumerate(masks)
        ]
        before = [e.binary("and", flags, mask, again) for mask in masks]
        self._jump("row")
        e.label("row")
        e.lines.append("  %r = phi i64 [ 0, %entry ], [ %r.next, %row ]")
        base = self._at("float", "%out", e.value(f"load i64, ptr {self._at('i64', '%outs', '%r')}"))
        tile = self._at("float", "%tile", self._mul("%r", self.wide))
        for v, mask in enumerate(masks):
            where = self._at("float", base, v * self.lanes)
            value = e.value(f"load {type_}, ptr {self._at('float', tile, v * self.lanes)}, align 64")
            value = e.binary("fadd", type_, value, self._masked(where, before[v]))
            value = e.binary("fadd", type_, value, bias[v])
            less = e.value(f"fcmp olt {type_} {value}, zeroinitializer")
            value = e.select(e.binary("and", flags, less, relu), type_, "zeroinitializer", value)
            args = ((type_, value), ("ptr", where), ("i32", "4"), (flags, mask))
            e.run(f"llvm.masked.store.{e.overload('float')}.p0", *args)
        e.line("%r.next = add i64 %r, 1")
        self._fork(e.value("icmp ult i64 %r.next, %rows"), "row", "end")
        e.label("end")
        e.line("ret void")
        given = "ptr %out, ptr %outs, ptr %tile, i64 %rows, i64 %columns, ptr %bias, i1 %again, i1 %biased, i1 %relu"
        return self._function(f"void @finish{self.vectors}({given})")
