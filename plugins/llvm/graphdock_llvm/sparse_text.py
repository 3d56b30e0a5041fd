"""Product of a sparse matrix, given term by term in any order, and a dense one, as LLVM's text: one function for all sizes.

A part has some vectors of columns, and goes through all terms. What belongs to a row stays in registers while terms of that row
follow each other, so that memory is written once a row where terms are in order. Every index is looked at as it is used.
"""

from __future__ import annotations

import functools
import textwrap

from graphdock_llvm.gathered_text import SHARE

__all__ = ["BAD", "text", "together"]

#: Where in the numbers stands the first term that is out of bounds, or a negative number.
BAD = 7
#: Vectors of a part, at most.
_MOST = 4

_REGION = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal void @part(ptr %context, i64 %number) {
entry:
  %table = load ptr, ptr %context
  %n.at = getelementptr ptr, ptr %context, i64 1
  %n = load ptr, ptr %n.at
  %columns.at = getelementptr i64, ptr %n, i64 3
  %columns = load i64, ptr %columns.at
  %first = mul i64 %number, WIDE
  %left = sub i64 %columns, %first
  %over = add i64 %left, LESS
  %vectors = udiv i64 %over, LANES
  switch i64 %vectors, label %else [ CASES ]
else:
  %rest = sub i64 %left, BESIDE
  %whole = icmp ugt i64 %rest, LANES
  %last = select i1 %whole, i64 LANES, i64 %rest
  call void @terms4(ptr %table, ptr %n, i64 %first, i64 %last)
  ret void
BLOCKS
}

