"""Gradients of the largest numbers in windows over images, channels last, as LLVM's text: one function for all sizes.

A part makes rows of the images' gradient. It visits the windows that reach them in order, so that threads change no sum; of each it
looks through all elements for the first that is the largest, and adds to those of its own rows. A row is cleared right before the
first window that reaches it, while it is about to be read.
"""

from __future__ import annotations

import functools

from graphdock_llvm.windows_text import TOGETHER, filled

__all__ = ["text"]

_TEXT = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal void @part(ptr %context, i64 %part) {
entry:
  %table = load ptr, ptr %context
  %n.at = getelementptr ptr, ptr %context, i64 1
  %n = load ptr, ptr %n.at
  %images = load ptr, ptr %table
  %pool.at = getelementptr ptr, ptr %table, i64 1
  %pool = load ptr, ptr %pool.at
  %grad.at = getelementptr ptr, ptr %table, i64 2
  %grad = load ptr, ptr %grad.at
  %made.at = getelementptr ptr, ptr %table, i64 3
  %made = load ptr, ptr %made.at
NUMBERS
  %row.size = mul i64 %wide, %channels
  %begin.over = mul i64 %part, %rows
  %begin = udiv i64 %begin.over, %parts
  %following = add i64 %part, 1
  %end.over = mul i64 %following, %rows
  %end = udiv i64 %end.over, %parts
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %image, label %out
image:
  %r = phi i64 [ %begin, %entry ], [ %r.next, %image.end ]
  %number = udiv i64 %r, %high
  %first = urem i64 %r, %high
  %rest = sub i64 %end, %r
  %past = add i64 %first, %rest
  %last = call i64 @llvm.smin.i64(i64 %past, i64 %high)
  %image.row = mul i64 %number, %high
  %out.row = mul i64 %number, %out.high
  %first.framed = add i64 %first, %above
  %lead = sub i64 %first.framed, %window.high
  %lead.steps = sdiv i64 %lead, %step.down
  %lead.next = add i64 %lead.steps, 1
  %early = icmp slt i64 %lead, 0
  %i.first = select i1 %early, i64 0, i64 %lead.next
  %last.framed = add i64 %last, %above
  %last.up = add i64 %last.framed, %step.down
  %last.before = sub i64 %last.up, 1
  %last.steps = udiv i64 %last.before, %step.down
  %i.last = call i64 @llvm.smin.i64(i64 %last.steps, i64 %out.high)
  %any = icmp slt i64 %i.first, %i.last
  br i1 %any, label %row, label %image.end
row:
  %i = phi i64 [ %i.first, %image ], [ %i.next, %row.end ]
  %clear = phi i64 [ %first, %image ], [ %cleared, %row.end ]
  %y.over = mul i64 %i, %step.down
  %y.top = sub i64 %y.over, %above
  %y.from = call i64 @llvm.smax.i64(i64 %y.top, i64 0)
  %y.past = add i64 %y.top, %window.high
  %y.to = call i64 @llvm.smin.i64(i64 %y.past, i64 %high)
  %reached = call i64 @llvm.smin.i64(i64 %y.to, i64 %last)
  %cleared = call i64 @llvm.smax.i64(i64 %reached, i64 %clear)
  %clear.row = add i64 %image.row, %clear
  %clear.at = mul i64 %clear.row, %row.size
  %clear.from = getelementptr float, ptr %made, i64 %clear.at
  %clear.rows = sub i64 %cleared, %clear
  %clear.size = mul i64 %clear.rows, %row.size
  %clear.bytes = mul i64 %clear.size, 4
  call void @llvm.memset.p0.i64(ptr %clear.from, i8 0, i64 %clear.bytes, i1 false)
  %pool.row = add i64 %out.row, %i
  %pool.first = mul i64 %pool.row, %out.wide
  br label %pixel
pixel:
  %j = phi i64 [ 0, %row ], [ %j.next, %pixel.end ]
  %x.over = mul i64 %j, %step.right
  %x.left = sub i64 %x.over, %before
  %x.from = call i64 @llvm.smax.i64(i64 %x.left, i64 0)
  %x.past = add i64 %x.left, %window.wide
  %x.to = call i64 @llvm.smin.i64(i64 %x.past, i64 %wide)
  %pool.pixel = add i64 %pool.first, %j
  %pool.over = mul i64 %pool.pixel, %channels
  br label %channel
channel:
  %c = phi i64 [ 0, %pixel ], [ %c.next, %channel.end ]
  %left = sub i64 %channels, %c
  %left.first = insertelement <LANES x i64> poison, i64 %left, i64 0
  %left.all = shufflevector <LANES x i64> %left.first, <LANES x i64> poison, <LANES x i32> zeroinitializer
MASKS
  %pool.place = add i64 %pool.over, %c
  %pool.here = getelementptr float, ptr %pool, i64 %pool.place
  %grad.here = getelementptr float, ptr %grad, i64 %pool.place
LOADS
  br label %line
line:
  %y = phi i64 [ %y.from, %channel ], [ %y.next, %line.end ]
BEGINS
  %behind = icmp sge i64 %y, %first
  %ahead = icmp slt i64 %y, %last
  %own = and i1 %behind, %ahead
  %own.first = insertelement <LANES x i1> poison, i1 %own, i64 0
  %own.all = shufflevector <LANES x i1> %own.first, <LANES x i1> poison, <LANES x i32> zeroinitializer
  %from.row = add i64 %image.row, %y
  %from.first = mul i64 %from.row, %wide
  br label %tap
tap:
  %x = phi i64 [ %x.from, %line ], [ %x.next, %tap ]
LOOKED
  %from.pixel = add i64 %from.first, %x
  %from.over = mul i64 %from.pixel, %channels
  %from.at = add i64 %from.over, %c
  %from = getelementptr float, ptr %images, i64 %from.at
  %to = getelementptr float, ptr %made, i64 %from.at
TAPS
  %x.next = add i64 %x, 1
  %x.more = icmp slt i64 %x.next, %x.to
  br i1 %x.more, label %tap, label %line.end
line.end:
  %y.next = add i64 %y, 1
  %y.more = icmp slt i64 %y.next, %y.to
  br i1 %y.more, label %line, label %channel.end
channel.end:
  %c.next = add i64 %c, TOGETHER
  %c.more = icmp ult i64 %c.next, %channels
  br i1 %c.more, label %channel, label %pixel.end
pixel.end:
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, %out.wide
  br i1 %j.more, label %pixel, label %row.end
row.end:
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %i.last
  br i1 %i.more, label %row, label %image.end
image.end:
  %unreached = phi i64 [ %first, %image ], [ %cleared, %row.end ]
  %none.row = add i64 %image.row, %unreached
  %none.at = mul i64 %none.row, %row.size
  %none.from = getelementptr float, ptr %made, i64 %none.at
  %none.rows = sub i64 %last, %unreached
  %none.size = mul i64 %none.rows, %row.size
  %none.bytes = mul i64 %none.size, 4
  call void @llvm.memset.p0.i64(ptr %none.from, i8 0, i64 %none.bytes, i1 false)
  %r.next = add i64 %image.row, %last
  %r.more = icmp ult i64 %r.next, %end
  br i1 %r.more, label %image, label %out
out:
  ret void
}
"""


@functools.cache
def text(lanes: int) -> str:
    """The module, whose function is ``void region(void **buffers, const int64_t *numbers)``.

    Its buffers are images, what was made of them, its gradient and that of the images; numbers are those of
    :func:`graphdock_llvm.windows_text.text`, where the rows are the images'.
    """
    vector, mask = f"<{lanes} x float>", f"<{lanes} x i1>"
    vectors = range(TOGETHER)
    load = f"call {vector} @llvm.masked.load.v{lanes}f32.p0(ptr"
    lines = {
        "LOADS": [
            f"%{name}.at{v} = getelementptr float, ptr %{name}.here, i64 {v * lanes}\n"
            f"  %{name}{v} = {load} %{name}.at{v}, i32 4, {mask} %mask{v}, {vector} zeroinitializer)"
            for v in vectors
            for name in ("pool", "grad")
        ],
        "BEGINS": [f"%begin{v} = phi {mask} [ %mask{v}, %channel ], [ %still{v}, %line.end ]" for v in vectors],
        "LOOKED": [f"%open{v} = phi {mask} [ %begin{v}, %line ], [ %still{v}, %tap ]" for v in vectors],
        "TAPS": [
            f"%from{v} = getelementptr float, ptr %from, i64 {v * lanes}\n"
            f"  %to{v} = getelementptr float, ptr %to, i64 {v * lanes}\n"
            f"  %value{v} = {load} %from{v}, i32 4, {mask} %mask{v}, {vector} zeroinitializer)\n"
            f"  %same{v} = fcmp oeq {vector} %value{v}, %pool{v}\n"
            f"  %found{v} = and {mask} %same{v}, %open{v}\n"
            f"  %still{v} = xor {mask} %found{v}, %open{v}\n"
            f"  %added{v} = and {mask} %found{v}, %own.all\n"
            f"  %old{v} = {load} %to{v}, i32 4, {mask} %added{v}, {vector} zeroinitializer)\n"
            f"  %sum{v} = fadd {vector} %old{v}, %grad{v}\n"
            f"  call void @llvm.masked.store.v{lanes}f32.p0({vector} %sum{v}, ptr %to{v}, i32 4, {mask} %added{v})"
            for v in vectors
        ],
    }
    return filled(_TEXT, lines, lanes)
