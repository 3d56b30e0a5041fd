"""Fourier transforms, one axis after the other.

A line whose length has small factors and that fits shared memory is transformed there; a longer one as a matrix of two shorter
ones, in two launches; one with a large prime factor as a convolution of a power of two.
"""

from __future__ import annotations

import functools
import math
import struct
from dataclasses import dataclass, replace

from graphdock.contracts import DType, KernelDef, dtypes, errors

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.kernel import family
from graphdock_cuda.launch import Param, i32, i64, raw
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: The largest prime factor that a pass takes, and most passes, as in ``source/fourier.cuh``.
_RADIX, _PASSES = 61, 27
#: Shared memory that blocks take for lines where that is enough; more for one line alone.
_USUAL = 48 * 1024


def _radices(n: int) -> list[int] | None:
    """Small factors whose product is ``n``; None where a prime factor is too large."""
    found = []
    for radix in (4, 2, *range(3, _RADIX + 1, 2)):
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return found if n == 1 else None


@dataclass(frozen=True)
class _Axis:
    """One axis of a tensor that lies as ``(outer, given, inner)``, transformed to ``(outer, kept, inner)``.

    Attributes:
      x, y: read and written; ``length``: of the transform.
      hermitian: ``x`` is the half of the numbers that the rest follows from. ``inverse``: the sign of the powers.
    """

    x: Operand
    y: Operand
    outer: int
    given: int
    kept: int
    inner: int
    length: int
    work: DType
    hermitian: bool = False
    inverse: bool = False

    @property
    def lines(self) -> int:
        return self.outer * self.inner


@dataclass(frozen=True)
class _Lines:
    """As ``Lines`` in ``source/fourier.cuh``."""

    lines: int
    inner: int
    sub: int
    in_mul: int
    in_outer: int
    in_step: int
    given: int
    whole: int
    split: int
    out_outer: int
    out_step: int
    kept: int
    twist: int
    scale: float
    n: int
    per_block: int
    hermitian: bool
    inverse: bool

    def packed(self, radices: list[int]) -> Param:
        numbers = (
            self.lines, self.inner, self.sub, self.in_mul, self.in_outer, self.in_step, self.given, self.whole,
            self.split, self.out_outer, self.out_step, self.kept, self.twist,
        )  # fmt: skip
        small = (self.n, self.per_block, self.hermitian, self.inverse, len(radices))
        return raw(struct.pack("<13qd5i27i", *numbers, self.scale, *small, *radices, *[0] * (_PASSES - len(radices))))


def _whole(axis: _Axis, scale: float) -> _Lines:
    """All numbers of each line in one go."""
    inner = axis.inner
    return _Lines(
        axis.lines, inner, inner, 1, axis.given * inner, inner, axis.given, axis.length,
        1, axis.kept * inner, inner, axis.kept, 0, scale, axis.length, 1, axis.hermitian, axis.inverse,
    )  # fmt: skip


def _source(w: Work, x: Operand, y: Operand, work: DType) -> Source:
    return source("complex.cuh", "fourier.cuh", IN=w.ctype(x), OUT=w.ctype(y), WORK=w.ctype(work), name="fourier")


def _longest(w: Work, work: DType) -> int:
    """The longest line that fits shared memory, twice."""
    return ((w.device.info.shared_memory_bytes or _USUAL) - 1024) // (2 * work.size)


def _table(w: Work, code: Source, n: int, work: DType) -> Operand:
    table = w.scratch(work, n)
    w.launch(code, "fourier_table", blocks(n), 256, table, i64(n))
    return table


