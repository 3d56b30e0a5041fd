"""Ops that move elements: reversed sequences, rolls, index tuples of places; and one that joins shapes on the host."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import DEVICE, PLAIN, family
from graphdock_cuda.kernels.indices import bad_index
from graphdock_cuda.launch import i32, i64, raw
from graphdock_cuda.moving import as_bits, copy_box
from graphdock_cuda.work import ErrorWord, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
MAX_RANK = 8


@kernel("ReverseSequence", types={"T": PLAIN})
def reverse_sequence(w: Work) -> None:
    x, lengths = w.inputs
    along, batch, rank = w.attr("seq_dim"), w.attr("batch_dim"), x.rank
    if not -rank <= along < rank or not -rank <= batch < rank or (along - batch) % rank == 0:
        raise errors.InvalidArgumentError(
            f"seq_dim {along} and batch_dim {batch} for input of rank {rank}", expected="two different axes"
        )
    along, batch = along % rank, batch % rank
    if lengths.shape != (x.shape[batch],):
        raise errors.InvalidArgumentError(
            f"seq_lengths has shape {list(lengths.shape)}", expected=f"[{x.shape[batch]}]"
        )
    out, most = w.output(x.shape), x.shape[along]

    def wrong(at: int, length: int) -> errors.GraphdockError:
        return errors.InvalidArgumentError(
            f"seq_lengths[{at}] is {length}", expected=f"from 0 to {most}, the size of axis {along}"
        )

    kept = source("word.cuh", "report.cuh", "reverse_sequence.cuh", SIZE=str(x.dtype.size), INDEX=w.ctype(lengths))
    if lengths.size:
        args = (lengths, i64(lengths.size), i64(most), ErrorWord(wrong))
        w.launch(kept, "check_lengths", blocks(lengths.size), 256, *args)
    if out.size:
        inner = [math.prod(x.shape[axis + 1 :]) for axis in (along, batch)]
        facts = (i64(most), i64(inner[0]), i64(x.shape[batch]), i64(inner[1]))
        w.launch(kept, "reverse_sequence", blocks(x.size, 1024), 256, as_bits(x), lengths, out, i64(x.size), *facts)


@kernel("Roll", types={"T": PLAIN})
def roll(w: Work) -> None:
    """Boxes, one for each combination of the parts that the shifts cut the axes into."""
    x = w.input(0)
    moves, axes = w.host("shift").reshape(-1).tolist(), w.host("axis").reshape(-1).tolist()
    if len(moves) != len(axes):
        raise errors.InvalidArgumentError(f"shift has {len(moves)} elements for {len(axes)} of axis")
    if any(not -x.rank <= a < x.rank for a in axes):
        raise errors.InvalidArgumentError(f"axis {axes} is out of bounds for rank {x.rank}")
    out = w.output(x.shape)
    if not out.size:
        return
    total = [0] * x.rank
    for by, axis in zip(moves, axes, strict=True):
        total[axis] += by
    # per axis: where a part goes to, where it comes from, its size
    cuts = [
        [(by % n, 0, n - by % n), (0, n - by % n, by % n)][: 2 if by % n else 1]
        for by, n in zip(total, x.shape, strict=True)
    ]
    for parts in itertools.product(*cuts):
        to, start, box = ([p[k] for p in parts] for k in range(3))
        copy_box(w, as_bits(out), to, as_bits(x), start, box)


@kernel("UnravelIndex")
def unravel_index(w: Work) -> None:
    indices, dims = w.input("indices"), w.host("dims").tolist()
    out = w.output((len(dims), *indices.shape))
    if not indices.size:
        return
    if len(dims) > MAX_RANK:
        raise w.refuse(f"it unravels into {len(dims)} axes, and the kernel into at most {MAX_RANK}")
    whole = math.prod(dims)
    error = bad_index(indices.shape, [whole], what=[f"a tensor of shape {dims}"])
    kept = source("report.cuh", "unravel.cuh", ELEMENT=w.ctype(indices))
    packed = raw(np.array(dims + [1] * (MAX_RANK - len(dims)), np.int64).tobytes())
    w.launch(
        kept,
        "unravel_places",
        blocks(indices.size),
        256,
        indices,
        out,
        i64(indices.size),
        i32(len(dims)),
        packed,
        i64(whole),
        error,
    )


def _broadcast_args(ctx: BuildContext) -> Bound:
    def shape(a: Any, b: Any) -> np.ndarray:
        try:
            return np.array(np.broadcast_shapes(tuple(a.tolist()), tuple(b.tolist())), a.dtype)
        except ValueError as error:
            raise errors.InvalidArgumentError(f"shapes {a.tolist()} and {b.tolist()} do not broadcast") from error

    def compute(a: Any, b: Any, *out: Any) -> Any:
        if not out:
            return shape(a, b)
        out[0][...] = shape(a, b)
        return None

    return Bound(compute, capture_safe=False)


KERNELS.append(KernelDef("BroadcastArgs", DEVICE, _broadcast_args))
