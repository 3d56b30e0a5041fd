"""Pools of images and volumes with their gradients. A gradient is gathered: each element looks at the windows that it is in."""

from __future__ import annotations

import struct

from graphdock.contracts import KernelDef, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.sliding import Shape, padding_before, windows_over
from graphdock_cuda.launch import Param, i64, raw
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS", "pool_of"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


def pool_of(w: Work, shape: Shape) -> tuple[Shape, Param]:
    """The shape that a pool of this shape makes, and ``Pool`` of ``source/windows.cuh``."""
    attrs = w.node.attrs
    padding, explicit = attrs["padding"], tuple(attrs.get("explicit_paddings") or (0,) * (2 * len(shape)))
    out, before = [], []
    for at, (size, window, stride) in enumerate(zip(shape, attrs["ksize"], attrs["strides"], strict=True)):
        around = explicit[2 * at : 2 * at + 2]
        out.append(windows_over(size, window, stride, padding, around))
        before.append(padding_before(padding, around[0], size, out[-1], stride, window))
    fill = 5 - len(shape)
    rows = [(shape, 1), (out, 1), (attrs["ksize"], 1), (attrs["strides"], 1), (before, 0)]
    dims = [n for values, neutral in rows for n in [*[neutral] * fill, *list(values)[1:]]]
    return tuple(out), raw(struct.pack("<q20i", shape[0], *dims))


def _launch(w: Work, part: str, entry: str, out: Operand, packed: Param, *inputs: Operand) -> None:
    if out.size:
        made = source("windows.cuh", part, TYPE=w.ctype(out))
        w.launch(made, entry, blocks(out.size), 256, *inputs, out, i64(out.size), packed)


@kernel("MaxPool", "MaxPool3D")
def max_pool(w: Work) -> None:
    x = w.input(0)
    shape, packed = pool_of(w, x.shape)
    _launch(w, "max_pool.cuh", "max_pool", w.output(shape), packed, x)


@kernel("AvgPool", "AvgPool3D")
def avg_pool(w: Work) -> None:
    x = w.input(0)
    shape, packed = pool_of(w, x.shape)
    _launch(w, "pool_grad.cuh", "avg_pool", w.output(shape), packed, x)


def _check(w: Work, name: str, have: Shape, want: Shape) -> None:
    """Check what the shape rule asks, where shapes were not known before."""
    if have != want:
        raise errors.InvalidArgumentError(
            f"{name} does not have the shape of what was pooled"
            if name == "orig_input"
            else f"{name} has another shape than the pool",
            op=w.node.origin,
            site=w.node.site,
            expected=str(list(want)),
            got=str(list(have)),
        )


@kernel("MaxPoolGrad", "MaxPool3DGrad")
def max_pool_grad(w: Work) -> None:
    """``(x, y, dy) -> dx``."""
    x, y, dy = w.inputs
    shape, packed = pool_of(w, x.shape)
    _check(w, "orig_output", y.shape, shape)
    _check(w, "grad", dy.shape, shape)
    _launch(w, "pool_grad.cuh", "max_pool_grad", w.output(x.shape), packed, x, y, dy)


@kernel("MaxPoolGradGrad", "MaxPool3DGradGrad")
def max_pool_grad_grad(w: Work) -> None:
    """``(x, y, grad of x's shape) -> of y's shape``."""
    x, y, grad = w.inputs
    shape, packed = pool_of(w, x.shape)
    _check(w, "orig_output", y.shape, shape)
    _launch(w, "pool_grad.cuh", "max_pool_grad_grad", w.output(shape), packed, x, y, grad)


@kernel("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool_grad(w: Work) -> None:
    """``(shape of x, dy) -> dx``."""
    dy = w.input(1)
    sizes = tuple(w.host(0).tolist())
    if len(sizes) != dy.rank or min(sizes) < 0:
        raise errors.InvalidArgumentError(
            f"orig_input_shape must hold {dy.rank} sizes", op=w.node.origin, site=w.node.site, got=str(list(sizes))
        )
    shape, packed = pool_of(w, sizes)
    _check(w, "grad", dy.shape, shape)
    _launch(w, "pool_grad.cuh", "avg_pool_grad", w.output(sizes), packed, dy)
