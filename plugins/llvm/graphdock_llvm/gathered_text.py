"""The function of :mod:`graphdock_llvm.gathered` as LLVM's text."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.gathered_copies import LONGEST, ROWS, TOGETHER
from graphdock_llvm.gathered_tiles import Tiles

__all__ = ["EACH", "HEAD", "SHARE", "text"]

#: Numbers before those of problems, and of each of them, of which COUNT and PLACE are its segments and where these are.
HEAD, EACH = 26, 20


@functools.cache
def text(lanes: int) -> str:
    """The module, whose function is ``void region(void **buffers, const int64_t *numbers)``."""
    e = Emitter(lanes)
    parts = [_Print(e, lanes, vectors) for vectors in (1, 2, 3)]
    bodies = [body for part in parts for body in part.functions()]
    declarations = "\n".join(e.declarations.values())
    return "\n".join([declarations, *bodies, _PAD, SHARE, _REGION])


_PAD = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @pad(ptr %context, i64 %part) {
entry:
  %table = load ptr, ptr %context
  %n.at = getelementptr ptr, ptr %context, i64 1
  %n = load ptr, ptr %n.at
  %parts.at = getelementptr i64, ptr %n, i64 9
  %parts = load i64, ptr %parts.at
  %rows.at = getelementptr i64, ptr %n, i64 10
  %rows = load i64, ptr %rows.at
  %high.at = getelementptr i64, ptr %n, i64 11
  %high = load i64, ptr %high.at
  %images.at = getelementptr i64, ptr %n, i64 12
  %images = load i64, ptr %images.at
  %top.at = getelementptr i64, ptr %n, i64 13
  %top = load i64, ptr %top.at
  %before.at = getelementptr i64, ptr %n, i64 14
  %before = load i64, ptr %before.at
  %middle.at = getelementptr i64, ptr %n, i64 15
  %middle = load i64, ptr %middle.at
  %behind.at = getelementptr i64, ptr %n, i64 16
  %behind = load i64, ptr %behind.at
  %slot.at = getelementptr i64, ptr %n, i64 17
  %slot = load i64, ptr %slot.at
  %source.at = getelementptr ptr, ptr %table, i64 %slot
  %source = load ptr, ptr %source.at
  %left.at = getelementptr i64, ptr %n, i64 4
  %left = load i64, ptr %left.at
  %target.at = getelementptr ptr, ptr %table, i64 %left
  %target = load ptr, ptr %target.at
  %sides = add i64 %before, %behind
  %wide = add i64 %sides, %middle
  %all.bytes = mul i64 %wide, 4
  %before.bytes = mul i64 %before, 4
  %middle.bytes = mul i64 %middle, 4
  %behind.bytes = mul i64 %behind, 4
  %first.over = mul i64 %part, %rows
  %first = udiv i64 %first.over, %parts
  %following = add i64 %part, 1
  %end.over = mul i64 %following, %rows
  %end = udiv i64 %end.over, %parts
  br label %row
row:
  %r = phi i64 [ %first, %entry ], [ %r.next, %done ]
  %more = icmp ult i64 %r, %end
  br i1 %more, label %visit, label %out
visit:
  %image = udiv i64 %r, %high
  %inside = urem i64 %r, %high
  %h = sub i64 %inside, %top
  %real = icmp ult i64 %h, %images
  %to.at = mul i64 %r, %wide
  %to = getelementptr float, ptr %target, i64 %to.at
  br i1 %real, label %copy, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 %all.bytes, i1 false)
  br label %done
copy:
  %from.image = mul i64 %image, %images
  %from.row = add i64 %from.image, %h
  %from.at = mul i64 %from.row, %middle
  %from = getelementptr float, ptr %source, i64 %from.at
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 %before.bytes, i1 false)
  %to.middle = getelementptr float, ptr %to, i64 %before
  call void @llvm.memcpy.p0.p0.i64(ptr %to.middle, ptr %from, i64 %middle.bytes, i1 false)
  %to.behind = getelementptr float, ptr %to.middle, i64 %middle
  call void @llvm.memset.p0.i64(ptr %to.behind, i8 0, i64 %behind.bytes, i1 false)
  br label %done
done:
  %r.next = add i64 %r, 1
  br label %row
out:
  ret void
}
"""