define void @region(ptr %table, ptr %n) {
entry:
  %context = alloca [2 x ptr]
  store ptr %table, ptr %context
  %n.at = getelementptr ptr, ptr %context, i64 1
  store ptr %n, ptr %n.at
  %out.at = getelementptr ptr, ptr %table, i64 3
  %out = load ptr, ptr %out.at
  %columns.at = getelementptr i64, ptr %n, i64 3
  %columns = load i64, ptr %columns.at
  %rows.at = getelementptr i64, ptr %n, i64 4
  %rows = load i64, ptr %rows.at
  %count = mul i64 %rows, %columns
  %bytes = mul i64 %count, SIZE
  call void @llvm.memset.p0.i64(ptr %out, i8 0, i64 %bytes, i1 false)
  %before = add i64 %columns, BEFORE
  %parts = udiv i64 %before, WIDE
  call void @share(ptr @part, ptr %context, i64 %parts, ptr %n)
  ret void
}
"""

#: ``terms(table, numbers, first column, columns of the last vector)``.
_TERMS = """
define internal void @termsV(ptr %table, ptr %n, i64 %first, i64 %last) {
entry:
  %indices = load ptr, ptr %table
  %values.at = getelementptr ptr, ptr %table, i64 1
  %values = load ptr, ptr %values.at
  %b.at = getelementptr ptr, ptr %table, i64 2
  %b = load ptr, ptr %b.at
  %out.at = getelementptr ptr, ptr %table, i64 3
  %out = load ptr, ptr %out.at
  %count.at = getelementptr i64, ptr %n, i64 2
  %count = load i64, ptr %count.at
  %columns.at = getelementptr i64, ptr %n, i64 3
  %columns = load i64, ptr %columns.at
  %rows.at = getelementptr i64, ptr %n, i64 4
  %rows = load i64, ptr %rows.at
  %inner.at = getelementptr i64, ptr %n, i64 5
  %inner = load i64, ptr %inner.at
  %turned.at = getelementptr i64, ptr %n, i64 6
  %turned = load i64, ptr %turned.at
  %straight = sub i64 1, %turned
  %b.first = getelementptr FLOAT, ptr %b, i64 %first
  %out.first = getelementptr FLOAT, ptr %out, i64 %first
  %lanes.first = insertelement <LANES x i64> poison, i64 %last, i64 0
  %lanes.all = shufflevector <LANES x i64> %lanes.first, <LANES x i64> poison, <LANES x i32> zeroinitializer
  %mask = icmp ult <LANES x i64> NUMBERS, %lanes.all
  %some = icmp ugt i64 %count, 0
  br i1 %some, label %begin, label %end
begin:
  %begin.at = getelementptr i64, ptr %indices, i64 %turned
  %begin.row = load i64, ptr %begin.at
  br label %term
term:
  %i = phi i64 [ 0, %begin ], [ %next, %add ]
  %before = phi i64 [ %begin.row, %begin ], [ %row, %add ]
SUMS
  %pair = getelementptr [2 x i64], ptr %indices, i64 %i
  %row.at = getelementptr i64, ptr %pair, i64 %turned
  %row = load i64, ptr %row.at
  %place.at = getelementptr i64, ptr %pair, i64 %straight
  %place = load i64, ptr %place.at
  %row.in = icmp ult i64 %row, %rows
  %place.in = icmp ult i64 %place, %inner
  %in = and i1 %row.in, %place.in
  br i1 %in, label %look, label %bad
look:
  %same = icmp eq i64 %row, %before
  br i1 %same, label %add, label %change
change:
  %old = mul i64 %before, %columns
  %to = getelementptr FLOAT, ptr %out.first, i64 %old
STORES
  %new = mul i64 %row, %columns
  %from = getelementptr FLOAT, ptr %out.first, i64 %new
LOADS
  br label %add
add:
CHOSEN
  %value.at = getelementptr FLOAT, ptr %values, i64 %i
  %value = load FLOAT, ptr %value.at
  %value.first = insertelement <LANES x FLOAT> poison, FLOAT %value, i64 0
  %value.all = shufflevector <LANES x FLOAT> %value.first, <LANES x FLOAT> poison, <LANES x i32> zeroinitializer
  %b.over = mul i64 %place, %columns
  %b.row = getelementptr FLOAT, ptr %b.first, i64 %b.over
ADDS
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %term, label %write
write:
  %write.old = mul i64 %row, %columns
  %write.to = getelementptr FLOAT, ptr %out.first, i64 %write.old
WRITES
  br label %end
bad:
  %bad.at = getelementptr i64, ptr %n, i64 BAD
  store atomic i64 %i, ptr %bad.at monotonic, align 8
  br label %end
end:
  ret void
}
"""


def _lanes(scalar: str, width: int) -> int:
    return width if scalar == "float" else width // 2


def together(scalar: str, width: int) -> int:
    """Columns of a part."""
    return _MOST * _lanes(scalar, width)


@functools.cache
def text(scalar: str, width: int) -> str:
    """The module for elements ``float`` or ``double``, printed for so many lanes of float.

    Its function ``void region(void **buffers, int64_t *numbers)`` has the buffers indices, values, dense matrix and product; its
    numbers are threads, the pool's function, how many terms, columns, rows, the inner size, which number of a pair is the row, and
    at :data:`BAD` -1.
    """
    lanes = _lanes(scalar, width)
    size = 4 if scalar == "float" else 8
    kind, vector, masks = f"v{lanes}f{8 * size}", f"<{lanes} x {scalar}>", f"<{lanes} x i1>"
    cases = " ".join(f"i64 {v}, label %block{v}" for v in range(1, _MOST))
    blocks = "\n".join(
        f"block{v}:\n  %last{v} = sub i64 %left, {(v - 1) * lanes}\n"
        f"  call void @terms{v}(ptr %table, ptr %n, i64 %first, i64 %last{v})\n  ret void"
        for v in range(1, _MOST)
    )

    def load(name: str, base: str, v: int, last: bool) -> str:
        at = f"%{name}.at = getelementptr {scalar}, ptr %{base}, i64 {v * lanes}\n"
        if not last:
            return f"{at}%{name} = load {vector}, ptr %{name}.at, align {size}"
        args = f"ptr %{name}.at, i32 {size}, {masks} %mask, {vector} zeroinitializer"
        return f"{at}%{name} = call {vector} @llvm.masked.load.{kind}.p0({args})"

    def store(value: str, base: str, v: int, last: bool) -> str:
        name = f"{base}.{v}"
        at = f"%{name} = getelementptr {scalar}, ptr %{base}, i64 {v * lanes}\n"
        if not last:
            return f"{at}store {vector} %{value}, ptr %{name}, align {size}"
        return f"{at}call void @llvm.masked.store.{kind}.p0({vector} %{value}, ptr %{name}, i32 {size}, {masks} %mask)"

    def add(v: int, last: bool) -> str:
        args = f"{vector} %value.all, {vector} %b{v}, {vector} %chosen{v}"
        return f"{load(f'b{v}', 'b.row', v, last)}\n%next{v} = call {vector} @llvm.fmuladd.{kind}({args})"

    parts = []
    for count in range(1, _MOST + 1):
        ends = [(v, v == count - 1) for v in range(count)]
        lines = {
            "SUMS": [f"%sum{v} = phi {vector} [ zeroinitializer, %begin ], [ %next{v}, %add ]" for v, _ in ends],
            "STORES": [store(f"sum{v}", "to", v, last) for v, last in ends],
            "LOADS": [load(f"old{v}", "from", v, last) for v, last in ends],
            "CHOSEN": [f"%chosen{v} = phi {vector} [ %sum{v}, %look ], [ %old{v}, %change ]" for v, _ in ends],
            "ADDS": [add(v, last) for v, last in ends],
            "WRITES": [store(f"next{v}", "write.to", v, last) for v, last in ends],
        }
        body = _TERMS.replace("termsV", f"terms{count}")
        for word, texts in lines.items():
            body = body.replace(f"{word}\n", textwrap.indent("\n".join(texts), "  ") + "\n")
        parts.append(body)
    region = _REGION.replace("CASES", cases).replace("BLOCKS", blocks)
    whole = "\n".join([
        f"declare {vector} @llvm.masked.load.{kind}.p0(ptr, i32, {masks}, {vector})",
        f"declare void @llvm.masked.store.{kind}.p0({vector}, ptr, i32, {masks})",
        f"declare {vector} @llvm.fmuladd.{kind}({vector}, {vector}, {vector})",
        *parts,
        SHARE,
        region,
    ])  # fmt: skip
    words = {"FLOAT": scalar, "LANES": lanes, "WIDE": _MOST * lanes, "SIZE": size, "BEFORE": _MOST * lanes - 1}
    words |= {"BESIDE": (_MOST - 1) * lanes, "LESS": lanes - 1, "BAD": BAD}
    words |= {"NUMBERS": f"<{', '.join(f'i64 {i}' for i in range(lanes))}>"}
    for word, value in words.items():
        whole = whole.replace(word, str(value))
    return whole
