"""Kernels that join strings and split them. Splits are the three parts of a sparse tensor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

__all__ = ["KERNELS"]


def _join(ctx: BuildContext) -> Bound:
    separator, count = ctx.attr("separator").encode(), len(ctx.inputs)
    join = np.frompyfunc(lambda *parts: separator.join(parts), count, 1)

    def fresh(*args: Any) -> np.ndarray:
        out = np.empty(np.broadcast_shapes(*(a.shape for a in args)), object)
        join(*args, out)
        return out

    return Bound(fresh if ctx.fresh else join)


def _reduce_join(ctx: BuildContext) -> Bound:
    separator, keep = ctx.attr("separator").encode(), ctx.attr("keep_dims")

    def joined(inputs: Any, axis: Any) -> np.ndarray:
        rank = inputs.ndim
        if np.ndim(axis) > 1:
            raise errors.InvalidArgumentError(
                "axis is no list of dims", expected="a scalar or a vector", got=f"shape {axis.shape}"
            )
        axes = [int(a) for a in np.atleast_1d(axis)]
        for a in axes:
            if not -rank <= a < rank:
                raise errors.InvalidArgumentError(f"axis {a} is out of bounds", expected=f"{-rank} to {rank - 1}")
        axes = [a % rank for a in axes]
        if len(set(axes)) < len(axes):
            raise errors.InvalidArgumentError("axis names a dim twice", got=str(axes))
        rest = [a for a in range(rank) if a not in axes]
        parts = inputs.transpose([*rest, *reversed(axes)])
        shape = tuple(inputs.shape[a] for a in rest)
        out = np.empty(math.prod(shape), object)
        width = math.prod(inputs.shape[a] for a in axes)
        rows = parts.reshape(len(out), width) if width else parts
        for i in range(len(out)):
            out[i] = separator.join(rows[i].tolist()) if width else b""
        kept = [1 if a in axes else n for a, n in enumerate(inputs.shape)]
        return out.reshape(kept if keep else shape)

    if ctx.fresh:
        return Bound(joined)
    return Bound(lambda inputs, axis, out: np.copyto(out, joined(inputs, axis)))


def _sparse(rows: Sequence[Sequence[bytes]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices, values and dense shape of ragged rows."""
    places = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = np.empty(len(places), object)
    values[:] = list(itertools.chain.from_iterable(rows))
    shape = np.array([len(rows), max(map(len, rows), default=0)], np.int64)
    return np.array(places, np.int64).reshape(-1, 2), values, shape


def _splits(rows: Callable[[list[bytes], bytes], Sequence[Sequence[bytes]]]) -> Bound:
    """The kernel of a function that splits each element."""
    return Bound(lambda text, separator: _sparse(rows(text.tolist(), separator.item())))


def _bytes_of(text: bytes) -> list[bytes]:
    return [text[i : i + 1] for i in range(len(text))]


def _split(ctx: BuildContext) -> Bound:
    skip = ctx.attr("skip_empty")

    def split(text: bytes, delimiter: bytes) -> list[bytes]:
        if not delimiter:
            return _bytes_of(text)
        for byte in delimiter[1:]:
            text = text.replace(bytes([byte]), delimiter[:1])
        parts = text.split(delimiter[:1]) if text else []
        return [p for p in parts if p] if skip else parts

    return _splits(lambda rows, delimiter: [split(row, delimiter) for row in rows])


def _split_v2(ctx: BuildContext) -> Bound:
    most = ctx.attr("maxsplit")

    def split(text: bytes, separator: bytes) -> list[bytes]:
        if separator:
            return text.split(separator, most)
        return text.split(None, most)

    return _splits(lambda rows, separator: [split(row, separator) for row in rows])


KERNELS = [
    KernelDef("StringJoin", "cpu", _join),
    KernelDef("ReduceJoin", "cpu", _reduce_join, host=("axis",)),
    KernelDef("StringSplit", "cpu", _split, modes=("fresh",)),
    KernelDef("StringSplitV2", "cpu", _split_v2, modes=("fresh",)),
]
