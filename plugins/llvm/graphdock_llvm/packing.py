"""Right matrices of large products in panels, packed once for all products that read them, and for all steps where they stay."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from graphdock.contracts import Arrangement, KernelDef, NativeCall, PrepareContext, Prepared, Region, RegionProgram

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.launch import called
from graphdock_llvm.native import chain
from graphdock_llvm.panels import Matrices, print_pack
from graphdock_llvm.passes_blocks import OpenMatrices
from graphdock_llvm.pool import pool_address
from graphdock_llvm.printer import ALONE, Printed
from graphdock_llvm.products import products_of
from graphdock_llvm.target import compiled, width
from graphdock_llvm.tiles import shared_by_parts, tiles_of

__all__ = ["arranged", "panels_of", "print_packed", "room_of"]

#: Bytes from which threads share the copy.
_SHARED = 1 << 18
#: Rows of a product, at most, beside which its matrix is worth being packed apart: of more the copy is a small part of the work.
_ROWS = 256


def arranged(region: Region) -> Mapping[int, Arrangement | str]:
    """The right matrix of a region's large product, where nothing else of the region reads it; else why it is not packed apart."""
    program = region.program
    found = None if program is None else panels_of(program)
    if found is None:
        rights = [] if program is None else [program.inputs[p.right].source for p in products_of(program).values()]
        return {} if program is None else {source: _as_it_lies(program, source) for source in rights}
    source, of = found
    kernel = KernelDef("Arranged", "cpu", name="panels", prepare=functools.partial(_prepare, of))
    key = "panels", of.along, of.columns, of.scalar, of.right
    return {source: Arrangement(key, (room_of(of),), kernel, functools.partial(_fill, of))}


def panels_of(program: RegionProgram, ready: Collection[int] = ()) -> tuple[int, Matrices] | None:
    """Number of the input that is the right matrix of a program's large product and nothing else, if it is worth being packed
    apart, and how it is. ``ready``: inputs that may come in panels whatever that costs."""
    tiles = tiles_of(program, width(), ready)
    if tiles is None or 0 in [a.extent for a in program.axes]:
        return None
    right, of = program.inputs[tiles.product.right], tiles.matrices
    if (
        isinstance(of, OpenMatrices)
        or right.strides is not None
        or [i.source for i in program.inputs].count(right.source) > 1
    ):
        return None
    if of.rows is not None and of.rows > _ROWS:
        return None
    return right.source, replace(of, rows=None, left=(0, 0), packed=False)


def _as_it_lies(program: RegionProgram, source: int) -> str:
    """Reason why a right matrix is not packed apart."""
    reads = [i for i in program.inputs if i.source == source]
    tiles = tiles_of(program, width())
    if any(i.strides is not None for i in reads):
        return "a part of it is multiplied, where it lies"
    if tiles is None:
        return "the product is small, and reads it where it lies"
    if len(reads) > 1:
        return "the product is not all that its region reads it for"
    if isinstance(tiles.matrices, OpenMatrices):
        return "only a step knows its extents"
    return f"beside {tiles.matrices.rows} rows a copy is a small part of the work"


def room_of(of: Matrices) -> int:
    """Elements of all panels."""
    return of.panels(width()) * of.along * of.wide(width())


def print_packed(of: Matrices) -> Printed:
    """The function ``region`` that packs all panels."""
    e, panel = Emitter(width()), of.along * of.wide(width())
    pack = print_pack(e, "region", of)
    part = f"""define internal void @region.part(ptr %table, i64 %part) {{
entry:
  %right = load ptr, ptr %table
  %panels.at = getelementptr ptr, ptr %table, i64 1
  %panels = load ptr, ptr %panels.at
  %first = mul i64 %part, {of.wide(width())}
  %place = mul i64 %part, {panel}
  %panel = getelementptr {of.scalar}, ptr %panels, i64 %place
  call void @region.pack(ptr %right, ptr %panel, i64 %first)
  ret void
}}
"""
    return Printed(e.declarations, e.functions, (pack, part, shared_by_parts(of.panels(width()))), False)


def _prepare(of: Matrices, ctx: PrepareContext) -> Prepared:
    size = of.along * of.columns * ctx.inputs[0].dtype.size
    shared = ctx.threads > 1 and size >= _SHARED
    return called(ctx, print_packed(of).text(), (ctx.threads, pool_address()) if shared else ALONE)


def _fill(of: Matrices, array: Any, room: Any) -> None:
    """Pack a matrix of the host's memory."""
    chain([NativeCall(compiled(print_packed(of).text()), (np.ascontiguousarray(array), room), ALONE)], 0)()
