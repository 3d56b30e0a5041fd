"""Convolution as products of matrices: the windows of some rows of the output are copied side by side, and BLAS does the rest.

Chellapilla, Puri and Simard, "High performance convolutional neural networks for document processing", 2006; here in blocks of
rows, so that the copies stay in the cache and take little scratch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from graphdock_cpu.kernels.sliding import Method, Shape, Slide

__all__ = ["Product", "col2im", "dot", "dot_filter", "dot_input", "flipped", "im2col", "im2col_filter", "tap_views"]

#: Elements of the copied windows of a block: 1 MB of float32, and 4 MB where each block's product has the filter's size.
COPIED, COPIED_FILTER = 1 << 18, 1 << 20

#: ``product(x, y, out)`` of matrices.
Product: TypeAlias = Callable[[Any, Any, Any], Any]

_copyto, _add = np.copyto, np.add


class Padded:
    """The input with its padding, in a buffer of its own where there is any."""

    def __init__(self, slide: Slide) -> None:
        self.needed = slide.padded
        reach = slide.reach
        self.shape: Shape = (slide.batch, *(reach if self.needed else slide.size), slide.channels)
        inside = [max(0, min(n, r - b)) for n, r, b in zip(slide.size, reach, slide.before, strict=True)]
        lead = (slice(None),)
        self.target = lead + tuple(slice(b, b + n) for b, n in zip(slide.before, inside, strict=True))
        self.source = lead + tuple(slice(0, n) for n in inside)
        self.borders = []
        for axis, (b, n, r) in enumerate(zip(slide.before, inside, reach, strict=True)):
            # what earlier axes have not covered yet
            index = self.target[: axis + 1]
            self.borders += [(*index, slice(*ends)) for ends in ((0, b), (b + n, r)) if ends[0] < ends[1]]
        self.scratch = (self.shape,) if self.needed else ()

    def fill(self, x: Any, buffer: Any) -> None:
        for border in self.borders:
            buffer[border] = 0
        _copyto(buffer[self.target], x[self.source])


def strides_of(shape: Shape, itemsize: int) -> list[int]:
    """Bytes from element to element along each dim of a contiguous array."""
    return [itemsize * math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _view(slide: Slide, shape: Shape, x: Any) -> Any:
    """The windows of a contiguous array: ``[batch, *out, *window, channels]``."""
    batch, *spatial, channel = strides_of(shape, x.itemsize)
    steps = [a * s for a, s in zip(spatial, slide.stride, strict=True)]
    taps = [a * d for a, d in zip(spatial, slide.dilation, strict=True)]
    dims = (slide.batch, *slide.out, *slide.window, slide.channels)
    return np.ndarray(dims, x.dtype, x, 0, (batch, *steps, *taps, channel))


def _blocks(slide: Slide, elements: int) -> list[tuple[Any, int, int]]:
    """Blocks of whole images, or of lines of one: index into the windows, first and last row of the output.

    A block copies about so many ``elements``.
    """
    if slide.rows == 0:
        return []
    lines, line = slide.out[0], math.prod(slide.out[1:])
    rows = max(1, elements // (slide.taps * slide.channels or 1))
    found = []
    if lines * line <= rows:
        images = rows // (lines * line)
        for b in range(0, slide.batch, images):
            end = min(slide.batch, b + images)
            found.append(((slice(b, end),), b * lines * line, end * lines * line))
        return found
    step = max(1, rows // line)
    for b, r in itertools.product(range(slide.batch), range(0, lines, step)):
        end = min(lines, r + step)
        found.append(((slice(b, b + 1), slice(r, end)), (b * lines + r) * line, (b * lines + end) * line))
    return found


def _columns(slide: Slide, blocks: list[tuple[Any, int, int]]) -> tuple[int, Shape]:
    """Columns of a copied block, and the shape of the buffer for the largest."""
    columns = slide.taps * slide.channels
    return columns, (max((b - a for _, a, b in blocks), default=0), columns)


def im2col(slide: Slide, product: Product = np.dot) -> Method:
    """``(x, w, y)``."""
    padded, blocks = Padded(slide), _blocks(slide, COPIED)
    columns, largest = _columns(slide, blocks)

    def compute(x: Any, w: Any, y: Any, *scratch: Any) -> None:
        if padded.needed:
            padded.fill(x, scratch[0])
            x = scratch[0]
        windows, copied = _view(slide, padded.shape, x), scratch[-1]
        matrix, rows = w.reshape(columns, slide.outputs), y.reshape(slide.rows, slide.outputs)
        for index, a, b in blocks:
            part, block = windows[index], copied[: b - a]
            _copyto(block.reshape(part.shape), part)
            product(block, matrix, rows[a:b])

    return compute, (*padded.scratch, largest)


def im2col_filter(slide: Slide, product: Product = np.dot) -> Method:
    """``(x, dy, dw)``: the products of all blocks added up."""
    padded, blocks = Padded(slide), _blocks(slide, COPIED_FILTER)
    columns, largest = _columns(slide, blocks)
    summed = ((columns, slide.outputs),) if len(blocks) > 1 else ()

    def compute(x: Any, dy: Any, dw: Any, *scratch: Any) -> None:
        if not blocks:
            dw.fill(0)
            return
        if padded.needed:
            padded.fill(x, scratch[0])
            x = scratch[0]
        windows, copied = _view(slide, padded.shape, x), scratch[len(padded.scratch)]
        total, rows = dw.reshape(columns, slide.outputs), dy.reshape(slide.rows, slide.outputs)
        for index, a, b in blocks:
            part, block = windows[index], copied[: b - a]
            _copyto(block.reshape(part.shape), part)
            if a == 0:
                product(block.T, rows[a:b], total)
            else:
                product(block.T, rows[a:b], scratch[-1])
                _add(total, scratch[-1], total)

    return compute, (*padded.scratch, largest, *summed)


def tap_views(slide: Slide) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each tap of the window, and the elements of the padded input that it meets."""
    for tap in itertools.product(*map(range, slide.window)):
        starts = [k * d for k, d in zip(tap, slide.dilation, strict=True)]
        where = zip(starts, slide.out, slide.stride, strict=True)
        yield tap, tuple(slice(a, a + (n - 1) * s + 1, s) for a, n, s in where)


