"""Convolution of 3x3 windows with 16 products of matrices for each 2x2 of the output instead of 36.

Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015: F(2x2, 3x3), Y = A' [(G w G') * (B' x B)] A. The
transforms are sums of strided views, one axis after the other; the products over the 16 positions of a transformed tile are
BLAS's. Where x holds an infinity or a NaN, the other outputs of its tile are NaN too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from graphdock_cpu.kernels.conv_im2col import FLOPS, Padded, Product
from graphdock_cpu.kernels.sliding import Method, Shape, Slide

__all__ = ["winograd", "winograd_filter", "winograd_input", "winograd_work"]

#: Tiles of a block of images, so that the products have rows enough: forward, and where each block adds a product to the filter.
TILES, TILES_FILTER = 196, 392
#: What an element that the transforms add costs, in elements of a long copy: they add strided ones, and 16 products are short.
ADDED = 6

_add, _subtract, _multiply, _copyto = np.add, np.subtract, np.multiply, np.copyto


class _Tiles:
    """Tiles of 2x2 outputs, 4x4 inputs: how many, and blocks of images."""

    def __init__(self, slide: Slide, least: int) -> None:
        self.slide = slide
        self.high, self.wide = ((n + 1) // 2 for n in slide.out)
        per_image = self.high * self.wide
        self.images = max(1, min(slide.batch, -(-least // max(1, per_image))))
        self.most = self.images * per_image
        # windows of whole tiles
        self.padded = Padded(replace(slide, out=(2 * self.high, 2 * self.wide)))
        self.blocks = [
            (b, min(slide.batch, b + self.images)) for b in range(0, slide.batch if per_image else 0, self.images)
        ]

    def rows(self, block: tuple[int, int]) -> int:
        return (block[1] - block[0]) * self.high * self.wide

    def half(self) -> Shape:
        """Buffer for tiles transformed along one axis."""
        return (self.images, self.high, 2 * self.wide + 2, self.slide.channels)


def _four(a: Any, b: Any, c: Any, d: Any, into: Callable[[int], Any]) -> None:
    """B' along one axis."""
    _subtract(a, c, into(0))
    _add(b, c, into(1))
    _subtract(c, b, into(2))
    _subtract(b, d, into(3))


def _transform_input(tiles: _Tiles, x: Any, half: Any, v: Any) -> None:
    """``x [n, 2 * high + 2, 2 * wide + 2, C]`` into ``v [16, n * high * wide, C]``."""
    n, high, wide = x.shape[0], tiles.high, tiles.wide
    target = v.reshape(4, 4, n, high, wide, v.shape[-1])
    rows = [x[:, i : i + 2 * high - 1 : 2] for i in range(4)]
    operations = ((_subtract, 0, 2), (_add, 1, 2), (_subtract, 2, 1), (_subtract, 1, 3))
    for i, (operation, first, second) in enumerate(operations):
        operation(rows[first], rows[second], half)
        _four(*[half[:, :, j : j + 2 * wide - 1 : 2] for j in range(4)], target[i].__getitem__)


def _spread_filter(a: Any, b: Any, c: Any, into: Callable[[int], Any], half: Any) -> None:
    """G along one axis."""
    _copyto(into(0), a)
    _copyto(into(3), c)
    one, two = into(1), into(2)
    _add(a, c, one)
    _multiply(one, half, one)
    _multiply(b, half, two)
    _add(one, two, one)
    # one is now (a + b + c) / 2
    _subtract(one, b, two)


def _transform_filter(w: Any, rows: Any, u: Any) -> None:
    """``w [3, 3, C, O]`` into ``u [16, C, O]``."""
    half, target = w.dtype.type(0.5), u.reshape(4, 4, *w.shape[2:])
    _spread_filter(w[0], w[1], w[2], rows.__getitem__, half)
    for i in range(4):
        _spread_filter(*rows[i], target[i].__getitem__, half)


def _gather_output(tiles: _Tiles, m: Any, sums: Any, y: Any) -> None:
    """``m [16, n * high * wide, O]`` into ``y [n, H, W, O]``, whose last row and column may be missing from the tiles."""
    n, height, width = y.shape[:3]
    grid = m.reshape(4, 4, n, tiles.high, tiles.wide, m.shape[-1])
    rows = sums.reshape(4, n, tiles.high, tiles.wide, m.shape[-1])
    for a in range(2):
        if a == 0:
            _add(grid[0], grid[1], rows)
            _add(rows, grid[2], rows)
        else:
            _subtract(grid[1], grid[2], rows)
            _subtract(rows, grid[3], rows)
        tall = (height - a + 1) // 2
        for b in range(2):
            broad = (width - b + 1) // 2
            part = rows[:, :, :tall, :broad]
            into = y[:, a::2, b::2]
            if b == 0:
                _add(part[0], part[1], into)
                _add(into, part[2], into)
            else:
                _subtract(part[1], part[2], into)
                _subtract(into, part[3], into)


def _convolve(slide: Slide, turned: bool, product: Product) -> Method:
    """``(x, w, y)``; ``turned``: with the filter turned around, and from its outputs to its inputs."""
    tiles = _Tiles(slide, TILES)
    padded, c, o = tiles.padded, slide.channels, slide.outputs
    filters = (o, c) if turned else (c, o)
    buffers = (
        (4, 3, *filters),
        (16, *filters),
        tiles.half(),
        (16 * tiles.most * c,),
        (16 * tiles.most * o,),
        (4 * tiles.most * o,),
    )

    def compute(x: Any, w: Any, y: Any, *scratch: Any) -> None:
        if padded.needed:
            padded.fill(x, scratch[0])
            x = scratch[0]
        rows, u, half, inputs, products, sums = scratch[-6:]
        _transform_filter(w[::-1, ::-1] if turned else w, rows, u)
        if turned:
            u = u.swapaxes(1, 2)
        for block in tiles.blocks:
            count, images = tiles.rows(block), slice(*block)
            v = inputs[: 16 * count * c].reshape(16, count, c)
            m = products[: 16 * count * o].reshape(16, count, o)
            _transform_input(tiles, x[images], half[: block[1] - block[0]], v)
            for i in range(16):
                product(v[i], u[i], m[i])
            _gather_output(tiles, m, sums[: 4 * count * o], y[images])

    return compute, (*padded.scratch, *buffers)


