"""Tensors joined along an axis, and cut along one, by one native function, also of shapes that only a step knows.

The cpu's kernels cut into views, which cost nothing themselves: but whoever reads them with gaps between their rows, as regions do,
gets a copy of each, made from Python. Where a part has no gaps it stays a view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    errors,
)

from graphdock_llvm.copies import WORDS
from graphdock_llvm.extents import Results, bind_any
from graphdock_llvm.joins_text import EACH, HEAD, TEXT
from graphdock_llvm.launch import address_of, called, single_threaded
from graphdock_llvm.native import chain
from graphdock_llvm.pool import pool_address

__all__ = ["KERNELS"]

#: Bytes of a part, at least: threads share parts, and one thread has a part's rows at hand for all of many pieces.
_LEAST = 1 << 18
#: Bytes of a row from which NumPy copies what is read without gaps as quickly, and only that.
_LONG = 1 << 16

_Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Form:
    """Way in which an op joins or cuts.

    Attributes:
      whole: number of the input that is cut, or -1: the output is what is joined.
      axis: of the whole; None where the plan does not know it.
      extents: ``(node, axis, shapes of the inputs)`` -> shape of the whole, those of the pieces as they lie in it, and the axis,
        counted from the first. Raises InvalidArgumentError where they do not fit, in the words of the cpu's kernel.
      taken: whether a piece lacks the axis.
    """

    op: str
    whole: int
    axis: Callable[[PlanNode], int | None]
    extents: Callable[[PlanNode, int, Sequence[_Shape]], tuple[_Shape, Sequence[_Shape], int]]
    taken: bool = False

    def pieces(self, node: PlanNode) -> range:
        """Numbers of the pieces, among the outputs or the inputs."""
        return range(node.attrs["N"] if self.whole < 0 else len(node.outputs))

    def why_not(self, node: PlanNode) -> str | None:
        """Reason why a node is not computed here; None where it is."""
        along = self.axis(node)
        whole = (node.outputs[0] if self.whole < 0 else node.inputs[self.whole]).shape
        if along is None:
            return "its axis is not known"
        if node.op == "SplitV" and _known(node, 1) is None:
            return "how long its parts are is not known"
        if whole is not None and 0 in whole:
            return "it has no elements"
        if self.whole < 0:
            return None
        if along == 0 or whole is not None and all(d == 1 for d in whole[: along % len(whole)]):
            return "its parts have no gaps: they are views"
        if whole is not None and all(_row(part, along % len(whole)) >= _LONG for part in node.outputs):
            return "rows of its parts are long: views of them cost less than copies"
        return None


def _row(value: Value, along: int) -> int:
    """Bytes of a row of a part, at least: as far as the plan knows it."""
    return math.prod([d for d in (value.shape or ())[along:] if d is not None]) * value.dtype.size


def _prepare(form: _Form, ctx: PrepareContext) -> Prepared:
    node, count = ctx.node, len(ctx.inputs)
    why = form.why_not(node)
    if why:
        raise KernelRefused(why)
    sized = partial(_Sizes, form, ctx, single_threaded(ctx.device) if ctx.threads > 1 else None)
    known = [value.shape for value in (*node.inputs, *node.outputs)]
    if all(shape is not None and None not in shape for shape in known):
        sizes = sized()
        sizes.read([tuple([d or 0 for d in shape or ()]) for shape in known[:count]])
        return called(ctx, TEXT, sizes.numbers.tolist())
    native = Native(address_of(ctx, TEXT), chain, sized=sized)
    bind = partial(bind_any, count, len(node.outputs), native, otherwise=partial(_refuse, form, node))
    return Prepared(bind, native=native, source=lambda: TEXT)


class _Sizes(NativeShapes):
    """Numbers of a node's calls.

    Attributes:
      left: the last shapes do not fit each other, and :func:`_refuse` says why.
    """

    def __init__(self, form: _Form, ctx: PrepareContext, within: Any) -> None:
        self._form, self._node, self._shared, self._threads = form, ctx.node, within, ctx.threads
        self._used = [out.used for out in ctx.outputs]
        self._along, self._size = form.axis(ctx.node) or 0, ctx.outputs[0].dtype.size
        self._makers = [Results(out.dtype.np) for out in ctx.outputs]
        self._shapes: list[_Shape] = []
        self.numbers = np.zeros(HEAD + EACH * len(form.pieces(ctx.node)), np.int64)
        self.left = False

    def read(self, shapes: Sequence[_Shape]) -> Sequence[_Shape]:
        form, node, self.left = self._form, self._node, False
        try:
            whole, pieces, along = form.extents(node, self._along, shapes)
        except errors.InvalidArgumentError as error:
            self.left = True
            raise errors.ShapeError(
                f"the shapes of {node.name} do not fit each other", got=str(list(shapes))
            ) from error
        cut = form.whole >= 0
        made = [whole] if not cut else [s[:along] + s[along + 1 :] for s in pieces] if form.taken else [*pieces]
        for value, shape in zip(node.outputs, made, strict=True):
            if value.shape is not None and not _fits(value.shape, shape):
                raise errors.ShapeError(
                    f"the shape of {value.name} is not that of the plan",
                    expected=str(value.shape),
                    got=str(list(shape)),
                )
        rows, row = math.prod(whole[:along]), math.prod(whole[along + 1 :]) * self._size
        wide = whole[along] * row
        parts = max(1, min(rows, rows * wide // _LEAST))
        threads = self._threads if parts > 1 else 1
        first, table, place = len(node.inputs) if cut else 0, list[int](), 0
        for i, piece in enumerate(pieces):
            size = piece[along] * row
            if size and (not cut or self._used[i]):
                table += [first + i, size, place]
            place += size
        slot, address = form.whole if cut else len(node.inputs), pool_address() if threads > 1 else 0
        # without pieces there are no rows to go through
        numbers = [threads, address, parts, rows if table else 0, wide, slot, cut, len(table) // EACH, *table]
        self.numbers[: len(numbers)] = numbers
        self.within = self._shared if threads > 1 else None
        self._shapes = made
        return made

    def make(self, output: int) -> Any:
        return self._makers[output](self._shapes[output])


def _fits(planned: Sequence[int | None], shape: _Shape) -> bool:
    return len(planned) == len(shape) and all(want in (None, size) for want, size in zip(planned, shape, strict=True))


def _refuse(form: _Form, node: PlanNode, *given: Any) -> Any:
    """Raise the error of inputs that do not fit each other."""
    form.extents(node, form.axis(node) or 0, [array.shape for array in given])
    raise errors.InternalError(f"{node.name} was refused shapes that fit")


# what each op makes of its axis and its inputs


def _place(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise errors.InvalidArgumentError(f"axis {axis} is out of bounds for rank {rank}")
    return axis % rank


def _concat(node: PlanNode, axis: int, shapes: Sequence[_Shape]) -> tuple[_Shape, Sequence[_Shape], int]:
    pieces = shapes[:-1]
    first = pieces[0]
    at = axis % max(len(first), 1)
    before, after = first[:at], first[at + 1 :]
    if not -len(first) <= axis < len(first) or any(
        len(p) != len(first) or p[:at] != before or p[at + 1 :] != after for p in pieces
    ):
        _say_of_concat(pieces, axis)
    return (*before, sum([p[at] for p in pieces]), *after), pieces, at


def _say_of_concat(shapes: Sequence[_Shape], axis: int) -> None:
    """Raise NumPy's complaint about arrays of such shapes."""
    try:
        np.concatenate([np.broadcast_to(np.False_, shape) for shape in shapes], axis)
    except (ValueError, IndexError, OverflowError) as error:
        raise errors.InvalidArgumentError(
            f"Concat: {error}", got="arrays of shapes " + ", ".join(str(list(s)) for s in shapes)
        ) from error


