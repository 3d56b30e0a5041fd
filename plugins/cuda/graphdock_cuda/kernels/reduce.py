"""Reductions over axes, by passes over one axis each; other families reduce through :func:`reduce_axes` too.

Any set of axes is a chain of passes over arrays ``[outer, reduced, inner]``, each of which hands accumulators to the next one. A
pass that would give the GPU few blocks parts its axis, and one more pass combines the parts. The order in which elements are
combined depends on shapes and on the number of multiprocessors alone, so that results repeat to the bit. float16 and bfloat16
are accumulated in float32 and rounded once; integers wrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from graphdock.contracts import DType, KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS", "Reducer", "axes_of", "multiprocessors", "reduce_axes", "reducer"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

THREADS = 256
#: Rows up to this many elements are reduced by lanes of a warp.
_SHORT_ROW = 512
#: Elements that a block should have, at least, when an axis is parted.
_PART = 4096


@dataclass(frozen=True, slots=True)
class Reducer:
    """Combination of elements.

    Attributes:
      struct: the reducer as the source names it; see ``source/reducers.cuh``. ``TX`` is the type of the elements.
      acc_bytes: bytes of its accumulator.
      parts: files that define it, beside the ones that reductions always take.
    """

    struct: str
    acc_bytes: int
    parts: tuple[str, ...] = ()


def reducer(name: str, dtype: DType) -> Reducer:
    """One of ``source/reducers.cuh``: ``sum``, ``mean``, ``argmax``, ..., for elements of a dtype."""
    if name in ("all", "any"):
        return Reducer(f"{name}_reducer", 1)
    if name in ("argmax", "argmin"):
        return Reducer(f"{name}_reducer<TX>", 16)
    wide = name == "mean" and dtype.is_integer
    return Reducer(f"{name}_reducer<TX>", 8 if wide else max(dtype.accumulator.size, 1))


def multiprocessors(w: Work) -> int:
    """Return how many the GPU has."""
    return w.multiprocessors


def axes_of(value: Any, rank: int) -> tuple[int, ...]:
    """Axes from 0 on, of an array of integers. Raises InvalidArgumentError for one that is not there or named twice."""
    axes = [int(a) for a in np.asarray(value).reshape(-1)]
    for axis in axes:
        if not -rank <= axis < rank:
            raise errors.InvalidArgumentError(f"axis {axis} is out of range", expected=f"{-rank} to {rank - 1}")
    if len({a % rank for a in axes}) < len(axes):
        raise errors.InvalidArgumentError("an axis is named twice", got=str(axes))
    return tuple(a % rank for a in axes)


def reduce_axes(w: Work, how: Reducer, x: Operand, axes: Iterable[int], out: Operand) -> None:
    """Reduce ``x`` over axes, counted from 0, into ``out``, which has an element for each place on the others."""
    if not out.size:
        return
    reduced = frozenset(axes)
    count = math.prod(x.shape[a] for a in reduced)
    if not count:
        _pass(w, how, x, out, (out.size, 0, 1), 0, True, True)
        return
    sized = [(d, a in reduced) for a, d in enumerate(x.shape) if d != 1]
    groups = [(math.prod(d for d, _ in same), is_reduced) for is_reduced, same in groupby(sized, lambda g: g[1])]
    first, here = True, x
    while True:
        places = [i for i, (_, is_reduced) in enumerate(groups) if is_reduced]
        at = places[-1] if places else len(groups)
        outer, inner = math.prod(d for d, _ in groups[:at]), math.prod(d for d, _ in groups[at + 1 :])
        length = groups[at][0] if places else 1
        parts, size = _parted(w, outer, length, inner)
        groups = [*groups[:at], *([(parts, True)] if parts > 1 else []), *groups[at + 1 :]]
        last = parts == 1 and len(places) < 2
        into = out if last else w.scratch(dtypes.uint8, outer * parts * inner * how.acc_bytes)
        _pass(w, how, here, into, (outer, length, inner), count, first, last, parts, size, dtypes_of=(x, out))
        if last:
            return
        groups = [(math.prod(d for d, _ in same), r) for r, same in groupby(groups, lambda g: g[1])]
        first, here = False, into


def _parted(w: Work, outer: int, length: int, inner: int) -> tuple[int, int]:
    """Return how many parts an axis is reduced in, and of how many elements each is."""
    wanted = 4 * multiprocessors(w)
    have = outer * (blocks(inner, 32) if inner > 1 else 1)
    share = _PART if inner == 1 else max(64, _PART // min(inner, 32))
    parts = max(1, min(-(-wanted // have), length // share))
    size = -(-length // parts)
    return -(-length // size) if size else 1, size


def _pass(
    w: Work,
    how: Reducer,
    x: Operand,
    out: Operand,
    shape: tuple[int, int, int],
    count: int,
    first: bool,
    last: bool,
    parts: int = 1,
    size: int = 0,
    dtypes_of: tuple[Operand, Operand] | None = None,
) -> None:
    outer, length, inner = shape
    of, to = dtypes_of or (x, out)
    made = source(
        "complex.cuh",
        "scalar.cuh",
        "block.cuh",
        "reducers.cuh",
        *how.parts,
        "reduce.cuh",
        name="reduce",
        TX=w.ctype(of),
        TY=w.ctype(to),
        REDUCER=how.struct,
        FIRST=str(int(first)),
        LAST=str(int(last)),
    )
    most = 32 * multiprocessors(w)
    if inner == 1 and parts == 1 and length <= _SHORT_ROW:
        shift = min(5, max(0, length - 1).bit_length())
        grid = blocks(outer, THREADS >> shift, most)
        w.launch(made, "by_lanes", grid, THREADS, x, out, i64(outer), i64(length), i32(shift), i64(count))
    elif inner == 1:
        grid = blocks(outer * parts, 1, most)
        facts = (i64(outer), i64(length), i64(parts), i64(size), i64(count))
        w.launch(made, "by_blocks", grid, THREADS, x, out, *facts)
    else:
        shift = min(5, (inner - 1).bit_length())
        grid = blocks(outer * parts * blocks(inner, 1 << shift), 1, most)
        args = (i64(outer), i64(length), i64(inner), i64(parts), i64(size), i32(shift), i64(count))
        w.launch(made, "by_columns", grid, THREADS, x, out, *args)


# -- the ops


def _kept(shape: Sequence[int], axes: Sequence[int], keep: bool) -> tuple[int, ...]:
    return tuple(1 if a in axes else d for a, d in enumerate(shape) if keep or a not in axes)


def _reduction(name: str) -> Callable[[Work], None]:
    def trace(w: Work) -> None:
        x = w.input("x")
        axes = axes_of(w.host("axis"), x.rank)
        reduce_axes(w, reducer(name, x.dtype), x, axes, w.output(_kept(x.shape, axes, w.attr("keep_dims"))))

    return trace


for _op in ("Sum", "Mean", "Max", "Min", "All", "Any"):
    kernel(_op)(_reduction(_op.lower()))
kernel("Prod")(_reduction("product"))


@kernel("ArgMax", "ArgMin")
def arg_extreme(w: Work) -> None:
    """The first place of the largest or smallest element; NaN counts as the infinity that is worst."""
    x = w.input("x")
    axis = axes_of(w.host("axis"), x.rank)[0]
    if not x.shape[axis]:
        raise errors.InvalidArgumentError(f"axis {axis} has size 0: there is nothing to choose from")
    reduce_axes(w, reducer(w.node.op.lower(), x.dtype), x, [axis], w.output(_kept(x.shape, [axis], False)))


@kernel("SumTo")
def sum_to(w: Work) -> None:
    """The sum over the dims that broadcasting from a shape made."""
    x, target = w.input("x"), tuple(int(d) for d in w.host("shape"))
    lead = x.rank - len(target)
    if lead < 0 or any(t not in (1, s) for s, t in zip(x.shape[lead:], target, strict=True)):
        raise errors.InvalidArgumentError(f"shape {list(target)} does not broadcast to {list(x.shape)}")
    axes = [a for a, size in enumerate(x.shape) if a < lead or (target[a - lead] == 1 and size != 1)]
    out = w.output(target)
    if axes:
        reduce_axes(w, reducer("sum", x.dtype), x, axes, out)
    else:
        w.copy(out, x)


@kernel("L2Loss")
def l2_loss(w: Work) -> None:
    x = w.input("t")
    reduce_axes(w, reducer("half_squares", x.dtype), x, range(x.rank), w.output(()))


@kernel("BiasAddGrad")
def bias_add_grad(w: Work) -> None:
    """The sum over all axes but the channels'."""
    x = w.input("out_backprop")
    channels = 1 if w.attr("data_format") == "NCHW" and x.rank > 1 else x.rank - 1
    axes = [a for a in range(x.rank) if a != channels]
    reduce_axes(w, reducer("sum", x.dtype), x, axes, w.output((x.shape[channels],)))
