"""Attention and its gradient: products by the matrix library, and between them one launch over the rows of scores.

Scores lie in scratch memory, in float32 at least, and no more of them at once than the option ``workspace`` has bytes for: some
matrices, or where one alone is too large, some queries of it. A gradient computes the scores again, and the softmax of them: what
the forward pass gave it is not read, so that nothing is lost between the two. The gradients of keys and values are sums over
chunks of queries, added up in float32 in one order.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphdock.contracts import DType, KernelDef, dtypes

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import FLOATS, family
from graphdock_cuda.kernels.elementwise import MAX_RANK, mapped, merged
from graphdock_cuda.kernels.matmul import library_or_own, product_of
from graphdock_cuda.kernels.rows import over_rows
from graphdock_cuda.launch import raw
from graphdock_cuda.work import Operand, Work

__all__ = ["KERNELS", "Part", "parts_of"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

_PARTS = ("philox.cuh", "block.cuh", "rows.cuh", "exponentials.cuh", "attention.cuh")
#: Queries of a chunk, and keys that one of them sees, are multiples of these, where there are more: a guess at tiles of the library
#: that are whole, and rows that are aligned.
_QUERIES, _KEYS = 64, 8
_TYPES = {"T": FLOATS, "U": (*FLOATS, "bool")}


@dataclass(frozen=True, slots=True)
class Part:
    """A chunk of the scores [matrices, queries, keys].

    Attributes:
      first, count: matrices. ``begin``, ``end``: queries, all of them where there are several matrices. ``seen``: how many keys
        from the first one on, at least as many as a query of these sees.
    """

    first: int
    count: int
    begin: int
    end: int
    seen: int

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.count, self.end - self.begin, self.seen

    def queries(self, x: Operand) -> Operand:
        """The rows of this part, of a tensor [..., queries, width]."""
        rows, width = x.shape[-2:]
        return x.at((self.first * rows + self.begin) * width, (self.count, self.end - self.begin, width))

    def keys(self, x: Operand) -> Operand:
        """Likewise of a tensor [..., keys, width]."""
        rows, width = x.shape[-2:]
        return x.at(self.first * rows * width, (self.count, self.seen, width))


def parts_of(matrices: int, queries: int, keys: int, causal: bool, most: int) -> Iterator[list[Part]]:
    """The chunks of scores: lists whose parts have the same matrices, and the parts of a list the queries, the last ones first.

    The first part of a list has all keys. ``most``: scores of a chunk, of one query at least.
    """
    most = max(most, 1)
    together = most // max(queries * keys, 1)
    if together:
        chunks = max(-(-matrices // together), 1)
        size = max(-(-matrices // chunks), 1)
        for first in range(0, matrices, size):
            yield [Part(first, min(size, matrices - first), 0, queries, keys)]
        return
    rows = max(most // keys, 1)
    rows -= rows % _QUERIES if rows > _QUERIES else 0
    for matrix in range(matrices):
        parts = []
        for end in range(queries, 0, -rows):
            begin = max(end - rows, 0)
            # a query that sees nothing has NaN for every key
            seen = end + keys - queries if causal and begin + keys >= queries else keys
            parts.append(Part(matrix, 1, begin, end, min(keys, -(-seen // _KEYS) * _KEYS)))
        yield parts


class _Scores:
    """Facts that the parts of one node's scores have in common: the bias, the dropout, and how much is held at once."""

    def __init__(self, w: Work, query: Operand, key: Operand) -> None:
        self._w = w
        self.dtype: DType = query.dtype.accumulator
        self.scale, self.hidden = float(w.attr("scale")), float(w.attr("hidden"))
        self.matrices = math.prod(query.shape[:-2])
        self.sizes = query.shape[-2], key.shape[-2]
        self._bias = w.input("bias") if w.has("bias") else None
        self._masked = self._bias is not None and self._bias.dtype is dtypes.bool_
        self._dropout = [w.input(name) for name in ("stream", "rate", "factor")] if w.has("stream") else []
        dims, strides, steps = self._places(query.shape[:-2])
        if len(dims) > MAX_RANK:
            raise w.refuse(f"its bias broadcasts over {len(dims)} axes, and the kernel over at most {MAX_RANK}")
        pad = (0,) * (MAX_RANK - len(dims))
        self._where = (*dims, *pad, *strides, *pad, *steps)
        self._rank = len(dims)

    def _places(self, outer: Sequence[int]) -> tuple[Sequence[int], Sequence[int], tuple[int, int]]:
        """Dims before the matrices, the steps of the bias along them, and along queries and keys."""
        if self._bias is None:
            return (), (), (0, 0)
        shape = (*(1,) * (len(outer) + 2 - self._bias.rank), *self._bias.shape)
        rows, columns = shape[-2:]
        dims, (strides,) = merged(outer, [shape[:-2]])
        return dims, [s * rows * columns for s in strides], (columns if rows > 1 else 0, int(columns > 1))

    def parts(self, narrow: DType, kinds: int) -> Iterator[list[Part]]:
        """Chunks for which ``kinds`` numbers of a score are held, and as many again in ``narrow`` where that is another dtype."""
        each = kinds * (self.dtype.size + (narrow.size if narrow is not self.dtype else 0))
        most = self._w.device.workspace // each
        return parts_of(self.matrices, *self.sizes, self._w.attr("causal") and self.hidden == -math.inf, most)

    def product(self, part: Part, a: Operand, b: Operand, alpha: float = 1.0) -> Operand:
        """``alpha`` times the products of what belongs to a part's queries and to its keys, in scratch memory."""
        made = self._w.scratch(self.dtype, part.shape)
        _multiply(self._w, part.queries(a), part.keys(b), made, right=True, alpha=alpha)
        return made

    def scratch(self, part: Part, wide: Operand, narrow: DType) -> Operand:
        """Return where results of that dtype go which take the place of ``wide``: there, if they are as wide."""
        return wide if narrow is self.dtype else self._w.scratch(narrow, part.shape)

    def launch(self, part: Part, file: str, *args: Operand) -> None:
        """One launch over the rows of a part. ``args``: the entry's, before the bias; the first is the scores."""
        w, (queries, keys) = self._w, self.sizes
        count, rows, seen = part.shape
        made = source(
            *_PARTS,
            f"{file}.cuh",
            TYPE=w.ctype(w.input("query")),
            BIAS=w.ctype(self._bias or w.input("query")),
            BIASED=str(int(self._bias is not None and not self._masked)),
            MASKED=str(int(self._masked)),
            DROPPED=str(int(bool(self._dropout))),
        )
        numbers = (count * rows, part.first * queries + part.begin, queries, keys, seen, *self._where)
        packed = raw(struct.pack(f"<{len(numbers)}q2id", *numbers, self._rank, int(w.attr("causal")), self.hidden))
        nothing = args[0]
        given = (*args, self._bias or nothing, *(self._dropout or [nothing] * 3))
        over_rows(w, made, count * rows, seen, f"{file}_{{}}", *given, packed)


