"""The largest numbers in windows over images, channels last, as LLVM's text: one function for all sizes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from graphdock_llvm.gathered_text import SHARE

__all__ = ["NUMBERS", "REGION", "TOGETHER", "filled", "text"]

#: Vectors of channels that are looked at together.
TOGETHER = 4

_DECLARATIONS = """
declare <LANES x float> @llvm.masked.load.vLANESf32.p0(ptr, i32, <LANES x i1>, <LANES x float>)
declare void @llvm.masked.store.vLANESf32.p0(<LANES x float>, ptr, i32, <LANES x i1>)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
"""

_TEXT = """
define internal void @part(ptr %context, i64 %part) {
entry:
  %table = load ptr, ptr %context
  %n.at = getelementptr ptr, ptr %context, i64 1
  %n = load ptr, ptr %n.at
  %images = load ptr, ptr %table
  %made.at = getelementptr ptr, ptr %table, i64 1
  %made = load ptr, ptr %made.at
NUMBERS
  %begin.over = mul i64 %part, %rows
  %begin = udiv i64 %begin.over, %parts
  %following = add i64 %part, 1
  %end.over = mul i64 %following, %rows
  %end = udiv i64 %end.over, %parts
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %row, label %out
row:
  %r = phi i64 [ %begin, %entry ], [ %r.next, %row.end ]
  %image = udiv i64 %r, %out.high
  %i = urem i64 %r, %out.high
  %y.over = mul i64 %i, %step.down
  %y.top = sub i64 %y.over, %above
  %y.from = call i64 @llvm.smax.i64(i64 %y.top, i64 0)
  %y.past = add i64 %y.top, %window.high
  %y.to = call i64 @llvm.smin.i64(i64 %y.past, i64 %high)
  %image.row = mul i64 %image, %high
  br label %pixel
pixel:
  %j = phi i64 [ 0, %row ], [ %j.next, %pixel.end ]
  %x.over = mul i64 %j, %step.right
  %x.left = sub i64 %x.over, %before
  %x.from = call i64 @llvm.smax.i64(i64 %x.left, i64 0)
  %x.past = add i64 %x.left, %window.wide
  %x.to = call i64 @llvm.smin.i64(i64 %x.past, i64 %wide)
  %to.row = mul i64 %r, %out.wide
  %to.pixel = add i64 %to.row, %j
  %to.at = mul i64 %to.pixel, %channels
  %to = getelementptr float, ptr %made, i64 %to.at
  br label %channel
channel:
  %c = phi i64 [ 0, %pixel ], [ %c.next, %channel.end ]
  %left = sub i64 %channels, %c
  %left.first = insertelement <LANES x i64> poison, i64 %left, i64 0
  %left.all = shufflevector <LANES x i64> %left.first, <LANES x i64> poison, <LANES x i32> zeroinitializer
MASKS
  br label %line
line:
  %y = phi i64 [ %y.from, %channel ], [ %y.next, %line.end ]
BEGINS
  %from.row = add i64 %image.row, %y
  %from.first = mul i64 %from.row, %wide
  br label %tap
tap:
  %x = phi i64 [ %x.from, %line ], [ %x.next, %tap ]
SUMS
  %from.pixel = add i64 %from.first, %x
  %from.over = mul i64 %from.pixel, %channels
  %from.at = add i64 %from.over, %c
  %from = getelementptr float, ptr %images, i64 %from.at
TAPS
  %x.next = add i64 %x, 1
  %x.more = icmp slt i64 %x.next, %x.to
  br i1 %x.more, label %tap, label %line.end
line.end:
  %y.next = add i64 %y, 1
  %y.more = icmp slt i64 %y.next, %y.to
  br i1 %y.more, label %line, label %channel.end
channel.end:
  %to.channel = getelementptr float, ptr %to, i64 %c
STORES
  %c.next = add i64 %c, TOGETHER
  %c.more = icmp ult i64 %c.next, %channels
  br i1 %c.more, label %channel, label %pixel.end
pixel.end:
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, %out.wide
  br i1 %j.more, label %pixel, label %row.end
row.end:
  %r.next = add i64 %r, 1
  %r.more = icmp ult i64 %r.next, %end
  br i1 %r.more, label %row, label %out
out:
  ret void
}
"""

#: The function that has all parts computed, as many as the third number says.
REGION = """
define void @region(ptr %table, ptr %n) {
entry:
  %context = alloca [2 x ptr]
  store ptr %table, ptr %context
  %n.at = getelementptr ptr, ptr %context, i64 1
  store ptr %n, ptr %n.at
  %parts.at = getelementptr i64, ptr %n, i64 2
  %parts = load i64, ptr %parts.at
  call void @share(ptr @part, ptr %context, i64 %parts, ptr %n)
  ret void
}
"""
#: Numbers behind threads and the pool's function, in order.
NUMBERS = (
    "parts", "rows", "out.high", "out.wide", "high", "wide", "channels", "window.high", "window.wide", "step.down",
    "step.right", "above", "before",
)  # fmt: skip


@functools.cache
def text(lanes: int) -> str:
    """The module, whose function is ``void region(void **buffers, const int64_t *numbers)``.

    Its buffers are images and what is made of them; numbers are threads, the pool's function, parts, rows of all that is made, its
    sides, those of the images, channels, the window's sides, its steps, and places of padding above and before the first pixel.
    """
    vector, mask = f"<{lanes} x float>", f"<{lanes} x i1>"
    vectors = range(TOGETHER)
    lowest = "splat (float 0xFFF0000000000000)"
    load = f"call {vector} @llvm.masked.load.v{lanes}f32.p0(ptr %from"
    lines = {
        "BEGINS": [f"%begin{v} = phi {vector} [ {lowest}, %channel ], [ %most{v}, %line.end ]" for v in vectors],
        "SUMS": [f"%sum{v} = phi {vector} [ %begin{v}, %line ], [ %most{v}, %tap ]" for v in vectors],
        "TAPS": [
            f"%from{v} = getelementptr float, ptr %from, i64 {v * lanes}\n"
            f"  %value{v} = {load}{v}, i32 4, {mask} %mask{v}, {vector} zeroinitializer)\n"
            # one instruction, whose result is the sum where either is NaN; a value that is NaN is taken after that
            f"  %over{v} = fcmp ogt {vector} %value{v}, %sum{v}\n"
            f"  %larger{v} = select {mask} %over{v}, {vector} %value{v}, {vector} %sum{v}\n"
            f"  %none{v} = fcmp uno {vector} %value{v}, zeroinitializer\n"
            f"  %most{v} = select {mask} %none{v}, {vector} %value{v}, {vector} %larger{v}"
            for v in vectors
        ],
        "STORES": [
            f"%to{v} = getelementptr float, ptr %to.channel, i64 {v * lanes}\n"
            f"  call void @llvm.masked.store.v{lanes}f32.p0({vector} %most{v}, ptr %to{v}, i32 4, {mask} %mask{v})"
            for v in vectors
        ],
    }
    return filled(_TEXT, lines, lanes)


def filled(text: str, lines: Mapping[str, Sequence[str]], lanes: int) -> str:
    """A module of a text in which words stand for lines, and of the function that calls its parts."""
    numbers = [
        f"%{name}.at = getelementptr i64, ptr %n, i64 {i}\n  %{name} = load i64, ptr %{name}.at"
        for i, name in enumerate(NUMBERS, 2)
    ]
    masks = [
        f"%mask{v} = icmp slt <{lanes} x i64> <{', '.join(f'i64 {v * lanes + i}' for i in range(lanes))}>, %left.all"
        for v in range(TOGETHER)
    ]
    whole = _DECLARATIONS + text + REGION + SHARE
    for word, texts in {"NUMBERS": numbers, "MASKS": masks, **lines}.items():
        whole = whole.replace(f"\n{word}\n", "\n  " + "\n  ".join(texts) + "\n")
    return whole.replace("LANES", str(lanes)).replace("TOGETHER", str(TOGETHER * lanes))
