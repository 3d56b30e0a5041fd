"""Windows that slide over the spatial dims of a batch, as kernels are told of them: sizes, steps, where elements lie."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from graphdock.contracts import errors

from graphdock_cuda.launch import Param, raw
from graphdock_cuda.work import Work

__all__ = ["Shape", "Slide", "check_fits", "padding_before", "sizes_of", "slide_of", "windows_over"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Slide:
    """A window over spatial dims. Every tuple has a number per spatial dim.

    Attributes:
      batch, channels, outputs: what else the shapes hold; ``outputs`` is the filter's last dim.
      size, window, stride, dilation: of the input, of the filter, in elements. ``before``: elements of padding in front.
      out: how often the window fits. ``first``: whether channels come before the spatial dims.
    """

    batch: int
    channels: int
    outputs: int
    size: Shape
    window: Shape
    stride: Shape
    dilation: Shape
    before: Shape
    out: Shape
    first: bool

    @property
    def rows(self) -> int:
        """Positions of the window over all the batch."""
        return self.batch * math.prod(self.out)

    @property
    def taps(self) -> int:
        return math.prod(self.window)

    @property
    def pointwise(self) -> bool:
        """A window of one element that meets every element."""
        return self.taps == 1 and set(self.stride) == {1} and self.size == self.out and not any(self.before)

    def shape(self, spatial: Shape, channels: int) -> Shape:
        """Of a tensor of these spatial dims and channels."""
        return (self.batch, channels, *spatial) if self.first else (self.batch, *spatial, channels)

    def packed(self, output_channels: int) -> Param:
        """``Slide`` of ``source/sliding.cuh``; spatial dims are filled up to three in front."""
        x, y = math.prod(self.size), math.prod(self.out)
        steps = [math.prod(self.size[d + 1 :]) * (1 if self.first else self.channels) for d in range(len(self.size))]
        lines = (1, 1) if self.first else (self.channels, output_channels)
        by_channel = (x, y) if self.first else (1, 1)
        longs = (
            self.batch,
            x * self.channels,
            by_channel[0],
            lines[0],
            y * output_channels,
            by_channel[1],
            lines[1],
            *_three(steps, 0),
        )
        dims = [*_three(self.size, 1), *_three(self.window, 1), *_three(self.stride, 1), *_three(self.dilation, 1)]
        dims += [*_three(self.before, 0), *_three(self.out, 1)]
        return raw(struct.pack("<10q20i", *longs, self.channels, self.outputs, *dims))


def _three(values: Sequence[int], neutral: int) -> list[int]:
    return [neutral] * (3 - len(values)) + list(values)


def padding_before(padding: str, explicit: int, size: int, out: int, stride: int, span: int) -> int:
    """Elements of padding in front of a dim; with SAME the odd one is behind."""
    if padding == "SAME":
        return max(0, (out - 1) * stride + span - size) // 2
    return explicit if padding == "EXPLICIT" else 0


def windows_over(size: int, span: int, stride: int, padding: str, around: Sequence[int]) -> int:
    """Return how often a window of ``span`` elements fits."""
    if padding == "SAME":
        return -(-size // stride)
    return max(0, (size + sum(around) - span) // stride + 1)


def slide_of(w: Work, x: Shape, filter_shape: Shape, dilations: str = "dilations") -> Slide:
    """The window of a convolution of an input and a filter of these shapes, as the node has it; the filter ends in [C, O]."""
    attrs, rank = w.node.attrs, len(x)
    first = not attrs.get("data_format", "NHWC").endswith("C")
    spatial = slice(2, rank) if first else slice(1, rank - 1)
    stride, dilation = tuple(attrs["strides"][spatial]), tuple(attrs[dilations][spatial])
    padding, explicit = attrs["padding"], tuple(attrs.get("explicit_paddings") or ())
    pads = [explicit[2 * i : 2 * i + 2] or (0, 0) for i in range(rank)][spatial]
    size, window = x[spatial], filter_shape[:-2]
    span = tuple((k - 1) * d + 1 for k, d in zip(window, dilation, strict=True))
    out = tuple(map(windows_over, size, span, stride, [padding] * len(size), pads))
    before = tuple(map(padding_before, [padding] * len(size), [p[0] for p in pads], size, out, stride, span))
    channels = x[1] if first else x[-1]
    return Slide(x[0], channels, filter_shape[-1], size, window, stride, dilation, before, out, first)


def sizes_of(w: Work, name: str, rank: int) -> Shape:
    """The shape that an input in host memory holds.

    Raises InvalidArgumentError for other than ``rank`` sizes, or a negative one.
    """
    sizes = tuple(w.host(name).tolist())
    if len(sizes) != rank or min(sizes) < 0:
        raise errors.InvalidArgumentError(
            f"{name} must hold {rank} sizes", op=w.node.origin, site=w.node.site, got=str(list(sizes))
        )
    return sizes


def check_fits(w: Work, slide: Slide, channels: int, dy: Shape, outputs: int) -> None:
    """Check what the shape rule asks of a gradient op, where sizes were not known before.

    Raises InvalidArgumentError: other channels than the filter's, or a ``dy`` of another shape than the output.
    """
    if slide.channels != channels:
        found = f"{w.node.opdef.inputs[0].name} has {slide.channels} channels, but the filter takes {channels}"
        raise errors.InvalidArgumentError(found, op=w.node.origin, site=w.node.site)
    want = slide.shape(slide.out, outputs)
    if tuple(dy) != want:
        raise errors.InvalidArgumentError(
            "out_backprop does not have the shape of the output that it belongs to",
            op=w.node.origin,
            site=w.node.site,
            expected=str(list(want)),
            got=str(list(dy)),
        )
