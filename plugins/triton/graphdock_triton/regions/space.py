"""The configurations of a region's kernel, and what a choice among them is kept under."""

from __future__ import annotations

import hashlib

from graphdock.contracts import RegionProgram

from graphdock_triton.regions.layout import Layout, layout_of, power_of_two
from graphdock_triton.regions.tiles import Tiles, choose, may_share
from graphdock_triton.tuning import Subject

__all__ = ["space", "subject"]

#: Most elements of a tile, as of the guess.
_LARGEST = 1 << 14


def space(program: RegionProgram) -> list[tuple[int, int, int]]:
    """``(rows, columns, shares)``, as :func:`graphdock_triton.regions.kernel.region_kernel` takes them; the guess first."""
    layout = layout_of(program)
    guess = choose(program, layout)
    found = [(guess.block_k, guess.block_r, guess.shares)]
    for rows, columns, shares in _others(program, layout, guess):
        if 32 <= rows * columns <= _LARGEST and (rows, columns, shares) not in found:
            found.append((rows, columns, shares))
    return found


def _others(program: RegionProgram, layout: Layout, guess: Tiles) -> list[tuple[int, int, int]]:
    kept = power_of_two(max(layout.size(program, layout.kept), 1))
    if not layout.reduced:
        return [(rows, 1, 1) for rows in (256, 512, 1024, 2048, 4096) if rows <= kept]
    k, r = guess.block_k, guess.block_r
    columns = [r] if guess.walk.whole else [r // 2, r, 2 * r]
    rows = [n for n in (k // 2, k, 2 * k, 4 * k) if 1 <= n <= kept]
    shares = [guess.shares]
    if guess.shares > 1 and may_share(program, layout):
        shares = [1, guess.shares // 2, guess.shares, guess.shares * 2]
    return [(a, b, s) for s in shares for a in rows for b in columns if b >= 1 and s >= 1]


def subject(program: RegionProgram) -> Subject:
    """Return what a choice is kept under: the program's terms and layout; each size up to a power of two, and whether 16
    divides it.
    """
    layout = layout_of(program)
    tensors = [[(x.dtype.name, x.dims) for x in program.inputs], [(y.dtype.name, y.dims) for y in program.outputs]]
    terms = [(t.op, t.dtype.name, t.args, t.axes, repr(t.value)) for t in program.terms]
    content = hashlib.sha256(repr((tensors, terms, layout)).encode()).hexdigest()
    sizes = [layout.size(program, [group]) for group in (*layout.kept, *layout.reduced)]
    classes = tuple(n for size in sizes for n in (power_of_two(max(size, 1)), int(size % 16 == 0)))
    return Subject(f"region_{len(program.terms)}", content, classes)
