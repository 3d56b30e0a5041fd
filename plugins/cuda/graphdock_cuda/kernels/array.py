"""Ops that join, repeat and pad arrays, or put them into larger ones. Elements are moved as bits, whatever their type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from graphdock.contracts import KernelDef, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.joining import join
from graphdock_cuda.kernel import PLAIN, family
from graphdock_cuda.kernels.pads import packed_pads, rows_of
from graphdock_cuda.kernels.views import guarded, part_of, strided_index, virtual
from graphdock_cuda.launch import i32, i64, raw
from graphdock_cuda.moving import as_bits, copy_box, move, strides_of
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS", "concatenate"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
_T = {"T": PLAIN}


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise errors.InvalidArgumentError(f"axis {axis} is out of bounds for rank {rank}")
    return axis % rank


def concatenate(w: Work, parts: Sequence[Operand], target: Operand, axis: int) -> None:
    """Parts one after the other along an axis of ``target``; they agree in all other dims, and mostly in that one."""
    if len(parts) > 1 and all(part.shape == parts[0].shape for part in parts):
        join(w, parts, target, axis)
        return
    at, start = as_bits(target), 0
    for part in parts:
        place = [0] * target.rank
        place[axis] = start
        copy_box(w, at, place, as_bits(part), [0] * target.rank, part.shape)
        start += part.shape[axis]


@kernel("Concat", types=_T)
def concat(w: Work) -> None:
    parts = w.named("values")
    first = parts[0].shape
    axis = _axis(int(w.host("axis")), len(first))
    if any(
        p.rank != len(first) or p.shape[:axis] != first[:axis] or p.shape[axis + 1 :] != first[axis + 1 :]
        for p in parts
    ):
        raise errors.InvalidArgumentError(
            f"Concat: shapes {', '.join(str(list(p.shape)) for p in parts)} do not agree but for axis {axis}"
        )
    shape = list(first)
    shape[axis] = sum(p.shape[axis] for p in parts)
    concatenate(w, parts, w.output(shape), axis)


@kernel("Pack", types=_T)
def pack(w: Work) -> None:
    parts = w.named("values")
    first = parts[0].shape
    for part in parts:
        if part.shape != first:
            raise errors.InvalidArgumentError(f"Pack: shapes {list(first)} and {list(part.shape)} do not agree")
    axis = _axis(w.attr("axis"), len(first) + 1)
    shape = (*first[:axis], len(parts), *first[axis:])
    rows = [p.reshaped(*first[:axis], 1, *first[axis:]) for p in parts]
    concatenate(w, rows, w.output(shape), axis)


@kernel("IdentityN", types=_T)
def identity_n(w: Work) -> None:
    for i, x in enumerate(w.inputs):
        w.copy(w.output(x.shape, i), x)


@kernel("Tile", types=_T)
def tile(w: Work) -> None:
    x, times = w.input("x"), w.host("multiples").tolist()
    if len(times) != x.rank or min(times, default=0) < 0:
        raise errors.InvalidArgumentError(f"Tile: multiples {times} do not fit shape {list(x.shape)}")
    out = w.output([m * d for m, d in zip(times, x.shape, strict=True)])
    spread = [n for m, d in zip(times, x.shape, strict=True) for n in (m, d)]
    back = [n for s in strides_of(x.shape) for n in (0, s)]
    move(w, as_bits(out), as_bits(x), spread, strides_of(spread), back)


def stretched(w: Work, x: Operand, out: Operand) -> None:
    """``x`` broadcast to ``out``'s shape."""
    lead = out.rank - x.rank
    back = [0] * lead + [0 if d == 1 else s for d, s in zip(x.shape, strides_of(x.shape), strict=True)]
    move(w, as_bits(out), as_bits(x), out.shape, strides_of(out.shape), back)


@kernel("BroadcastTo", types=_T)
def broadcast_to(w: Work) -> None:
    x, shape = w.input("x"), w.host("shape").tolist()
    lead = len(shape) - x.rank
    if lead < 0 or any(d not in (1, n) for d, n in zip(x.shape, shape[lead:], strict=True)):
        raise errors.InvalidArgumentError(f"BroadcastTo: shape {list(x.shape)} does not broadcast to {shape}")
    stretched(w, x, w.output(shape))


@kernel("Fill", types=_T)
def fill(w: Work) -> None:
    dims = w.host("dims").tolist()
    if min(dims, default=0) < 0:
        raise errors.InvalidArgumentError(f"Fill: dims {dims} hold the negative size {min(dims)}")
    stretched(w, w.input("value"), w.output(dims))


@kernel("Pad", types=_T)
def pad(w: Work) -> None:
    x, value, mode = w.input("x"), w.input("constant_values"), w.attr("mode")
    rows = rows_of(w.host("paddings"), x.shape, mode)
    out = w.output([a + n + b for (a, b), n in zip(rows, x.shape, strict=True)])
    if not out.size:
        return
    bits = as_bits(x)
    if all(row == (0, 0) for row in rows):
        w.copy(out, x)
        return
    rank, packed = packed_pads(w, rows, x.shape, mode)
    kept = source("word.cuh", "pads.cuh", "pad.cuh", SIZE=str(x.dtype.size), MODE=f"mode_{mode}")
    w.launch(kept, "pad", blocks(out.size, 1024), 256, bits, as_bits(value), out, i64(out.size), i32(rank), raw(packed))


@kernel("StridedSliceGrad", types=_T)
def strided_slice_grad(w: Work) -> None:
    dy, shape = w.input("dy"), w.host("shape").tolist()
    whole = virtual(shape)
    bounds = [w.host(name) for name in ("begin", "end", "strides")]

    def views(x: Any) -> list[Any]:
        return [x[strided_index(w.node.attrs, *bounds)]]

    part = part_of(whole, guarded("StridedSliceGrad can't be done", views, whole)[0])
    if part.shape != dy.shape:
        raise errors.InvalidArgumentError(
            "dy has another shape than the slice", expected=str(list(part.shape)), got=str(list(dy.shape))
        )
    out = w.output(shape)
    if math.prod(part.shape) != out.size:
        w.fill(out)
    move(w, as_bits(out).at(part.start), as_bits(dy), part.shape, part.strides, strides_of(part.shape))


@kernel("MatrixDiag", types=_T)
def matrix_diag(w: Work) -> None:
    x = w.input(0)
    n = x.shape[-1]
    out = w.output((*x.shape, n))
    w.fill(out)
    move(w, as_bits(out), as_bits(x), (x.size // n if n else 0, n), (n * n, n + 1), (n, 1))


@kernel("MatrixDiagPart", types=_T)
def matrix_diag_part(w: Work) -> None:
    x = w.input(0)
    m, n = x.shape[-2:]
    k = min(m, n)
    out = w.output((*x.shape[:-2], k))
    move(w, as_bits(out), as_bits(x), (math.prod(x.shape[:-2]), k), (k, 1), (m * n, n + 1))
