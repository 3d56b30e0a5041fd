"""Reductions over some axes, as of a global pool of images: the function of these and the last one, called for each place of the
others."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphdock.contracts import REDUCTIONS, RegionInput, RegionOutput, RegionProgram, Term

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.primitives import is_flat
from graphdock_llvm.printer import Printed, print_functions
from graphdock_llvm.products import products_of
from graphdock_llvm.schedule import parts_of_work
from graphdock_llvm.vectors import OutputPart, in_memory, size_of, strides

__all__ = ["inner", "outer_axes", "print_peeled", "within"]

#: Elements of what is called, from which on a call pays; and of its rows, where an outer axis stands among its axes.
_LEAST, _WIDE = 64, 16


def outer_axes(program: RegionProgram) -> tuple[int, ...]:
    """Axes that no reduction goes over, where all others but the last are those that reductions go over, all of them or the last
    one, too; none where one function visits all axes anyway, also as rows of several axes (:mod:`graphdock_llvm.nests`), or
    reductions go over sets that no such function has."""
    last = len(program.axes) - 1
    sets = {t.value for t in program.terms if t.op in REDUCTIONS}
    reduced = {a for s in sets for a in s} - {last}
    kept, rows = (*sorted(reduced), last), tuple(sorted(reduced))
    outer = tuple([a for a in range(last) if a not in reduced])
    extents = [a.extent for a in program.axes]
    if not outer or not reduced or not sets <= {(last,), rows, kept} or None in extents or products_of(program):
        return ()
    if math.prod(extents[a] or 0 for a in kept) < _LEAST or any(_counts(t, outer) for t in program.terms):
        return ()
    if program.gathers:
        return ()
    if outer[-1] > kept[0] and last not in {a for s in sets for a in s} and (extents[last] or 0) < _WIDE:
        return ()
    parts: list[RegionInput | RegionOutput] = [*program.inputs, *program.outputs]
    there = [[d for d in p.dims if d is not None] for p in parts]
    if not all(d == sorted(d) for d in there) or any(o.into is not None for o in program.outputs):
        return ()
    return () if kept in sets and not is_flat(inner(program, outer)) else outer


def _counts(term: Term, outer: Collection[int]) -> bool:
    """Return whether a term says where along the outer axes it is."""
    return (
        term.op in ("index", "extent")
        and term.value in outer
        or term.op == "place"
        and not set(outer).isdisjoint(term.axes)
    )


def within(axes: Sequence[int], outer: Collection[int]) -> tuple[int, ...]:
    """Axes of the function that is called, of those of the program: the others are counted from 0."""
    return tuple([a - sum(o < a for o in outer) for a in axes if a not in outer])


def inner(program: RegionProgram, outer: Collection[int]) -> RegionProgram:
    """The program of all axes but the outer ones. Each of its inputs has a source of its own."""

    def part(tensor: Any) -> dict[str, Any]:
        kept = [i for i, d in enumerate(tensor.dims) if d is None or d not in outer]
        dims = tuple([None if (d := tensor.dims[i]) is None else within([d], outer)[0] for i in kept])
        lies = strides(tensor)
        first = next((i for i, d in enumerate(tensor.dims) if d is not None and d not in outer), len(tensor.dims))
        if lies is None and any(d is not None and d in outer for d in tensor.dims[first:]):
            lies = _strides(tensor)  # what lies between has gone
        found = {"dims": dims, "shape": tuple([tensor.shape[i] for i in kept])}
        return found if lies is None else {**found, "strides": tuple([lies[i] for i in kept])}

    def value(term: Term) -> Any:
        if term.op in REDUCTIONS:
            return within(term.value, outer)
        return within([term.value], outer)[0] if term.op in ("index", "extent") else term.value

    def output(out: RegionOutput) -> RegionOutput:
        lies = part(out)
        if "strides" not in lies:
            return replace(out, **lies)
        return OutputPart(
            out.name, out.term, out.dtype, lies["shape"], lies["dims"], out.inplace, out.into, lies["strides"]
        )

    return replace(
        program,
        axes=tuple([a for i, a in enumerate(program.axes) if i not in outer]),
        inputs=tuple([replace(each, source=number, **part(each)) for number, each in enumerate(program.inputs)]),
        terms=tuple([replace(t, axes=within(t.axes, outer), value=value(t)) for t in program.terms]),
        outputs=tuple(map(output, program.outputs)),
    )


def print_peeled(program: RegionProgram, outer: Sequence[int], count: int, width: int) -> Printed:
    """The function ``region`` of a program, which calls that of all axes but the outer ones for each place of these."""
    called = print_functions(inner(program, outer), len(program.inputs), width, "inner", "internal")
    tensors: list[tuple[int, RegionInput | RegionOutput]] = [(i.source, i) for i in program.inputs]
    tensors += [(count + k, o) for k, o in enumerate(program.outputs)]
    extents = {a: program.axes[a].extent or 0 for a in outer}
    total = math.prod(extents.values())
    work = math.prod(a.extent or 0 for a in program.axes) * len(tensors)
    parts = min(parts_of_work(work), total)
    helpers = called.helpers | {"alone": "@alone = internal constant [2 x i64] [i64 1, i64 0]\n"}
    functions = (*called.functions, _each(width, tensors, extents, total), _whole(parts))
    return Printed(called.declarations, helpers, functions, parts > 1)


def _each(
    width: int, tensors: Sequence[tuple[int, RegionInput | RegionOutput]], outer: Mapping[int, int], total: int
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
    rest, indices = "%at", dict[int, str]()
    for axis, extent in reversed(list(outer.items())):
        indices[axis] = e.binary("urem", "i64", rest, str(extent))
        rest = e.binary("udiv", "i64", rest, str(extent))
    for number, ((_, tensor), base) in enumerate(zip(tensors, bases, strict=True)):
        where = base
        for dim, stride in zip(tensor.dims, _strides(tensor), strict=True):
            if dim is not None and dim in outer:
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
