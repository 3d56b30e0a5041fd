"""Kernels that resize images ``[B,H,W,C]``. Each pixel of a result is gathered by one thread, in the gradients too."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
from graphdock.contracts import KernelDef, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.launch import Param, i64, raw
from graphdock_cuda.work import Operand, Trace, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def _size(w: Work) -> tuple[int, int]:
    values = w.host("size").tolist()
    if np.ndim(values) != 1 or len(values) != 2 or min(values) < 1:
        raise errors.InvalidArgumentError(
            f"size {values} must be positive", op=w.node.origin, site=w.node.site, expected="height and width"
        )
    return values[0], values[1]


def _axis(size: int, wanted: int, align: bool, half: bool) -> bytes:
    """``Axis`` of ``source/resample.cuh``; the scale in float32, as the ops have it."""
    if align and wanted > 1:
        scale = np.float32(size - 1) / np.float32(wanted - 1)
    else:
        scale = np.float32(size) / np.float32(max(wanted, 1))
    return struct.pack("<2if2i", size, wanted, scale, align, half)


def _images(w: Work, size: tuple[int, int], wanted: tuple[int, int], channels: int) -> Param:
    align, half = bool(w.attr("align_corners")), bool(w.node.attrs.get("half_pixel_centers", False))
    axes = b"".join(_axis(n, m, align, half) for n, m in zip(size, wanted, strict=True))
    return raw(axes + struct.pack("<q", channels))


def _launch(w: Work, method: str, entry: str, x: Operand, out: Operand, images: Param) -> None:
    made = source("resample.cuh", "resize.cuh", TYPE=w.ctype(x), RESULT=w.ctype(out), METHOD_OF=method)
    if out.size:
        w.launch(made, entry, blocks(out.size), 256, x, out, i64(out.size), images)


def _resize(method: str) -> Trace:
    def trace(w: Work) -> None:
        x, wanted = w.input(0), _size(w)
        batch, height, width, channels = x.shape
        if not (height and width):
            raise errors.InvalidArgumentError(
                f"images {list(x.shape)} have no pixels to sample", op=w.node.origin, site=w.node.site
            )
        y = w.output((batch, *wanted, channels))
        _launch(w, method, "resize", x, y, _images(w, (height, width), wanted, channels))

    return trace


def _back(method: str, size_of: Callable[[Work], tuple[int, int]]) -> Trace:
    def trace(w: Work) -> None:
        g, size = w.input(0), size_of(w)
        batch, height, width, channels = g.shape
        dx = w.output((batch, *size, channels))
        if not g.size:
            w.fill(dx)
            return
        _launch(w, method, "resize_back", g, dx, _images(w, size, (height, width), channels))

    return trace


def _as_second(w: Work) -> tuple[int, int]:
    shape = w.input(1).shape
    return shape[1], shape[2]


kernel("ResizeNearestNeighbor")(_resize("NEAREST"))
kernel("ResizeNearestNeighborGrad")(_back("NEAREST", _size))
kernel("ResizeBilinear")(_resize("BILINEAR"))
kernel("ResizeBilinearGrad")(_back("BILINEAR", _as_second))
kernel("ResizeBicubic")(_resize("BICUBIC"))
kernel("ResizeBicubicGrad")(_back("BICUBIC", _as_second))
kernel("ResizeArea")(_resize("AREA"))
kernel("ResizeAreaGrad")(_back("AREA", _as_second))
