"""Steps of a loop as functions of its module: what would be a module by itself, under other names."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from graphdock.contracts import RegionProgram

from graphdock_llvm.packing import print_packed
from graphdock_llvm.panels import Matrices
from graphdock_llvm.peeling import outer_axes, print_peeled
from graphdock_llvm.printer import Printed, print_functions
from graphdock_llvm.tiles import print_tiles, tiles_of

__all__ = ["print_packing", "print_step"]

#: Names of functions and constants of a module, which several steps would share.
_NAMES = re.compile(r"@(region|inner|each|alone)\b")


def print_step(program: RegionProgram, count: int, width: int, name: str, packed: Collection[int]) -> Printed:
    """The function of a program under a name, for the loop's module alone.

    Args:
      count: how many inputs it has. packed: numbers of those that come in panels.
    """
    tiles = tiles_of(program, width, packed)
    if tiles is not None:
        return _named(print_tiles(program, tiles, count, width), name)
    if outer := outer_axes(program):
        return _named(print_peeled(program, outer, count, width), name)
    return print_functions(program, count, width, name, "internal")


def print_packing(of: Matrices, name: str) -> Printed:
    """The function that packs a matrix, under a name."""
    return _named(print_packed(of), name)


def _named(printed: Printed, name: str) -> Printed:
    """A function of its own stack, which is free again when it returns: tiles take much of it."""

    def renamed(text: str) -> str:
        return _NAMES.sub(lambda found: f"@{name}" if found[1] == "region" else f"@{name}.{found[1]}", text)

    *others, last = map(renamed, printed.functions)
    last = last.replace("define void", "define internal void", 1).replace(") {", ") noinline {", 1)
    helpers = {f"{name}.{k}" if _NAMES.search(text) else k: renamed(text) for k, text in printed.helpers.items()}
    return replace(printed, functions=(*others, last), helpers=helpers)
