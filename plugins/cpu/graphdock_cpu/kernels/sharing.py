"""Kernels that a team of threads shares: arrays are cut along an axis, and each piece is computed as a kernel of its own.

Pieces are decided when the kernel is made, by its shapes and the number of threads, so that every step gives the same bits. While
such a plan or product runs, BLAS keeps to one thread: its own threads would spin for tens of milliseconds after one, in the way of
ours.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, Scratch
from graphdock.contracts.lazy_dataclass import lazy_dataclass

if TYPE_CHECKING:
    from graphdock_cpu.team import Part

__all__ = [
    "FEW",
    "FLOPS",
    "MOST",
    "SMALL",
    "SUM",
    "Axes",
    "Leading",
    "Made",
    "Rows",
    "Shape",
    "Shared",
    "TILE",
    "aligned",
    "dot",
    "elementwise",
    "matmul",
    "on_one_thread",
    "pieces",
    "product",
    "share",
    "share_count",
    "share_rows",
    "weight",
]

Shape = tuple[int, ...]
#: ``compute(*inputs, *outputs, *scratch)``, and the scratch buffers it wants.
Made = tuple[Callable[..., Any], tuple[Scratch, ...]]
#: By input and output: the axis along which it is cut, None for one that every piece gets whole, SUM for an output to which every
#: piece adds.
Axes = Sequence[int | None]

SUM = -1
#: Work that is worth sharing, in elements of a cheap pass over memory (some 250 us), and what each thread gets at least. To wake a
#: thread takes up to 100 us on a virtual machine.
WORTH, LEAST = 1 << 20, 1 << 19
#: Rows and columns that BLAS computes at once; blocks of a product are multiples of it.
TILE = 16
#: Operations of a matrix product that take as long as one such element.
FLOPS = 32
#: Multiplications of one product of matrices: OpenBLAS begins its threads beyond the first number, and they pay beyond the second
#: (some 300 us of one thread). Between, they save at most half of that on a machine with nothing else to do, spin for tens of
#: milliseconds after it, and cost a time slice of any busy core. With a vector it is memory that takes the time: so many times that
#: of a multiplication.
FEW, MOST, _VECTOR = 64**3, 1 << 24, 16
#: Multiplications of which BLAS makes no parts, whatever the shape.
SMALL = FEW // _VECTOR


def share_count(ctx: BuildContext, work: float, products: bool = False) -> int:
    """On how many threads a kernel is shared; 1 for not at all.

    Args:
      work: in elements of a cheap pass.
      products: it calls BLAS, which must listen.
    """
    if ctx.threads < 2 or work < WORTH:
        return 1
    if products:
        from graphdock_cpu.blas import one_thread

        if not one_thread().holds:
            return 1
    return max(1, min(ctx.threads, int(work // LEAST)))


def on_one_thread(build: Callable[[BuildContext], Bound | Callable[..., Any]]) -> Callable[[BuildContext], Bound]:
    """A kernel's ``build`` whose BLAS keeps to one thread where the kernel may have no more."""

    def built(ctx: BuildContext) -> Bound:
        made = build(ctx)
        bound = made if isinstance(made, Bound) else Bound(made)
        if ctx.threads > 1 or bound.within is not None:
            return bound
        from graphdock_cpu.blas import one_thread

        one = one_thread()
        return replace(bound, within=one) if one.holds else bound

    return built


