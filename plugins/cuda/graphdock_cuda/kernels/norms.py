"""Norms of many tensors: their squares summed in one launch for many, and products by a number that are one with others.

A launch takes addresses and sizes of its tensors by value, as many as parameters hold.
"""

from __future__ import annotations

import struct

from graphdock.contracts import KernelDef

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import FLOATS, family
from graphdock_cuda.kernels.elementwise import broadcast_shape, elementwise
from graphdock_cuda.launch import i64, raw
from graphdock_cuda.work import Operand, Table, Together, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: Tensors of a launch; all parameters of a kernel must fit in 4 KiB.
_SQUARED, _SCALED = 160, 120
#: Elements whose squares one block adds.
_PART = 1 << 14
_PER_THREAD = 4
_DTYPES = {*FLOATS, "float64"}


@kernel("L2LossSum")
def l2_loss_sum(w: Work) -> None:
    """One launch for as many tensors as its parameters hold, and one that adds what their blocks left."""
    given, out = [t for t in w.inputs if t.size], w.output(())
    if not given:
        w.fill(out)
        return
    defines = {"TYPE": w.ctype(out), "MOST": str(_SQUARED), "PART": str(_PART)}
    made = source("block.cuh", "tables.cuh", "half_squares.cuh", **defines)
    total = sum(blocks(t.size, _PART) for t in given)
    parts, done = w.scratch(out.dtype.accumulator, total), 0
    for first in range(0, len(given), _SQUARED):
        some = given[first : first + _SQUARED]
        sizes = [t.size for t in some]
        begins = [sum(blocks(n, _PART) for n in sizes[:i]) for i in range(len(sizes) + 1)]
        count = begins.pop()
        pad = [0] * (_SQUARED - len(some))
        packed = raw(struct.pack(f"<{2 * _SQUARED}q", *sizes, *pad, *begins, *pad))
        table = Table(tuple(some), _SQUARED)
        w.launch(made, "square_parts", count, 256, table, packed, parts.at(done), i64(len(some)))
        done += count
    w.launch(made, "half_total", 1, 256, parts, out, i64(total))


@kernel("Mul", inplace={"z": ("x", "y")}, modes=("planned", "fresh", "inplace"))
def mul(w: Work) -> None:
    """By one number it is one launch with other products by that number, if they stand side by side."""
    x, y = w.inputs
    out = w.output(broadcast_shape([x.shape, y.shape]))
    factor, tensor = (x, y) if not x.rank else (y, x)
    if factor.rank or out.dtype.name not in _DTYPES:
        assert w.node.opdef.scalar is not None
        elementwise(w, w.node.opdef.scalar, [("x", x), ("y", y)], out)
    elif out.size:
        _scale(w, tensor, factor, out)


def _scale(w: Work, tensor: Operand, factor: Operand, out: Operand) -> None:
    made, size = source("tables.cuh", "scaled.cuh", TYPE=w.ctype(out), MOST=str(_SCALED)), i64(out.size)
    together = Together("scaled_many", (tensor, out), size, (factor,), _SCALED)
    grid = blocks(out.size, 256 * _PER_THREAD)
    w.launch(made, "scaled", grid, 256, tensor, out, factor, size, together=together)