#: ``share(function, context, parts, numbers)``: all parts of a function, by the pool where the first number, of threads, says so.
SHARE = """
define internal void @share(ptr %function, ptr %context, i64 %parts, ptr %n) {
entry:
  %threads = load i64, ptr %n
  %several = icmp ugt i64 %threads, 1
  br i1 %several, label %shared, label %look
shared:
  %run.at = getelementptr i64, ptr %n, i64 1
  %run = load ptr, ptr %run.at
  call void %run(ptr %function, ptr %context, i64 %parts, i64 %threads)
  ret void
look:
  %part = phi i64 [ 0, %entry ], [ %next, %alone ]
  %more = icmp ult i64 %part, %parts
  br i1 %more, label %alone, label %end
alone:
  call void %function(ptr %context, i64 %part)
  %next = add i64 %part, 1
  br label %look
end:
  ret void
}
"""

_REGION = """
define internal void @compute(ptr %table, ptr %n) {
entry:
  %context = alloca [2 x ptr]
  store ptr %table, ptr %context
  %n.at = getelementptr ptr, ptr %context, i64 1
  store ptr %n, ptr %n.at
  %pads.at = getelementptr i64, ptr %n, i64 9
  %pads = load i64, ptr %pads.at
  %framed = icmp ugt i64 %pads, 0
  br i1 %framed, label %frame, label %compute
frame:
  call void @share(ptr @pad, ptr %context, i64 %pads, ptr %n)
  br label %compute
compute:
  %parts.at = getelementptr i64, ptr %n, i64 2
  %parts = load i64, ptr %parts.at
  %vectors.at = getelementptr i64, ptr %n, i64 18
  %vectors = load i64, ptr %vectors.at
  %one = icmp eq i64 %vectors, 1
  %two = icmp eq i64 %vectors, 2
  %some = select i1 %two, ptr @part2, ptr @part3
  %function = select i1 %one, ptr @part1, ptr %some
  call void @share(ptr %function, ptr %context, i64 %parts, ptr %n)
  ret void
}

; segments of several matrices: how far each lies from the first one is added to its segments' places
define internal void @apart(ptr %table, ptr %n) {
entry:
  %size.at = getelementptr i64, ptr %n, i64 25
  %size = load i64, ptr %size.at
  %own = alloca i64, i64 %size
  %bytes = mul i64 %size, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %n, i64 %bytes, i1 false)
  %matrices.at = getelementptr i64, ptr %n, i64 24
  %matrices = load i64, ptr %matrices.at
  %count.at = getelementptr i64, ptr %n, i64 COUNT
  %count = load i64, ptr %count.at
  %each = udiv i64 %count, %matrices
  %place.at = getelementptr i64, ptr %n, i64 PLACE
  %place = load i64, ptr %place.at
  %segments = getelementptr i64, ptr %own, i64 %place
  %left.at = getelementptr i64, ptr %n, i64 4
  %left = load i64, ptr %left.at
  %lefts = getelementptr ptr, ptr %table, i64 %left
  %first.left = load i64, ptr %lefts
  %right.at = getelementptr i64, ptr %n, i64 5
  %right = load i64, ptr %right.at
  %rights = getelementptr ptr, ptr %table, i64 %right
  %first.right = load i64, ptr %rights
  br label %segment
segment:
  %s = phi i64 [ 0, %entry ], [ %s.next, %segment ]
  %matrix = udiv i64 %s, %each
  %its.left.at = getelementptr ptr, ptr %lefts, i64 %matrix
  %its.left = load i64, ptr %its.left.at
  %left.bytes = sub i64 %its.left, %first.left
  %left.over = ashr exact i64 %left.bytes, 2
  %its.right.at = getelementptr ptr, ptr %rights, i64 %matrix
  %its.right = load i64, ptr %its.right.at
  %right.bytes = sub i64 %its.right, %first.right
  %right.over = ashr exact i64 %right.bytes, 2
  %pair = getelementptr [2 x i64], ptr %segments, i64 %s
  %on.left = load i64, ptr %pair
  %now.left = add i64 %on.left, %left.over
  store i64 %now.left, ptr %pair
  %second = getelementptr i64, ptr %pair, i64 1
  %on.right = load i64, ptr %second
  %now.right = add i64 %on.right, %right.over
  store i64 %now.right, ptr %second
  %s.next = add i64 %s, 1
  %more = icmp ult i64 %s.next, %count
  br i1 %more, label %segment, label %end
end:
  call void @compute(ptr %table, ptr %own)
  ret void
}

; numbers that say no matrices say how many others there are, and where these are; and, where a frame's memory is not among the
; buffers, how many these are, and where that is
define void @region(ptr %table, ptr %n) {
entry:
  %matrices.at = getelementptr i64, ptr %n, i64 24
  %matrices = load i64, ptr %matrices.at
  %elsewhere = icmp eq i64 %matrices, 0
  br i1 %elsewhere, label %look, label %here
here:
  %several = icmp ugt i64 %matrices, 1
  %function = select i1 %several, ptr @apart, ptr @compute
  call void %function(ptr %table, ptr %n)
  ret void
look:
  %frame.at = getelementptr i64, ptr %n, i64 23
  %frame = load i64, ptr %frame.at
  %framed = icmp ne i64 %frame, 0
  br i1 %framed, label %copy, label %others
copy:
  %buffers.at = getelementptr i64, ptr %n, i64 22
  %buffers = load i64, ptr %buffers.at
  %all = add i64 %buffers, 1
  %own = alloca i64, i64 %all
  %bytes = mul i64 %buffers, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %table, i64 %bytes, i1 false)
  %last = getelementptr i64, ptr %own, i64 %buffers
  store i64 %frame, ptr %last
  br label %others
others:
  %given = phi ptr [ %table, %look ], [ %own, %copy ]
  br label %next.others
next.others:
  %i = phi i64 [ 1, %others ], [ %next, %other ]
  %count = load i64, ptr %n
  %more = icmp ule i64 %i, %count
  br i1 %more, label %other, label %end
other:
  %its.at = getelementptr ptr, ptr %n, i64 %i
  %its = load ptr, ptr %its.at
  call void @region(ptr %given, ptr %its)
  %next = add i64 %i, 1
  br label %next.others
end:
  ret void
}
""".replace("COUNT", str(HEAD + 11)).replace("PLACE", str(HEAD + 12))


