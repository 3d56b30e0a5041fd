"""Sizes of the tiles of a region's kernel. Rules of thumb for memory-bound kernels, the same on every GPU; nothing is
measured."""

from __future__ import annotations

from dataclasses import dataclass

from graphdock.contracts import REDUCTIONS, RegionProgram

from graphdock_triton.cubin import Options
from graphdock_triton.regions.layout import Layout, is_last, levels, power_of_two
from graphdock_triton.regions.printer import Walk

__all__ = ["Tiles", "choose"]

#: Elements of a tile that a block holds in registers, of each value.
_TILE = 4096
#: Most columns of a tile that holds all reduced places.
_WHOLE = 8192
#: Blocks that keep a GPU busy, and the fewest columns that are worth a block of their own.
_BLOCKS = 512
_SHARE = 4096
#: Most numbers that one block of random words makes.
_DRAWN = 8


@dataclass(frozen=True, slots=True)
class Tiles:
    """A kernel's tiles: ``block_k`` rows of ``block_r`` columns each, and what follows for its text and its threads.

    ``shares``: blocks that share the columns of the same rows, ``chunk`` columns each.
    """

    walk: Walk
    block_k: int
    block_r: int
    options: Options
    shares: int = 1
    chunk: int = 0


def choose(program: RegionProgram, layout: Layout) -> Tiles:
    """The tiles of a program."""
    kept, reduced = layout.size(program, layout.kept), layout.size(program, layout.reduced)
    if not layout.reduced:
        return tiles(program, layout, min(1024, max(power_of_two(kept), 32)), 1)
    last_is_reduced = layout.reduced[-1][-1] == len(program.axes) - 1
    if last_is_reduced or not layout.kept:
        columns = min(power_of_two(reduced), _WHOLE)
        rows = max(1, min(_TILE // columns, 64, power_of_two(kept)))
    else:  # rows lie side by side
        rows = min(power_of_two(kept), 64)
        columns = min(power_of_two(reduced), max(_TILE // rows, 1))
    blocks = -(-kept // rows)
    shares = min(power_of_two(_BLOCKS // blocks), reduced * rows // _SHARE) if blocks < _BLOCKS // 4 else 1
    return tiles(program, layout, rows, min(columns, 2048) if shares > 1 else columns, shares)


def may_share(program: RegionProgram, layout: Layout) -> bool:
    """Return whether blocks may share the reduced places: nothing along them is written that needs a reduction first."""
    found = levels(program)
    kept = tuple(sorted(layout.kept_axes))
    reductions = [t for t in program.terms if t.op in REDUCTIONS]
    along = [o for o in program.outputs if any(a is not None and a not in kept for a in o.dims)]
    return (
        all(t.axes == kept for t in reductions)
        and max(found) == 1
        and all(found[o.term] == 0 for o in along)
        and len(along) < len(program.outputs)
    )


def _in_order(program: RegionProgram, layout: Layout) -> bool:
    """Return whether all kept axes stand before all reduced ones, or behind them."""
    return is_last(program, layout.reduced) or is_last(program, layout.kept)


def tiles(program: RegionProgram, layout: Layout, block_k: int, block_r: int, shares: int = 1) -> Tiles:
    """Tiles of a given size. ``shares`` counts where :func:`may_share` lets it."""
    kept, reduced = layout.size(program, layout.kept), layout.size(program, layout.reduced)
    largest = kept * max(reduced, 1)
    split = shares > 1 and may_share(program, layout)
    chunk = -(-reduced // (shares * block_r)) * block_r if split else 0
    side = (reduced, block_r) if is_last(program, layout.reduced) else (kept, block_k)
    walk = Walk(
        whole=reduced <= block_r,
        split=split,
        even_kept=kept % block_k == 0,
        even_reduced=reduced % block_r == 0,
        wide=largest >= 2**31 - block_k * block_r,
        blocks=program.draws
        and bool(program.axes)  # a single number is no tile of them
        and side[1] % _DRAWN == 0
        and (not layout.reduced or (side[0] % _DRAWN == 0 and _in_order(program, layout))),
    )
    elements = block_k * block_r * (2 if program.draws else 1)  # random words have 64 bits
    warps = (
        1 if elements <= 128 else 2 if elements <= 512 else 4 if elements <= 4096 else 8 if elements <= 16384 else 16
    )
    return Tiles(walk, block_k, block_r, Options(warps, 2), -(-reduced // chunk) if split else 1, chunk)
