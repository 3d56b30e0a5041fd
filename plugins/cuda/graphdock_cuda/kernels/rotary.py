"""Rotary position embedding, a thread per two numbers that are turned together. Narrow floats are computed in float32."""

from __future__ import annotations

import struct

from graphdock.contracts import KernelDef

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.columns import wide_of
from graphdock_cuda.launch import i32, i64, raw
from graphdock_cuda.work import Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


@kernel("Rotary", inplace={"y": ("x",)}, modes=("planned", "fresh", "inplace"))
def rotary(w: Work) -> None:
    """``(x, cos, sin) -> y``; what is past the angles is copied by further threads."""
    x, cos, sin = w.inputs
    y = w.output(x.shape)
    if not x.size:
        return
    (positions, angles), (heads, depth) = cos.shape, x.shape[-2:]
    threads = x.size // depth * (depth - angles)
    types = {"TYPE": w.ctype(x), "ANGLE": w.ctype(cos), "WIDE": w.ctype(wide_of(x.dtype, cos.dtype))}
    sizes = raw(struct.pack("<4q", positions, heads, depth, angles))
    args = (x, cos, sin, y, i64(threads), sizes, i32(w.attr("pairs")), i32(w.attr("back")))
    entry = "rotary_32" if x.size < 1 << 31 else "rotary_64"
    w.launch(source("rotary.cuh", **types), entry, blocks(threads), 256, *args)
