"""Right matrices of large products in panels, packed once for all products that read them, and for all steps where they stay."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from graphdock.contracts import Arrangement, KernelDef, NativeCall, PrepareContext, Prepared, Region

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.launch import called
from graphdock_llvm.native import chain
from graphdock_llvm.panels import Matrices, print_pack
from graphdock_llvm.pool import pool_address
from graphdock_llvm.printer import ALONE
from graphdock_llvm.target import compiled, width
from graphdock_llvm.tiles import shared_by_parts, tiles_of

__all__ = ["arranged"]

#: Bytes from which threads share the copy.
_SHARED = 1 << 18
#: Rows of a product, at most, beside which its matrix is worth being packed apart: of more the copy is a small part of the work.
_ROWS = 256


def arranged(region: Region) -> Mapping[int, Arrangement]:
    """The right matrix of a region's large product, where nothing else of the region reads it."""
    program = region.program
    tiles = tiles_of(program, width()) if program is not None else None
    if program is None or tiles is None or 0 in [a.extent for a in program.axes]:
        return {}
    right, of = program.inputs[tiles.product.right], tiles.matrices
    if right.strides is not None or [i.source for i in program.inputs].count(right.source) > 1:
        return {}
    if of.rows is not None and of.rows > _ROWS:
        return {}
    of = replace(of, rows=None, left=(0, 0))
    kernel = KernelDef("Arranged", "cpu", name="panels", prepare=functools.partial(_prepare, of))
    key = "panels", of.along, of.columns, of.scalar, of.right
    return {right.source: Arrangement(key, (_room(of),), kernel, functools.partial(_fill, of))}


def _room(of: Matrices) -> int:
    """Elements of all panels."""
    return of.panels(width()) * of.along * of.wide(width())


def _text(of: Matrices) -> str:
    """The module whose ``region`` packs all panels."""
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
    return "\n".join(
        [*sorted(e.declarations.values()), *e.functions.values(), pack, part, shared_by_parts(of.panels(width()))]
    )


def _prepare(of: Matrices, ctx: PrepareContext) -> Prepared:
    size = of.along * of.columns * ctx.inputs[0].dtype.size
    shared = ctx.threads > 1 and size >= _SHARED
    return called(ctx, _text(of), (ctx.threads, pool_address()) if shared else ALONE)


def _fill(of: Matrices, array: Any, room: Any) -> None:
    """Pack a matrix of the host's memory."""
    chain([NativeCall(compiled(_text(of)), (np.ascontiguousarray(array), room), ALONE)], 0)()
