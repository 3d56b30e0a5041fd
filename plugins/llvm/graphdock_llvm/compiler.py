"""The region compiler of the ``cpu`` device: claims what one function computes, and calls it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from graphdock.contracts import (
    REDUCTIONS,
    Arrangement,
    BindContext,
    Claim,
    KernelRefused,
    Native,
    NativeCall,
    PlanNode,
    PrepareContext,
    Prepared,
    Refusal,
    Region,
    RegionCompiler,
    RegionProgram,
    Term,
    errors,
)

from graphdock_llvm.extents import Extents, bind_any
from graphdock_llvm.index_checks import checked_text
from graphdock_llvm.launch import address_of, bound, results_of, single_threaded
from graphdock_llvm.loop_calls import prepared_loop
from graphdock_llvm.loops import too_large
from graphdock_llvm.native import chain
from graphdock_llvm.packing import arranged
from graphdock_llvm.peeling import inner, outer_axes, print_peeled, within
from graphdock_llvm.pool import pool_address
from graphdock_llvm.primitives import nest_of, rows_of, unsupported, written_often
from graphdock_llvm.printer import ALONE, Printed, is_brief, print_functions
from graphdock_llvm.products import products_of
from graphdock_llvm.schedule import forbidden, repeated
from graphdock_llvm.shifted import shifted
from graphdock_llvm.target import width
from graphdock_llvm.tiles import Tiles, nodes_of_a_tile, parts_of, print_tiles, tiles_of
from graphdock_llvm.tuning import library_is_quicker, plain_product

__all__ = ["VectorRegions"]

#: Microseconds that a claim says it costs: one call, on a machine so quick that any kernel of Python is said to take more.
_CALL = 0.2


class VectorRegions(RegionCompiler):
    """Elementwise operations, broadcasts and reductions along rows, as one function over vectors; large products with what follows
    them element by element."""

    name = "region"
    device_type = "cpu"
    programs = True
    updates = True
    products = True
    parts = True
    reductions = True
    loops = True
    histories = True
    unknown_dims = True
    single = True
    gathers = True

    def claim(self, candidate: Region) -> Claim | Refusal:
        if candidate.loop is not None:
            reason = too_large(candidate.loop)
            nodes = [n for n in candidate.graph.nodes if n.verb != "constant"]
            return Claim(tuple(nodes), _CALL) if reason is None else Refusal(reason)
        program = candidate.program
        assert program is not None
        nodes = [n for n in candidate.graph.nodes if n.verb != "constant" and n not in candidate.parts]
        lanes = width()
        if tile := nodes_of_a_tile(candidate, nodes, lanes):
            return Claim(tuple(tile), _CALL)
        reduces = candidate.reduces
        if outer := outer_axes(program):
            program = inner(program, outer)
            reduces = {n: frozenset([within(s, outer) for s in sets]) for n, sets in reduces.items()}
        elif not nest_of(program):
            program = _of_first(program, nodes, reduces)
        refused = repeated(program, lanes) | unsupported(program, lanes)
        reasons = {program.terms[n].origin: reason for n, reason in refused.items()}
        reasons |= {
            program.terms[o.term].origin: reason for o in program.outputs if (reason := written_often(program, o))
        }
        products = {program.terms[n].origin for n in products_of(program)}
        chosen = _of_rows(nodes, reduces, program, reasons, products)
        alone = (
            candidate.step
            or len(nodes) == 1
            or any(n.opdef.accesses or n.origin in products or n in reduces or len(n.inputs) > 2 for n in chosen)
        )
        if not chosen or len(chosen) < 2 and not alone:
            return Refusal(next(iter(reasons.values()), None) or forbidden(program, lanes) or "nothing to fuse")
        if len(chosen) == len(nodes) and (reason := forbidden(program, lanes)):
            return Refusal(reason)
        return Claim(tuple(chosen), _CALL)

    def arranged(self, region: Region) -> Mapping[int, Arrangement | str]:
        return arranged(region)

    def inplace(self, region: Region) -> Mapping[str, tuple[str, ...]]:
        program = region.program
        if program is None or any(t.op in REDUCTIONS for t in program.terms):
            return {}
        whole = len(program.axes)
        sources = [i.source for i in program.inputs]
        found = {}
        for number, out in enumerate(program.outputs):
            alone = [sources[i] for i in out.inplace if sources.count(sources[i]) == 1]
            if alone and sum(d is not None for d in out.dims) == whole:
                found[f"out{number}"] = tuple(f"in{s}" for s in alone)
        return found

    def prepare(self, region: Region, ctx: PrepareContext) -> Prepared:
        if region.loop is not None:
            return prepared_loop(region.loop, ctx)
        program = region.program
        assert program is not None
        tiles, count = tiles_of(program, width(), region.arranged), len(region.graph.inputs)
        outer = outer_axes(program) if tiles is None else ()
        reason = None if tiles is not None else forbidden(inner(program, outer) if outer else program, width())
        if reason is not None:
            raise KernelRefused(reason)
        if 0 in [a.extent for a in program.axes]:
            return Prepared(functools.partial(_bound, None, count, program))
        moved = shifted(program, count)
        own, slots = (program, count) if moved is None else (moved.program, moved.count)
        printed, text = _printed(own, tiles, slots), functools.partial(_text, own, tiles, slots)
        shared = ctx.threads > 1 and printed.shared
        numbers: tuple[int, ...] = (ctx.threads, pool_address()) if shared else ALONE
        within = single_threaded(ctx.device) if shared else None
        plain = None if tiles is None or region.arranged else plain_product(program, count)
        if plain is not None:
            alone = functools.partial(_alone, ctx, printed, numbers, count + 1)
            if why := library_is_quicker(ctx, plain, alone):
                raise KernelRefused(why)
        address, before = address_of(ctx, text()), 0
        if moved is not None:
            address, first = moved.call(address)
            numbers, before = (*first, *numbers), len(first)
        if program.streams:
            native = Native(address, chain, numbers, is_brief(program))
            return Prepared(
                functools.partial(_bound_drawing, native, count, program),
                within=within,
                source=lambda: f"{program}\n\n{text()}",
            )
        if all(a.extent is not None for a in program.axes):
            native = Native(address, chain, numbers, tiles is None and is_brief(program), status=program.gathers)
            bind = functools.partial(_bound, native, count, program)
        else:
            parts = functools.partial(parts_of, tiles) if tiles is not None else None
            sized = functools.partial(Extents, program, numbers, within, parts, region.arranged, before)
            within = None  # a call enters it where it has parts
            native = Native(address, chain, numbers, sized=sized, status=program.gathers)
            bind = functools.partial(bind_any, count, len(program.made), native, refuse=_refusing(program))
        return Prepared(
            bind,
            native=native,
            within=within,
            source=lambda: f"{program}\n\n{text()}",
        )


def _printed(program: RegionProgram, tiles: Tiles | None, count: int) -> Printed:
    if tiles is not None:
        return print_tiles(program, tiles, count, width())
    if outer := outer_axes(program):
        return print_peeled(program, outer, count, width())
    if program.gathers:
        return print_functions(program, count, width(), "rows", "internal")
    return print_functions(program, count, width())


def _text(program: RegionProgram, tiles: Tiles | None, count: int) -> str:
    """The module of a program."""
    text = _printed(program, tiles, count).text()
    return text + checked_text(program, "rows", count + len(program.made)) if program.gathers else text


def _of_first(
    program: RegionProgram, nodes: Sequence[PlanNode], reduces: Mapping[PlanNode, Collection[tuple[int, ...]]]
) -> RegionProgram:
    """The program as it is without reductions over other axes than the first one's, where a row is of several axes then."""
    first = next((reduces[n] for n in nodes if n in reduces), ())
    terms = [
        Term("literal", t.dtype, (), (), 0, t.origin) if t.op in REDUCTIONS and t.value not in first else t
        for t in program.terms
    ]
    found = replace(program, terms=tuple(terms))
    return found if 1 < len(nest_of(found)) < len(program.axes) else program


