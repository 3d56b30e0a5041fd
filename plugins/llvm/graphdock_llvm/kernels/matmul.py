"""Products of matrices in a batch, transposed or not: a product of gathered rows for each."""

from __future__ import annotations

import math

import numpy as np
from graphdock.contracts import KernelDef, KernelRefused, PlanNode, PrepareContext, Prepared

from graphdock_llvm.convolutions import cut
from graphdock_llvm.gathered import Problem, Work
from graphdock_llvm.launch import prepared

__all__ = ["KERNELS"]

#: Products of a batch, at most: each has three numbers.
_MOST = 1 << 14
#: Multiplications of one of them, at least: smaller ones are computed as quickly by NumPy's own loops.
_LEAST = 1 << 12


def _check(node: PlanNode) -> str | None:
    shapes = [value.shape for value in (*node.inputs, node.outputs[0])]
    if any(shape is None or None in shape for shape in shapes):
        return "its shapes are not known"
    a, _, y = (tuple(d or 0 for d in shape or ()) for shape in shapes)
    if len(y) < 3:
        return "it is no batch"
    if any(0 in (shape or ()) for shape in shapes):
        return "it has no elements"
    if max(math.prod(d or 0 for d in shape or ()) for shape in shapes) >= 1 << 31:
        return "a tensor has 2^31 elements or more"
    along = a[-2] if node.attrs["transpose_a"] else a[-1]
    if math.prod(y[:-2]) > _MOST or y[-1] * y[-2] * along < _LEAST:
        return "its matrices are many or small"
    return None if cut(along) is not None else "the axis that is summed over has no small divisor"


def _work(node: PlanNode) -> Work:
    a, b, y = (tuple(d or 0 for d in value.shape or ()) for value in (*node.inputs, node.outputs[0]))
    turn_a, turn_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    rows, columns = y[-2:]
    along = a[-2] if turn_a else a[-1]
    pieces = cut(along) or 1
    length = along // pieces
    down, step = (1, rows) if turn_a else (along, 1)
    right = (1, along) if turn_b else (columns, 1)
    segments = [(piece * length * step, piece * length * right[0]) for piece in range(pieces)]
    places = []
    for shape in (a, b, y):
        size = shape[-1] * shape[-2]
        numbers = np.arange(math.prod(shape[:-2])).reshape(shape[:-2]) * size
        places.append(np.broadcast_to(numbers, y[:-2]).ravel().tolist())
    problem = Problem((1, 1, rows), (0, 0, down, 0), (0, 0, columns, 0), segments, length, step, right)
    return Work([problem], columns, (0, 1, 2, -1, -1), list(zip(*places, strict=True)))


def _prepare(ctx: PrepareContext) -> Prepared:
    why = _check(ctx.node)
    if why:
        raise KernelRefused(why)
    return prepared(ctx, _work(ctx.node))


KERNELS = [KernelDef("MatMul", "cpu", prepare=_prepare, types={"T": ("float32",)}, check=_check)]
