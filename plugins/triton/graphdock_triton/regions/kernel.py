"""One region's kernel: its text, and the arguments of its launch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from graphdock.contracts import REDUCTIONS, Axis, DType, RegionInput, RegionProgram, Term

from graphdock_triton.cubin import pointer
from graphdock_triton.modules import load_function
from graphdock_triton.regions.layout import Layout, is_tall, layout_of, levels
from graphdock_triton.regions.printer import Text, print_region
from graphdock_triton.regions.tiles import Tiles, choose, tiles

__all__ = ["RegionKernel", "region_kernel"]


@dataclass(frozen=True, slots=True)
class RegionKernel:
    """A program with the kernel that computes it."""

    program: RegionProgram
    layout: Layout
    tiles: Tiles
    text: Text

    @property
    def grid(self) -> tuple[int, int]:
        """Blocks of the launch."""
        return max(-(-self.layout.size(self.program, self.layout.kept) // self.tiles.block_k), 1), self.tiles.shares

    def partials(self) -> dict[str, tuple[DType, tuple[int, ...]]]:
        """Arguments for partial results -> dtype and shape: the shares, then the kept axes."""
        kept = [self.program.axes[a].extent or 0 for a in sorted(self.layout.kept_axes)]
        return {
            name: (self.program.terms[int(name[1:])].dtype, (self.tiles.shares, *kept))
            for name in self.text.arguments
            if name[0] == "p"
        }

    def rest(self) -> RegionKernel | None:
        """The kernel that puts partial results together, whose first inputs they are, in order; None where there are none."""
        partials = self.partials()
        return region_kernel(_put_together(self, list(partials))) if partials else None

    def numbers(self) -> dict[str, int]:
        """Values of the arguments that are numbers, words of streams, ``BLOCK_K`` and ``BLOCK_R`` apart."""
        found = {}
        for name in self.text.arguments[:-2]:
            if name[0] in "xyps":
                continue
            kept, reduced = self.layout.kept, self.layout.reduced
            if name in "KR":
                found[name] = max(self.layout.size(self.program, kept if name == "K" else reduced), 1)
            elif name == "CHUNK":
                found[name] = self.tiles.chunk
            elif name[0] == "e":
                found[name] = self.program.axes[int(name[1:])].extent or 0
            else:  # nk1: a group
                group = (kept if name[1] == "k" else reduced)[int(name[2:])]
                found[name] = self.layout.size(self.program, [group])
        return found

    def constants(self) -> dict[str, int]:
        return {"BLOCK_K": self.tiles.block_k, "BLOCK_R": self.tiles.block_r}

    def signature(self) -> dict[str, str]:
        """Argument -> Triton's name of its type."""
        number = "i64" if self.tiles.walk.wide else "i32"
        found = {}
        for name in self.text.arguments[:-2]:
            if name[0] == "x":
                found[name] = pointer(self.program.inputs[int(name[1:])].dtype.name)
            elif name[0] == "y":
                found[name] = pointer(self.program.outputs[int(name[1:])].dtype.name)
            elif name[0] == "p":
                found[name] = pointer(self.program.terms[int(name[1:])].dtype.name)
            elif name[0] == "s":
                found[name] = pointer("uint64") if name.endswith("ordinal") else "u64"
            else:
                found[name] = number
        return found

    def words(self) -> dict[str, tuple[int, str]]:
        """Arguments for words of streams -> number of the stream and name of the word."""
        split = {n: n[1:].split("_") for n in self.text.arguments if n[0] == "s"}
        return {name: (int(number), word) for name, (number, word) in split.items()}

    def function(self) -> Any:
        """The ``triton.jit`` function."""
        return load_function(self.text.name, self.text.source)

    @property
    def key(self) -> str:
        """Names the code for good, but for compiler and architecture."""
        facts = repr(
            (self.text.source.partition('"""\n\nimport')[2], self.signature(), self.constants(), self.tiles.options)
        )
        return hashlib.sha256(facts.encode()).hexdigest()


def region_kernel(program: RegionProgram, block: tuple[int, ...] | None = None) -> RegionKernel:
    """The kernel of a program that :func:`graphdock_triton.regions.layout.what_forbids` does not forbid.

    Args:
      block: rows and columns of a tile, and how many blocks share the columns; default: what suits the extents.
    """
    layout = layout_of(program)
    chosen = choose(program, layout) if block is None else tiles(program, layout, *block)
    return RegionKernel(program, layout, chosen, print_region(program, layout, chosen.walk))


def _put_together(kernel: RegionKernel, partials: list[str]) -> RegionProgram:
    """The program over partial results: its axes are the shares and the kept axes.

    Its inputs are the partial results, then those of the program; its outputs are those that the first kernel did not write.
    """
    program, layout = kernel.program, kernel.layout
    kept = sorted(layout.kept_axes)
    place = {axis: i + 1 for i, axis in enumerate(kept)}
    axes = (Axis("share", kernel.tiles.shares), *(program.axes[a] for a in kept))
    shape = tuple([a.extent for a in axes])
    inputs = [
        RegionInput(name, i, program.terms[int(name[1:])].dtype, shape, tuple(range(len(axes))), 16)
        for i, name in enumerate(partials)
    ]
    found = levels(program)
    terms: list[Term] = []
    number: dict[int, int] = {}
    entered: dict[int, int] = {}
    low = [i for i, t in enumerate(program.terms) if not is_tall(t, layout)]
    for i in low:
        term = program.terms[i]
        mine = tuple([place[a] for a in term.axes])
        if term.op in REDUCTIONS:
            terms.append(Term("input", term.dtype, (), (0, *mine), partials.index(f"p{i}")))
            number[i] = len(terms)
            terms.append(Term(term.op, term.dtype, (len(terms) - 1,), mine, (0,), term.origin))
            continue
        number[i] = len(terms)
        value = term.value
        if term.op == "input":
            source = program.inputs[value]
            if value not in entered:
                entered[value] = len(inputs)
                dims = tuple([None if a is None else place[a] for a in source.dims])
                inputs.append(replace(source, source=source.source + len(partials), dims=dims))
            value = entered[value]
        elif term.op == "extent" and value not in place:  # a reduced axis is no axis here
            terms.append(replace(term, op="literal", value=program.axes[value].extent))
            continue
        elif term.op in ("index", "extent"):
            value = place[value]
        terms.append(replace(term, args=tuple([number[a] for a in term.args]), axes=mine, value=value))
    assert max(found) == 1
    outputs = tuple(
        replace(o, term=number[o.term], dims=tuple([None if a is None else place[a] for a in o.dims]), inplace=())
        for o in program.outputs
        if all(a is None or a in place for a in o.dims)
    )
    return RegionProgram(f"{program.name}_put_together", axes, tuple(inputs), tuple(terms), outputs, program.streams)
