"""Histories, lists of arrays on the GPU: the rows of a tensor as such a list, and such a list as the rows of a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

from graphdock_cuda.joining import batches, grid_of, source_of
from graphdock_cuda.kernel import DEVICE, PLAIN
from graphdock_cuda.launch import Launch, i64, raw, u64
from graphdock_cuda.memory import Array, array_over

__all__ = ["KERNELS"]


def _unstack(ctx: BuildContext) -> Bound:
    """Rows of one copy of the tensor: a history owns its elements. The copy lives as long as any row."""
    queue, step, partial = ctx.queue, -1 if ctx.attr("reverse") else 1, ctx.attr("partial")

    def rows(value: Array, count: np.ndarray) -> list[Array]:
        found, *shape = value.shape
        if partial and found > count:
            found = int(count)
            value = array_over(value.block, value.address - value.block.address, value.dtype, (found, *shape))
        if found != count:
            raise errors.InvalidArgumentError(
                "HistoryUnstack: another number of rows than expected", expected=str(int(count)), got=str(found)
            )
        kept = queue.empty(value.dtype, value.shape)
        queue.copy(value, kept)
        each = value.dtype.size * math.prod(shape)
        return [array_over(kept.block, i * each, value.dtype, shape) for i in range(found)][::step]

    return Bound(rows, capture_safe=False)


def _stack(ctx: BuildContext) -> Bound:
    """All elements by one launch, or a few, into an array of their own or where the plan says."""
    queue, dtype, backwards = ctx.queue, ctx.outputs[0].dtype, ctx.attr("reverse")
    join, padded = _joiner(ctx), ctx.attr("padded")

    def write(history: list[Array], dims: np.ndarray, out: Array) -> None:
        if len(history) != out.shape[0]:
            raise errors.InvalidArgumentError(
                "HistoryStack: another number of elements than expected",
                expected=str(out.shape[0]),
                got=str(len(history)),
            )
        shape = out.shape[1:]
        other = next((x.shape for x in history if x.shape != shape), None)
        if other is not None:
            if not padded:
                raise errors.ShapeError(
                    "HistoryStack: the elements differ in shape", expected=str(shape), got=str(other)
                )
            history = [x if x.shape == shape else _grown(ctx, x, shape) for x in history]
        join(history[::-1] if backwards else history, out)

    def fresh(history: list[Array], dims: np.ndarray) -> Array:
        count, *rest = dims.tolist()
        element = list(history[0].shape) if history else [max(d, 0) for d in rest]
        if len(element) != len(rest) or any(d not in (-1, e) for d, e in zip(rest, element, strict=True) if history):
            raise errors.ShapeError(
                "HistoryStack: the elements have another shape", expected=str(rest), got=str(element)
            )
        if padded and history:
            element = [max(sizes) for sizes in zip(*[x.shape for x in history], strict=True)]
        out: Array = queue.empty(dtype, (len(history) if count < 0 else count, *element))
        write(history, dims, out)
        return out

    return Bound(fresh if ctx.fresh else write, capture_safe=False)


def _grown(ctx: BuildContext, x: Array, shape: tuple[int, ...]) -> Array:
    """An array of a larger shape, with zeros past the end of ``x``: a copy for each run of elements that stay side by side."""
    queue: Any = ctx.queue
    made: Array = queue.empty(x.dtype, shape)
    if made.nbytes:
        queue.driver.fill(made.address, 0, made.nbytes, queue.stream)
    if not x.nbytes:
        return made
    last = max(axis for axis, (old, new) in enumerate(zip(x.shape, shape, strict=True)) if old != new)
    run, size = math.prod(x.shape[last:]), x.dtype.size
    at, into = x.address - x.block.address, made.address - made.block.address
    for number, place in enumerate(np.ndindex(x.shape[:last])):
        start = int(np.ravel_multi_index(place, shape[:last])) * math.prod(shape[last:]) if place else 0
        queue.copy(
            array_over(x.block, at + number * run * size, x.dtype, (run,)),
            array_over(made.block, into + start * size, x.dtype, (run,)),
        )
    return made


def _joiner(ctx: BuildContext) -> Callable[[list[Array], Array], None]:
    """``join(rows, out)`` lays arrays of one shape one after the other."""
    device: Any = ctx.device
    stream, size = ctx.queue.stream, ctx.outputs[0].dtype.size
    for _, _, length in batches(1):
        device.images.image(source_of(size, length))  # it is compiled meanwhile

    def join(rows: list[Array], out: Array) -> None:
        if not out.nbytes:
            return
        run = out.nbytes // len(rows) // size
        for begin, count, length in batches(len(rows)):
            table = b"".join(u64(x.address) for x in rows[begin : begin + count]).ljust(8 * length, b"\0")
            params = (raw(table), u64(out.address + begin * run * size), i64(run), i64(run), i64(run * len(rows)))
            function = device.images.function(source_of(size, length), "join")
            Launch(device.driver, function, grid_of(run, count), (256,), 0, params, stream).run()

    return join


KERNELS = [
    KernelDef("HistoryUnstack", DEVICE, _unstack, modes=("fresh",), types={"T": PLAIN}),
    KernelDef("HistoryStack", DEVICE, _stack, types={"T": PLAIN}),
]