def _of_rows(
    nodes: Sequence[PlanNode],
    reduces: Mapping[PlanNode, Collection[tuple[int, ...]]],
    program: RegionProgram,
    reasons: Mapping[str, str],
    products: Collection[str],
) -> list[PlanNode]:
    """The nodes that are computed along rows. What reduces over another set of axes is left, and what stands behind such a one
    that stands behind one that is computed: no way may lead from the region over it and back."""
    wanted: tuple[int, ...] | None = None
    nest = nest_of(program)
    one, rows = nest or (len(program.axes) - 1,), nest or rows_of(program)
    allowed = {one, rows, nest or tuple(range(len(program.axes)))}
    behind: set[PlanNode] = set()  # a node that is computed
    barred: set[PlanNode] = set()
    chosen: list[PlanNode] = []
    for node in nodes:
        before = [n for n in (*(v.node for v in node.inputs), *node.control, *node.order) if n is not None]
        sets = frozenset(reduces.get(node, ()) if node.origin not in products else ())
        other = (
            len(sets) > 1
            and not sets <= {one, rows}
            or any(s not in allowed or wanted not in (None, s, one, rows) for s in sets)
        )
        other = other or any(wanted not in (None, s) for s in sets if s not in (one, rows))
        after = any(n in behind for n in before)
        if other or node.origin in reasons or any(n in barred for n in before):
            if after:
                barred.add(node)
        else:
            wanted = next(iter(sets), wanted) if wanted in (None, one, rows) else wanted
            chosen.append(node)
            after = True
        if after:
            behind.add(node)
    return chosen


