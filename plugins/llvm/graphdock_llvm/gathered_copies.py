"""Copies of what :mod:`graphdock_llvm.gathered` multiplies: columns in panels, rows side by side."""

from __future__ import annotations

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.pieces import transposed

__all__ = ["FEW", "LONGEST", "ROWS", "TOGETHER", "Copies"]

#: Places of a panel: the axis that is summed over is done in passes of so many at most, where segments can be so short.
LONGEST = 512
#: Panels that a block of rows meets, by their vectors.
TOGETHER = (1, 4, 3)
#: Rows of a block by lanes, for panels of one, two and three vectors; and rows of the blocks at the end.
ROWS = {16: (12, 12, 8), 8: (8, 6, 4), 4: (8, 6, 4)}
FEW = {16: 4, 8: 2, 4: 2}


class Copies:
    """Prints the functions that copy columns into panels of so many vectors, and rows side by side."""

    def __init__(self, e: Emitter, lanes: int, vectors: int) -> None:
        self.e, self.lanes, self.vectors = e, lanes, vectors
        self.height, self.few = ROWS[lanes][vectors - 1], FEW[lanes]
        self.type, self.wide = e.vector("float"), lanes * vectors

    def _function(self, head: str) -> str:
        body, self.e.lines = "\n".join(self.e.lines), []
        return f"define internal {head} {{\nentry:\n{body}\n}}\n"

    def _number(self, index: int, base: str = "%n") -> str:
        return self.e.value(f"load i64, ptr {self._at('i64', base, index)}")

    def _at(self, type_: str, base: str, index: str | int) -> str:
        return self.e.value(f"getelementptr {type_}, ptr {base}, i64 {index}")

    def _add(self, a: str | int, b: str | int) -> str:
        return self.e.binary("add", "i64", str(a), str(b))

    def _mul(self, a: str | int, b: str | int) -> str:
        return self.e.binary("mul", "i64", str(a), str(b))

    def _least(self, a: str, b: str) -> str:
        less = self.e.value(f"icmp slt i64 {a}, {b}")
        return self.e.value(f"select i1 {less}, i64 {a}, i64 {b}")

    def _masks(self) -> list[str]:
        """Masks of the lanes that are columns, of which ``%columns`` are left."""
        e, masks = self.e, []
        left = e.broadcast("i64", "%columns")
        for vector in range(self.vectors):
            at = e.binary("add", e.vector("i64"), e.lanes("i64"), e.constant("i64", vector * self.lanes))
            masks.append(e.value(f"icmp slt {e.vector('i64')} {at}, {left}"))
        return masks

    def _masked(self, where: str, mask: str) -> str:
        args = (("ptr", where), ("i32", "4"), (self.e.vector("i1"), mask), (self.type, "zeroinitializer"))
        return self.e.call(f"llvm.masked.load.{self.e.overload('float')}.p0", self.type, *args)

    def _jump(self, to: str) -> None:
        self.e.line(f"br label %{to}")

    def _fork(self, condition: str, yes: str, no: str) -> None:
        self.e.line(f"br i1 {condition}, label %{yes}, label %{no}")

    # -- packing

    def _pack(self) -> str:
        """``pack(right, panel, segments, count, length, along, across, columns)``."""
        e = self.e
        masks = self._masks()
        last = self._add("%columns", -1)
        columns = [self._mul(self._least(str(c), last), "%across") for c in range(self.wide)]
        plain = e.value("icmp eq i64 %across, 1")
        size = self._mul("%length", self.wide)
        any_ = e.value("icmp ugt i64 %count, 0")
        self._fork(any_, "segment", "out")
        e.label("segment")
        e.lines.append("  %s = phi i64 [ 0, %entry ], [ %s.next, %segment.end ]")
        e.lines.append("  %to = phi ptr [ %panel, %entry ], [ %to.next, %segment.end ]")
        place = self._at("i64", "%segments", self._add(self._mul("%s", 2), 1))
        e.line(f"%from = getelementptr float, ptr %right, i64 {e.value(f'load i64, ptr {place}')}")
        self._fork(plain, "row", "square")
        e.label("row")
        e.lines.append("  %l = phi i64 [ 0, %segment ], [ %l.next, %row ]")
        source = self._at("float", "%from", self._mul("%l", "%along"))
        target = self._at("float", "%to", self._mul("%l", self.wide))
        for vector, mask in enumerate(masks):
            value = self._masked(self._at("float", source, vector * self.lanes), mask)
            e.line(f"store {self.type} {value}, ptr {self._at('float', target, vector * self.lanes)}, align 64")
        e.line("%l.next = add i64 %l, 1")
        self._fork(e.value("icmp ult i64 %l.next, %length"), "row", "segment.end")
        e.label("square")
        e.lines.append("  %k = phi i64 [ 0, %segment ], [ %k.next, %square ]")
        left = e.broadcast("i64", e.binary("sub", "i64", "%length", "%k"))
        inside = e.value(f"icmp slt {e.vector('i64')} {e.lanes('i64')}, {left}")
        first, target = self._at("float", "%from", "%k"), self._at("float", "%to", self._mul("%k", self.wide))
        for vector in range(self.vectors):
            mine = columns[vector * self.lanes : (vector + 1) * self.lanes]
            rows = [self._masked(self._at("float", first, column), inside) for column in mine]
            for number, row in enumerate(transposed(e, "float", rows)):
                where = self._at("float", target, number * self.wide + vector * self.lanes)
                e.line(f"store {self.type} {row}, ptr {where}, align 64")
        e.line(f"%k.next = add i64 %k, {self.lanes}")
        self._fork(e.value("icmp ult i64 %k.next, %length"), "square", "segment.end")
        e.label("segment.end")
        e.line(f"%to.next = getelementptr float, ptr %to, i64 {size}")
        e.line("%s.next = add i64 %s, 1")
        self._fork(e.value("icmp ult i64 %s.next, %count"), "segment", "out")
        e.label("out")
        e.line("ret void")
        given = "ptr noalias %right, ptr noalias %panel, ptr %segments, i64 %count, i64 %length"
        return self._function(f"void @pack{self.vectors}({given}, i64 %along, i64 %across, i64 %columns)")

    def _pack_whole(self) -> str:
        """``whole(right, panel, segments, count, length, along, panels)``: whole panels, whose columns lie side by side: of all of
        them a place at a time, as memory has them."""
        e, size = self.e, (LONGEST + self.lanes) * self.wide
        self._fork(e.value("icmp ugt i64 %count, 0"), "segment", "out")
        e.label("segment")
        e.lines.append("  %s = phi i64 [ 0, %entry ], [ %s.next, %segment.end ]")
        e.lines.append("  %to = phi ptr [ %panel, %entry ], [ %to.next, %segment.end ]")
        place = self._at("i64", "%segments", self._add(self._mul("%s", 2), 1))
        e.line(f"%from = getelementptr float, ptr %right, i64 {e.value(f'load i64, ptr {place}')}")
        self._jump("row")
        e.label("row")
        e.lines.append("  %l = phi i64 [ 0, %segment ], [ %l.next, %row.end ]")
        source = self._at("float", "%from", self._mul("%l", "%along"))
        target = self._at("float", "%to", self._mul("%l", self.wide))
        self._jump("each")
        e.label("each")
        e.lines.append("  %j = phi i64 [ 0, %row ], [ %j.next, %each ]")
        read, written = (
            self._at("float", source, self._mul("%j", self.wide)),
            self._at("float", target, self._mul("%j", size)),
        )
        for at in range(0, self.wide, self.lanes):
            value = e.value(f"load {self.type}, ptr {self._at('float', read, at)}, align 4")
            e.line(f"store {self.type} {value}, ptr {self._at('float', written, at)}, align 64")
        e.line("%j.next = add i64 %j, 1")
        self._fork(e.value("icmp ult i64 %j.next, %panels"), "each", "row.end")
        e.label("row.end")
        e.line("%l.next = add i64 %l, 1")
        self._fork(e.value("icmp ult i64 %l.next, %length"), "row", "segment.end")
        e.label("segment.end")
        e.line(f"%to.next = getelementptr float, ptr %to, i64 {self._mul('%length', self.wide)}")
        e.line("%s.next = add i64 %s, 1")
        self._fork(e.value("icmp ult i64 %s.next, %count"), "segment", "out")
        e.label("out")
        e.line("ret void")
        given = "ptr noalias %right, ptr noalias %panel, ptr %segments, i64 %count, i64 %length"
        return self._function(f"void @whole{self.vectors}({given}, i64 %along, i64 %panels)")

    # -- rows

    def _fill(self) -> str:
        """``fill(lefts, strip, segments, count, length, rows)``: copy rows, whose segments lie behind each other then."""
        e, lanes = self.e, self.lanes
        # four vectors at a time, of which the last four have masks: how often a short loop ends is hard to foresee
        piece = 4 * lanes
        whole = self._mul(e.binary("udiv", "i64", self._add("%length", -1), str(piece)), piece)
        some = e.value(f"icmp ugt i64 {whole}, 0")
        left = e.broadcast("i64", e.binary("sub", "i64", "%length", whole))
        inside = []
        for at in range(0, piece, lanes):
            numbers = e.binary("add", e.vector("i64"), e.lanes("i64"), e.constant("i64", at))
            inside.append(e.value(f"icmp slt {e.vector('i64')} {numbers}, {left}"))
        self._jump("row")
        e.label("row")
        e.lines.append("  %r = phi i64 [ 0, %entry ], [ %r.next, %row.end ]")
        base = e.value(f"load ptr, ptr {self._at('ptr', '%lefts', '%r')}")
        target = self._at("float", "%strip", self._mul("%r", LONGEST + lanes))
        self._fork(e.value("icmp ugt i64 %count, 0"), "segment", "row.end")
        e.label("segment")
        e.lines.append("  %s = phi i64 [ 0, %row ], [ %s.next, %segment.end ]")
        e.lines.append(f"  %to = phi ptr [ {target}, %row ], [ %to.next, %segment.end ]")
        place = e.value(f"load i64, ptr {self._at('i64', '%segments', self._mul('%s', 2))}")
        source = self._at("float", base, place)
        self._fork(some, "copy", "rest")
        e.label("copy")
        e.lines.append("  %k = phi i64 [ 0, %segment ], [ %k.next, %copy ]")
        read, written = self._at("float", source, "%k"), self._at("float", "%to", "%k")
        for at in range(0, piece, lanes):
            value = e.value(f"load {self.type}, ptr {self._at('float', read, at)}, align 4")
            e.line(f"store {self.type} {value}, ptr {self._at('float', written, at)}, align 4")
        e.line(f"%k.next = add i64 %k, {piece}")
        self._fork(e.value(f"icmp ult i64 %k.next, {whole}"), "copy", "rest")
        e.label("rest")
        read, written = self._at("float", source, whole), self._at("float", "%to", whole)
        for number, mask in enumerate(inside):
            value = self._masked(self._at("float", read, number * lanes), mask)
            e.line(f"store {self.type} {value}, ptr {self._at('float', written, number * lanes)}, align 4")
        self._jump("segment.end")
        e.label("segment.end")
        e.line("%to.next = getelementptr float, ptr %to, i64 %length")
        e.line("%s.next = add i64 %s, 1")
        self._fork(e.value("icmp ult i64 %s.next, %count"), "segment", "row.end")
        e.label("row.end")
        e.line("%r.next = add i64 %r, 1")
        self._fork(e.value("icmp ult i64 %r.next, %rows"), "row", "end")
        e.label("end")
        e.line("ret void")
        return self._function(
            "void @fill(ptr %lefts, ptr noalias %strip, ptr %segments, i64 %count, i64 %length, i64 %rows)"
        )

    def _fill_turned(self) -> str:
        """``turned(lefts, strip, segments, count, length, step, rows)``: copy rows, side by side for each place."""
        e, lanes, most = self.e, self.lanes, self.height
        first = e.value(f"load ptr, ptr {self._at('ptr', '%lefts', 0)}")
        near = "true"
        for r in range(1, most):  # the last of too few rows is repeated: all are asked
            row = e.value(f"load ptr, ptr {self._at('ptr', '%lefts', r)}")
            beside = e.value(f"icmp eq ptr {row}, {self._at('float', first, r)}")
            near = e.binary("and", "i1", near, e.binary("or", "i1", beside, e.value(f"icmp ule i64 %rows, {r}")))
        masks = []
        for begin in range(0, most, lanes):
            numbers = e.binary("add", e.vector("i64"), e.lanes("i64"), e.constant("i64", begin))
            masks.append(e.value(f"icmp slt {e.vector('i64')} {numbers}, {e.broadcast('i64', '%rows')}"))
        self._fork(e.value("icmp ugt i64 %count, 0"), "segment", "end")
        e.label("segment")
        e.lines.append("  %s = phi i64 [ 0, %entry ], [ %s.next, %segment.end ]")
        e.lines.append("  %to = phi ptr [ %strip, %entry ], [ %to.last, %segment.end ]")
        place = e.value(f"load i64, ptr {self._at('i64', '%segments', self._mul('%s', 2))}")
        self._jump("place")
        e.label("place")
        e.lines.append("  %l = phi i64 [ 0, %segment ], [ %l.next, %place.end ]")
        e.lines.append(f"  %at = phi i64 [ {place}, %segment ], [ %at.next, %place.end ]")
        e.lines.append("  %from = phi ptr [ %to, %segment ], [ %to.last, %place.end ]")
        self._fork(near, "side", "row")
        e.label("side")
        source = self._at("float", first, "%at")
        for number, mask in enumerate(masks):
            value = self._masked(self._at("float", source, number * lanes), mask)
            args = ((self.type, value), ("ptr", self._at("float", "%from", number * lanes)), ("i32", "4"))
            e.run(f"llvm.masked.store.{e.overload('float')}.p0", *args, (e.vector("i1"), mask))
        self._jump("place.end")
        e.label("row")
        e.lines.append("  %r = phi i64 [ 0, %place ], [ %r.next, %row ]")
        base = e.value(f"load ptr, ptr {self._at('ptr', '%lefts', '%r')}")
        value = e.value(f"load float, ptr {self._at('float', base, '%at')}, align 4")
        e.line(f"store float {value}, ptr {self._at('float', '%from', '%r')}, align 4")
        e.line("%r.next = add i64 %r, 1")
        self._fork(e.value("icmp ult i64 %r.next, %rows"), "row", "place.end")
        e.label("place.end")
        e.line(f"%to.last = getelementptr float, ptr %from, i64 {most}")
        e.line("%at.next = add i64 %at, %step")
        e.line("%l.next = add i64 %l, 1")
        self._fork(e.value("icmp ult i64 %l.next, %length"), "place", "segment.end")
        e.label("segment.end")
        e.line("%s.next = add i64 %s, 1")
        self._fork(e.value("icmp ult i64 %s.next, %count"), "segment", "end")
        e.label("end")
        e.line("ret void")
        given = "ptr %lefts, ptr noalias %strip, ptr %segments, i64 %count, i64 %length, i64 %step, i64 %rows"
        return self._function(f"void @turned{most}({given})")
