"""Sums of rows by number, in the order of the rows, as LLVM's text: one function for all sizes."""

from __future__ import annotations

import functools

__all__ = ["text"]

_TEXT = """
declare VECTOR @llvm.masked.load.vLANESFLOAT.p0(ptr, i32, <LANES x i1>, VECTOR)
declare void @llvm.masked.store.vLANESFLOAT.p0(VECTOR, ptr, i32, <LANES x i1>)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @region(ptr %table, ptr %n) {
entry:
  %rows = load i64, ptr %n
  %wide.at = getelementptr i64, ptr %n, i64 1
  %wide = load i64, ptr %wide.at
  %size.at = getelementptr i64, ptr %n, i64 2
  %size = load i64, ptr %size.at
  %data = load ptr, ptr %table
  %numbers.at = getelementptr ptr, ptr %table, i64 1
  %numbers = load ptr, ptr %numbers.at
  %made.at = getelementptr ptr, ptr %table, i64 3
  %made = load ptr, ptr %made.at
  %segments.at = getelementptr i64, ptr %n, i64 3
  %segments = load i64, ptr %segments.at
  call void @llvm.memset.p0.i64(ptr %made, i8 0, i64 %size, i1 false)
  %whole.count = udiv i64 %wide, LANES
  %whole = mul i64 %whole.count, LANES
  %left = sub i64 %wide, %whole
  %left.first = insertelement <LANES x i64> poison, i64 %left, i64 0
  %left.all = shufflevector <LANES x i64> %left.first, <LANES x i64> poison, <LANES x i32> zeroinitializer
  %mask = icmp slt <LANES x i64> <COUNTS>, %left.all
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %row.end ]
  %number.at = getelementptr INDEX, ptr %numbers, i64 %r
  %its = load INDEX, ptr %number.at
  %kept = icmp sge INDEX %its, 0
  %number = WIDEN
  br i1 %kept, label %check, label %row.end
check:
  %is.segment = icmp slt i64 %number, %segments
  br i1 %is.segment, label %add, label %fail
add:
  %from.at = mul i64 %r, %wide
  %from = getelementptr TYPE, ptr %data, i64 %from.at
  %to.at = mul i64 %number, %wide
  %to = getelementptr TYPE, ptr %made, i64 %to.at
  %some = icmp ugt i64 %whole, 0
  br i1 %some, label %vector, label %rest
vector:
  %k = phi i64 [ 0, %add ], [ %k.next, %vector ]
  %x.at = getelementptr TYPE, ptr %from, i64 %k
  %x = load VECTOR, ptr %x.at, align BYTES
  %y.at = getelementptr TYPE, ptr %to, i64 %k
  %y = load VECTOR, ptr %y.at, align BYTES
  %sum = fadd VECTOR %x, %y
  store VECTOR %sum, ptr %y.at, align BYTES
  %k.next = add i64 %k, LANES
  %k.more = icmp ult i64 %k.next, %whole
  br i1 %k.more, label %vector, label %rest
rest:
  %u.at = getelementptr TYPE, ptr %from, i64 %whole
  %u = call VECTOR @llvm.masked.load.vLANESFLOAT.p0(ptr %u.at, i32 BYTES, <LANES x i1> %mask, VECTOR zeroinitializer)
  %v.at = getelementptr TYPE, ptr %to, i64 %whole
  %v = call VECTOR @llvm.masked.load.vLANESFLOAT.p0(ptr %v.at, i32 BYTES, <LANES x i1> %mask, VECTOR zeroinitializer)
  %last = fadd VECTOR %u, %v
  call void @llvm.masked.store.vLANESFLOAT.p0(VECTOR %last, ptr %v.at, i32 BYTES, <LANES x i1> %mask)
  br label %row.end
row.end:
  %r.next = add i64 %r, 1
  %r.more = icmp ult i64 %r.next, %rows
  br i1 %r.more, label %row, label %end
fail:
  %status.at = getelementptr ptr, ptr %table, i64 4
  %status = load ptr, ptr %status.at
  store i64 1, ptr %status
  ret void
end:
  ret void
}
"""


@functools.cache
def text(scalar: str, index: str, lanes: int) -> str:
    """The module, whose function is ``void region(void **buffers, const int64_t *numbers)``: data, the number of each row, a buffer
    that is not read, the sums, and a status, which is 1 behind a number beyond these; how many rows there are, elements of one,
    bytes of all sums, and how many of these there are. Negative numbers drop a row.

    Args:
      scalar: LLVM's type of an element; ``index``: of a row's number.
    """
    words = {
        "VECTOR": f"<{lanes} x {scalar}>",
        "COUNTS": ", ".join(f"i64 {i}" for i in range(lanes)),
        "WIDEN": "add i64 %its, 0" if index == "i64" else f"sext {index} %its to i64",
        "LANES": str(lanes),
        "FLOAT": {"float": "f32", "double": "f64"}[scalar],
        "TYPE": scalar,
        "INDEX": index,
        "BYTES": {"float": "4", "double": "8"}[scalar],
    }
    made = _TEXT
    for word, value in words.items():
        made = made.replace(word, value)
    return made
