"""Cross-entropy with a class index per row: a region's program, then what the labels choose."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from graphdock.contracts import (
    Axis,
    BindContext,
    KernelDef,
    KernelRefused,
    Native,
    NativeShapes,
    PlanNode,
    PrepareContext,
    Prepared,
    RegionInput,
    RegionOutput,
    RegionProgram,
    Scratch,
    Term,
    errors,
)

from graphdock_llvm.emitter import SCALARS
from graphdock_llvm.extents import Extents, Results, bind_any
from graphdock_llvm.launch import address_of, bound, single_threaded
from graphdock_llvm.native import chain
from graphdock_llvm.pool import pool_address
from graphdock_llvm.printer import ALONE, Printed, print_functions
from graphdock_llvm.schedule import forbidden
from graphdock_llvm.target import width

__all__ = ["KERNELS"]


#: What is done with the one element of each row that is its label's, behind all rows; a label that is no class leaves a status.
_LABELS = """
define void @region(ptr %table, ptr %numbers) {
entry:
ROWS
  %features = load ptr, ptr %table
  %labels.at = getelementptr ptr, ptr %table, i64 1
  %labels = load ptr, ptr %labels.at
  %loss.at = getelementptr ptr, ptr %table, i64 2
  %loss = load ptr, ptr %loss.at
  %derivative.at = getelementptr ptr, ptr %table, i64 3
  %derivative = load ptr, ptr %derivative.at
  %maxima.at = getelementptr ptr, ptr %its.table, i64 MAXIMA
  %maxima = load ptr, ptr %maxima.at
  %some = icmp ugt i64 %rows, 0
  br i1 %some, label %row, label %end
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %class.found ]
  %label.at = getelementptr INDEX, ptr %labels, i64 %r
  %its = load INDEX, ptr %label.at
  %label = sext INDEX %its to i128
  %class = trunc i128 %label to i64
  %is.class = icmp ult i64 %class, CLASSES
  br i1 %is.class, label %class.found, label %fail
class.found:
  %first = mul i64 %r, CLASSES
  %place = add i64 %first, %class
  %feature.at = getelementptr TYPE, ptr %features, i64 %place
  %feature = load TYPE, ptr %feature.at
  %max.at = getelementptr TYPE, ptr %maxima, i64 %r
  %max = load TYPE, ptr %max.at
  %d = fsub TYPE %feature, %max
  %one.loss = getelementptr TYPE, ptr %loss, i64 %r
  %log = load TYPE, ptr %one.loss
  %whole = fsub TYPE %log, %d
  store TYPE %whole, ptr %one.loss
DERIVATIVE
  %r.next = add i64 %r, 1
  %more = icmp ult i64 %r.next, %rows
  br i1 %more, label %row, label %end
fail:
  %status.at = getelementptr ptr, ptr %table, i64 STATUS
  %status = load ptr, ptr %status.at
  store i64 1, ptr %status
  ret void
end:
  ret void
}
"""
#: What computes all rows, of a number that is known, or that a call says: then the numbers begin with the address of memory for the
#: largest elements, and are the function's own from the next one on.
_KNOWN = """
  %its.table = getelementptr ptr, ptr %table, i64 0
  %rows = add i64 COUNT, 0
  call void @rows(ptr %its.table, ptr %numbers)
"""
_OPEN = """
  %its.table = alloca [5 x ptr]
  call void @llvm.memcpy.p0.p0.i64(ptr %its.table, ptr %table, i64 32, i1 false)
  %room = load ptr, ptr %numbers
  %room.at = getelementptr ptr, ptr %its.table, i64 4
  store ptr %room, ptr %room.at
  %its.numbers = getelementptr i64, ptr %numbers, i64 1
  %rows.at = getelementptr i64, ptr %its.numbers, i64 3
  %rows = load i64, ptr %rows.at
  call void @rows(ptr %its.table, ptr %its.numbers)
"""
_DERIVATIVE = """
  %slope.at = getelementptr TYPE, ptr %derivative, i64 %place
  %p = load TYPE, ptr %slope.at
  %less = fsub TYPE %p, 1.0
  store TYPE %less, ptr %slope.at
