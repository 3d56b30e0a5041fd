"""The largest numbers in windows over images, channels last, and their gradients, by a native function each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from graphdock.contracts import (
    KernelDef,
    KernelRefused,
    Native,
    NativeShapes,
    PlanNode,
    PrepareContext,
    Prepared,
    Value,
)

from graphdock_llvm import window_gradients_text, windows_text
from graphdock_llvm.batches import images_of
from graphdock_llvm.convolutions import convolution
from graphdock_llvm.extents import Results, bind_any
from graphdock_llvm.launch import address_of, called, single_threaded
from graphdock_llvm.native import chain
from graphdock_llvm.pool import pool_address
from graphdock_llvm.target import width

__all__ = ["KERNELS"]

#: Elements that are looked at in a part, at least; parts per thread.
_LEAST, _PARTS = 1 << 16, 4


def _check(node: PlanNode) -> str | None:
    x, y, attrs = node.inputs[0].shape, _pool(node).shape, node.attrs
    if x is None or y is None:
        return "its shapes are not known"
    if None in (*x[1:], *y[1:]):
        return "the sides of its images are not known"
    if 0 in (*x, *y):
        return "it has no elements"
    if attrs["data_format"] != "NHWC":
        return "its channels are not last"
    if any(attrs[name][i] != 1 for name in ("ksize", "strides") for i in (0, 3)):
        return "it pools over the batch or the channels"
    pads = (attrs["explicit_paddings"] or ())[2:6]
    if any(p >= attrs["ksize"][1 + i // 2] for i, p in enumerate(pads)):
        return "a window may lie in the padding alone"
    return None


def _pool(node: PlanNode) -> Value:
    return node.inputs[1] if node.op == "MaxPoolGrad" else node.outputs[0]


def _prepare(ctx: PrepareContext) -> Prepared:
    node = ctx.node
    why = _check(node)
    if why:
        raise KernelRefused(why)
    printed = (windows_text if node.op == "MaxPool" else window_gradients_text).text(width())
    images = [value.shape[0] for value in (*node.inputs, node.outputs[0]) if value.shape]
    if len(images) == len(node.inputs) + 1 and None not in images:
        return called(ctx, printed, _numbers(node, images[0] or 0, ctx.threads))
    native = Native(address_of(ctx, printed), chain, sized=partial(_Images, ctx))
    return Prepared(partial(bind_any, len(node.inputs), 1, native), native=native, source=lambda: printed)


def _numbers(node: PlanNode, images: int, threads: int) -> list[int]:
    """Arguments of the function for so many images."""
    x, y, made = (
        [images, *(d or 0 for d in (v.shape or ())[1:])] for v in (node.inputs[0], _pool(node), node.outputs[0])
    )
    window = node.attrs["ksize"][1:3]
    facts = convolution(x, (*window, x[3], x[3]), y, node.attrs)
    rows, shared = made[0] * made[1], 1
    if threads > 1:
        shared = max(1, min(_PARTS * threads, rows, math.prod(y) * math.prod(window) // _LEAST))
    threads = threads if shared > 1 else 1
    numbers = threads, pool_address() if threads > 1 else 0, shared, rows, y[1], y[2], x[1], x[2], x[3]
    return [*numbers, *window, *facts.stride, *facts.before]


class _Images(NativeShapes):
    """Numbers of a node's calls, of which the plan does not know how many images they have."""

    def __init__(self, ctx: PrepareContext) -> None:
        self._node, self._threads = ctx.node, ctx.threads
        self._shared = single_threaded(ctx.device) if ctx.threads > 1 else None
        self._make = Results(ctx.outputs[0].dtype.np)
        self._shape: tuple[int, ...] = ()
        self.numbers = np.array(_numbers(ctx.node, 1, ctx.threads), np.int64)

    def read(self, shapes: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        node = self._node
        # a gradient lies as what it is of
        values = node.inputs if len(node.inputs) < 3 else [*node.inputs[:2], node.inputs[1]]
        images = images_of(values, shapes)
        self.numbers[:] = _numbers(node, images, self._threads)
        self.within = self._shared if self.numbers[0] > 1 else None
        self._shape = (images, *[d or 0 for d in (node.outputs[0].shape or ())[1:]])
        return [self._shape]

    def make(self, output: int) -> Any:
        return self._make(self._shape)


KERNELS = [
    KernelDef(op, "cpu", prepare=_prepare, types={"T": ("float32",)}, check=_check) for op in ("MaxPool", "MaxPoolGrad")
]
