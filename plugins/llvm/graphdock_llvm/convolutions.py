"""Convolutions of images and both of their gradients as products of gathered rows: what lies where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdock_llvm.gathered import Frame, Problem, Work
from graphdock_llvm.gathered_copies import LONGEST

__all__ = ["Convolution", "by_filter", "by_input", "convolution", "cut", "forward"]


@dataclass(frozen=True, slots=True)
class Convolution:
    """A window that slides over images, channels last: per spatial dim its sizes, steps and gaps.

    Attributes:
      images: how many. ``sides``: of the images; ``out``: of what is made. ``window``, ``stride``, ``dilation``: of the window.
      before: places of padding in front of the first pixel.
    """

    images: int
    sides: tuple[int, int]
    channels: int
    window: tuple[int, int]
    outputs: int
    out: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]


def convolution(x: Sequence[int], w: Sequence[int], y: Sequence[int], attrs: Mapping[str, Any]) -> Convolution:
    """Of images, a filter, and what is made of them, by the op's attributes."""
    stride, dilation = tuple(attrs["strides"][1:3]), tuple((attrs.get("dilations") or (1,) * 4)[1:3])
    before = [0, 0]
    for i in range(2):
        if attrs["padding"] == "SAME":
            missing = (y[i + 1] - 1) * stride[i] + (w[i] - 1) * dilation[i] + 1 - x[i + 1]
            before[i] = max(0, missing) // 2
        elif attrs["padding"] == "EXPLICIT":
            before[i] = attrs["explicit_paddings"][2 * (i + 1)]
    return Convolution(
        x[0], (x[1], x[2]), x[3], (w[0], w[1]), w[3], (y[1], y[2]), stride, dilation, (before[0], before[1])
    )  # fmt: skip


def _framed(images: int, sides: Sequence[int], depth: int, ends: Sequence[tuple[int, int]]) -> tuple[Frame | None, Any]:
    """A frame around images of ``depth`` numbers a pixel, so that places from one on up to another are there, None where they are
    anyhow; and steps by image, row and pixel, and where pixel (0, 0) lies."""
    front = [max(0, -first) for first, _ in ends]
    back = [max(0, last - side + 1) for (_, last), side in zip(ends, sides, strict=True)]
    high, wide = (side + a + b for side, a, b in zip(sides, front, back, strict=True))
    steps = high * wide * depth, wide * depth, depth
    frame = None
    if any((*front, *back)):
        rows = front[1] * depth, sides[1] * depth, back[1] * depth
        frame = Frame(images * high, high, sides[0], front[0], *rows)
    return frame, (*steps, front[0] * steps[1] + front[1] * steps[2])


def _reach(c: Convolution) -> list[tuple[int, int]]:
    """Per spatial dim the first and the last pixel that the window meets."""
    pairs = zip(c.before, c.out, c.stride, c.window, c.dilation, strict=True)
    return [(-b, (o - 1) * s - b + (k - 1) * d) for b, o, s, k, d in pairs]