"""


def _program(node: PlanNode, derivative: bool) -> RegionProgram:
    """Of each row the logarithm of the sum and the largest element, and, where the derivative is read, the softmax between them.

    Where nobody reads the derivative, its memory gets the largest elements.
    """
    (*high, wide), dtype = node.inputs[0].shape or (0,), node.inputs[0].dtype
    extents, whole, rows = (None if None in high else math.prod(d or 0 for d in high), wide), (0, 1), (0,)
    terms = [
        Term("input", dtype, (), whole, 0),
        Term("max", dtype, (0,), rows, (1,)),
        Term("sub", dtype, (0, 1), whole),
        Term("exp", dtype, (2,), whole),
        Term("sum", dtype, (3,), rows, (1,)),
        Term("log", dtype, (4,), rows),
    ]
    outputs = [RegionOutput("loss", 5, dtype, extents[:1], rows)]
    if derivative:
        terms.append(Term("divide", dtype, (3, 4), whole))
        outputs.append(RegionOutput("derivative", 6, dtype, extents, whole))
    outputs.append(RegionOutput("maxima", 1, dtype, extents[:1], rows))
    features = RegionInput("features", 0, dtype, extents, whole)
    axes = Axis("row", extents[0]), Axis("class", extents[1])
    return RegionProgram(node.name, axes, (features,), tuple(terms), tuple(outputs))


def _check(node: PlanNode) -> str | None:
    shape = node.inputs[0].shape
    if not shape:
        return "its rank is not known"
    if shape[-1] is None:
        return "how many classes there are is not known"
    return "it has no elements" if 0 in shape else forbidden(_program(node, True), width())


def _text(program: RegionProgram, printed: Printed, index: str, derivative: bool) -> str:
    rows, classes = (axis.extent for axis in program.axes)
    slots = {"MAXIMA": "4" if derivative else "3", "STATUS": "5" if derivative and rows is not None else "4"}
    text = _LABELS.replace("DERIVATIVE", _DERIVATIVE if derivative else "").replace(
        "ROWS", _OPEN if rows is None else _KNOWN
    )
    words = slots | {
        "TYPE": SCALARS[program.inputs[0].dtype.name],
        "INDEX": index,
        "COUNT": str(rows),
        "CLASSES": str(classes),
    }
    for word, value in words.items():
        text = text.replace(word, value)
    copy = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
    return (copy if rows is None else "") + printed.text() + text


class _Sizes(NativeShapes):
    """Numbers of a node's calls whose rows only a step counts, and the memory of their largest elements."""

    def __init__(self, node: PlanNode, program: RegionProgram, numbers: Sequence[int], within: Any) -> None:
        self._node, self._classes = node, program.axes[1].extent or 0
        self._extents = Extents(program, (0, *numbers), within, before=1)
        self.numbers = self._extents.numbers
        self._dtype = node.inputs[0].dtype.np
        self._makers = [Results(self._dtype) for _ in node.outputs]
        self._room: Any = np.empty(0, self._dtype)
        self._shapes: Sequence[tuple[int, ...]] = ()

    def read(self, shapes: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        features, labels = shapes[:2]
        if features[-1:] != (self._classes,) or labels != features[:-1]:
            raise errors.ShapeError(
                f"the labels of {self._node.name} are not one for each row of its features",
                expected=f"features of shape {[*labels, self._classes]}",
                got=str(list(features)),
            )
        rows = math.prod(labels)
        self._extents.read([(rows, self._classes)])
        if self._room.size < rows:
            self._room = np.empty(rows, self._dtype)
        self.numbers[0], self.within = self._room.ctypes.data, self._extents.within
        self._shapes = [labels, features]
        return self._shapes

    def make(self, output: int) -> Any:
        return self._makers[output](self._shapes[output])


def _prepare(ctx: PrepareContext) -> Prepared:
    if why := _check(ctx.node):
        raise KernelRefused(why)
    derivative = ctx.outputs[1].used
    program = _program(ctx.node, derivative)
    printed = print_functions(program, len(ctx.inputs), width(), "rows", "internal")
    text = _text(program, printed, SCALARS[ctx.inputs[1].dtype.name], derivative)
    shared = ctx.threads > 1 and printed.shared
    numbers = (ctx.threads, pool_address()) if shared else ALONE
    within = single_threaded(ctx.device) if shared else None
    source = partial("{}\n\n{}".format, program, text)
    if program.axes[0].extent is None:
        sized = partial(_Sizes, ctx.node, program, numbers, within)
        native = Native(address_of(ctx, text), chain, sized=sized, status=True)
        refuse = partial(_refuse, program.axes[1].extent or 0)
        return Prepared(partial(bind_any, 2, 2, native, refuse=refuse), native=native, source=source)
    native = Native(address_of(ctx, text), chain, numbers, status=True)
    scratch = (Scratch(ctx.inputs[0].dtype, (program.axes[0].extent or 0,)),) if derivative else ()
    return Prepared(
        partial(_bound, native),
        scratch=scratch,
        within=within,
        native=native,
        source=source,
    )


def _bound(native: Native, ctx: BindContext) -> Callable[..., Any]:
    classes = (ctx.inputs[0].shape or (0,))[-1] or 0
    shapes = [(tuple([d or 0 for d in out.shape or ()]), out.dtype.np) for out in ctx.outputs]
    return bound(ctx, native, len(ctx.inputs), shapes, partial(_refuse, classes))


def _refuse(classes: int, features: Any, labels: Any, *_: Any) -> None:
    wrong = labels[(labels < 0) | (labels >= classes)]
    raise errors.InvalidArgumentError(
        "a label is no class index",
        expected=f"labels from 0 to {classes - 1}",
        got=str(wrong.flat[0]) if wrong.size else "labels that were written meanwhile",
        hint="features end in one column per class",
    )


KERNELS = [
    KernelDef(
        "SparseSoftmaxCrossEntropyWithLogits",
        "cpu",
        prepare=_prepare,
        types={"T": ("float32", "float64")},
        check=_check,
    )
]
