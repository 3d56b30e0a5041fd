"""Copies between a tensor and what it is joined of or cut into along an axis, as LLVM's text: one function for all sizes."""

from __future__ import annotations

from graphdock_llvm.gathered_text import SHARE
from graphdock_llvm.windows_text import REGION

__all__ = ["EACH", "HEAD", "TEXT"]

#: Numbers before those of the pieces, and of each piece.
HEAD, EACH = 8, 3
#: Bytes of rows that are one element, or two: calls to copy them would take longer than the copies.
_SMALL = (1, 2, 4, 8, 16)
_ROW = """
ROW:
  %ROW.r = phi i64 [ %begin, %piece ], [ %ROW.next, %ROW ]
  %ROW.to = phi ptr [ %to, %piece ], [ %ROW.to.next, %ROW ]
  %ROW.from = phi ptr [ %from, %piece ], [ %ROW.from.next, %ROW ]
  %ROW.element = load BITS, ptr %ROW.from, align 1
  store BITS %ROW.element, ptr %ROW.to, align 1
  %ROW.to.next = getelementptr i8, ptr %ROW.to, i64 %to.step
  %ROW.from.next = getelementptr i8, ptr %ROW.from, i64 %from.step
  %ROW.next = add i64 %ROW.r, 1
  %ROW.more = icmp ult i64 %ROW.next, %end
  br i1 %ROW.more, label %ROW, label %piece.end
"""
#: The module, whose function is ``void region(void **buffers, const int64_t *numbers)``. Its numbers are threads, the pool's
#: function, parts, rows, the bytes of a row of the whole and its slot, whether it is cut, how many pieces there are, and for each
#: piece its slot, the bytes of its row, which are some, and where that lies in the row of the whole.
TEXT = (
    """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @part(ptr %context, i64 %part) {
entry:
  %table = load ptr, ptr %context
  %n.at = getelementptr ptr, ptr %context, i64 1
  %n = load ptr, ptr %n.at
  %parts.at = getelementptr i64, ptr %n, i64 2
  %parts = load i64, ptr %parts.at
  %rows.at = getelementptr i64, ptr %n, i64 3
  %rows = load i64, ptr %rows.at
  %wide.at = getelementptr i64, ptr %n, i64 4
  %wide = load i64, ptr %wide.at
  %slot.at = getelementptr i64, ptr %n, i64 5
  %slot = load i64, ptr %slot.at
  %cut.at = getelementptr i64, ptr %n, i64 6
  %cut.number = load i64, ptr %cut.at
  %cut = icmp ne i64 %cut.number, 0
  %count.at = getelementptr i64, ptr %n, i64 7
  %count = load i64, ptr %count.at
  %whole.at = getelementptr ptr, ptr %table, i64 %slot
  %whole = load ptr, ptr %whole.at
  %begin.over = mul i64 %part, %rows
  %begin = udiv i64 %begin.over, %parts
  %following = add i64 %part, 1
  %end.over = mul i64 %following, %rows
  %end = udiv i64 %end.over, %parts
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %pieces, label %out
pieces:
  %first = getelementptr i64, ptr %n, i64 8
  br label %piece
piece:
  %p = phi i64 [ 0, %pieces ], [ %p.next, %piece.end ]
  %its = getelementptr [3 x i64], ptr %first, i64 %p
  %piece.slot = load i64, ptr %its
  %bytes.at = getelementptr i64, ptr %its, i64 1
  %bytes = load i64, ptr %bytes.at
  %place.at = getelementptr i64, ptr %its, i64 2
  %place = load i64, ptr %place.at
  %buffer.at = getelementptr ptr, ptr %table, i64 %piece.slot
  %buffer = load ptr, ptr %buffer.at
  %whole.over = mul i64 %begin, %wide
  %whole.place = add i64 %whole.over, %place
  %in.whole = getelementptr i8, ptr %whole, i64 %whole.place
  %piece.place = mul i64 %begin, %bytes
  %in.piece = getelementptr i8, ptr %buffer, i64 %piece.place
  %to = select i1 %cut, ptr %in.piece, ptr %in.whole
  %from = select i1 %cut, ptr %in.whole, ptr %in.piece
  %to.step = select i1 %cut, i64 %bytes, i64 %wide
  %from.step = select i1 %cut, i64 %wide, i64 %bytes
  switch i64 %bytes, label %row [ """
    + " ".join(f"i64 {n}, label %row{n}" for n in _SMALL)
    + """ ]
row:
  %r = phi i64 [ %begin, %piece ], [ %r.next, %row ]
  %row.to = phi ptr [ %to, %piece ], [ %to.next, %row ]
  %row.from = phi ptr [ %from, %piece ], [ %from.next, %row ]
  call void @llvm.memcpy.p0.p0.i64(ptr %row.to, ptr %row.from, i64 %bytes, i1 false)
  %to.next = getelementptr i8, ptr %row.to, i64 %to.step
  %from.next = getelementptr i8, ptr %row.from, i64 %from.step
  %r.next = add i64 %r, 1
  %r.more = icmp ult i64 %r.next, %end
  br i1 %r.more, label %row, label %piece.end
"""
    + "".join(_ROW.replace("BITS", f"i{8 * n}").replace("ROW", f"row{n}") for n in _SMALL)
    + """piece.end:
  %p.next = add i64 %p, 1
  %p.more = icmp ult i64 %p.next, %count
  br i1 %p.more, label %piece, label %out
out:
  ret void
}
"""
    + REGION
    + SHARE
)
