"""Windows that slide over the spatial dims of ``[batch, *sizes, channels]``: geometry, and kernels staged into that layout.

Kernels of convolutions know one layout, channels last, and two dtypes, float32 and float64. :func:`staged` brings the others
there and back through planned scratch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, DType, Scratch, errors
from numpy import copyto

from graphdock_cpu.blas import one_thread
from graphdock_cpu.kernels.sharing import Leading, Shared

__all__ = [
    "Method",
    "Shape",
    "Slide",
    "bind_sized",
    "check_fits",
    "first_spatial",
    "padding_before",
    "sizes_in",
    "slide_of",
    "staged",
]

Shape = tuple[int, ...]
#: ``compute(*tensors, out, *scratch)`` and the shapes of the scratch buffers, which have the dtype of ``out``.
Method = tuple[Callable[..., None], tuple[Shape, ...]]

#: Shapes that a kernel of unknown shape keeps ready.
KEPT = 8


@dataclass(frozen=True)
class Slide:
    """A window over spatial dims. Every tuple has a number per spatial dim.

    Attributes:
      batch, channels, outputs: what else a convolution's shapes hold; ``outputs`` are those of the filter's last dim.
      size, window, stride, dilation: of the input, of the filter, in elements.
      before: elements of padding in front.
      out: how often the window fits.
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

    @property
    def span(self) -> Shape:
        """Elements from the first of a window to its last."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.window, self.dilation, strict=True))

    @property
    def reach(self) -> Shape:
        """Elements that the windows touch, padding included."""
        both = zip(self.out, self.stride, self.span, strict=True)
        return tuple((n - 1) * s + span if n else 0 for n, s, span in both)

    @property
    def taps(self) -> int:
        return math.prod(self.window)

    @property
    def rows(self) -> int:
        """Positions of the window over all the batch."""
        return self.batch * math.prod(self.out)

    @property
    def padded(self) -> bool:
        """Return whether a window reaches over an edge."""
        return any(self.before) or any(r > n for r, n in zip(self.reach, self.size, strict=True))

    @property
    def met(self) -> tuple[slice, ...]:
        """The part of the window that meets elements of the input: all of it, unless that is smaller than the window."""
        found = []
        for size, k, s, d, b, n in zip(
            self.size, self.window, self.stride, self.dilation, self.before, self.out, strict=True
        ):
            first = min(k - 1, max(0, (b - (max(n, 1) - 1) * s) // d))
            found.append(slice(first, max(first + 1, min(k, (b + size - 1) // d + 1))))
        return tuple(found)

    def part(self, taps: Sequence[slice]) -> Slide:
        """The same with a part of the window."""
        before = (b - t.start * d for b, t, d in zip(self.before, taps, self.dilation, strict=True))
        return replace(self, window=tuple(t.stop - t.start for t in taps), before=tuple(before))

    @property
    def dense(self) -> bool:
        """Return whether the window moves one element at a time."""
        return set(self.stride) == {1}


def first_spatial(data_format: str) -> int:
    """The first spatial dim: 1 with channels last, 2 with channels first."""
    return 1 if data_format.endswith("C") else 2


def padding_before(padding: str, explicit: int, size: int, out: int, stride: int, span: int) -> int:
    """Elements of padding in front of a dim; with SAME the odd one is behind."""
    if padding == "SAME":
        return max(0, (out - 1) * stride + span - size) // 2
    return explicit if padding == "EXPLICIT" else 0


def _windows(size: int, span: int, stride: int, padding: str, around: Sequence[int]) -> int:
    if padding == "SAME":
        return -(-size // stride)
    return max(0, (size + sum(around) - span) // stride + 1)


def slide_of(ctx: BuildContext, x: Shape, w: Shape) -> Slide:
    """The window of a convolution whose input and filter have these shapes, as the node has them."""
    attrs, rank = ctx.node.attrs, len(x)
    at = first_spatial(attrs["data_format"])
    spatial = slice(at, at + rank - 2)
    stride, dilation = tuple(attrs["strides"][spatial]), tuple(attrs["dilations"][spatial])
    padding, explicit = attrs["padding"], tuple(attrs.get("explicit_paddings") or ())
    pads = [explicit[2 * i : 2 * i + 2] or (0, 0) for i in range(rank)][spatial]
    size, window = x[spatial], w[:-2]
    span = tuple((k - 1) * d + 1 for k, d in zip(window, dilation, strict=True))
    out = tuple(map(_windows, size, span, stride, [padding] * len(size), pads))
    before = tuple(map(padding_before, [padding] * len(size), [p[0] for p in pads], size, out, stride, span))
    channels = x[-1] if at == 1 else x[1]
    return Slide(x[0], channels, w[-1], size, window, stride, dilation, before, out)


def bind_sized(
    make: Callable[[BuildContext, Sequence[Shape], Shape], tuple[Callable[..., Any], tuple[Scratch, ...]]],
    out_shape: Callable[..., Shape],
) -> Callable[[BuildContext], Bound]:
    """The ``build`` of a kernel that is made for the shapes of its inputs and of its one output.

    ``out_shape(ctx, *arrays)`` is asked where the output's shape is not planned.
    """

    def build(ctx: BuildContext) -> Bound:
        shapes = [i.shape for i in ctx.inputs]
        if not ctx.fresh and all(s is not None and None not in s for s in shapes):
            compute, scratch = make(ctx, [tuple(s) for s in shapes if s is not None], tuple(ctx.outputs[0].shape or ()))
            leads = isinstance(compute, (Leading, Shared)) and compute.leads
            return Bound(compute, scratch=scratch, within=one_thread() if leads else None)
        count = len(ctx.inputs)
        kept: dict[Any, tuple[Callable[..., Any], tuple[Scratch, ...]]] = {}

        def run(*args: Any) -> Any:
            inputs = args[:count]
            out = args[count] if len(args) > count else np.empty(out_shape(ctx, *inputs), ctx.outputs[0].dtype.np)
            key = (tuple(a.shape for a in inputs), out.shape)
            if key not in kept:
                if len(kept) >= KEPT:
                    kept.clear()
                kept[key] = make(ctx, *key)
            compute, scratch = kept[key]
            compute(*inputs, out, *(np.empty(s.shape, s.dtype.np) for s in scratch))
            return out

        return Bound(run)

    return build


def staged(
    ctx: BuildContext,
    tensors: Sequence[tuple[int, bool]],
    shapes: Sequence[Shape],
    out: tuple[Shape, bool],
    method: Method,
) -> tuple[Callable[..., Any], tuple[Scratch, ...]]:
    """``method``, which takes channels last and no narrow floats, as a compute of the node's own tensors.

    Args:
      tensors: index of each input that the method takes, and whether it has channels, which may be first.
      out: the same of the output: its shape and whether it has channels.
    """
    narrow = ctx.outputs[0].dtype
    wide: DType = narrow.accumulator
    first = first_spatial(ctx.attr("data_format")) == 2
    compute, sizes = method
    own = tuple(Scratch(wide, s) for s in sizes)
    moved = [first and has for _, has in (*tensors, out)]
    if wide is narrow and not any(moved):
        indices, last = [i for i, _ in tensors], len(ctx.inputs)
        if len(tensors) == last:
            return compute, own

        def plain(*args: Any) -> None:
            compute(*[args[i] for i in indices], *args[last:])

        return plain, own
    count = len(ctx.inputs)
    kinds = [wide is not narrow or m for m in moved]
    buffers = [
        Scratch(wide, _last(shape) if m else tuple(shape))
        for shape, m, k in zip([*(shapes[i] for i, _ in tensors), out[0]], moved, kinds, strict=True)
        if k
    ]

    def through(*args: Any) -> None:
        result, scratch = args[count], iter(args[count + 1 :])
        given = []
        for (index, _), m, k in zip(tensors, moved, kinds, strict=False):
            value = args[index]
            if k:
                buffer = next(scratch)
                copyto(buffer, np.moveaxis(value, 1, -1) if m else value)
                value = buffer
            given.append(value)
        if not kinds[-1]:
            compute(*given, result, *scratch)
            return
        buffer = next(scratch)
        compute(*given, buffer, *scratch)
        copyto(np.moveaxis(result, 1, -1) if moved[-1] else result, buffer, "same_kind")

    return through, (*buffers, *own)


def _last(shape: Shape) -> Shape:
    return (shape[0], *shape[2:], shape[1])


def check_fits(ctx: BuildContext, slide: Slide, channels: int, dy: Shape, outputs: int) -> None:
    """What the shape rule asks of a gradient op, where the sizes were not known before: the filter's channels, the shape of dy.

    Raises:
      InvalidArgumentError: they do not fit.
    """
    want = (
        (slide.batch, *slide.out, outputs)
        if first_spatial(ctx.attr("data_format")) == 1
        else (slide.batch, outputs, *slide.out)
    )
    if slide.channels != channels:
        found = f"{ctx.inputs[0].name} has {slide.channels} channels, but the filter takes {channels}"
        raise errors.InvalidArgumentError(found)
    if tuple(dy) != want:
        raise errors.InvalidArgumentError(
            "out_backprop does not have the shape of the output that it belongs to",
            expected=str(list(want)),
            got=str(list(dy)),
        )


def sizes_in(index: int) -> Callable[..., Shape]:
    """The output's shape where input ``index`` holds it; as many sizes as the window has numbers.

    Raises:
      InvalidArgumentError: other than that many, or a negative one.
    """

    def read(ctx: BuildContext, *arrays: Any) -> Shape:
        sizes = tuple(np.asarray(arrays[index]).tolist())
        rank = len(ctx.attr("strides"))
        if len(sizes) != rank or min(sizes) < 0:
            raise errors.InvalidArgumentError(f"{ctx.inputs[index].name} must hold {rank} sizes", got=str(list(sizes)))
        return sizes

    return read
