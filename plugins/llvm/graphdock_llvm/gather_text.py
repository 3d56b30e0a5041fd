"""Slices of a tensor along an axis, chosen by indices, as LLVM's text: one function for all sizes."""

from __future__ import annotations

import functools

from graphdock_llvm.gathered_text import SHARE
from graphdock_llvm.windows_text import REGION

__all__ = ["text"]

#: Words of a slice from which on the C library copies it.
_LONG = 16
_TEXT = (
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
  %size.at = getelementptr i64, ptr %n, i64 4
  %size = load i64, ptr %size.at
  %count.at = getelementptr i64, ptr %n, i64 5
  %count = load i64, ptr %count.at
  %words.at = getelementptr i64, ptr %n, i64 6
  %words = load i64, ptr %words.at
  %params = load ptr, ptr %table
  %indices.at = getelementptr ptr, ptr %table, i64 1
  %indices = load ptr, ptr %indices.at
  %made.at = getelementptr ptr, ptr %table, i64 3
  %made = load ptr, ptr %made.at
  %begin.over = mul i64 %part, %rows
  %begin = udiv i64 %begin.over, %parts
  %following = add i64 %part, 1
  %end.over = mul i64 %following, %rows
  %end = udiv i64 %end.over, %parts
  %bytes = mul i64 %words, BYTES
  %long = icmp uge i64 %words, LONG
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %start, label %out
start:
  %first.outer = udiv i64 %begin, %count
  %first.index = urem i64 %begin, %count
  br label %row
row:
  %r = phi i64 [ %begin, %start ], [ %r.next, %row.end ]
  %outer = phi i64 [ %first.outer, %start ], [ %outer.next, %row.end ]
  %i = phi i64 [ %first.index, %start ], [ %i.next, %row.end ]
  %index.at = getelementptr INDEX, ptr %indices, i64 %i
  %its = load INDEX, ptr %index.at
  %index = WIDEN
  %within = icmp ult i64 %index, %size
  br i1 %within, label %found, label %fail
found:
  %above = mul i64 %outer, %size
  %slice = add i64 %above, %index
  %from.at = mul i64 %slice, %words
  %from = getelementptr WORD, ptr %params, i64 %from.at
  %to.at = mul i64 %r, %words
  %to = getelementptr WORD, ptr %made, i64 %to.at
  br i1 %long, label %copy, label %few
few:
  %any = icmp ugt i64 %words, 0
  br i1 %any, label %word, label %row.end
word:
  %w = phi i64 [ 0, %few ], [ %w.next, %word ]
  %x.at = getelementptr WORD, ptr %from, i64 %w
  %x = load WORD, ptr %x.at, align 1
  %y.at = getelementptr WORD, ptr %to, i64 %w
  store WORD %x, ptr %y.at, align 1
  %w.next = add i64 %w, 1
  %w.more = icmp ult i64 %w.next, %words
  br i1 %w.more, label %word, label %row.end
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  br label %row.end
row.end:
  %i.following = add i64 %i, 1
  %i.last = icmp eq i64 %i.following, %count
  %i.next = select i1 %i.last, i64 0, i64 %i.following
  %outer.following = add i64 %outer, 1
  %outer.next = select i1 %i.last, i64 %outer.following, i64 %outer
  %r.next = add i64 %r, 1
  %r.more = icmp ult i64 %r.next, %end
  br i1 %r.more, label %row, label %out
fail:
  %status.at = getelementptr ptr, ptr %table, i64 4
  %status = load ptr, ptr %status.at
  store i64 1, ptr %status
  ret void
out:
  ret void
}
"""
    + REGION
    + SHARE
)


@functools.cache
def text(word: int, index: str) -> str:
    """The module, whose function is ``void region(void **buffers, const int64_t *numbers)``: the tensor, the indices, a buffer that
    is not read, what is made, and a status, which is 1 where an index is none of the axis's; threads, the pool's function, parts,
    slices that are made, the size of the axis, how many indices there are, and words of a slice.

    Args:
      word: bytes of a word. ``index``: LLVM's type of an index.
    """
    words = {
        "WIDEN": "add i64 %its, 0" if index == "i64" else f"sext {index} %its to i64",
        "WORD": f"i{8 * word}",
        "BYTES": str(word),
        "INDEX": index,
        "LONG": str(_LONG),
    }
    made = _TEXT
    for name, value in words.items():
        made = made.replace(name, value)
    return made
