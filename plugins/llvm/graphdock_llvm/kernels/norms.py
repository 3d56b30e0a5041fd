"""Batch norm and its gradient: one program of a region where channels stand before places, several in order where they are last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from graphdock.contracts import (
    Axis,
    DType,
    KernelDef,
    KernelRefused,
    PlanNode,
    PrepareContext,
    Prepared,
    RegionInput,
    RegionOutput,
    RegionProgram,
    Term,
    dtypes,
)

from graphdock_llvm.launch import called
from graphdock_llvm.pool import pool_address
from graphdock_llvm.printer import ALONE, Printed, print_functions
from graphdock_llvm.schedule import forbidden
from graphdock_llvm.target import width

__all__ = ["KERNELS"]

#: Channels that are last, from which on a row of them is worth a vector.
_CHANNELS = 4


class _Maker:
    """Maker of one program over images as [batch, channels, places], or as [rows, channels].

    Attributes:
      apart: whether places stand behind the channels, so that a row has one of these. ``count``: elements of a channel.
      over: axes of the elements of a channel.
    """

    def __init__(self, node: PlanNode) -> None:
        self.node, x = node, node.inputs[0]
        shape = [d or 0 for d in x.shape or ()]
        first = node.attrs["data_format"].startswith("NC")
        channels = shape[1 if first else -1]
        places = math.prod(shape[2:]) if first else 1
        self.count = math.prod(shape) // max(channels, 1)
        if channels == 1:
            places = self.count
        self.apart = places > 1 or channels == 1
        self.extents = [self.count // max(places, 1), channels, places] if self.apart else [self.count, channels]
        self.over: tuple[int, ...] = (0, 2) if self.apart else (0,)
        self.epsilon, self.training = node.attrs["epsilon"], node.attrs["is_training"]
        self.held = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
        self.inputs: list[RegionInput] = []
        self.terms: list[Term] = []
        self.outputs: list[RegionOutput] = []

    def read(self, slot: int, dtype: DType | None = None) -> int:
        """The input of a buffer: an image of a dtype, or a vector of the channels."""
        dims = self._dims(dtype)
        self.inputs.append(RegionInput(f"in{slot}", slot, dtype or self.held, self._shape(dims), dims))
        return self._add("input", (), dims, len(self.inputs) - 1)

    def number(self, value: float) -> int:
        return self._add("literal", (), (), value)

    def do(self, op: str, *args: int) -> int:
        axes = {a for n in args for a in self.terms[n].axes}
        return self._add(op, args, tuple(sorted(axes)))

    def sum(self, of: int) -> int:
        return self._add("sum", (of,), (1,), self.over)

    def mean(self, of: int, less: int = 0) -> int:
        """A sum over the elements of a channel, or over fewer, as a mean."""
        return self.do("divide", of, self.number(float(max(self.count - less, 1))))

    def deviation(self, variance: int) -> int:
        return self.do("sqrt", self.do("add", variance, self.number(self.epsilon)))

    def give(self, term: int, dtype: DType | None = None) -> None:
        """Make a term the next output: an image of a dtype, or a vector of the channels."""
        dims = self._dims(dtype)
        out = RegionOutput(f"out{len(self.outputs)}", term, dtype or self.held, self._shape(dims), dims)
        self.outputs.append(out)

    def program(self) -> RegionProgram:
        axes = [Axis(name, n) for name, n in zip(("batch", "channel", "place"), self.extents, strict=False)]
        return RegionProgram(self.node.name, tuple(axes), tuple(self.inputs), tuple(self.terms), tuple(self.outputs))

    def _dims(self, dtype: DType | None) -> tuple[int, ...]:
        return (1,) if dtype is None else tuple(range(len(self.extents)))

    def _shape(self, dims: Sequence[int]) -> tuple[int, ...]:
        return tuple([self.extents[d] for d in dims])

    def _add(self, op: str, args: tuple[int, ...], axes: tuple[int, ...], value: Any = None) -> int:
        self.terms.append(Term(op, self.held, args, axes, value))
        return len(self.terms) - 1


def _forward(node: PlanNode) -> list[tuple[RegionProgram, int]]:
    """Programs in order, each with the place of its first output among the buffers: x, scale, offset, mean, variance, then y,
    batch_mean, batch_variance and the two reserves."""
    kind = node.inputs[0].dtype
    made = _Maker(node)
    steps = []
    if made.training and not made.apart:
        steps.append((_statistic(node, None), 8))
        steps.append((_statistic(node, 8), 9))
    x, scale, offset = made.read(0, kind), made.read(1), made.read(2)
    if made.training and made.apart:
        mean = made.mean(made.sum(x))
        off = made.do("sub", x, mean)
        squares = made.sum(made.do("mul", off, off))
        variance, unbiased = made.mean(squares), made.mean(squares, 1)
    else:
        mean, variance = (made.read(slot) for slot in ((8, 9) if made.training else (3, 4)))
        off, unbiased = made.do("sub", x, mean), variance
        if made.training:
            unbiased = made.mean(made.do("mul", variance, made.number(float(made.count))), 1)
    factor = made.do("divide", scale, made.deviation(variance))
    made.give(made.do("add", made.do("mul", off, factor), offset), kind)
    for term in (mean, unbiased, *((mean, variance) if made.apart or not made.training else ())):
        made.give(term)
    return [*steps, (made.program(), 5)]


def _statistic(node: PlanNode, mean: int | None) -> RegionProgram:
    """The mean of each channel, or the variance about the mean that lies in a buffer."""
    made = _Maker(node)
    x = made.read(0, node.inputs[0].dtype)
    if mean is not None:
        off = made.do("sub", x, made.read(mean))
        x = made.do("mul", off, off)
    made.give(made.mean(made.sum(x)))
    return made.program()


def _gradient(node: PlanNode) -> list[tuple[RegionProgram, int]]:
    """The same of the gradient: y_backprop, x, scale, mean, variance, then those by x, scale and offset."""
    steps = []
    for number in range(1 if _Maker(node).apart else 2):
        made = _Maker(node)
        dy, x = (made.read(slot, node.inputs[slot].dtype) for slot in (0, 1))
        off = made.do("sub", x, made.read(3))
        inverse = made.do("divide", made.number(1.0), made.deviation(made.read(4)))
        if number == 0:
            total = made.sum(dy)
            slope = made.do("mul", made.sum(made.do("mul", dy, off)), inverse)
        else:
            slope, total = made.read(6), made.read(7)
        if made.apart or number:
            by_x = dy
            if made.training:
                tilt = made.mean(made.do("mul", slope, inverse))
                by_x = made.do("sub", made.do("sub", dy, made.do("mul", off, tilt)), made.mean(total))
            made.give(made.do("mul", by_x, made.do("mul", inverse, made.read(2))), node.inputs[0].dtype)
        if number == 0:
            made.give(slope)
            made.give(total)
        steps.append((made.program(), 5 if made.apart or number else 6))
    return steps


def _programs(node: PlanNode) -> list[tuple[RegionProgram, int]]:
    return _forward(node) if node.op == "FusedBatchNorm" else _gradient(node)


def _check(node: PlanNode) -> str | None:
    if any(v.shape is None or None in v.shape for v in (*node.inputs, *node.outputs)):
        return "its shapes are not known"
    if 0 in (node.inputs[0].shape or ()):
        return "it has no elements"
    if (node.inputs[2].dtype is dtypes.float64) != (node.inputs[0].dtype is dtypes.float64):
        return "images and statistics are of different widths"
    made = _Maker(node)
    if node.op == "FusedBatchNorm" and not made.apart and made.extents[1] < _CHANNELS:
        return "rows of two or three channels are quicker as NumPy has them"
    reasons = [reason for program, _ in _programs(node) if (reason := forbidden(program, width()))]
    return reasons[0] if reasons else None


def _prepare(ctx: PrepareContext) -> Prepared:
    if why := _check(ctx.node):
        raise KernelRefused(why)
    printed = [
        print_functions(program, count, width(), f"step{number}", "internal")
        for number, (program, count) in enumerate(_programs(ctx.node))
    ]
    calls = "".join(f"  call void @step{number}(ptr %table, ptr %numbers)\n" for number in range(len(printed)))
    whole = Printed(
        {name: text for p in printed for name, text in p.declarations.items()},
        {name: text for p in printed for name, text in p.helpers.items()},
        (
            *[f for p in printed for f in p.functions],
            f"define void @region(ptr %table, ptr %numbers) {{\n{calls}  ret void\n}}\n",
        ),
        any(p.shared for p in printed),
    )
    shared = ctx.threads > 1 and whole.shared
    return called(ctx, whole.text(), (ctx.threads, pool_address()) if shared else ALONE)


KERNELS = [
    KernelDef(op, "cpu", prepare=_prepare, types={"T": ("float16", "bfloat16", "float32", "float64")}, check=_check)
    for op in ("FusedBatchNorm", "FusedBatchNormGrad")
]
