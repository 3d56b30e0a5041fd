"""Slices of a tensor along an axis, chosen by indices, by one native function. An index out of range leaves a status."""

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
    errors,
)

from graphdock_llvm.copies import WORDS
from graphdock_llvm.emitter import SCALARS
from graphdock_llvm.extents import Results, bind_any
from graphdock_llvm.gather_text import text
from graphdock_llvm.launch import address_of, called, single_threaded
from graphdock_llvm.native import chain
from graphdock_llvm.pool import pool_address

__all__ = ["KERNELS"]

#: Bytes of a part, at least; parts per thread.
_LEAST, _PARTS = 1 << 18, 4


def _axis(node: PlanNode) -> int | None:
    source = node.inputs[2].node
    return int(source.attrs["value"]) if source is not None and source.verb == "constant" else None


def _check(node: PlanNode) -> str | None:
    if any(value.shape is None for value in node.inputs[:2]):
        return "its rank is not known"
    return "its axis is not known" if _axis(node) is None else None


class _Sizes:
    """Numbers of a node's calls, of inputs of given shapes."""

    def __init__(self, node: PlanNode, threads: int) -> None:
        self.axis, self._threads = _axis(node) or 0, threads
        size = node.inputs[0].dtype.size
        self.word = min(size, 8)
        self._words = size // self.word

    def made(self, params: Sequence[int], indices: Sequence[int]) -> tuple[int, ...]:
        """Shape of the result."""
        along = range(len(params))[self.axis]
        return (*params[:along], *indices, *params[along + 1 :])

    def numbers(self, params: Sequence[int], indices: Sequence[int]) -> tuple[int, ...]:
        """Numbers that the function gets."""
        along = range(len(params))[self.axis]
        above, count, wide = math.prod(params[:along]), math.prod(indices), math.prod(params[along + 1 :]) * self._words
        rows, wide = max(above, 1) * count, wide if above else 0  # indices are checked where nothing is made, too
        parts = max(1, min(_PARTS * self._threads, rows, rows * wide * self.word // _LEAST)) if self._threads > 1 else 1
        shared = parts > 1
        return (
            self._threads if shared else 1, pool_address() if shared else 0, parts, rows, params[along], count, wide,
        )  # fmt: skip


class _Shapes(NativeShapes):
    """Numbers of a node's calls, whose shapes only a step knows."""

    def __init__(self, node: PlanNode, threads: int, within: Any) -> None:
        self._sizes, self._shared = _Sizes(node, threads), within
        self._make = Results(node.outputs[0].dtype.np)
        self._shape: tuple[int, ...] = ()
        self.numbers = np.zeros(7, np.int64)

    def read(self, shapes: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        self.numbers[:] = self._sizes.numbers(*shapes[:2])
        self.within = self._shared if self.numbers[2] > 1 else None
        self._shape = self._sizes.made(*shapes[:2])
        return [self._shape]

    def make(self, output: int) -> Any:
        return self._make(self._shape)


def _prepare(ctx: PrepareContext) -> Prepared:
    node = ctx.node
    if why := _check(node):
        raise KernelRefused(why)
    sizes = _Sizes(node, ctx.threads)
    source, refuse = text(sizes.word, SCALARS[node.inputs[1].dtype.name]), partial(_refuse, sizes.axis)
    shapes = [tuple(value.shape or ()) for value in node.inputs[:2]]
    if all(None not in shape for shape in shapes):
        return called(ctx, source, sizes.numbers(*shapes), refuse=refuse)  # type: ignore[arg-type]
    sized = partial(_Shapes, node, ctx.threads, single_threaded(ctx.device) if ctx.threads > 1 else None)
    native = Native(address_of(ctx, source), chain, sized=sized, status=True)
    bind = partial(bind_any, len(node.inputs), 1, native, refuse=refuse)
    return Prepared(bind, native=native, source=lambda: source)


def _refuse(axis: int, params: Any, indices: Any, *_: Any) -> None:
    bound = params.shape[axis]
    bad = next(iter(np.argwhere((indices < 0) | (indices >= bound))), None)
    if bad is None:
        raise errors.InvalidArgumentError("indices were written meanwhile", expected=f"from 0 to {bound - 1}")
    at = "".join(f"[{i}]" for i in bad)
    raise errors.InvalidArgumentError(
        f"indices{at} is {int(indices[tuple(bad)])}, which is out of bounds for axis {axis} of size {bound}",
        expected=f"from 0 to {bound - 1}",
    )


KERNELS = [KernelDef("Gather", "cpu", prepare=_prepare, types={"T": WORDS}, check=_check)]
