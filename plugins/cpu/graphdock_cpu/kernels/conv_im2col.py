"""Convolution as products of matrices: the windows of some rows of the output are copied side by side, and BLAS does the rest.

Chellapilla, Puri and Simard, "High performance convolutional neural networks for document processing", 2006; here in blocks of
rows, so that the copies stay in the cache and take little scratch. Where windows have few elements that lie together, as of images
with one channel, each tap and channel is copied as a plane of its own instead, and BLAS reads the transpose.

The work of each way is told in elements of a long copy, so that ways can be compared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from graphdock_cpu.blas import one_thread
from graphdock_cpu.kernels.sharing import Shared, pieces
from graphdock_cpu.kernels.sliding import Method, Shape, Slide

__all__ = [
    "Product",
    "col2im",
    "col2im_planes_work",
    "col2im_work",
    "dot",
    "dot_filter",
    "dot_input",
    "dot_work",
    "flipped",
    "flipped_work",
    "im2col",
    "im2col_filter",
    "im2col_planes_work",
    "im2col_work",
    "tap_views",
]

#: Elements of the copied windows of a block: 1 MB of float32, and 4 MB where each block's product has the filter's size.
COPIED, COPIED_FILTER = 1 << 18, 1 << 20

#: In elements of a long copy: so many operations of a product cost as much as one; to begin one more run of elements that lie
#: together costs as much as so many, and so do a call of NumPy,
#: an element that is added instead of copied, one of those that do not lie together, and a run of them.
FLOPS, RUN, CALL, ADDED, ADDED_APART, RUN_ADDED = 16, 7, 4000, 2.5, 8, 40

Index: TypeAlias = tuple[slice, ...]
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


def _blocks(slide: Slide, elements: int) -> list[tuple[Index, int, int]]:
    """Blocks of whole images, of lines of one, of pieces of a line: index into the windows, first and last row of the output.

    A block copies about so many ``elements``.
    """
    dims = (slide.batch, *slide.out)
    if slide.rows == 0:
        return []
    rows = max(1, elements // (slide.taps * slide.channels or 1))
    # the first dim of which a block has several
    axis = next((i for i in range(len(dims)) if math.prod(dims[i + 1 :]) <= rows), len(dims) - 1)
    each, found = math.prod(dims[axis + 1 :]), []
    step = max(1, rows // each)
    for number, lead in enumerate(itertools.product(*map(range, dims[:axis]))):
        for start in range(0, dims[axis], step):
            end, first = min(dims[axis], start + step), number * dims[axis]
            index = (*(slice(i, i + 1) for i in lead), slice(start, end))
            found.append((index, (first + start) * each, (first + end) * each))
    return found


def _extents(slide: Slide, index: Index) -> tuple[slice, ...]:
    """Images, and windows along each dim, of a block."""
    return (*index, *(slice(0, n) for n in (slide.batch, *slide.out)[len(index) :]))


#: Fills a buffer with the windows of a block; ``[rows, columns]`` of it, as BLAS takes it.
Fill = Callable[[Any, Any], Any]


def _copies(slide: Slide, blocks: list[tuple[Index, int, int]], planes: bool) -> tuple[Fill, Shape]:
    """Copies of the windows of a block, and the shape of the buffer for the largest."""
    columns = slide.taps * slide.channels
    shape = (max((b - a for _, a, b in blocks), default=0), columns)
    if not planes:

        def fill_rows(part: Any, buffer: Any) -> Any:
            block = buffer[: math.prod(part.shape[: 1 + len(slide.out)])]
            _copyto(block.reshape(part.shape), part)
            return block

        return fill_rows, shape
    where = _plane_indices(slide)

    def fill_planes(part: Any, buffer: Any) -> Any:
        block = buffer.reshape(-1)[: part.size].reshape(columns, *part.shape[: 1 + len(slide.out)])
        for plane, at in zip(block, where, strict=True):
            _copyto(plane, part[at])
        return block.reshape(columns, math.prod(block.shape[1:])).T

    return fill_planes, shape


def _plane_indices(slide: Slide) -> list[tuple[Any, ...]]:
    """Each tap and channel, as an index of windows."""
    return [(..., *tap) for tap in itertools.product(*map(range, (*slide.window, slide.channels)))]


def dot_work(slide: Slide) -> float:
    """Of the products alone, and of their operands."""
    rows, columns = slide.rows, slide.taps * slide.channels
    each = rows * slide.outputs + columns * slide.outputs + slide.batch * math.prod(slide.size) * slide.channels
    return 2 * rows * columns * slide.outputs / FLOPS + each


def _window_run(slide: Slide) -> int:
    """Elements of a window that lie together."""
    return slide.channels * (slide.window[-1] if slide.dilation[-1] == 1 else 1)


def im2col_work(slide: Slide) -> float:
    """Cost of :func:`im2col` and :func:`im2col_filter`."""
    copied = slide.rows * slide.taps * slide.channels
    return dot_work(slide) + copied + RUN * copied / max(1, _window_run(slide)) + CALL * (1 + copied / COPIED)


def im2col_planes_work(slide: Slide) -> float:
    """Cost of the two with planes."""
    planes = slide.taps * slide.channels
    copied = slide.rows * planes
    return dot_work(slide) + copied + RUN * copied / max(1, slide.out[-1]) + CALL * (1 + planes * (1 + copied / COPIED))


def _added(slide: Slide) -> float:
    return ADDED if slide.dense else ADDED_APART


def col2im_work(slide: Slide) -> float:
    """Cost of :func:`col2im`."""
    added = slide.rows * slide.taps * slide.channels
    return (
        dot_work(slide)
        + _added(slide) * added
        + RUN_ADDED * added / max(1, slide.channels)
        + CALL * slide.taps * (1 + added / COPIED)
    )


def col2im_planes_work(slide: Slide) -> float:
    """Cost of it with planes."""
    planes = slide.taps * slide.channels
    added = slide.rows * planes
    return (
        dot_work(slide)
        + _added(slide) * added
        + RUN_ADDED * added / next((n for n in reversed(slide.out) if n > 1), 1)
        + CALL * planes * (1 + added / COPIED)
    )


def _turned(slide: Slide) -> Slide:
    """The window of the gradient to the input, where it moves one element at a time: over dy, with the filter turned around."""
    return replace(
        slide,
        channels=slide.outputs,
        outputs=slide.channels,
        size=slide.out,
        before=tuple(span - 1 - b for span, b in zip(slide.span, slide.before, strict=True)),
        out=slide.size,
    )


def flipped_work(slide: Slide) -> float:
    """Cost of :func:`flipped`."""
    return im2col_work(_turned(slide)) + RUN * slide.taps * slide.channels * slide.outputs


def _copied(slide: Slide) -> int:
    """Elements of a block. Each product brings the filter into an order of its own, which costs as much as to copy the windows of
    three rows per output.
    """
    return max(COPIED, min(COPIED_FILTER, 3 * slide.taps * slide.channels * slide.outputs))


def im2col(slide: Slide, product: Product = np.dot, planes: bool = False) -> Method:
    """``(x, w, y)``. Threads that would share each product take some of the blocks each, and are woken once."""
    columns, count = slide.taps * slide.channels, product.count if isinstance(product, Shared) else 1
    elements = slide.rows * columns
    copied = _copied(slide)
    each = max(1, -(-elements // copied // count)) * count  # so many blocks, as many for each thread
    padded, blocks = Padded(slide), _blocks(slide, copied if count == 1 else -(-elements // each))
    fill, largest = _copies(slide, blocks, planes)
    shares = [blocks[part] for part in pieces(len(blocks), count)]

    def some(share: Sequence[Any], product: Product, windows: Any, matrix: Any, rows: Any, copied: Any) -> None:
        for index, a, b in share:
            product(fill(windows[index], copied), matrix, rows[a:b])

    def compute(x: Any, w: Any, y: Any, *scratch: Any) -> None:
        if padded.needed:
            padded.fill(x, scratch[0])
            x = scratch[0]
        windows = _view(slide, padded.shape, x)
        matrix, rows = w.reshape(columns, slide.outputs), y.reshape(slide.rows, slide.outputs)
        if count == 1:
            some(blocks, product, windows, matrix, rows, scratch[-1])
            return
        from graphdock_cpu.team import team

        copies = scratch[len(padded.scratch) :]
        given = zip(shares, copies, strict=False)
        with one_thread():
            team(count).run([partial(some, share, np.dot, windows, matrix, rows, copied) for share, copied in given])

    return compute, (*padded.scratch, *[largest] * max(1, len(shares)))


def im2col_filter(slide: Slide, product: Product = np.dot, planes: bool = False) -> Method:
    """``(x, dy, dw)``: the products of all blocks added up."""
    padded, blocks = Padded(slide), _blocks(slide, COPIED_FILTER)
    fill, largest = _copies(slide, blocks, planes)
    columns = slide.taps * slide.channels
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
            block = fill(windows[index], copied)
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


def col2im(slide: Slide, product: Product = np.dot, planes: bool = False) -> Method:
    """``(w, dy, dx)``: the gradients of all copied windows, added up where they came from."""
    padded, blocks = Padded(slide), _blocks(slide, COPIED)
    columns = slide.taps * slide.channels
    largest = (max((b - a for _, a, b in blocks), default=0), columns)
    every = slice(None)
    # each tap, or each tap and channel: its place in the buffer, and the elements of the input that it meets
    taps = [
        ((*tap, c) if planes else (..., *tap, every), where, c)
        for (tap, where), c in itertools.product(tap_views(slide), range(slide.channels) if planes else [every])
    ]

    def compute(w: Any, dy: Any, dx: Any, *scratch: Any) -> None:
        target, buffer = scratch[0] if padded.needed else dx, scratch[-1].reshape(-1)
        target.fill(0)
        matrix, rows = w.reshape(columns, slide.outputs), dy.reshape(slide.rows, slide.outputs)
        for index, a, b in blocks:
            images, *chosen = _extents(slide, index)
            dims = (images.stop - images.start, *(c.stop - c.start for c in chosen))
            block = buffer[: columns * (b - a)]
            if planes:
                product(matrix, rows[a:b].T, block.reshape(columns, b - a))
                parts = block.reshape(*slide.window, slide.channels, *dims)
            else:
                product(rows[a:b], matrix.T, block.reshape(b - a, columns))
                parts = block.reshape(*dims, *slide.window, slide.channels)
            for at, where, channel in taps:
                view = target[(images, *map(_part, where, chosen), channel)]
                _add(view, parts[at], view)
        if padded.needed:
            if dx[padded.source].size != dx.size:
                dx.fill(0)
            _copyto(dx[padded.source], target[padded.target])

    return compute, (*padded.scratch, largest)


def _part(where: slice, chosen: slice) -> slice:
    """Share that some of the windows have in what all of them have."""
    step = where.step
    return slice(where.start + chosen.start * step, where.start + (chosen.stop - 1) * step + 1, step)


def flipped(slide: Slide, product: Product = np.dot) -> Method:
    """``(w, dy, dx)`` of a window that moves one element at a time: the convolution of dy with the filter turned around."""
    convolve, scratch = im2col(_turned(slide), product)
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
