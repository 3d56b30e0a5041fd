"""Walk of a kernel's blocks through the space of a region program.

The axes fall into those that every reduction goes over and those that are kept. Each block has a tile of kept places (rows of
the tile) by reduced places (its columns), whichever of them lie side by side in memory; without reductions tiles have one
column. Axes side by side that all tensors have together are one *group*, so that most regions have one group or two.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from graphdock.contracts import REDUCTIONS, RegionProgram, Term

__all__ = ["Layout", "layout_of", "what_forbids"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Attributes:
    kept, reduced: groups of axes, in order; each group is a run of axes.
    """

    kept: tuple[tuple[int, ...], ...]
    reduced: tuple[tuple[int, ...], ...]

    @property
    def kept_axes(self) -> frozenset[int]:
        return frozenset(a for g in self.kept for a in g)

    def size(self, program: RegionProgram, groups: Sequence[Sequence[int]]) -> int:
        """Return how many places groups have together."""
        return math.prod(program.axes[a].extent or 0 for g in groups for a in g)


def what_forbids(program: RegionProgram) -> str | None:
    """Return why no kernel of this package computes the program; None where one does."""
    sets = {t.value for t in program.terms if t.op in REDUCTIONS}
    if len(sets) > 1:
        names = [", ".join(program.axes[a].name for a in s) for s in sorted(sets)]
        return f"reductions over {' and over '.join(names)} in one region"
    if any(a.extent is None for a in program.axes):
        return "extents are not known"
    return None


def layout_of(program: RegionProgram) -> Layout:
    """The layout of a program that nothing forbids."""
    reduced = program.reduced()
    groups: list[list[int]] = []
    for axis in range(len(program.axes)):
        before = groups[-1][-1] if groups else None
        if before is not None and (before in reduced) == (axis in reduced) and _together(program, before, axis):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return Layout(
        tuple(tuple(g) for g in groups if g[0] not in reduced), tuple(tuple(g) for g in groups if g[0] in reduced)
    )


def _together(program: RegionProgram, a: int, b: int) -> bool:
    """Return whether every tensor has both axes or neither, and no term counts along one of them."""
    if any(t.op == "index" and t.value in (a, b) for t in program.terms):
        return False
    tensors = [*(x.dims for x in program.inputs), *(x.dims for x in program.outputs)]
    tensors += [t.axes for t in program.terms if t.op == "place"]
    return all((a in dims) == (b in dims) for dims in tensors)


def is_last(program: RegionProgram, groups: Sequence[Sequence[int]]) -> bool:
    """Return whether the axes of these groups are the last of the space, so that their places lie side by side."""
    mine = {a for g in groups for a in g}
    return bool(mine) and min(mine) == len(program.axes) - len(mine)


def levels(program: RegionProgram) -> list[int]:
    """Return how many reductions stand behind each term, one upon another."""
    found: list[int] = []
    for term in program.terms:
        below = max((found[a] for a in term.args), default=0)
        found.append(below + (term.op in REDUCTIONS))
    return found


@functools.lru_cache(64)
def power_of_two(number: int) -> int:
    """The smallest power of two that is as large."""
    return 1 << max(number - 1, 0).bit_length()


def is_tall(term: Term, layout: Layout) -> bool:
    """Return whether a term differs along the columns of a tile."""
    return any(a not in layout.kept_axes for a in term.axes)
