"""Ops that make arrays of numbers: ranges, one-hot rows, inverse permutations, bands; and facts of shapes for the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import DEVICE, PLAIN, family
from graphdock_cuda.launch import f64, i64
from graphdock_cuda.moving import as_bits
from graphdock_cuda.work import ErrorWord, Work, blocks

__all__ = ["KERNELS", "host_fact"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


@kernel("Range")
def range_(w: Work) -> None:
    start, limit, delta = (w.host(name).item() for name in ("start", "limit", "delta"))
    if delta == 0:
        raise errors.InvalidArgumentError("Range: delta is zero")
    if (limit < start) if delta > 0 else (limit > start):
        raise errors.InvalidArgumentError(
            f"Range: limit {limit} lies behind start {start}, as seen along delta {delta}"
        )
    floating = w.out_dtype().is_floating
    count = math.ceil((limit - start) / delta) if floating else -((start - limit) // delta)
    out = w.output((count,))
    if count:
        wide, number = ("double", f64) if floating else ("i64", i64)
        kept = source("ranges.cuh", ELEMENT=w.ctype(out), WIDE=wide)
        w.launch(kept, "range", blocks(count, 1024), 256, number(start), number(delta), out, i64(count))


@kernel("LinSpace")
def lin_space(w: Work) -> None:
    num = int(w.host("num"))
    if num < 1:
        raise errors.InvalidArgumentError(f"LinSpace: num is {num}", expected="1 or more")
    out = w.output((num,))
    kept = source("ranges.cuh", ELEMENT=w.ctype(out), WIDE="double")
    w.launch(kept, "lin_space", blocks(num, 1024), 256, w.input("start"), w.input("stop"), out, i64(num))


@kernel("OneHot", types={"T": PLAIN})
def one_hot(w: Work) -> None:
    indices, depth = w.input("indices"), int(w.host("depth"))
    if depth < 0:
        raise errors.InvalidArgumentError(f"OneHot: depth is {depth}", expected="0 or more")
    at = range(indices.rank + 1)[w.attr("axis")]
    out = w.output((*indices.shape[:at], depth, *indices.shape[at:]))
    if not out.size:
        return
    after = math.prod(indices.shape[at:])
    on, off = as_bits(w.input("on_value")), as_bits(w.input("off_value"))
    kept = source("word.cuh", "one_hot.cuh", SIZE=str(out.dtype.size), INDEX=w.ctype(indices))
    w.launch(kept, "one_hot", blocks(out.size, 1024), 256, indices, on, off, out, i64(out.size), i64(depth), i64(after))


def _no_permutation(size: int, _: int) -> errors.GraphdockError:
    return errors.InvalidArgumentError(f"x is not a permutation of 0 .. {size - 1}")


@kernel("InvertPermutation")
def invert_permutation(w: Work) -> None:
    x = w.input(0)
    out = w.output(x.shape)
    if x.size:
        w.fill(out, 0xFF)
        kept = source("report.cuh", "permutation.cuh", ELEMENT=w.ctype(x))
        w.launch(kept, "invert", blocks(x.size), 256, x, out, i64(x.size))
        w.launch(kept, "check", blocks(x.size), 256, out, i64(x.size), ErrorWord(_no_permutation))


@kernel("MatrixBandPart", types={"T": PLAIN})
def matrix_band_part(w: Work) -> None:
    x, lower, upper = w.input("x"), int(w.host("num_lower")), int(w.host("num_upper"))
    rows, columns = x.shape[-2:]
    out = w.output(x.shape)
    if out.size:
        kept = source("word.cuh", "band.cuh", SIZE=str(x.dtype.size))
        reach = (i64(rows if lower < 0 else lower), i64(columns if upper < 0 else upper))
        w.launch(kept, "band", blocks(x.size, 1024), 256, as_bits(x), out, i64(x.size), i64(rows), i64(columns), *reach)


def host_fact(op: str, fact: Callable[[tuple[int, ...]], Any]) -> KernelDef:
    """The kernel of an op that tells the host a fact of its input's shape."""

    def build(ctx: BuildContext) -> Bound:
        dtype = ctx.outputs[0].dtype
        top = np.iinfo(dtype.np).max

        def found(shape: tuple[int, ...]) -> np.ndarray:
            value = np.array(fact(shape), np.int64)
            if value.max(initial=0) > top:
                raise errors.InvalidArgumentError(
                    f"{op} of the shape {list(shape)} is {value.tolist()}, which {dtype} does not hold",
                    hint="use out_type=tf.int64",
                )
            return value.astype(dtype.np)

        def compute(x: Any, *out: Any) -> Any:
            if not out:
                return found(x.shape)
            out[0][...] = found(x.shape)
            return None

        return Bound(compute, capture_safe=False)

    return KernelDef(op, DEVICE, build, types={"T": PLAIN})


KERNELS += [host_fact("Size", math.prod), host_fact("Rank", len)]
