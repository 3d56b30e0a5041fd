"""The CUDA C++ that kernels share. Sources are joined as text, so that a compiler needs no header of its own.

source = prelude() + "GD_KERNEL(twice)(float* x, i64 n) { GD_GRID_LOOP(i64, i, n) x[i] *= 2; }"
"""

from __future__ import annotations

import functools
from pathlib import Path

__all__ = ["PARTS", "part", "prelude"]

#: The files of this folder, in the order in which they build on one another.
PARTS = ("base.cuh", "complex.cuh", "block.cuh")


@functools.cache
def part(name: str) -> str:
    """The text of a file of this folder."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


@functools.cache
def prelude(*parts: str) -> str:
    """The files joined, all of ``PARTS`` when none is named; what a compiler says of a line names the file that it is of."""
    return "".join(f'#line 1 "{name}"\n{part(name)}' for name in parts or PARTS)