def cut(length: int, segments: int = 1) -> int | None:
    """The number of pieces into which each of some segments is cut, so that passes are few; None where there is none."""
    able = [n for n in range(1, 65) if length % n == 0 and length // n <= LONGEST]
    return min(able, key=lambda n: (-(-segments * n // (LONGEST * n // length)), n), default=None)


def forward(c: Convolution, room: int, bias: int = -1, relu: bool = False) -> Work | None:
    """``(input, filter, ..., output)``; None where the channels can't be cut.

    Args:
      room: the slot of the frame's memory; outputs stand in front of it. ``bias``: the slot of the bias, -1 for none.
    """
    frame, (image, row, pixel, first) = _framed(c.images, c.sides, c.channels, _reach(c))
    (sh, sw), (dh, dw), (kh, kw) = c.stride, c.dilation, c.window
    run = kw * c.channels if dw == 1 else c.channels
    pieces = cut(run, kh * (1 if dw == 1 else kw))
    if pieces is None:
        return None
    length, segments = run // pieces, []
    for h in range(kh):
        for w in range(1 if dw == 1 else kw):
            for piece in range(pieces):
                place = (h * kw + w) * c.channels + piece * length
                segments.append((h * dh * row + w * dw * pixel + piece * length, place * c.outputs))
    base = first - c.before[0] * row - c.before[1] * pixel
    rows, columns = c.out
    steps = rows * columns * c.outputs, columns * c.outputs, c.outputs
    problem = Problem(
        (c.images, rows, columns), (image, sh * row, sw * pixel, base), (*steps, 0), segments, length, 1, (c.outputs, 1)
    )
    slots = room if frame else 0, 1, room - 1, bias, 0 if frame else -1
    return Work([problem], c.outputs, slots, frame=frame, relu=relu)


def by_input(c: Convolution) -> Work | None:
    """``(input_sizes, filter, out_backprop, output)``: a product for each place that pixels have between steps of the window."""
    phases, ends = [], [[0, 0], [0, 0]]
    found: list[list[tuple[int, int, list[tuple[int, int]]]]] = []
    for i in range(2):
        of = []
        for phase in range(min(c.stride[i], c.sides[i])):
            count = -(-(c.sides[i] - phase) // c.stride[i])
            taps = []
            for k in range(c.window[i]):
                at = phase + c.before[i] - k * c.dilation[i]
                if at % c.stride[i] == 0:
                    taps.append((k, at // c.stride[i]))
                    ends[i][0] = min(ends[i][0], at // c.stride[i])
                    ends[i][1] = max(ends[i][1], at // c.stride[i] + count - 1)
            of.append((phase, count, taps))
        found.append(of)
    reach = [(first, last) for first, last in ends]
    frame, (image, row, pixel, first) = _framed(c.images, c.out, c.outputs, reach)
    pieces = cut(c.outputs, max(len(h) * len(w) for _, _, h in found[0] for _, _, w in found[1]))
    if pieces is None:
        return None
    length, depth = c.outputs // pieces, c.channels
    wide = c.sides[1] * depth
    for ph, high, rows in found[0]:
        for pw, across, columns in found[1]:
            segments = [
                (a * row + b * pixel + piece * length, (h * c.window[1] + w) * depth * c.outputs + piece * length)
                for h, a in rows
                for w, b in columns
                for piece in range(pieces)
            ]
            out = c.sides[0] * wide, c.stride[0] * wide, c.stride[1] * depth, ph * wide + pw * depth
            left = image, row, pixel, first
            phases.append(Problem((c.images, high, across), left, out, segments, length, 1, (1, c.outputs)))
    return Work(phases, depth, (4 if frame else 2, 1, 3, -1, 2 if frame else -1), frame=frame)


def by_filter(c: Convolution) -> Work | None:
    """``(input, filter_sizes, out_backprop, output)``: places of the window are the rows, pixels are summed over."""
    frame, (image, row, pixel, first) = _framed(c.images, c.sides, c.channels, _reach(c))
    (sh, sw), (dh, dw), (kh, kw) = c.stride, c.dilation, c.window
    rows, columns = c.out
    pieces = cut(columns, c.images * rows)
    if pieces is None:
        return None
    length = columns // pieces
    segments = [
        (
            n * image + h * sh * row + piece * length * sw * pixel,
            ((n * rows + h) * columns + piece * length) * c.outputs,
        )
        for n in range(c.images)
        for h in range(rows)
        for piece in range(pieces)
    ]
    base = first - c.before[0] * row - c.before[1] * pixel
    out = kw * c.channels * c.outputs, c.channels * c.outputs, c.outputs, 0
    problem = Problem(
        (kh, kw, c.channels), (dh * row, dw * pixel, 1, base), out, segments, length, sw * pixel, (c.outputs, 1)
    )
    return Work([problem], c.outputs, (4 if frame else 0, 2, 3, -1, 0 if frame else -1), frame=frame)