@kernel("Attention", types=_TYPES)
@kernel("DroppedAttention", types=_TYPES)
def attention(w: Work) -> None:
    """``(query, key, value, bias?) -> (output, log_sum)``, or ``(query, key, value, stream, rate, factor, bias?)``."""
    q, k, v = (w.input(name) for name in ("query", "key", "value"))
    output, log_sum = w.output((*q.shape[:-1], v.shape[-1])), w.output(q.shape[:-1], 1)
    scores = _Scores(w, q, k)
    for parts in scores.parts(q.dtype, 1):
        for part in parts:
            with w.temporary():
                s = scores.product(part, q, k, scores.scale)
                weights = scores.scratch(part, s, q.dtype)
                scores.launch(part, "attention_forward", s, weights, log_sum)
                _multiply(w, weights, part.keys(v), part.queries(output))


@kernel("AttentionGrad", types=_TYPES)
@kernel("DroppedAttentionGrad", types=_TYPES)
def attention_grad(w: Work) -> None:
    """``(output_backprop, query, key, value, output, log_sum, ...) -> (query_backprop, key_backprop, value_backprop)``."""
    grad, q, k, v = (w.input(name) for name in ("output_backprop", "query", "key", "value"))
    to_q, to_k, to_v = w.output(q.shape), w.output(k.shape, 1), w.output(v.shape, 2)
    scores = _Scores(w, q, k)
    for parts in scores.parts(q.dtype, 2):
        with w.temporary():
            sums = [_Sum(w, scores.dtype, parts, x) for x in (to_k, to_v)]
            for part in parts:
                with w.temporary():
                    s, toward = scores.product(part, q, k, scores.scale), scores.product(part, grad, v)
                    weights, slopes = (scores.scratch(part, x, q.dtype) for x in (s, toward))
                    scores.launch(part, "attention_grad", s, toward, weights, slopes)
                    if w.used(0):
                        _multiply(w, slopes, part.keys(k), part.queries(to_q), alpha=scores.scale)
                    sums[0].add(part, slopes, part.queries(q), scores.scale)
                    sums[1].add(part, weights, part.queries(grad))
            for made in sums:
                made.finish()


class _Sum:
    """A gradient of keys or values, summed over the parts of a list; in scratch memory where it is rounded once they are all in."""

    def __init__(self, w: Work, wide: DType, parts: Sequence[Part], out: Operand) -> None:
        self._w = w
        self._used = w.used(out.index)
        self._out = parts[0].keys(out)
        rounds = self._used and len(parts) > 1 and out.dtype is not wide
        self._sum = w.scratch(wide, self._out.shape) if rounds else self._out
        self._adds = False

    def add(self, part: Part, left: Operand, right: Operand, alpha: float = 1.0) -> None:
        """Add ``alpha * left^T right``, of the keys that the part sees."""
        if self._used:
            to = self._sum.at(0, (part.count, part.seen, self._sum.shape[-1]))
            _multiply(self._w, left, right, to, left=True, alpha=alpha, adds=self._adds)
            self._adds = True

    def finish(self) -> None:
        if self._sum is not self._out:
            mapped(self._w, "attention_sum", "x0", [self._sum], self._out)


def _multiply(
    w: Work,
    a: Operand,
    b: Operand,
    d: Operand,
    left: bool = False,
    right: bool = False,
    alpha: float = 1.0,
    adds: bool = False,
) -> None:
    """``d = alpha * op(a) op(b)``, or that added to d. ``left``, ``right``: which operands are transposed."""
    library_or_own(w, a, b, d, product_of(a.shape, b.shape, left, right), alpha, adds)
