"""Products of matrices that no region takes, of batches, and sums of products, transposed or not: one of gathered rows for each."""

from __future__ import annotations

import math

import numpy as np
from graphdock.contracts import KernelDef, KernelRefused, PlanNode, PrepareContext, Prepared

from graphdock_llvm.convolutions import cut
from graphdock_llvm.gathered import Problem, Work
from graphdock_llvm.launch import prepared
from graphdock_llvm.target import described, width

__all__ = ["KERNELS"]

#: Products of a batch, at most: each has three numbers. Segments of one that is a sum, at most: each has two.
_MOST, _SEGMENTS = 1 << 14, 1 << 12
#: Multiplications of one of them, at least: smaller ones are computed as quickly by NumPy's own loops.
_LEAST = 1 << 12
#: Of a product of two matrices alone: places of the axis that is summed over, at least, and multiplications at most, also of
#: one whose left matrix is transposed. Others take OpenBLAS as long or less.
_SHORT, _LARGE, _LARGE_TURNED = 64, 1 << 28, 1 << 24


def _count(node: PlanNode) -> int:
    """The number of a node's left matrices, which is that of its right ones."""
    return len(node.inputs) // 2


def _shapes(node: PlanNode) -> list[tuple[int, ...]]:
    """Of a left matrix, a right one, and the output."""
    values = node.inputs[0], node.inputs[_count(node)], node.outputs[0]
    return [tuple([d or 0 for d in value.shape or ()]) for value in values]


def _check(node: PlanNode) -> str | None:
    shapes = [value.shape for value in (*node.inputs, node.outputs[0])]
    if any(shape is None or None in shape for shape in shapes):
        return "its shapes are not known"
    a, b, y = _shapes(node)
    if 0 in (*a, *b, *y):
        return "it has no elements"
    if max(map(math.prod, (a, b, y))) >= 1 << 31:
        return "a tensor has 2^31 elements or more"
    along = a[-2] if node.attrs["transpose_a"] else a[-1]
    if math.prod(y[:-2]) > _MOST or y[-1] * y[-2] * along < _LEAST:
        return "its matrices are many or small"
    if len(y) < 3 and node.op == "MatMul":
        if along < _SHORT or width() < 16:
            return "its inner axis is short, or there are no registers of 16 numbers"
        if y[0] * y[1] * along > (_LARGE_TURNED if node.attrs["transpose_a"] else _LARGE):
            return "a product this large is a library's"
    pieces = cut(along, _count(node))
    if pieces is None:
        return "the axis that is summed over has no small divisor"
    return "its matrices are many" if pieces * _count(node) > _SEGMENTS else None


def _work(node: PlanNode) -> Work:
    (a, b, y), count = _shapes(node), _count(node)
    turn_a, turn_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    rows, columns = y[-2:]
    along = a[-2] if turn_a else a[-1]
    pieces = cut(along, count) or 1
    length = along // pieces
    down, step = (1, rows) if turn_a else (along, 1)
    right = (1, along) if turn_b else (columns, 1)
    segments = [(piece * length * step, piece * length * right[0]) for piece in range(pieces)]
    places = []
    for shape in (a, b, y):
        size = shape[-1] * shape[-2]
        numbers = np.arange(math.prod(shape[:-2])).reshape(shape[:-2]) * size
        places.append(np.broadcast_to(numbers, y[:-2]).ravel().tolist())
    problem = Problem((1, 1, rows), (0, 0, down, 0), (0, 0, columns, 0), segments * count, length, step, right)
    slots = 0, count, 2 * count, -1, -1
    return Work([problem], columns, slots, list(zip(*places, strict=True)), matrices=count)


def _prepare(ctx: PrepareContext) -> Prepared:
    why = _check(ctx.node)
    if why:
        raise KernelRefused(why)
    return prepared(ctx, _work(ctx.node))


KERNELS = [
    KernelDef(op, "cpu", prepare=_prepare, types={"T": ("float32",)}, check=_check, probe=described)
    for op in ("MatMul", "MatMulSum")
]