def pieces(extent: int, count: int, multiple: int = 1) -> list[slice]:
    """A dim in so many parts of about the same length, but for the last of a ``multiple``; fewer where there is not enough."""
    blocks = -(-extent // multiple)
    edges = [min(extent, multiple * (blocks * i // count)) for i in range(count + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(edges) if a < b]


def dot(x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None) -> Any:
    """``numpy.dot`` of two matrices, on one thread where more lose (:data:`FEW`, :data:`MOST`)."""
    return _product(np.dot, x, y, out)


def matmul(x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None) -> Any:
    """``numpy.matmul`` of matrices or batches of them, which BLAS gets one by one, in the same way."""
    return _product(np.matmul, x, y, out)


def weight(rows: int, inner: int, columns: int) -> int:
    """Weight of one product of matrices, as :data:`FEW` and :data:`MOST` count."""
    return rows * inner * columns * (_VECTOR if rows == 1 or columns == 1 else 1)


def _product(multiply: Callable[..., Any], x: np.ndarray, y: np.ndarray, out: np.ndarray | None) -> Any:
    if FEW < weight(x.shape[-2], *y.shape[-2:]) <= MOST:
        from graphdock_cpu.blas import one_thread

        one = one_thread()
        if one.holds and not one.holding:
            with one:
                return multiply(x, y, out)
    return multiply(x, y, out)


class Shared:
    """A kernel on a team of ``count`` threads, where BLAS keeps to one; where it does not, on the thread that calls it.

    Args:
      cut: ``cut(*args)`` gives the parts. ``after``: ``after(*args)`` is called when they are done.
      whole: what is called where it is not shared; None for the parts one by one.
      leads: so large that its plan is to run within :func:`~graphdock_cpu.blas.one_thread`.
      multiplies: its parts are products, which BLAS's own threads would share else: it is shared in any plan.
    """

    __slots__ = ("after", "count", "cut", "leads", "multiplies", "whole")

    def __init__(
        self,
        count: int,
        cut: Callable[..., Sequence[Part]],
        after: Callable[..., None] | None = None,
        whole: Callable[..., Any] | None = None,
        leads: bool = False,
        multiplies: bool = False,
    ) -> None:
        self.count = count
        self.cut = cut
        self.after = after
        self.whole = whole
        self.leads = leads
        self.multiplies = multiplies

    def __call__(self, *args: Any) -> None:
        from graphdock_cpu.blas import one_thread
        from graphdock_cpu.team import team

        if one_thread().held:
            team(self.count).run(self.cut(*args))
        elif self.multiplies:
            with one_thread():
                team(self.count).run(self.cut(*args))
        elif self.whole is not None:
            self.whole(*args)
            return
        else:
            for part in self.cut(*args):
                part()
        if self.after is not None:
            self.after(*args)


class Leading:
    """A kernel that shares its parts itself, so large that its plan is to run within :func:`~graphdock_cpu.blas.one_thread`."""

    __slots__ = ("compute",)
    leads = True

    def __init__(self, compute: Callable[..., Any]) -> None:
        self.compute = compute

    def __call__(self, *args: Any) -> None:
        self.compute(*args)


def product(count: int) -> Shared:
    """``(x, y, out)``: a product of matrices in ``count`` blocks, as near to squares as that number allows."""

    def cut(x: Any, y: Any, out: Any) -> list[Part]:
        return [partial(np.matmul, x[a], y[:, b], out[a, b]) for a, b in _blocks(count, *out.shape)]

    return Shared(count, cut, multiplies=True)


@functools.lru_cache(1024)
def _blocks(count: int, rows: int, columns: int) -> list[tuple[slice, slice]]:
    """The blocks of a result: each operand is read no oftener than it must."""
    down = min((d for d in range(1, count + 1) if count % d == 0), key=lambda d: rows / d + columns * d / count)
    return list(itertools.product(pieces(rows, down, TILE), pieces(columns, count // down, TILE)))


def share(
    ctx: BuildContext,
    axes: Axes,
    shapes: Sequence[Shape],
    make: Callable[[Sequence[Shape]], Made],
    work: float,
    products: bool = False,
    whole: Callable[..., Any] | None = None,
) -> Made:
    """``make(shapes)`` of all inputs and outputs, or the kernels of pieces of them, where the work is worth it.

    All that are cut have the same extent along their axes. What is summed has a dtype that sums are made in.

    Args:
      work, products: see :func:`share_count`. ``whole``: see :class:`Shared`.
    """
    first = next(i for i, axis in enumerate(axes) if axis is not None and axis != SUM)
    extent = shapes[first][axes[first]]  # type: ignore[index]
    count = share_count(ctx, work, products)
    found = pieces(extent, count)
    summed = [i for i, axis in enumerate(axes) if axis == SUM]
    kinds = {i: ctx.outputs[i - len(ctx.inputs)].dtype for i in summed}
    if len(found) < 2 or any(d.accumulator is not d for d in kinds.values()):
        return make(shapes)
    made = [make([_cut(s, a, piece) for s, a in zip(shapes, axes, strict=True)]) for piece in found]
    indices = [[_index(a, piece) for a in axes] for piece in found]
    scratch = [list(wanted) for _, wanted in made]
    for wanted in scratch[1:]:
        wanted += [Scratch(kinds[i], tuple(shapes[i])) for i in summed]
    ends = list(itertools.accumulate((len(wanted) for wanted in scratch), initial=len(shapes)))
    computes, total = [compute for compute, _ in made], len(shapes)

    def own(args: Sequence[Any], number: int) -> tuple[Sequence[Any], Sequence[Any]]:
        """Scratch of a piece, and what it adds to each output that is summed; the first one writes that itself."""
        mine = args[ends[number] : ends[number + 1]]
        return (mine, ()) if number == 0 else (mine[: len(mine) - len(summed)], mine[len(mine) - len(summed) :])

    def cut(*args: Any) -> list[Part]:
        parts = []
        for number, (compute, index) in enumerate(zip(computes, indices, strict=True)):
            given = [a if i is None else a[i] for a, i in zip(args[:total], index, strict=True)]
            mine, sums = own(args, number)
            for i, buffer in zip(summed, sums, strict=False):
                given[i] = buffer
            parts.append(partial(compute, *given, *mine))
        return parts

    def add(*args: Any) -> None:
        for number in range(1, len(computes)):
            for i, buffer in zip(summed, own(args, number)[1], strict=True):
                np.add(args[i], buffer, args[i])

    compute = Shared(count, cut, add if summed else None, whole)
    return compute, tuple(itertools.chain.from_iterable(scratch))


@lazy_dataclass(frozen=True, slots=True)
class Rows:
    """A kernel over rows of its arrays that know nothing of each other.

    Attributes:
      letters: one per input and output: ``r``, cut by rows; ``.``, whole; ``+``, an output that is summed over rows.
      weight: cheap passes that each element of the first that is cut costs.
      dims: how many of its leading dims count rows; None for all.
    """

    letters: str
    weight: float
    dims: Callable[[BuildContext, Sequence[Shape]], int] | None = None


def share_rows(ctx: BuildContext, rows: Rows, shapes: Sequence[Shape], make: Callable[[Sequence[Shape]], Made]) -> Made:
    """:func:`share` along the first dim of rows that has more than one element."""
    first = shapes[rows.letters.index("r")]
    dims = len(first) if rows.dims is None else rows.dims(ctx, shapes)
    axis = next((i for i, n in enumerate(first[:dims]) if n > 1), None)
    if axis is None:
        return make(shapes)
    axes = [{"r": axis, ".": None, "+": SUM}[letter] for letter in rows.letters]
    return share(ctx, axes, shapes, make, math.prod(first) * rows.weight)


def elementwise(
    ctx: BuildContext, function: Callable[..., Any], shapes: Sequence[Any], weight: float
) -> Callable[..., Any]:
    """``function(*inputs, out)``, which broadcasts its inputs, or the same on pieces of them.

    Args:
      shapes: of what it is called with, but for the output.
      weight: cheap passes that each element of the output costs.
    """
    out = ctx.outputs[0].shape
    if ctx.fresh or any(s is None or None in s for s in (*shapes, out)):
        return function
    assert out is not None
    sizes = [i.dtype.size for i in (*ctx.inputs, *ctx.outputs)]
    work = math.prod(out) * weight * max(sizes) / 4  # type: ignore[arg-type]
    if not out or share_count(ctx, work) < 2:
        return function
    most = max(out, default=1)  # type: ignore[type-var]
    axis = next(i for i, n in enumerate(out) if n >= min(4 * ctx.threads, most))  # type: ignore[operator]
    axes = [aligned(s, out, axis) for s in (*shapes, out)]
    return share(ctx, axes, [tuple(s) for s in (*shapes, out)], lambda _: (function, ()), work, whole=function)[0]


def aligned(shape: Shape, out: Any, axis: int) -> int | None:
    """The axis of an operand that lies along one of the output's; None where it is broadcast there."""
    at = axis - (len(out) - len(shape))
    return at if at >= 0 and shape[at] == out[axis] else None


def _cut(shape: Shape, axis: int | None, piece: slice) -> Shape:
    if axis is None or axis == SUM:
        return tuple(shape)
    return (*shape[:axis], piece.stop - piece.start, *shape[axis + 1 :])


def _index(axis: int | None, piece: slice) -> Any:
    return None if axis is None or axis == SUM else (slice(None),) * axis + (piece,)
