"""Kernels that resize images ``[B,H,W,C]``: rows first, then columns, each a gather of a few taps or a matrix product.

A resize is linear in the image, so its gradient is the product with the transposed matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, errors
from numpy import add, copyto, matmul, multiply, take

from graphdock_cpu.kernels import resample, shaped, sized
from graphdock_cpu.kernels.resample import Taps
from graphdock_cpu.kernels.shaped import Made, Shape
from graphdock_cpu.kernels.sized import Values

__all__ = ["KERNELS"]

#: The taps of one axis: ``(size, wanted, align_corners, half_pixel_centers)``.
Rule = Callable[[int, int, bool, bool], Taps]


def _size(values: Values) -> tuple[int, int]:
    height, width = values[1]
    if height < 1 or width < 1:
        raise errors.InvalidArgumentError(f"size [{height},{width}] must be positive")
    return height, width


def _resized(ctx: BuildContext, shapes: Sequence[Shape], values: Values) -> Sequence[Shape]:
    batch, height, width, channels = shapes[0]
    if not (height and width):
        raise errors.InvalidArgumentError(f"images {list(shapes[0])} have no pixels to sample")
    return [(batch, *_size(values), channels)]


def _gather(taps: Taps, axis: int) -> tuple[Callable[..., None], int]:
    """``compute(x, out, *scratch)`` along an axis of a ``[B,H,W,C]`` array, and how many buffers like ``out`` it wants."""
    (first, *others) = taps.indices
    if taps.plain:
        return lambda x, out: take(x, first, axis, out, "clip"), 0
    shape = (-1,) + (1,) * (3 - axis)
    weight, *rest = [w.reshape(shape) for w in taps.weights]
    pairs = list(zip(others, rest, strict=True))

    def compute(x: Any, out: Any, part: Any) -> None:
        take(x, first, axis, out, "clip")
        multiply(out, weight, out)
        for index, factor in pairs:
            take(x, index, axis, part, "clip")
            multiply(part, factor, part)
            add(out, part, out)

    return compute, 1


def _by_taps(rule: Rule) -> sized.Make:
    """Rows, then columns; in float32 where the result is, else in the images' own dtype."""

    def make(ctx: BuildContext, shapes: Sequence[Shape], values: Values) -> Made:
        batch, height, width, channels = shapes[0]
        wanted = _size(values)
        options = bool(ctx.attr("align_corners")), bool(ctx.attr("half_pixel_centers"))
        dtype, given = ctx.outputs[0].dtype, ctx.inputs[0].dtype
        rows, of_rows = _gather(rule(height, wanted[0], *options), 1)
        columns, of_columns = _gather(rule(width, wanted[1], *options), 2)
        between, last = Scratch(dtype, (batch, wanted[0], width, channels)), (batch, *wanted, channels)
        buffers = [between] * (1 + of_rows) + [Scratch(dtype, last)] * of_columns
        copied = given is not dtype
        if copied:
            buffers.append(Scratch(dtype, shapes[0]))

        def compute(images: Any, size: Any, out: Any, middle: Any, *scratch: Any) -> None:
            if copied:
                copyto(scratch[-1], images, "unsafe")
                images = scratch[-1]
            rows(images, middle, *scratch[:of_rows])
            columns(middle, out, *scratch[of_rows : of_rows + of_columns])

        return compute, tuple(buffers)

    return make


def _product(dtype: Any, rows: Any, columns: Any, shape: Shape) -> tuple[Callable[..., None], Shape]:
    """``compute(x, out, middle)`` of x of this shape by the matrices of both axes, and the shape of ``middle``."""
    batch, height, width, channels = shape
    tall, wide = rows.shape[0], columns.shape[0]
    rows, columns = rows.astype(dtype), columns.astype(dtype)

    def compute(x: Any, out: Any, middle: Any) -> None:
        matmul(rows, x.reshape(batch, height, width * channels), middle.reshape(batch, tall, width * channels))
        flat = middle.reshape(batch * tall, width, channels)
        matmul(columns, flat, out.reshape(batch * tall, wide, channels))

    return compute, (batch, tall, width, channels)


