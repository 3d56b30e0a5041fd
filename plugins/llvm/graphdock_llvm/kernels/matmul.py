"""Products of matrices that no region takes, of batches, and sums of products, transposed or not: one of gathered rows for each."""

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
    NativeCall,
    PlanNode,
    PrepareContext,
    Prepared,
    errors,
)

from graphdock_llvm.batches import Works
from graphdock_llvm.convolutions import cut
from graphdock_llvm.extents import bind_any
from graphdock_llvm.gathered import Problem, Work, numbers
from graphdock_llvm.gathered_text import text
from graphdock_llvm.launch import address_of, prepared
from graphdock_llvm.native import chain
from graphdock_llvm.target import described, width
from graphdock_llvm.tuning import PlainProduct, library_is_quicker

__all__ = ["KERNELS"]

#: Products of a batch, at most: each has three numbers. Segments of one that is a sum, at most: each has two.
_MOST, _SEGMENTS = 1 << 14, 1 << 12
#: An axis that has no small divisor is cut behind a multiple of it.
_ROUND = 64
#: Rows by a matrix as it lies or by a transposed one, columns, and places of the axis that is summed over, that are few: what is
#: copied for them is the most of the work from so many multiplications on, and NumPy's products by a vector are quicker.
_FEW_ROWS, _FEW_COLUMNS, _FEW_PLACES, _MANY = (8, 2), 8, 3, 1 << 14
#: Multiplications of one of them, at least: smaller ones are computed as quickly by NumPy's own loops; and where all take so many.
_LEAST, _LEAST_OF_MANY, _ALL = 1 << 12, 1 << 15, 1 << 18
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
    if any(shape is None for shape in shapes):
        return "its rank is not known"
    if any(None in shape for shape in shapes if shape is not None):
        alone = node.op == "MatMul" and len(node.outputs[0].shape or ()) < 3
        return "it is a product of two matrices whose shapes are not known" if alone else None
    return _why_not(node, *_shapes(node))


def _why_not(node: PlanNode, a: tuple[int, ...], b: tuple[int, ...], y: tuple[int, ...]) -> str | None:
    """Reason why a product of these shapes is not computed here; None where it is."""
    if 0 in (*a, *b, *y):
        return "it has no elements"
    if max(map(math.prod, (a, b, y))) >= 1 << 31:
        return "a tensor has 2^31 elements or more"
    along = a[-2] if node.attrs["transpose_a"] else a[-1]
    known = all(None not in (value.shape or ()) for value in node.inputs)
    each = y[-1] * y[-2] * along
    many = node.op == "MatMul" and len(y) > 2 and math.prod(y) * along >= _ALL
    least = _LEAST_OF_MANY if many else _LEAST
    if math.prod(y[:-2]) > _MOST or known and each < least:
        return "its matrices are many or small"
    few = y[-2] <= _FEW_ROWS[node.attrs["transpose_b"]] or y[-1] <= _FEW_COLUMNS or along <= _FEW_PLACES
    if few and len(y) > 2 and each >= _MANY:
        return "its rows, columns or products are few"
    if len(y) < 3 and node.op == "MatMul":
        if along < _SHORT or width() < 16:
            return "its inner axis is short, or there are no registers of 16 numbers"
        if y[0] * y[1] * along > (_LARGE_TURNED if node.attrs["transpose_a"] else _LARGE):
            return "a product this large is a library's"
    pieces = [cut(length, _count(node)) for _, length in _lengths(along, _count(node))]
    if None in pieces:
        return "the axis that is summed over is long"
    return "its matrices are many" if max(filter(None, pieces)) * _count(node) > _SEGMENTS else None


def _lengths(along: int, count: int) -> list[tuple[int, int]]:
    """Beginnings of the parts of the axis that is summed over, and how long they are: two, where it has no small divisor."""
    if cut(along, count) is not None:
        return [(0, along)]
    whole = along // _ROUND * _ROUND
    return [(0, whole), (whole, along - whole)]


def _works(node: PlanNode, a: tuple[int, ...], b: tuple[int, ...], y: tuple[int, ...]) -> list[Work]:
    """Work of these shapes, one behind the other."""
    along = a[-2] if node.attrs["transpose_a"] else a[-1]
    return [_work(node, (a, b, y), *part) for part in _lengths(along, _count(node)) if part[1]]


