"""Copies between a tensor and what it is joined of or cut into along an axis, as LLVM's text: one function for all sizes."""

from __future__ import annotations

from graphdock_llvm.gathered_text import SHARE
from graphdock_llvm.windows_text import REGION

__all__ = ["TEXT"]

#: The module, whose function is ``void region(void **buffers, const int64_t *numbers)``. Its numbers are threads, the pool's
#: function, parts, rows, the bytes of a row of the whole and its slot, whether it is cut, how many pieces there are, and for each
#: piece its slot, the bytes of its row, and where that lies in the row of the whole.
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
  br label %row
row:
  %r = phi i64 [ %begin, %piece ], [ %r.next, %row ]
  %whole.over = mul i64 %r, %wide
  %whole.place = add i64 %whole.over, %place
  %in.whole = getelementptr i8, ptr %whole, i64 %whole.place
  %piece.place = mul i64 %r, %bytes
  %in.piece = getelementptr i8, ptr %buffer, i64 %piece.place
  %to = select i1 %cut, ptr %in.piece, ptr %in.whole
  %from = select i1 %cut, ptr %in.whole, ptr %in.piece
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  %r.next = add i64 %r, 1
  %r.more = icmp ult i64 %r.next, %end
  br i1 %r.more, label %row, label %piece.end
piece.end:
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