def _launch(w: Work, x: Operand, y: Operand, lines: _Lines, work: DType) -> None:
    """Transform lines that fit shared memory."""
    code = _source(w, x, y, work)
    radices = _radices(lines.n)
    assert radices is not None
    together = max(1024 // lines.n, 16 if lines.inner > 1 else 1, 1)
    per_block = max(1, min(lines.lines, together, _USUAL // (2 * lines.n * work.size)))
    table = _table(w, code, lines.n, work)
    w.launch(
        code, "fourier_lines", -(-lines.lines // per_block), 256 if per_block * lines.n > 256 else 64, x, y, table,
        replace(lines, per_block=per_block).packed(radices), shared=2 * per_block * lines.n * work.size,
    )  # fmt: skip


def _transform(w: Work, axis: _Axis) -> None:
    """Queue the transform along an axis. Inverse ones are divided by their length."""
    if not axis.y.size:
        return
    n, longest = axis.length, _longest(w, axis.work)
    scale = 1.0 / n if axis.inverse else 1.0
    smooth = _radices(n) is not None
    if smooth and n <= longest:
        _launch(w, axis.x, axis.y, _whole(axis, scale), axis.work)
        return
    first = _divisor(n, longest) if smooth else None
    if first is None:
        _by_chirps(w, axis, scale)
    else:
        _by_parts(w, axis, first, scale)


def _divisor(n: int, longest: int) -> int | None:
    """The factor of ``n`` next to its root such that both parts fit; None where there is none."""
    for first in range(math.isqrt(n), 0, -1):
        if n % first == 0:
            return first if n // first <= longest else None
    return None


def _by_parts(w: Work, axis: _Axis, first: int, scale: float) -> None:
    """Lines of ``first`` numbers, ``n / first`` apart, turned; then lines of the rest, whose results lie ``first`` apart."""
    n, inner, second = axis.length, axis.inner, axis.length // first
    between = w.scratch(axis.work, axis.lines * n)
    whole = _whole(axis, 1.0)
    columns = replace(
        whole, lines=axis.lines * second, inner=second * inner, in_mul=second, n=first,
        out_outer=n * inner, out_step=second * inner, kept=first, twist=n,
    )  # fmt: skip
    _launch(w, axis.x, between, columns, axis.work)
    rows = replace(
        whole, lines=axis.lines * first, in_outer=second * inner, given=second, whole=second, n=second,
        split=first, hermitian=False, scale=scale,
    )  # fmt: skip
    _launch(w, between, axis.y, rows, axis.work)


def _by_chirps(w: Work, axis: _Axis, scale: float) -> None:
    n, work = axis.length, axis.work
    size = 1 << (2 * n - 2).bit_length()
    if size > _longest(w, work) ** 2:
        raise w.refuse(f"a transform of {n} numbers is longer than it can do")
    code, plain = _source(w, axis.x, axis.y, work), replace(_whole(axis, scale), n=1)
    count = axis.lines * size
    first, second = w.scratch(work, count), w.scratch(work, count)
    raised, filters = w.scratch(work, size), w.scratch(work, size)
    lines = plain.packed([])
    w.launch(code, "chirp_filter", blocks(size), 256, raised, i64(n), i64(size), i32(axis.inverse))
    _transform(w, _Axis(raised, filters, 1, size, size, 1, size, work))
    w.launch(code, "chirp_in", blocks(count), 256, axis.x, first, i64(size), lines)
    _transform(w, _Axis(first, second, axis.lines, size, size, 1, size, work))
    w.launch(code, "chirp_product", blocks(count), 256, second, filters, i64(size), i64(count))
    _transform(w, _Axis(second, first, axis.lines, size, size, 1, size, work, inverse=True))
    w.launch(code, "chirp_out", blocks(axis.lines * axis.kept), 256, first, axis.y, i64(size), lines)


def _product(dims: tuple[int, ...]) -> int:
    return math.prod(dims)


def _along(w: Work, x: Operand, y: Operand, at: int, length: int, work: DType, inverse: bool, hermitian: bool) -> None:
    """Transform axis ``at`` of ``x`` into ``y``, whose other dims are those of ``x``."""
    _transform(
        w,
        _Axis(
            x, y, _product(x.shape[:at]), x.shape[at], y.shape[at], _product(x.shape[at + 1 :]), length, work,
            hermitian, inverse,
        ),
    )  # fmt: skip


def _complex(w: Work, rank: int, inverse: bool) -> None:
    x = w.input(0)
    y = w.output(x.shape)
    if not y.size:
        return
    spare = [w.scratch(x.dtype, x.shape) for _ in range(min(rank - 1, 2))]
    for step, at in enumerate(range(x.rank - 1, x.rank - 1 - rank, -1)):
        to = y if step == rank - 1 else spare[step % 2]
        _along(w, x, to, at, x.shape[at], x.dtype, inverse, False)
        x = to


def _wide(*given: DType) -> DType:
    """Return what is computed in: the wider of the two."""
    return dtypes.complex128 if any(d in (dtypes.float64, dtypes.complex128) for d in given) else dtypes.complex64


def _lengths(w: Work, rank: int) -> list[int]:
    lengths: list[int] = [int(n) for n in w.host("fft_length")]
    if min(lengths) < 0:
        raise errors.InvalidArgumentError(
            "fft_length must not be negative", op=w.node.origin, site=w.node.site, got=str(lengths)
        )
    return lengths


def _forward_real(w: Work, rank: int) -> None:
    """The last axis from real numbers to half of their spectrum, then the others."""
    x, lengths = w.input("input"), _lengths(w, rank)
    half = lengths[-1] // 2 + 1 if lengths[-1] else 0
    y = w.output((*x.shape[:-rank], *lengths[:-1], half))
    if not y.size:
        return
    work = _wide(x.dtype, y.dtype)
    shape = [*x.shape[:-1], half]
    for step in range(rank):
        at = x.rank - 1 - step
        shape[at] = half if step == 0 else lengths[-1 - step]
        to = y if step == rank - 1 else w.scratch(work, shape)
        _along(w, x, to, at, lengths[-1 - step], work, False, False)
        x = to


def _inverse_real(w: Work, rank: int) -> None:
    """All axes but the last one, then that one, of which half is given."""
    x, lengths = w.input("input"), _lengths(w, rank)
    y = w.output((*x.shape[:-rank], *lengths))
    if not y.size:
        return
    work = _wide(x.dtype, y.dtype)
    shape = list(x.shape)
    for step in range(rank - 1):
        at = x.rank - rank + step
        shape[at] = lengths[step]
        to = w.scratch(work, shape)
        _along(w, x, to, at, lengths[step], work, True, False)
        x = to
    _along(w, x, y, x.rank - 1, lengths[-1], work, True, True)


def _kernels() -> None:
    for rank, suffix in ((1, ""), (2, "2D"), (3, "3D")):
        kernel("FFT" + suffix)(functools.partial(_complex, rank=rank, inverse=False))
        kernel("IFFT" + suffix)(functools.partial(_complex, rank=rank, inverse=True))
        kernel("RFFT" + suffix)(functools.partial(_forward_real, rank=rank))
        kernel("IRFFT" + suffix)(functools.partial(_inverse_real, rank=rank))


_kernels()
