"""Convolutions of images with both gradients, depthwise ones too, and with a bias and an activation.

Images stay as they lie where channels are last; where they are first, the library may choose its own layout. Filters and their
gradients are in whatever layout it chooses, and brought from and to the op's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphdock_onednn.activations import activate, activation_refused, behind
from graphdock_onednn.interface import Algorithm, Arg, Fact, Kind
from graphdock_onednn.kernel import kernel
from graphdock_onednn.program import Steps, row_major
from graphdock_onednn.programs import Call
from graphdock_onednn.window import WINDOW, channels_first, image, window

__all__ = ["KERNELS"]


class _Convolution:
    """Layouts of one convolution, and what its primitives are told of the window.

    Args:
      x, w, y: places of images, filter and output among the arrays.
      depthwise: the filter holds the outputs of each channel.
      free: images may be brought into another layout, as they always may where channels are first.
    """

    def __init__(self, steps: Steps, call: Call, x: int, w: int, y: int, depthwise: bool, free: bool = False) -> None:
        self.steps, self.dtype = steps, call.dtypes[w]
        self.places = x, w, y
        self.x, self.y = (image(call, place) for place in (x, y))
        self.w = _grouped(call.shapes[w]) if depthwise else _filter(call.shapes[w])
        facts = window(call, call.shapes[w][:-2], x, y)
        self.numbers = [steps.numbers(n) for n in (facts.stride, facts.gaps, facts.before, facts.behind)]
        self._free = free or channels_first(call)

    def lying(self, of: tuple[Sequence[int], Sequence[int]]) -> Any:
        return self.steps.layout(self.dtype, *of)

    def wanted(self, of: tuple[Sequence[int], Sequence[int]]) -> Any:
        """Layout of images that a primitive is asked for."""
        return self.steps.layout(self.dtype, of[0], None if self._free else of[1])

    def liked(self, of: tuple[Sequence[int], Sequence[int]]) -> Any:
        return self.steps.layout(self.dtype, of[0])

    def forward(self, prop: int, bias: Any = None, attributes: Any = None) -> Any:
        return self.steps.described(
            "convolution_forward", prop, Algorithm.CONVOLUTION, self.wanted(self.x), self.liked(self.w), bias,
            self.wanted(self.y), *self.numbers, attributes or self.steps.attributes(),
        )  # fmt: skip


def _filter(shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of a filter ``[*window, channels, outputs]``, outputs and channels in front."""
    steps = row_major(shape)
    return (shape[-1], shape[-2], *shape[:-2]), (steps[-1], steps[-2], *steps[:-2])


