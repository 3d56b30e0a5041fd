"""One region's kernel: its text, and the arguments of its launch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import RegionProgram

from graphdock_triton.modules import load_function
from graphdock_triton.regions.layout import Layout, layout_of
from graphdock_triton.regions.printer import Text, print_region
from graphdock_triton.regions.tiles import Tiles, choose, tiles

__all__ = ["RegionKernel", "region_kernel"]

_POINTERS: Mapping[str, str] = {
    "bool": "*i1",
    "float16": "*fp16",
    "bfloat16": "*bf16",
    "float32": "*fp32",
    "float64": "*fp64",
}


@dataclass(frozen=True, slots=True)
class RegionKernel:
    """A program with the kernel that computes it."""

    program: RegionProgram
    layout: Layout
    tiles: Tiles
    text: Text

    @property
    def grid(self) -> int:
        """Blocks of the launch."""
        return max(-(-self.layout.size(self.program, self.layout.kept) // self.tiles.block_k), 1)

    def numbers(self) -> dict[str, int]:
        """Values of the arguments that are numbers, ``BLOCK_K`` and ``BLOCK_R`` apart."""
        found = {}
        for name in self.text.arguments[:-2]:
            if name[0] in "xy":
                continue
            kept, reduced = self.layout.kept, self.layout.reduced
            if name in "KR":
                found[name] = max(self.layout.size(self.program, kept if name == "K" else reduced), 1)
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
                found[name] = _pointer(self.program.inputs[int(name[1:])].dtype.name)
            elif name[0] == "y":
                found[name] = _pointer(self.program.outputs[int(name[1:])].dtype.name)
            else:
                found[name] = number
        return found

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


def region_kernel(program: RegionProgram, block: tuple[int, int] | None = None) -> RegionKernel:
    """The kernel of a program that :func:`graphdock_triton.regions.layout.what_forbids` does not forbid.

    Args:
      block: rows and columns of a tile; default: what suits the extents.
    """
    layout = layout_of(program)
    chosen = choose(program, layout) if block is None else tiles(program, layout, *block)
    return RegionKernel(program, layout, chosen, print_region(program, layout, chosen.walk))


def _pointer(dtype: str) -> str:
    return _POINTERS.get(dtype) or "*" + dtype.replace("uint", "u").replace("int", "i")
