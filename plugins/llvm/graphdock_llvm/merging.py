"""Axes of a program that lie side by side in all of its tensors, as one axis: longer rows, and fewer loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphdock.contracts import REDUCTIONS, RegionInput, RegionOutput, RegionProgram, Term

from graphdock_llvm.vectors import strides

__all__ = ["merged"]


def merged(program: RegionProgram) -> tuple[RegionProgram, list[list[int]]]:
    """A program with as few axes as can be, and the axes of ``program`` that each of them is.

    Axes become one where no tensor, term or reduction tells them apart. What is of unknown extent stays as it is: a call reads it
    off the shape of a tensor.
    """
    groups = [[0]] if program.axes else []
    for axis in range(1, len(program.axes)):
        if _together(program, axis - 1):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return (program if len(groups) == len(program.axes) else _of_groups(program, groups)), groups


def _together(program: RegionProgram, axis: int) -> bool:
    """Return whether an axis and the next one are one to all that is computed."""
    both = {axis, axis + 1}
    inner = program.axes[axis + 1].extent
    if inner is None or program.axes[axis].extent is None:
        return False
    for term in program.terms:  # a reduction over one of them has the other
        if term.op == "index" and term.value in both or len(both & set(term.axes)) == 1:
            return False
    parts: list[RegionInput | RegionOutput] = [*program.inputs, *program.outputs]
    return all(_side_by_side(part, axis, inner) for part in parts)


def _side_by_side(part: RegionInput | RegionOutput, axis: int, inner: int) -> bool:
    """Return whether a tensor has neither of an axis and the next one, of this extent, or both of them without gaps between."""
    places = [i for i, d in enumerate(part.dims) if d in (axis, axis + 1)]
    if len(places) != 2:
        return not places
    first, second = places
    if part.dims[first] != axis or any(d is not None for d in part.dims[first + 1 : second]):
        return False
    lies = strides(part)
    return lies is None or isinstance(lies[second], int) and lies[first] == inner * lies[second]


def _of_groups(program: RegionProgram, groups: Sequence[Sequence[int]]) -> RegionProgram:
    number = {axis: i for i, group in enumerate(groups) for axis in group}
    gone = {axis for group in groups for axis in group[:-1]}

    def axes(of: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({number[a] for a in of}))

    def extent(axis: int) -> int | None:
        return program.axes[axis].extent

    def term(t: Term) -> Term:
        if t.op == "extent" and extent(t.value) is not None:
            return replace(t, op="literal", value=extent(t.value))
        value = axes(t.value) if t.op in REDUCTIONS else number[t.value] if t.op in ("index", "extent") else t.value
        return replace(t, axes=axes(t.axes), value=value)

    def part(tensor: Any) -> Any:
        kept = [i for i, d in enumerate(tensor.dims) if d is None or d not in gone]
        dims = [tensor.dims[i] for i in kept]
        sizes = [1 if d is None else _product([extent(a) for a in groups[number[d]]]) for d in dims]
        found: dict[str, Any] = {"dims": tuple([None if d is None else number[d] for d in dims]), "shape": tuple(sizes)}
        if isinstance(tensor, RegionInput) and tensor.strides is not None:
            lies = [tensor.strides[i] for i in kept]
            found["strides"] = tuple([s if isinstance(s, int) else replace(s, axes=axes(s.axes)) for s in lies])
            found["spans"] = tuple([tensor.spans[i] for i in kept]) if tensor.spans else ()
        return replace(tensor, **found)

    return replace(
        program,
        axes=tuple([replace(program.axes[g[0]], extent=_product([extent(a) for a in g])) for g in groups]),
        inputs=tuple(map(part, program.inputs)),
        terms=tuple(map(term, program.terms)),
        outputs=tuple(map(part, program.outputs)),
    )


def _product(extents: Sequence[int | None]) -> int | None:
    """Number of places along some axes; None along one of unknown extent."""
    return None if None in extents else math.prod(n or 0 for n in extents)
