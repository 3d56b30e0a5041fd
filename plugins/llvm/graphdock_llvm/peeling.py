"""Reductions over axes in the middle, as of a global pool of images: the function of the axes from these on, called for each
place of those before them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphdock.contracts import REDUCTIONS, Axis, RegionInput, RegionOutput, RegionProgram, Term

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.printer import Printed, print_functions
from graphdock_llvm.products import products_of
from graphdock_llvm.schedule import parts_of_work
from graphdock_llvm.vectors import in_memory, size_of

__all__ = ["inner", "leading_axes", "print_peeled"]

#: Elements of the axes from which on a call for them pays.
_LEAST = 64


def leading_axes(program: RegionProgram) -> int:
    """Number of axes before those that all reductions go over, or over whose last one they go; 0 where one function visits all axes
    anyway, or reductions go over sets that no such function has."""
    count = len(program.axes)
    sets = {t.value for t in program.terms if t.op in REDUCTIONS}
    last = (count - 1,)
    begins = {s[0] for s in sets if s != last}
    (begin,) = begins if len(begins) == 1 else (0,)
    allowed = {last, tuple(range(begin, count - 1)), tuple(range(begin, count))}
    extents = [a.extent for a in program.axes]
    if not begin or not sets <= allowed or None in extents or products_of(program):
        return 0
    if math.prod(n or 0 for n in extents[begin:]) < _LEAST or any(_counts(t, begin) for t in program.terms):
        return 0
    parts: list[RegionInput | RegionOutput] = [*program.inputs, *program.outputs]
    there = [[d for d in p.dims if d is not None] for p in parts]
    return begin if all(d == sorted(d) for d in there) and all(o.into is None for o in program.outputs) else 0


def _counts(term: Term, begin: int) -> bool:
    """Return whether a term says where along the leading axes it is."""
    return (
        term.op in ("index", "extent")
        and term.value < begin
        or term.op == "place"
        and min(term.axes, default=0) < begin
    )


def inner(program: RegionProgram, begin: int) -> RegionProgram:
    """The program of the axes from ``begin`` on. Each of its inputs has a source of its own."""

    def moved(axes: Sequence[int]) -> tuple[int, ...]:
        return tuple([a - begin for a in axes if a >= begin])

    def part(tensor: Any) -> dict[str, Any]:
        kept = [i for i, d in enumerate(tensor.dims) if d is None or d >= begin]
        dims = tuple([None if (d := tensor.dims[i]) is None else d - begin for i in kept])
        return {"dims": dims, "shape": tuple([tensor.shape[i] for i in kept])}

    def value(term: Term) -> Any:
        if term.op in REDUCTIONS:
            return moved(term.value)
        return term.value - begin if term.op in ("index", "extent") else term.value

    inputs = []
    for number, each in enumerate(program.inputs):
        strides = each.strides
        if strides is not None:
            strides = tuple([s for s, d in zip(strides, each.dims, strict=True) if d is None or d >= begin])
        inputs.append(replace(each, source=number, strides=strides, **part(each)))
    return replace(
        program,
        axes=program.axes[begin:],
        inputs=tuple(inputs),
        terms=tuple([replace(t, axes=moved(t.axes), value=value(t)) for t in program.terms]),
        outputs=tuple([replace(o, **part(o)) for o in program.outputs]),
    )


def print_peeled(program: RegionProgram, begin: int, count: int, width: int) -> Printed:
    """The function ``region`` of a program, which calls that of the axes from ``begin`` on."""
    within = print_functions(inner(program, begin), len(program.inputs), width, "inner", "internal")
    tensors: list[tuple[int, RegionInput | RegionOutput]] = [(i.source, i) for i in program.inputs]
    tensors += [(count + k, o) for k, o in enumerate(program.outputs)]
    outer = program.axes[:begin]
    total = math.prod(a.extent or 0 for a in outer)
    work = math.prod(a.extent or 0 for a in program.axes) * len(tensors)
    parts = min(parts_of_work(work), total)
    helpers = within.helpers | {"alone": "@alone = internal constant [2 x i64] [i64 1, i64 0]\n"}
    functions = (*within.functions, _each(width, tensors, outer, total), _whole(parts))
    return Printed(within.declarations, helpers, functions, parts > 1)


def _each(
    width: int, tensors: Sequence[tuple[int, RegionInput | RegionOutput]], outer: Sequence[Axis], total: int
) -> str:
    """``each(frame, part)``: some of the places. A frame is a table, and in how many parts there are."""
    e = Emitter(width)
    room = e.value(f"alloca [{len(tensors)} x ptr]")
    table = e.value("load ptr, ptr %frame")
    parts = e.value(f"load i64, ptr {e.value('getelementptr ptr, ptr %frame, i64 1')}")
    bases = [e.value(f"load ptr, ptr {e.value(f'getelementptr ptr, ptr {table}, i64 {slot}')}") for slot, _ in tensors]
    first, past = (
        e.binary("udiv", "i64", e.binary("mul", "i64", n, str(total)), parts)
        for n in ("%part", e.binary("add", "i64", "%part", "1"))
    )
    e.line(f"br i1 {e.value(f'icmp ult i64 {first}, {past}')}, label %place, label %done")
    e.label("place")
    e.line(f"%at = phi i64 [ {first}, %entry ], [ %next, %place ]")
    rest, indices = "%at", list[str]()
    for axis in reversed(outer):
        indices.insert(0, e.binary("urem", "i64", rest, str(axis.extent)))
        rest = e.binary("udiv", "i64", rest, str(axis.extent))
    for number, ((_, tensor), base) in enumerate(zip(tensors, bases, strict=True)):
        where = base
        for dim, stride in zip(tensor.dims, _strides(tensor), strict=True):
            if dim is not None and dim < len(outer):
                offset = e.binary("mul", "i64", indices[dim], str(stride * size_of(in_memory(tensor.dtype.name))))
                where = e.value(f"getelementptr i8, ptr {where}, i64 {offset}")
        e.line(f"store ptr {where}, ptr {e.value(f'getelementptr ptr, ptr {room}, i64 {number}')}")
    e.line(f"call void @inner(ptr {room}, ptr @alone)")
    e.line("%next = add i64 %at, 1")
    e.line(f"br i1 {e.value(f'icmp ult i64 %next, {past}')}, label %place, label %done")
    e.label("done")
    return "define internal void @each(ptr %frame, i64 %part) {\nentry:\n" + "\n".join(e.lines) + "\n  ret void\n}\n"


def _strides(tensor: RegionInput | RegionOutput) -> Sequence[int]:
    """Elements from place to place of each dim."""
    lies = tensor.lies(()) if isinstance(tensor, RegionInput) else None
    if lies is not None:
        return lies
    return [math.prod(n or 0 for n in tensor.shape[i + 1 :]) for i in range(len(tensor.shape))]


def _whole(parts: int) -> str:
    """``region(table, numbers)``: all places, on as many threads as the numbers say."""
    return f"""define void @region(ptr %table, ptr %numbers) {{
entry:
  %frame = alloca [2 x ptr]
  store ptr %table, ptr %frame
  %second = getelementptr ptr, ptr %frame, i64 1
  %threads = load i64, ptr %numbers
  %several = icmp ugt i64 %threads, 1
  br i1 %several, label %share, label %alone
share:
  store i64 {parts}, ptr %second
  %run.at = getelementptr i64, ptr %numbers, i64 1
  %run = load ptr, ptr %run.at
  call void %run(ptr @each, ptr %frame, i64 {parts}, i64 %threads)
  ret void
alone:
  store i64 1, ptr %second
  call void @each(ptr %frame, i64 0)
  ret void
}}
"""
