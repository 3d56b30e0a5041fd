"""Gradient to the input of a window that moves by several elements: one convolution of dy, all phases of the input side by side.

Elements of the input whose places leave the same remainder by the stride, a phase, meet the same taps of the window. A dense
convolution of dy gives all phases of a block of the input at once, as channels, and a copy brings them to their places. Shi and
others, "Is the deconvolution layer the same as a convolutional layer?", 2016. Its filter has zeros where a phase meets fewer taps
than another: more operations than col2im's, and nothing is added up element by element.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from graphdock_cpu.kernels.conv_im2col import RUN, Product, im2col, im2col_work
from graphdock_cpu.kernels.sliding import Method, Slide

__all__ = ["phases", "phases_work"]

_copyto = np.copyto


class Axis(NamedTuple):
    """The blocks of ``stride`` elements that a dim of the input is cut into.

    Attributes:
      cut: elements that the first block has before the input begins.
      blocks: how many there are.
      first, last: least and largest distance, in blocks, from an element of dy that a block meets.
    """

    cut: int
    blocks: int
    first: int
    last: int

    @property
    def reach(self) -> int:
        """Elements of dy that a block meets."""
        return self.last - self.first + 1


def _axis(size: int, window: int, stride: int, before: int) -> Axis:
    """The cut of least work. An element p of the input meets dy's o by the tap p + before - o * stride."""
    found = []
    for cut in range(stride):
        blocks = (size - 1 + cut) // stride + 1
        first, last = -((stride - 1 - cut + before) // stride), (window - 1 + cut - before) // stride
        found.append(Axis(cut, blocks, first, last))
    return min(found, key=lambda axis: axis.blocks * axis.reach)


def _axes(slide: Slide) -> list[Axis]:
    return list(map(_axis, slide.size, slide.window, slide.stride, slide.before))


def _dense(slide: Slide, axes: Sequence[Axis]) -> Slide:
    """The convolution of dy."""
    return replace(
        slide,
        channels=slide.outputs,
        outputs=math.prod(slide.stride) * slide.channels,
        size=slide.out,
        window=tuple(axis.reach for axis in axes),
        stride=(1,) * len(axes),
        before=tuple(axis.last for axis in axes),
        out=tuple(axis.blocks for axis in axes),
    )


def phases_work(slide: Slide) -> float:
    """Cost of :func:`phases`, in elements of a long copy."""
    dense = _dense(slide, _axes(slide))
    moved = slide.batch * math.prod(slide.size) * slide.channels
    filters = dense.taps * dense.channels * dense.outputs
    return im2col_work(dense) + moved * (1 + RUN / (slide.stride[-1] * slide.channels)) + RUN * filters


def phases(slide: Slide, product: Product = np.dot) -> Method:
    """``(w, dy, dx)`` of a window without dilation, of which no position lies before the input."""
    axes, rank = _axes(slide), len(slide.size)
    dense = _dense(slide, axes)
    convolve, scratch = im2col(dense, product)
    filters = (*dense.window, slide.outputs, *slide.stride, slide.channels)
    taps = list(itertools.product(*map(_taps, axes, slide.stride, slide.window, slide.before)))
    placed = [
        (
            (*(axis.last - t[0] for axis, t in zip(axes, tap, strict=True)), slice(None), *(t[1] for t in tap)),
            tuple(t[2] for t in tap),
        )
        for tap in taps
    ]
    whole = all(a.cut == 0 and a.blocks * s == n for a, s, n in zip(axes, slide.stride, slide.size, strict=True))
    # dims [batch, *blocks, *stride, channels], in the order in which they lie in dx
    order = [0, *itertools.chain.from_iterable((1 + i, 1 + rank + i) for i in range(rank)), 1 + 2 * rank]
    blocks = (slide.batch, *dense.out, *slide.stride, slide.channels)
    lying = tuple(blocks[i] for i in order)
    parts = list(itertools.product(*map(_parts, axes, slide.stride, slide.size)))
    every = slice(None)
    moves = [((every, *(p[0] for p in part)), (every, *(p[1] for p in part), *(p[2] for p in part))) for part in parts]

    def compute(w: Any, dy: Any, dx: Any, turned: Any, found: Any, *rest: Any) -> None:
        turned.fill(0)
        for at, tap in placed:
            _copyto(turned[at], w[tap].T)
        convolve(dy, turned, found, *rest)
        by_phase = found.reshape(blocks)
        if whole:
            _copyto(dx.reshape(lying), by_phase.transpose(order))
            return
        for target, source in moves:
            _copyto(dx[target], by_phase[source])

    return compute, (filters, (slide.batch, *dense.out, dense.outputs), *scratch)


def _taps(axis: Axis, stride: int, window: int, before: int) -> list[tuple[int, int, int]]:
    """Distance from dy, phase and tap of the window, of those that meet."""
    found = []
    for distance in range(axis.first, axis.last + 1):
        for phase in range(stride):
            tap = phase - axis.cut + before + distance * stride
            if 0 <= tap < window:
                found.append((distance, phase, tap))
    return found


def _parts(axis: Axis, stride: int, size: int) -> list[tuple[slice, slice, int]]:
    """Parts of each phase: its elements of the input, the blocks that hold them, its number."""
    found = []
    for phase in range(stride):
        skipped = int(phase < axis.cut)
        start = skipped * stride + phase - axis.cut
        count = len(range(start, size, stride))
        found.append((slice(start, None, stride), slice(skipped, skipped + count), phase))
    return found