def winograd_work(slide: Slide) -> float:
    """Cost of the three, in elements of a long copy: products, and the sums of the transforms of tiles and filters."""
    tiles = slide.batch * math.prod((n + 1) // 2 for n in slide.out)
    products = 2 * 16 * tiles * slide.channels * slide.outputs / FLOPS
    return products + ADDED * (24 * tiles * (slide.channels + slide.outputs) + 36 * slide.channels * slide.outputs)


def winograd(slide: Slide, product: Product = np.dot) -> Method:
    """``(x, w, y)`` of a 3x3 window that moves one element at a time."""
    return _convolve(slide, False, product)


def winograd_input(slide: Slide, product: Product = np.dot) -> Method:
    """``(w, dy, dx)``."""
    back = replace(
        slide,
        channels=slide.outputs,
        outputs=slide.channels,
        size=slide.out,
        before=tuple(2 - b for b in slide.before),
        out=slide.size,
    )
    convolve, scratch = _convolve(back, True, product)

    def compute(w: Any, dy: Any, dx: Any, *rest: Any) -> None:
        convolve(dy, w, dx, *rest)

    return compute, scratch


def _spread_output(e: Any, f: Any, zero: Any, into: Callable[[int], Any]) -> None:
    """A along one axis."""
    _copyto(into(0), e)
    _add(e, f, into(1))
    _subtract(e, f, into(2))
    _subtract(zero, f, into(3))


def _gather_filter(p: Any, rows: Any, dw: Any) -> None:
    """G' p G: ``p [16, C, O]`` into ``dw [3, 3, C, O]``."""
    half = dw.dtype.type(0.5)
    grid = p.reshape(4, 4, *dw.shape[2:])
    _collect([grid[i] for i in range(4)], [rows[i] for i in range(3)], half)
    for i in range(3):
        _collect([rows[i, j] for j in range(4)], [dw[i, j] for j in range(3)], half)


def _collect(parts: list[Any], into: list[Any], half: Any) -> None:
    """G' along one axis; it overwrites ``parts``."""
    a, b, c, d = parts
    _multiply(b, half, b)
    _multiply(c, half, c)
    _subtract(b, c, into[1])
    _add(b, c, b)
    _add(a, b, into[0])
    _add(b, d, into[2])


def winograd_filter(slide: Slide, product: Product = np.dot) -> Method:
    """``(x, dy, dw)``: 16 products per block of images, added up."""
    tiles = _Tiles(slide, TILES_FILTER)
    padded, c, o = tiles.padded, slide.channels, slide.outputs
    whole = (slide.batch, 2 * tiles.high, 2 * tiles.wide, o)
    odd = whole[1:3] != slide.out
    more = ((c, o),) if len(tiles.blocks) > 1 else ()
    buffers = (
        tiles.half(),
        (16 * tiles.most * c,),
        (16 * tiles.most * o,),
        (tiles.images, tiles.high, 2 * tiles.wide, o),
        (16, c, o),
        (3, 4, c, o),
        *more,
        *((whole,) if odd else ()),
    )

    def compute(x: Any, dy: Any, dw: Any, *scratch: Any) -> None:
        if not tiles.blocks:
            dw.fill(0)
            return
        if padded.needed:
            padded.fill(x, scratch[0])
            x = scratch[0]
        half, inputs, outputs, lines, total, rows, *others = scratch[len(padded.scratch) :]
        if odd:
            high, wide = slide.out
            even = others[-1]
            even[:, high:] = 0
            even[:, :high, wide:] = 0
            _copyto(even[:, :high, :wide], dy)
            dy = even
        for block in tiles.blocks:
            count, images, n = tiles.rows(block), slice(*block), block[1] - block[0]
            v = inputs[: 16 * count * c].reshape(16, count, c)
            q = outputs[: 16 * count * o].reshape(16, count, o)
            _transform_input(tiles, x[images], half[:n], v)
            _transform_gradient(tiles, dy[images], lines[:n], q)
            for i in range(16):
                if block[0] == 0:
                    product(v[i].T, q[i], total[i])
                else:
                    product(v[i].T, q[i], others[0])
                    _add(total[i], others[0], total[i])
        _gather_filter(total, rows, dw)

    return compute, (*padded.scratch, *buffers)


def _transform_gradient(tiles: _Tiles, dy: Any, line: Any, q: Any) -> None:
    """``dy [n, 2 * high, 2 * wide, O]`` into ``q [16, n * high * wide, O]``."""
    target = q.reshape(4, 4, dy.shape[0], tiles.high, tiles.wide, dy.shape[-1])
    even, odd, zero = dy[:, 0::2], dy[:, 1::2], dy.dtype.type(0)
    for i in range(4):
        if i == 1:
            _add(even, odd, line)
        elif i == 2:
            _subtract(even, odd, line)
        elif i == 3:
            _subtract(zero, odd, line)
        rows = even if i == 0 else line
        _spread_output(rows[:, :, 0::2], rows[:, :, 1::2], zero, target[i].__getitem__)
