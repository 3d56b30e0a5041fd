"""Windows that slide over images: sizes and paddings of a convolution or a pool, from its attributes and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphdock_onednn.program import row_major
from graphdock_onednn.programs import Call

__all__ = ["WINDOW", "Window", "channels_first", "image", "window"]

#: Attributes that a window depends on.
WINDOW = ("strides", "padding", "explicit_paddings", "data_format", "dilations")


@dataclass(frozen=True, slots=True)
class Window:
    """Per spatial dim: elements of the window, from one position to the next, between its elements (0: none), of padding in front
    and behind."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    gaps: tuple[int, ...]
    before: tuple[int, ...]
    behind: tuple[int, ...]


def channels_first(call: Call) -> bool:
    return not call.attr("data_format").endswith("C")


def image(call: Call, place: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of a batch of images, channels behind the batch, as the library counts dims."""
    shape = call.shapes[place]
    steps = row_major(shape)
    if channels_first(call):
        return shape, steps
    return (shape[0], shape[-1], *shape[1:-1]), (steps[0], steps[-1], *steps[1:-1])


def spatial(call: Call, values: Sequence[int]) -> tuple[int, ...]:
    """Of numbers per dim those of the spatial dims."""
    return tuple(values[2:] if channels_first(call) else values[1:-1])


def window(call: Call, sizes: Sequence[int], images: int, made: int) -> Window:
    """Of a window of these sizes over the images in one place, which makes what is in another."""
    whole, out = image(call, images)[0][2:], image(call, made)[0][2:]
    attrs = dict(call.attrs)
    stride = spatial(call, attrs["strides"])
    dilation = spatial(call, attrs.get("dilations") or (1,) * (len(sizes) + 2))
    explicit = attrs.get("explicit_paddings") or (0,) * (2 * len(sizes) + 4)
    front, back = spatial(call, explicit[::2]), spatial(call, explicit[1::2])
    before, behind = [], []
    for i, (k, s, d, n, m) in enumerate(zip(sizes, stride, dilation, whole, out, strict=True)):
        span = (k - 1) * d + 1
        if attrs["padding"] == "EXPLICIT":
            pads = front[i], back[i]
        else:
            missing = max(0, (m - 1) * s + span - n) if attrs["padding"] == "SAME" else 0
            pads = missing // 2, missing - missing // 2
        before.append(pads[0])
        behind.append(pads[1])
    return Window(tuple(sizes), stride, tuple(d - 1 for d in dilation), tuple(before), tuple(behind))
