"""How large the tiles of a region's kernel are. Rules of thumb for memory-bound kernels, the same on every GPU; nothing is measured."""

from __future__ import annotations

from dataclasses import dataclass

from graphdock.contracts import RegionProgram

from graphdock_triton.cubin import Options
from graphdock_triton.regions.layout import Layout, power_of_two
from graphdock_triton.regions.printer import Walk

__all__ = ["Tiles", "choose"]

#: Elements of a tile that a block holds in registers, of each value.
_TILE = 4096
#: Most columns of a tile that holds all reduced places.
_WHOLE = 8192


@dataclass(frozen=True, slots=True)
class Tiles:
    """A kernel's tiles: ``block_k`` rows of ``block_r`` columns each, and what follows for its text and its threads."""

    walk: Walk
    block_k: int
    block_r: int
    options: Options


def choose(program: RegionProgram, layout: Layout) -> Tiles:
    """The tiles of a program."""
    kept, reduced = layout.size(program, layout.kept), layout.size(program, layout.reduced)
    if not layout.reduced:
        return tiles(program, layout, min(1024, max(power_of_two(kept), 32)), 1)
    last_is_reduced = layout.reduced[-1][-1] == len(program.axes) - 1
    if last_is_reduced or not layout.kept:
        columns = min(power_of_two(reduced), _WHOLE if kept > 1 else 4 * _WHOLE)
        rows = max(1, min(_TILE // columns, 64, power_of_two(kept)))
    else:  # rows lie side by side
        rows = min(power_of_two(kept), 64)
        columns = min(power_of_two(reduced), max(_TILE // rows, 1))
    return tiles(program, layout, rows, columns)


def tiles(program: RegionProgram, layout: Layout, block_k: int, block_r: int) -> Tiles:
    """Tiles of a given size."""
    kept, reduced = layout.size(program, layout.kept), layout.size(program, layout.reduced)
    largest = kept * max(reduced, 1)
    walk = Walk(
        whole=reduced <= block_r,
        even_kept=kept % block_k == 0,
        even_reduced=reduced % block_r == 0,
        wide=largest >= 2**31 - block_k * block_r,
    )
    elements = block_k * block_r
    warps = (
        1 if elements <= 128 else 2 if elements <= 512 else 4 if elements <= 4096 else 8 if elements <= 16384 else 16
    )
    return Tiles(walk, block_k, block_r, Options(warps, 2))