def _work(node: PlanNode, shapes: Sequence[tuple[int, ...]], first: int, some: int) -> Work:
    a, y, count = shapes[0], shapes[2], _count(node)
    turn_a, turn_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    rows, columns = y[-2:]
    along = a[-2] if turn_a else a[-1]
    pieces = cut(some, count) or 1
    length = some // pieces
    down, step = (1, rows) if turn_a else (along, 1)
    right = (1, along) if turn_b else (columns, 1)
    starts = [first + piece * length for piece in range(pieces)]
    segments = [(place * step, place * right[0]) for place in starts]
    places = []
    for shape in shapes:
        size = shape[-1] * shape[-2]
        begins = np.arange(math.prod(shape[:-2])).reshape(shape[:-2]) * size
        places.append(np.broadcast_to(begins, y[:-2]).ravel().tolist())
    problem = Problem((1, 1, rows), (0, 0, down, 0), (0, 0, columns, 0), segments * count, length, step, right)
    slots = 0, count, 2 * count, -1, -1
    return Work([problem], columns, slots, list(zip(*places, strict=True)), onto=first > 0, matrices=count)


class _Shapes(Works):
    """Numbers of a node's calls, whose shapes only a step knows."""

    def __init__(self, ctx: PrepareContext) -> None:
        super().__init__(ctx)
        self._refused: Sequence[tuple[int, ...]] = ()

    def read(self, shapes: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        node, self.left = self._node, shapes == self._refused
        if self.left:
            raise self._error(shapes)
        a, b = shapes[0], shapes[_count(node)]
        rows, inner = a[:-3:-1] if node.attrs["transpose_a"] else a[-2:]
        depth, columns = b[:-3:-1] if node.attrs["transpose_b"] else b[-2:]
        if inner != depth or any(shape != (a, b)[i // _count(node)] for i, shape in enumerate(shapes)):
            raise errors.ShapeError(f"the matrices of {node.name} do not fit each other", got=str(list(shapes)))
        try:
            y = (*np.broadcast_shapes(a[:-2], b[:-2]), rows, columns)
        except ValueError as error:
            raise errors.ShapeError(f"the batches of {node.name} do not fit each other", got=str([a, b])) from error
        if _why_not(node, a, b, y):
            self.left, self._refused = True, list(shapes)
            raise self._error(shapes)
        return self.tell(_works(node, a, b, y), y)

    def _error(self, shapes: Sequence[tuple[int, ...]]) -> errors.ShapeError:
        return errors.ShapeError(f"{self._node.name} is left to NumPy", got=str(shapes))


def _by_numpy(node: PlanNode, *given: Any) -> Any:
    """The product, or the sum of products, of shapes that are not computed here."""
    count = _count(node)
    turned = node.attrs["transpose_a"], node.attrs["transpose_b"]
    sides = [array.swapaxes(-1, -2) if turned[i // count] else array for i, array in enumerate(given)]
    made = [np.matmul(left, right) for left, right in zip(sides[:count], sides[count:], strict=True)]
    return sum(made[1:], made[0])


def _prepare(ctx: PrepareContext) -> Prepared:
    node = ctx.node
    why = _check(node)
    if why:
        raise KernelRefused(why)
    if all(None not in (value.shape or ()) for value in (*node.inputs, node.outputs[0])):
        if plain := _plain(node):
            rows = partial(_by_rows, ctx, plain)
            if why := library_is_quicker(ctx, plain, rows):
                raise KernelRefused(why)
        works = _works(node, *_shapes(node))
        if len(works) == 1:
            return prepared(ctx, works[0])
    source = text(width())
    native = Native(address_of(ctx, source), chain, sized=partial(_Shapes, ctx))
    bind = partial(bind_any, len(node.inputs), 1, native, otherwise=partial(_by_numpy, node))
    return Prepared(bind, native=native, source=lambda: source)


def _plain(node: PlanNode) -> PlainProduct | None:
    """The product of two matrices that a node is, if it is one."""
    if node.op != "MatMul" or len(node.outputs[0].shape or ()) != 2:
        return None
    a, _, y = _shapes(node)
    turned = bool(node.attrs["transpose_a"]), bool(node.attrs["transpose_b"])
    return PlainProduct(0, 1, 2, turned, (y[0], a[0] if turned[0] else a[1], y[1]), node.outputs[0].dtype.name)


def _by_rows(ctx: PrepareContext, plain: PlainProduct) -> Any:
    """A function of a node's inputs and its output, to be measured; what is summed in two calls is so here, too."""
    works = [(work, numbers(work, ctx.threads)) for work in _works(ctx.node, *_shapes(ctx.node))]
    frames = [np.empty(work.frame.size, np.float32) for work, _ in works if work.frame is not None]
    calls = [NativeCall(address_of(ctx, text(width())), (0, 1, 2, *frames), its) for _, its in works]
    return chain(calls, 3)


KERNELS = [
    KernelDef(op, "cpu", prepare=_prepare, types={"T": ("float32",)}, check=_check, probe=described)
    for op in ("MatMul", "MatMulSum")
]