def _bound(native: Native | None, count: int, program: RegionProgram, ctx: BindContext) -> Callable[..., Any]:
    """The function of a region; nothing is called where it has no elements."""
    shapes = [(tuple(d or 0 for d in out.shape), out.dtype.np) for out in program.made]
    if native is None:
        made = [i for i, o in enumerate(ctx.outputs) if o.mode.kind not in ("planned", "inplace")]
        return lambda *_: results_of([np.empty(*shapes[i]) for i in made])
    return bound(ctx, native, count, shapes, _refusing(program))


def _refusing(program: RegionProgram) -> Callable[..., None] | None:
    """Function that raises the error of arguments with an index that is out of range, where a program gathers."""
    if not program.gathers:
        return None

    def refuse(*args: Any) -> None:
        program.check_indices(args)
        raise errors.InvalidArgumentError("indices of a gather were written while it was computed")

    return refuse


def _alone(ctx: PrepareContext, printed: Printed, numbers: Sequence[int], count: int) -> Callable[..., Any]:
    """The function of a program over its inputs and outputs, to be measured."""
    return chain([NativeCall(address_of(ctx, printed.text()), tuple(range(count)), numbers)], count)


def _bound_drawing(native: Native, count: int, program: RegionProgram, ctx: BindContext) -> Callable[..., Any]:
    """The function of a region that draws: its streams stand behind its inputs, and say at each call where they are."""
    made = [i for i, o in enumerate(ctx.outputs) if o.mode.kind not in ("planned", "inplace")]
    shapes = [(tuple(d or 0 for d in out.shape), out.dtype.np) for out in program.made]
    begin, total = count + len(program.streams), count + len(shapes) + 1
    call = chain([NativeCall(native.address, tuple(range(total)), native.numbers, native.brief)], total)

    def run(*args: Any) -> Any:
        results = list(args[begin : begin + len(shapes) - len(made)])
        for i in made:
            results.insert(i, np.empty(*shapes[i]))
        words = [(*s.key, s.outer, s.iteration, s.ordinal) for s in args[count:begin]]
        call(*args[:count], *results, np.array(words, np.uint64))
        return results_of([results[i] for i in made])

    return run
