"""Kernels that move elements: reversed sequences, rolls, index tuples of places; and those that check or join shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, ViewRule, errors

from graphdock_cpu.kernels.array import bind_writer
from graphdock_cpu.kernels.indexing import check_indices
from graphdock_cpu.kernels.views import bind_view, within_rank

__all__ = ["KERNELS"]


def _reverse_sequence(ctx: BuildContext) -> Bound:
    along, batch = ctx.attr("seq_dim"), ctx.attr("batch_dim")

    def write(x: Any, lengths: Any, out: Any) -> None:
        if not -x.ndim <= along < x.ndim or not -x.ndim <= batch < x.ndim or (along - batch) % x.ndim == 0:
            raise errors.InvalidArgumentError(
                f"seq_dim {along} and batch_dim {batch} for input of rank {x.ndim}", expected="two different axes"
            )
        if lengths.shape != (x.shape[batch],):
            raise errors.InvalidArgumentError(
                f"seq_lengths has shape {list(lengths.shape)}", expected=f"[{x.shape[batch]}]"
            )
        check_indices(lengths, x.shape[along] + 1, "the sequences", "seq_lengths")
        source, target = (np.moveaxis(a, (batch, along), (0, 1)) for a in (x, out))
        np.copyto(out, x)
        for b, length in enumerate(lengths.tolist()):
            if length > 1:
                target[b, :length] = source[b, length - 1 :: -1]

    return bind_writer(ctx, write, (0, 1), lambda x, n: x.shape)


def _roll(ctx: BuildContext) -> Bound:
    def write(x: Any, shift: Any, axis: Any, out: Any) -> None:
        moves, axes = shift.reshape(-1).tolist(), axis.reshape(-1).tolist()
        if len(moves) != len(axes):
            raise errors.InvalidArgumentError(f"shift has {len(moves)} elements for {len(axes)} of axis")
        if any(not -x.ndim <= a < x.ndim for a in axes):
            raise errors.InvalidArgumentError(f"axis {axes} is out of bounds for rank {x.ndim}")
        total: dict[int, int] = {}
        for by, a in zip(moves, axes, strict=True):
            total[a % x.ndim] = total.get(a % x.ndim, 0) + by
        if len(total) != 1 or not x.size:
            np.copyto(out, np.roll(x, list(total.values()), list(total)))
            return
        ((at, by),) = total.items()
        by %= x.shape[at]
        source, target = x.swapaxes(0, at), out.swapaxes(0, at)
        target[by:] = source[: len(source) - by]
        target[:by] = source[len(source) - by :]

    return bind_writer(ctx, write, (0, 1, 2), lambda x, s, a: x.shape)


def _unravel_index(ctx: BuildContext) -> Bound:
    def write(indices: Any, dims: Any, out: Any) -> None:
        sizes = dims.tolist()
        check_indices(indices, math.prod(sizes), f"a tensor of shape {sizes},")
        step = math.prod(sizes)
        left = np.array(indices)
        for axis, size in enumerate(sizes):
            step //= size or 1
            np.floor_divide(left, step or 1, out[axis, ...])
            np.remainder(left, step or 1, out=left)

    return bind_writer(ctx, write, (0, 1), lambda i, d: (d.size, *i.shape))


def _broadcast_args(ctx: BuildContext) -> Bound:
    def shape(a: Any, b: Any) -> list[int]:
        x, y = a.tolist(), b.tolist()
        rank = max(len(x), len(y))
        x, y = [1] * (rank - len(x)) + x, [1] * (rank - len(y)) + y
        if any(m != n and 1 not in (m, n) for m, n in zip(x, y, strict=True)):
            raise errors.InvalidArgumentError(f"shapes {a.tolist()} and {b.tolist()} do not broadcast")
        return [n if m == 1 else m for m, n in zip(x, y, strict=True)]

    def write(a: Any, b: Any, out: Any) -> None:
        out[...] = shape(a, b)

    return bind_writer(ctx, write, (0, 1), lambda a, b: (max(a.size, b.size),))


def _ensure_shape(ctx: BuildContext) -> Bound:
    asked = ctx.attr("shape")
    wanted = getattr(asked, "dims", asked)

    def same(x: Any) -> Any:
        if wanted is not None and (
            len(wanted) != x.ndim or any(w not in (None, d) for w, d in zip(wanted, x.shape, strict=True))
        ):
            show = "[" + ",".join("?" if w is None else str(w) for w in wanted) + "]"
            have = "[" + ",".join(map(str, x.shape)) + "]"
            raise errors.InvalidArgumentError(f"input {have} does not have the shape {show}")
        return x

    return bind_view(ctx, 0, same)


KERNELS = [
    KernelDef("ReverseSequence", "cpu", _reverse_sequence, layout="strided"),
    KernelDef("Roll", "cpu", _roll, layout="strided"),
    KernelDef("UnravelIndex", "cpu", within_rank(_unravel_index)),
    KernelDef("BroadcastArgs", "cpu", _broadcast_args),
    KernelDef("EnsureShape", "cpu", _ensure_shape, layout="strided", views={"output": ViewRule("input")}),
]