def _pack(node: PlanNode, axis: int, shapes: Sequence[_Shape]) -> tuple[_Shape, Sequence[_Shape], int]:
    first = shapes[0]
    for shape in shapes:
        if shape != first:
            raise errors.InvalidArgumentError(f"Pack: shapes {list(first)} and {list(shape)} do not agree")
    at = _place(axis, len(first) + 1)
    piece = (*first[:at], 1, *first[at:])
    return (*first[:at], len(shapes), *first[at:]), [piece] * len(shapes), at


def _split(node: PlanNode, axis: int, shapes: Sequence[_Shape]) -> tuple[_Shape, Sequence[_Shape], int]:
    whole, count = shapes[1], node.attrs["num_split"]
    at = _place(axis, len(whole))
    if whole[at] % count:
        raise errors.InvalidArgumentError(f"axis {axis} of size {whole[at]} can't be split into {count} equal parts")
    return whole, [(*whole[:at], whole[at] // count, *whole[at + 1 :])] * count, at


def _split_v(node: PlanNode, axis: int, shapes: Sequence[_Shape]) -> tuple[_Shape, Sequence[_Shape], int]:
    whole, count, sizes = shapes[0], node.attrs["num_split"], _known(node, 1).tolist()
    at = _place(axis, len(whole))
    if sizes.count(-1) == 1:
        sizes = [whole[at] - sum(sizes) - 1 if s == -1 else s for s in sizes]
    if len(sizes) != count or min(sizes) < 0 or sum(sizes) != whole[at]:
        raise errors.InvalidArgumentError(
            f"size_splits {sizes} do not cut axis {axis} of size {whole[at]} into {count} parts"
        )
    return whole, [(*whole[:at], size, *whole[at + 1 :]) for size in sizes], at


def _unpack(node: PlanNode, axis: int, shapes: Sequence[_Shape]) -> tuple[_Shape, Sequence[_Shape], int]:
    whole, count = shapes[0], node.attrs["num"]
    at = _place(axis, len(whole))
    if whole[at] != count:
        raise errors.InvalidArgumentError(f"axis {axis} has size {whole[at]}, but num is {count}")
    return whole, [(*whole[:at], 1, *whole[at + 1 :])] * count, at


def _known(node: PlanNode, place: int) -> Any:
    """The array that an input always is, or None."""
    source = node.inputs[place].node
    return source.attrs["value"] if source is not None and source.verb == "constant" else None


def _of_input(place: Callable[[PlanNode], int], node: PlanNode) -> int | None:
    value = _known(node, place(node))
    return None if value is None else int(value)


def _attr(node: PlanNode) -> int:
    return int(node.attrs["axis"])


_FORMS = (
    _Form("Concat", -1, partial(_of_input, lambda node: node.attrs["N"]), _concat),
    _Form("Pack", -1, _attr, _pack, taken=True),
    _Form("Split", 1, partial(_of_input, lambda _: 0), _split),
    _Form("SplitV", 0, partial(_of_input, lambda _: 2), _split_v),
    _Form("Unpack", 0, _attr, _unpack, taken=True),
)
KERNELS = [
    KernelDef(form.op, "cpu", prepare=partial(_prepare, form), types={"T": WORDS}, check=form.why_not)
    for form in _FORMS
]