def _linear(ctx: BuildContext, rows: Any, columns: Any, shape: Shape) -> Made:
    """The product in what the output is accumulated in; inputs and output are converted where they differ."""
    wide, given, output = ctx.outputs[0].dtype.accumulator, ctx.inputs[0].dtype, ctx.outputs[0].dtype
    compute, middle = _product(wide.np, rows, columns, shape)
    before, after = given is not wide, output is not wide
    buffers = [Scratch(wide, middle)]
    if before:
        buffers.append(Scratch(wide, shape))
    if after:
        buffers.append(Scratch(wide, (shape[0], rows.shape[0], columns.shape[0], shape[3])))

    def run(x: Any, _: Any, out: Any, middle: Any, *scratch: Any) -> None:
        if before:
            np.copyto(scratch[0], x, "unsafe")
            x = scratch[0]
        target = scratch[-1] if after else out
        compute(x, target, middle)
        if after:
            np.copyto(out, target, "unsafe")

    return run, tuple(buffers)


def _area(ctx: BuildContext, shapes: Sequence[Shape], values: Values) -> Made:
    align, wanted = bool(ctx.attr("align_corners")), _size(values)
    matrices = [resample.area(n, w, align) for n, w in zip(shapes[0][1:3], wanted, strict=True)]
    return _linear(ctx, *matrices, shapes[0])


def _area_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    align, grads, image = bool(ctx.attr("align_corners")), *shapes
    matrices = [resample.area(n, w, align).T for n, w in zip(image[1:3], grads[1:3], strict=True)]
    return _linear(ctx, *matrices, grads)


def _transposed(rule: Rule, ctx: BuildContext, grads: Shape, size: Sequence[int]) -> Made:
    options = bool(ctx.attr("align_corners")), bool(ctx.attr("half_pixel_centers"))
    matrices = [resample.dense(rule(n, w, *options), n).T for n, w in zip(size, grads[1:3], strict=True)]
    return _linear(ctx, *matrices, grads)


def _taps_grad(rule: Rule) -> shaped.Make:
    return lambda ctx, shapes: _transposed(rule, ctx, shapes[0], shapes[1][1:3])


def _nearest_grad(ctx: BuildContext, shapes: Sequence[Shape], values: Values) -> Made:
    return _transposed(resample.nearest, ctx, shapes[0], _size(values))


def _second(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [shapes[1]]


def _sized_gradient(ctx: BuildContext, shapes: Sequence[Shape], values: Values) -> Sequence[Shape]:
    return [(shapes[0][0], *_size(values), shapes[0][3])]


_SIZE = {"host": ("size",)}

KERNELS = [
    KernelDef("ResizeBilinear", "cpu", sized.bind(_by_taps(resample.bilinear), _resized, 1), **_SIZE),
    KernelDef("ResizeBilinearGrad", "cpu", shaped.bind(_taps_grad(resample.bilinear), _second)),
    KernelDef("ResizeNearestNeighbor", "cpu", sized.bind(_by_taps(resample.nearest), _resized, 1), **_SIZE),
    KernelDef("ResizeNearestNeighborGrad", "cpu", sized.bind(_nearest_grad, _sized_gradient, 1), **_SIZE),
    KernelDef("ResizeBicubic", "cpu", sized.bind(_by_taps(resample.bicubic), _resized, 1), **_SIZE),
    KernelDef("ResizeBicubicGrad", "cpu", shaped.bind(_taps_grad(resample.bicubic), _second)),
    KernelDef("ResizeArea", "cpu", sized.bind(_area, _resized, 1), **_SIZE),
    KernelDef("ResizeAreaGrad", "cpu", shaped.bind(_area_grad, _second)),
]
