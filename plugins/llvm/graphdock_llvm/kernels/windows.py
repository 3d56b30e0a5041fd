"""The largest numbers in windows over images, channels last, and their gradients, by a native function each."""

from __future__ import annotations

import math

from graphdock.contracts import KernelDef, KernelRefused, PlanNode, PrepareContext, Prepared, Value

from graphdock_llvm import window_gradients_text, windows_text
from graphdock_llvm.convolutions import convolution
from graphdock_llvm.launch import called
from graphdock_llvm.pool import pool_address
from graphdock_llvm.target import width

__all__ = ["KERNELS"]

#: Elements that are looked at in a part, at least; parts per thread.
_LEAST, _PARTS = 1 << 16, 4


def _check(node: PlanNode) -> str | None:
    x, y, attrs = node.inputs[0].shape, _pool(node).shape, node.attrs
    if x is None or y is None or None in (*x, *y):
        return "its shapes are not known"
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
    x, y, made = ([d or 0 for d in v.shape or ()] for v in (node.inputs[0], _pool(node), node.outputs[0]))
    window = ctx.attr("ksize")[1:3]
    facts = convolution(x, (*window, x[3], x[3]), y, node.attrs)
    rows, shared = made[0] * made[1], 1
    if ctx.threads > 1:
        shared = max(1, min(_PARTS * ctx.threads, rows, math.prod(y) * math.prod(window) // _LEAST))
    threads = ctx.threads if shared > 1 else 1
    numbers = threads, pool_address() if threads > 1 else 0, shared, rows, y[1], y[2], x[1], x[2], x[3]
    text = (windows_text if node.op == "MaxPool" else window_gradients_text).text(width())
    return called(ctx, text, (*numbers, *window, *facts.stride, *facts.before))


KERNELS = [
    KernelDef(op, "cpu", prepare=_prepare, types={"T": ("float32",)}, check=_check) for op in ("MaxPool", "MaxPoolGrad")
]
