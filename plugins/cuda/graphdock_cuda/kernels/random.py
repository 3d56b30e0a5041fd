"""Random ops: Philox4x64-10, every thread its own blocks, so that they are the numbers of every other backend.

A launch is told the key, the counters of loops, and where the step's ordinal lies; stateless ops take their seed from an input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import PLAIN, family
from graphdock_cuda.kernels.gather import gather_rows
from graphdock_cuda.kernels.indices import bad_index
from graphdock_cuda.kernels.sort import sort_keys
from graphdock_cuda.launch import i64, u64
from graphdock_cuda.work import Arg, Operand, Stream, Work, blocks

__all__ = ["KERNELS", "random_words", "sizes", "stream_of"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
_WORD = (1 << 64) - 1
#: Ranges of up to this many integers take one word for each.
_ONE_WORD = 1 << 32


def stream_of(w: Work) -> Sequence[Arg]:
    """Parameters of the stream that the op draws from: of its seed where it has one, else its own."""
    if not w.has("seed"):
        return (Stream(),)
    seed = w.host("seed")
    if seed.shape != (2,):
        raise errors.InvalidArgumentError(f"seed has shape {list(seed.shape)}", expected="[2]")
    first, second = (int(s) & _WORD for s in seed.astype(np.int64))
    return u64(first), u64(second), u64(0), u64(0), u64(0)


def sizes(shape: Any) -> tuple[int, ...]:
    """The shape that a host input holds."""
    dims = tuple(int(d) for d in shape.reshape(-1))
    if any(d < 0 for d in dims):
        raise errors.InvalidArgumentError(f"shape {list(dims)} has a negative size")
    return dims


def random_words(w: Work, count: int) -> Operand:
    """The first words of the op's stream, as uint64."""
    words = w.scratch(dtypes.uint64, count)
    if count:
        kept = source("philox.cuh", "random_bits.cuh", ELEMENT="i64")
        w.launch(kept, "words", blocks(count, 1024), 256, *stream_of(w), words, i64(count))
    return words


def _drawn(op: str, entry: str, *parts: str) -> None:
    @kernel(op)
    def draw(w: Work) -> None:
        out = w.output(sizes(w.host("shape")))
        if out.size:
            kept = source("philox.cuh", *parts, ELEMENT=w.ctype(out))
            per_thread = 4 if out.dtype is dtypes.float64 else 8
            w.launch(kept, entry, blocks(out.size, 256 * per_thread), 256, *stream_of(w), out, i64(out.size))


for _prefix, _normal in (("", "RandomStandardNormal"), ("Stateless", "StatelessRandomNormal")):
    _drawn(f"{_prefix}RandomUniform", "uniform", "random.cuh", "random_uniform.cuh")
    _drawn(_normal, "normal", "random.cuh", "random_normal.cuh")
    _drawn(
        f"{_prefix}TruncatedNormal",
        "truncated_normal",
        "gamma.cuh",
        "quantile.cuh",
        "random.cuh",
        "random_truncated.cuh",
    )


@kernel("RandomStream")
def stream_words(w: Work) -> None:
    kept = source("philox.cuh", "random.cuh", "random_stream.cuh", ELEMENT="float")
    w.launch(kept, "stream_words", 1, 32, *stream_of(w), w.output((5,)))


@kernel("StreamUniform")
def stream_uniform(w: Work) -> None:
    out = w.output(sizes(w.host("shape")))
    if out.size:
        kept = source("philox.cuh", "random.cuh", "random_stream.cuh", ELEMENT=w.ctype(out))
        per_thread = 4 if out.dtype is dtypes.float64 else 8
        w.launch(kept, "uniform_of", blocks(out.size, 256 * per_thread), 256, w.input("stream"), out, i64(out.size))


@kernel("RandomUniformInt", "StatelessRandomUniformInt")
def uniform_int(w: Work) -> None:
    low, high = int(w.host("minval")), int(w.host("maxval"))
    if low >= high:
        raise errors.InvalidArgumentError(
            "the range to draw from is empty",
            op=w.node.origin,
            site=w.node.site,
            expected="minval < maxval",
            got=f"minval {low}, maxval {high}",
        )
    out = w.output(sizes(w.host("shape")))
    if out.size:
        span = high - low
        entry, per_thread = ("bounded", 4) if span <= _ONE_WORD else ("bounded_wide", 2)
        kept = source("philox.cuh", "random_bits.cuh", ELEMENT=w.ctype(out))
        args = (*stream_of(w), out, i64(out.size), u64(low & _WORD), u64(span))
        w.launch(kept, entry, blocks(out.size, 256 * per_thread), 256, *args)


@kernel("RandomShuffle", types={"T": PLAIN})
def shuffle(w: Work) -> None:
    """Rows in the order of their words, by a stable sort."""
    x = w.input(0)
    out = w.output(x.shape)
    if not x.size:
        return
    if not x.rank:
        w.copy(out, x)
        return
    _, order = sort_keys(w, random_words(w, x.shape[0]), 64)
    rows = x.shape[0]
    error = bad_index((rows,), [rows])
    gather_rows(w, x, order.reshaped(rows), out, (1, rows, x.size // rows), [rows], error)