def col2im(slide: Slide, product: Product = np.dot) -> Method:
    """``(w, dy, dx)``: the gradients of all copied windows, added up where they came from."""
    padded, blocks = Padded(slide), _blocks(slide, COPIED)
    columns, largest = _columns(slide, blocks)
    taps = list(tap_views(slide))
    lines, step = slide.out[0], slide.stride[0]
    everything = slice(None)

    def compute(w: Any, dy: Any, dx: Any, *scratch: Any) -> None:
        target = scratch[0] if padded.needed else dx
        target.fill(0)
        matrix, rows = w.reshape(columns, slide.outputs).T, dy.reshape(slide.rows, slide.outputs)
        for index, a, b in blocks:
            block = scratch[-1][: b - a]
            product(rows[a:b], matrix, block)
            images, chosen = index if len(index) == 2 else (index[0], slice(0, lines))
            dims = (
                images.stop - images.start,
                chosen.stop - chosen.start,
                *slide.out[1:],
                *slide.window,
                slide.channels,
            )
            parts = block.reshape(dims)
            for tap, (first, *rest) in taps:
                at = slice(first.start + chosen.start * step, first.start + (chosen.stop - 1) * step + 1, step)
                view = target[(images, at, *rest)]
                _add(view, parts[(everything,) * (len(rest) + 2) + tap], view)
        if padded.needed:
            if dx[padded.source].size != dx.size:
                dx.fill(0)
            _copyto(dx[padded.source], target[padded.target])

    return compute, (*padded.scratch, largest)


def flipped(slide: Slide, product: Product = np.dot) -> Method:
    """``(w, dy, dx)`` of a window that moves one element at a time: the convolution of dy with the filter turned around."""
    back = replace(
        slide,
        channels=slide.outputs,
        outputs=slide.channels,
        size=slide.out,
        before=tuple(span - 1 - b for span, b in zip(slide.span, slide.before, strict=True)),
        out=slide.size,
    )
    convolve, scratch = im2col(back, product)
    turn = (slice(None, None, -1),) * len(slide.window)

    def compute(w: Any, dy: Any, dx: Any, turned: Any, *rest: Any) -> None:
        _copyto(turned, w[turn].swapaxes(-1, -2))
        convolve(dy, turned, dx, *rest)

    return compute, ((*slide.window, slide.outputs, slide.channels), *scratch)


def _matrices(slide: Slide, function: Callable[[Any, Any, Any], None], of: tuple[int, int, int]) -> Method:
    """A product of the three as matrices: 0 the input, 1 the filter, 2 the output."""
    shapes = ((slide.rows, slide.channels), (slide.channels, slide.outputs), (slide.rows, slide.outputs))
    first, second, third = (shapes[i] for i in of)

    def compute(a: Any, b: Any, c: Any) -> None:
        function(a.reshape(first), b.reshape(second), c.reshape(third))

    return compute, ()


def dot(slide: Slide, product: Product = np.dot) -> Method:
    """``(x, w, y)`` of a window of one element: a product of matrices as they stand."""
    return _matrices(slide, lambda x, w, y: product(x, w, y), (0, 1, 2))


def dot_input(slide: Slide, product: Product = np.dot) -> Method:
    """``(w, dy, dx)``."""
    return _matrices(slide, lambda w, dy, dx: product(dy, w.T, dx), (1, 2, 0))


def dot_filter(slide: Slide, product: Product = np.dot) -> Method:
    """``(x, dy, dw)``."""
    return _matrices(slide, lambda x, dy, dw: product(x.T, dy, dw), (0, 2, 1))