class _Print(Tiles):
    """Prints all functions for panels of so many vectors."""

    def functions(self) -> Iterator[str]:
        if self.vectors == 1:
            yield self._fill()
        if self.vectors == 1 or ROWS[self.lanes][self.vectors - 2] != self.height:
            yield self._fill_turned()
        yield self._pack()
        yield self._pack_whole()
        for turned in (False, True):
            yield self._block(self.height, turned)
            yield self._block(self.few, turned)
        yield self._finish()
        yield self._part()

    # -- a part

    def _part(self) -> str:
        """``part(context, number)``: some panels of a copy of a problem, and a chunk of its rows."""
        e, v, height = self.e, self.vectors, self.height
        size = (LONGEST + self.lanes) * self.wide
        panel = e.value(f"alloca [{TOGETHER[v - 1] * size} x float], align 64")
        # behind its last row there is room for what is copied with it
        strip = e.value(f"alloca [{height * (LONGEST + self.lanes) + 4 * self.lanes} x float], align 64")
        tile = e.value(f"alloca [{height * self.wide} x float], align 64")
        lefts, outs = e.value(f"alloca [{height} x ptr]"), e.value(f"alloca [{height} x i64]")
        state = [
            e.value("alloca i64") for _ in range(4)
        ]  # places on the left and in the output, the two quicker counts
        e.line("%table = load ptr, ptr %context")
        e.line(f"%n = load ptr, ptr {self._at('ptr', '%context', 1)}")
        chunks, copies, panels = self._number(3), self._number(19), self._number(20)
        chunk, rest = e.binary("urem", "i64", "%part", chunks), e.binary("udiv", "i64", "%part", chunks)
        j, rest = e.binary("urem", "i64", rest, panels), e.binary("udiv", "i64", rest, panels)
        copy, problem = e.binary("urem", "i64", rest, copies), e.binary("udiv", "i64", rest, copies)
        at = self._at("i64", "%n", self._add(self._mul(problem, EACH), HEAD))
        its = [self._number(i, at) for i in range(EACH - 1)]
        counts, steps, out_steps = its[:3], its[3:6], its[7:10]
        segment_count, segment_at, length, step, along, across, all_columns, group = its[11:]
        triple = self._at("i64", "%n", self._add(self._number(21), self._mul(copy, 3)))
        added = [self._number(i, triple) for i in range(3)]
        together = self._number(23)
        first = self._mul(self._mul(j, together), self.wide)
        bases = []
        for slot, place in zip((4, 5, 6), (its[6], self._mul(first, across), self._add(its[10], first)), strict=True):
            base = e.value(f"load ptr, ptr {self._at('ptr', '%table', self._number(slot))}")
            bases.append(self._at("float", self._at("float", base, place), added[slot - 4]))
        left, right, out = bases
        number = self._number(7)
        biased = e.value(f"icmp sge i64 {number}, 0")
        number = e.value(f"select i1 {biased}, i64 {number}, i64 0")
        bias = self._at("float", e.value(f"load ptr, ptr {self._at('ptr', '%table', number)}"), first)
        flags = self._number(8)
        relu, onto = (e.value(f"icmp ne i64 {e.binary('and', 'i64', flags, str(bit))}, 0") for bit in (1, 2))
        turned = e.value(f"icmp ne i64 {step}, 1")
        columns = e.binary("sub", "i64", all_columns, first)
        whole = e.binary("udiv", "i64", self._add(columns, self.wide - 1), str(self.wide))
        its_panels = self._least(together, whole)
        rows = self._mul(self._mul(counts[0], counts[1]), counts[2])
        blocks = e.binary("udiv", "i64", self._add(rows, height - 1), str(height))
        begin, end = (
            self._mul(e.binary("udiv", "i64", self._mul(c, blocks), chunks), height)
            for c in (chunk, self._add(chunk, 1))
        )
        end = self._least(end, rows)
        starts = self._start(begin, counts, (steps, out_steps))
        self._fork(e.value(f"icmp ult i64 {begin}, {end}"), "pass", "out")
        e.label("pass")
        e.lines.append("  %g = phi i64 [ 0, %entry ], [ %g.next, %pass.end ]")
        segments = self._at("i64", "%n", self._add(segment_at, self._mul("%g", 2)))
        e.line(f"%g.next = add i64 %g, {group}")
        many = self._least(group, e.binary("sub", "i64", segment_count, "%g"))
        places, given = self._mul(many, length), f"ptr {segments}, i64 {many}, i64 {length}"
        again = e.binary("or", "i1", onto, e.value("icmp ugt i64 %g, 0"))
        last = e.value(f"icmp uge i64 %g.next, {segment_count}")
        ends = [e.binary("and", "i1", flag, last) for flag in (biased, relu)]
        for slot_, start in zip(state, starts, strict=True):
            e.line(f"store i64 {start}, ptr {slot_}")
        packed = self._least(its_panels, e.binary("udiv", "i64", columns, str(self.wide)))
        packed = e.value(f"select i1 {e.value(f'icmp eq i64 {across}, 1')}, i64 {packed}, i64 0")
        self._fork(e.value(f"icmp ugt i64 {packed}, 0"), "whole", "some")
        e.label("whole")
        e.line(f"call void @whole{v}(ptr {right}, ptr {panel}, {given}, i64 {along}, i64 {packed})")
        self._jump("some")
        e.label("some")
        self._fork(e.value(f"icmp ult i64 {packed}, {its_panels}"), "pack", "begin")
        e.label("pack")
        e.lines.append(f"  %j = phi i64 [ {packed}, %some ], [ %j.next, %pack ]")
        over = self._mul("%j", self.wide)
        source, target = (
            self._at("float", right, self._mul(over, across)),
            self._at("float", panel, self._mul("%j", size)),
        )
        few = e.binary("sub", "i64", columns, over)
        e.line(f"call void @pack{v}(ptr {source}, ptr {target}, {given}, i64 {along}, i64 {across}, i64 {few})")
        e.line("%j.next = add i64 %j, 1")
        self._fork(e.value(f"icmp ult i64 %j.next, {its_panels}"), "pack", "begin")
        e.label("begin")
        self._jump("block")
        e.label("block")
        e.lines.append(f"  %row = phi i64 [ {begin}, %begin ], [ %row.next, %block.end ]")
        remaining = e.binary("sub", "i64", end, "%row")
        whole = e.value(f"icmp uge i64 {remaining}, {height}")
        taken = e.value(f"select i1 {whole}, i64 {height}, i64 {self.few}")
        valid = self._least(remaining, taken)
        self._rows(state, (left, lefts, outs), counts, (steps, out_steps), (valid, end, taken))
        e.label("fill")
        self._fork(turned, "turn", "copy")
        e.label("turn")
        e.line(f"call void @turned{height}(ptr {lefts}, ptr {strip}, {given}, i64 {step}, i64 {taken})")
        self._jump("panel")
        e.label("copy")
        e.line(f"call void @fill(ptr {lefts}, ptr {strip}, {given}, i64 {taken})")
        self._jump("panel")
        e.label("panel")
        e.lines.append("  %m = phi i64 [ 0, %turn ], [ 0, %copy ], [ %m.next, %panel.end ]")
        here, over = self._at("float", panel, self._mul("%m", size)), self._mul("%m", self.wide)
        names = [f"@block{v}x{count}{kind}" for kind in ("", "turned") for count in (height, self.few)]
        kinds = [e.value(f"select i1 {whole}, ptr {a}, ptr {b}") for a, b in (names[:2], names[2:])]
        block = e.value(f"select i1 {turned}, ptr {kinds[1]}, ptr {kinds[0]}")
        few, there = e.binary("sub", "i64", columns, over), self._at("float", out, over)
        full = e.value(f"icmp sge i64 {few}, {self.wide}")
        direct = e.binary("and", "i1", full, e.binary("xor", "i1", e.binary("or", "i1", *ends), "true"))
        e.line(
            f"call void {block}(ptr {strip}, ptr {here}, i64 {places}, ptr {tile}, ptr {there}, ptr {outs}, i1 {again}, "
            f"i1 {direct})"
        )
        self._fork(direct, "panel.end", "finish")
        e.label("finish")
        e.line(
            f"call void @finish{v}(ptr {there}, ptr {outs}, ptr {tile}, i64 {valid}, i64 {few}, "
            f"ptr {self._at('float', bias, over)}, i1 {again}, i1 {ends[0]}, i1 {ends[1]})"
        )
        self._jump("panel.end")
        e.label("panel.end")
        e.line("%m.next = add i64 %m, 1")
        self._fork(e.value(f"icmp ult i64 %m.next, {its_panels}"), "panel", "block.end")
        e.label("block.end")
        e.line(f"%row.next = add i64 %row, {taken}")
        self._fork(e.value(f"icmp ult i64 %row.next, {end}"), "block", "pass.end")
        e.label("pass.end")
        self._fork(e.value(f"icmp ult i64 %g.next, {segment_count}"), "pass", "out")
        e.label("out")
        e.line("ret void")
        return self._function(f"void @part{v}(ptr %context, i64 %part)")

    def _start(self, row: str, counts: Sequence[str], steps: Sequence[Sequence[str]]) -> list[str]:
        """Place of a row on the left and in the output, and its two quicker numbers."""
        e = self.e
        image = self._mul(counts[1], counts[2])
        outer, inner = e.binary("udiv", "i64", row, image), e.binary("urem", "i64", row, image)
        middle, inner = e.binary("udiv", "i64", inner, counts[2]), e.binary("urem", "i64", inner, counts[2])
        starts = []
        for s in steps:
            whole = self._add(self._mul(outer, s[0]), self._mul(middle, s[1]))
            starts.append(self._add(whole, self._mul(inner, s[2])))
        return [*starts, middle, inner]

    def _rows(
        self,
        state: Sequence[str],
        where: tuple[str, str, str],
        counts: Sequence[str],
        steps: Sequence[Sequence[str]],
        bounds: tuple[str, str, str],
    ) -> None:
        """Write where the next rows lie; behind the last one, its place again. Goes on at ``fill``."""
        e, (left, lefts, outs), (valid, end, taken) = self.e, where, bounds
        self._jump("address")
        e.label("address")
        e.lines.append("  %r = phi i64 [ 0, %block ], [ %r.next, %address ]")
        held = [e.value(f"load i64, ptr {slot}") for slot in state]
        e.line(f"store ptr {self._at('float', left, held[0])}, ptr {self._at('ptr', lefts, '%r')}")
        e.line(f"store i64 {held[1]}, ptr {self._at('i64', outs, '%r')}")
        e.line("%r.next = add i64 %r, 1")
        goes_on = e.value(f"icmp ult i64 %r.next, {valid}")
        moves = e.binary("or", "i1", goes_on, e.value(f"icmp ult i64 {self._add('%row', '%r.next')}, {end}"))
        on, up = self._add(held[3], 1), self._add(held[2], 1)
        wraps = e.value(f"icmp eq i64 {on}, {counts[2]}")
        over = e.binary("and", "i1", wraps, e.value(f"icmp eq i64 {up}, {counts[1]}"))
        moved = []
        for place, s in zip(held[:2], steps, strict=True):
            small = e.binary("sub", "i64", s[1], self._mul(counts[2], s[2]))
            large = e.binary("sub", "i64", s[0], self._mul(counts[1], s[1]))
            by = self._add(s[2], e.value(f"select i1 {wraps}, i64 {small}, i64 0"))
            moved.append(self._add(self._add(place, by), e.value(f"select i1 {over}, i64 {large}, i64 0")))
        up = e.value(f"select i1 {wraps}, i64 {up}, i64 {held[2]}")
        moved.append(e.value(f"select i1 {over}, i64 0, i64 {up}"))
        moved.append(e.value(f"select i1 {wraps}, i64 0, i64 {on}"))
        for slot, old, new in zip(state, held, moved, strict=True):
            e.line(f"store i64 {e.value(f'select i1 {moves}, i64 {new}, i64 {old}')}, ptr {slot}")
        self._fork(e.value(f"icmp ult i64 %r.next, {taken}"), "address", "fill")