def _grouped(shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Likewise of a filter ``[*window, channels, outputs per channel]``: a group per channel."""
    steps = row_major(shape)
    return (shape[-2], shape[-1], 1, *shape[:-2]), (steps[-2], steps[-1], steps[-1], *steps[:-2])


def _forward(steps: Steps, call: Call, depthwise: bool = False) -> None:
    """``(input, filter) -> output``."""
    conv = _Convolution(steps, call, 0, 1, 2, depthwise)
    made = conv.forward(Kind.INFERENCE)
    _run(
        conv,
        made,
        {Arg.SRC: (conv.x, Fact.SRC), Arg.WEIGHTS: (conv.w, Fact.WEIGHTS)},
        (Arg.DST, conv.y, Fact.DST),
        (0, 1, 2),
    )


def _run(
    conv: _Convolution,
    made: Any,
    reads: Mapping[Any, tuple[Any, Fact]],
    writes: tuple[int, Any, Fact],
    places: Sequence[int],
    more: dict[int, int] | None = None,
) -> int:
    """Add a primitive over arrays, brought to the layouts that it has chosen; the slot of what it writes, as the array lies."""
    steps, slots = conv.steps, dict(more or {})
    for (arg, (of, fact)), place in zip(reads.items(), places[:-1], strict=True):
        slots[arg] = steps.read(steps.array(place, conv.lying(of)), steps.wants(made, fact))
    arg, of, fact = writes
    array = steps.array(places[-1], conv.lying(of))
    slots[arg] = steps.written(array, steps.wants(made, fact))
    steps.add(made, slots, (slots[arg],))
    steps.write(slots[arg], array)
    return array


def _fused(steps: Steps, call: Call) -> None:
    """``(input, filter, bias) -> (y, before)``: what is not read is not computed."""
    name, after, before = call.attr("activation"), *call.used
    conv = _Convolution(steps, call, 0, 1, 3, False)
    bias = steps.layout(conv.dtype, call.shapes[2], (1,))
    attributes, more = behind(steps, "none" if before else name, 4)
    made = conv.forward(Kind.INFERENCE, bias, attributes)
    more[Arg.BIAS] = steps.array(2, bias)
    reads = {Arg.SRC: (conv.x, Fact.SRC), Arg.WEIGHTS: (conv.w, Fact.WEIGHTS)}
    slot = _run(conv, made, reads, (Arg.DST, conv.y, Fact.DST), (0, 1, 4 if before else 3), more)
    if before and after:
        activate(steps, name, slot, steps.array(3, conv.lying(conv.y)))


def _by_input(steps: Steps, call: Call, depthwise: bool = False) -> None:
    """``(input_sizes, filter, out_backprop) -> output``."""
    conv = _Convolution(steps, call, 3, 1, 2, depthwise)
    made = steps.described(
        "convolution_backward_data", Algorithm.CONVOLUTION, conv.wanted(conv.x), conv.liked(conv.w),
        conv.wanted(conv.y), *conv.numbers, conv.forward(Kind.TRAINING), steps.attributes(),
    )  # fmt: skip
    reads = {Arg.WEIGHTS: (conv.w, Fact.WEIGHTS), Arg.DIFF_DST: (conv.y, Fact.DIFF_DST)}
    _run(conv, made, reads, (Arg.DIFF_SRC, conv.x, Fact.DIFF_SRC), (1, 2, 3))


def _by_filter(steps: Steps, call: Call, depthwise: bool = False, free: bool = False) -> None:
    """``(input, filter_sizes, out_backprop) -> output``."""
    conv = _Convolution(steps, call, 0, 3, 2, depthwise, free)
    made = steps.described(
        "convolution_backward_weights", Algorithm.CONVOLUTION, conv.wanted(conv.x), conv.liked(conv.w), None,
        conv.wanted(conv.y), *conv.numbers, conv.forward(Kind.TRAINING), steps.attributes(),
    )  # fmt: skip
    reads = {Arg.SRC: (conv.x, Fact.SRC), Arg.DIFF_DST: (conv.y, Fact.DIFF_DST)}
    _run(conv, made, reads, (Arg.DIFF_WEIGHTS, conv.w, Fact.DIFF_WEIGHTS), (0, 2, 3))


def _by_filter_through(steps: Steps, call: Call) -> None:
    """The same with images in the library's own layout: two copies more, and from 0.7 to 1.3 of the time."""
    _by_filter(steps, call, free=True)


def _depthwise(make: Any) -> Any:
    def made(steps: Steps, call: Call) -> None:
        make(steps, call, True)

    return made


KERNELS = [
    *kernel("Conv2D", _forward, attrs=WINDOW),
    *kernel("FusedConv2D", _fused, attrs=(*WINDOW, "activation"), check=activation_refused),
    *kernel("Conv2DBackpropInput", _by_input, attrs=WINDOW),
    *kernel("Conv2DBackpropFilter", _by_filter, attrs=WINDOW, other=_by_filter_through),
    *kernel("DepthwiseConv2dNative", _depthwise(_forward), attrs=WINDOW),
    *kernel("DepthwiseConv2dNativeBackpropInput", _depthwise(_by_input), attrs=WINDOW),
    *kernel("DepthwiseConv2dNativeBackpropFilter", _depthwise(_by_filter), attrs=WINDOW),
]
