"""Convolutions of images and their gradients, channels last, as products of gathered rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from graphdock.contracts import KernelDef, KernelRefused, PlanNode, PrepareContext, Prepared

from graphdock_llvm.convolutions import Convolution, by_filter, by_input, convolution, forward
from graphdock_llvm.gathered import Work
from graphdock_llvm.launch import prepared

__all__ = ["KERNELS"]

_ATTRS = ("strides", "padding", "explicit_paddings", "dilations")


def _kernel(op: str, places: tuple[int, int, int], make: Callable[[Convolution], Work | None]) -> KernelDef:
    """Args:
    places: of the images, the filter and what is made of both, among inputs and the output.
    """

    def shapes_of(node: PlanNode) -> list[Any]:
        values = (*node.inputs, node.outputs[0])
        return [values[place].shape for place in places]

    def made(shapes: list[Any], attrs: Mapping[str, Any]) -> Work | None:
        return make(convolution(shapes[0], shapes[1], shapes[2], attrs))

    def check(node: PlanNode) -> str | None:
        shapes = shapes_of(node)
        if any(shape is None or None in shape for shape in shapes):
            return "its shapes are not known"
        if any(0 in shape for shape in shapes):
            return "it has no elements"
        if node.attrs["data_format"] != "NHWC":
            return "its channels are not last"
        if max(math.prod(shape) for shape in shapes) >= 1 << 31:
            return "a tensor has 2^31 elements or more"
        return None if made(shapes, node.attrs) is not None else "its channels have no small divisor"

    def prepare(ctx: PrepareContext) -> Prepared:
        why = check(ctx.node)
        work = None if why else made(shapes_of(ctx.node), {n: ctx.attr(n) for n in _ATTRS})
        if work is None:
            raise KernelRefused(why or "its channels have no small divisor")
        return prepared(ctx, work)

    return KernelDef(op, "cpu", prepare=prepare, types={"T": ("float32",)}, check=check)


KERNELS = [
    _kernel("Conv2D", (0, 1, 2), lambda c: forward(c, 3)),
    _kernel("Conv2DBackpropInput", (3, 1, 2), by_input),
    _kernel("Conv2DBackpropFilter", (0, 3, 2), by_filter),
]
