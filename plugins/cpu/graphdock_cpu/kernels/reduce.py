"""Reductions, index reductions, running sums, and SumTo.

A reduction is ``ufunc.reduce`` called positionally with the constant axes bound in; no Python stands between the step
and NumPy. Sums, means and products of float16 and bfloat16 are accumulated in float32 and rounded once. Integers keep
their dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, In, KernelDef, Lit, Out, Scratch, dtypes, errors
from numpy import dot

from graphdock_cpu.kernels.common import constant, is_half, known

__all__ = ["KERNELS"]


def _axes(value: Any, rank: int | None = None) -> tuple[int, ...]:
    """Axes as NumPy takes them, from a rank-0 or rank-1 integer array; checked where ``rank`` is known only in the step."""
    axes = tuple(int(a) for a in np.asarray(value).reshape(-1))
    if rank is not None:
        for axis in axes:
            if not -rank <= axis < rank:
                raise errors.InvalidArgumentError(f"axis {axis} is out of range", expected=f"{-rank} to {rank - 1}")
        if len({a % rank for a in axes}) < len(axes):
            raise errors.InvalidArgumentError("an axis is named twice", got=str(list(axes)))
    return axes


def _lowest(dtype: dtypes.DType) -> Any:
    return -np.inf if dtype.is_floating else dtype.min


def _highest(dtype: dtypes.DType) -> Any:
    return np.inf if dtype.is_floating else dtype.max


def _reduction(
    ufunc: np.ufunc, initial: Callable[[dtypes.DType], Any] | None = None, accumulates: bool = False
) -> Callable[[BuildContext], Bound | Callable[..., Any]]:
    """Builds one reduction. ``initial`` is its value over nothing, for ufuncs that have no identity of their own."""

    def build(ctx: BuildContext) -> Bound | Callable[..., Any]:
        x, out = ctx.inputs[0], ctx.outputs[0]
        keep, constant_axis = bool(ctx.attr("keep_dims")), ctx.input("axis").value
        wide = accumulates and is_half(x.dtype)
        dtype: Any = np.float32 if wide else out.dtype.np
        # an initial value costs NumPy its fast path, so it is given only where the reduction may be over nothing
        may_be_empty = not (known(x.shape) and 0 not in x.shape)  # type: ignore[operator]
        tail = (initial(x.dtype),) if initial is not None and may_be_empty else ()
        reduce = ufunc.reduce

        def run(value: np.ndarray, axis: Any, target: np.ndarray | None) -> Any:
            return reduce(value, axis, dtype, target, keep, *tail)

        if ctx.fresh:
            fixed = None if constant_axis is None else _axes(constant_axis)
            result = out.dtype.np

            def fresh(value: np.ndarray, axis: np.ndarray) -> np.ndarray:
                made = run(value, _axes(axis, value.ndim) if fixed is None else fixed, None)
                return np.asarray(made, result)

            return fresh
        if wide:

            def widened(value: np.ndarray, axis: np.ndarray, target: np.ndarray, total: np.ndarray) -> None:
                run(value, _axes(axis, value.ndim), total)
                np.copyto(target, total, "unsafe")

            scratch = (Scratch(dtypes.float32, tuple(out.shape)),)  # type: ignore[arg-type]
            if constant_axis is None:
                return Bound(widened, scratch=scratch)
            return Bound(
                _constant_axis(run, _axes(constant_axis)), args=(In(0), Out(0), Out(len(ctx.outputs))), scratch=scratch
            )
        if constant_axis is None:
            return lambda value, axis, target: run(value, _axes(axis, value.ndim), target)
        if ufunc is np.add and (by_dot := _by_dot(ctx, _axes(constant_axis), keep)) is not None:
            return Bound(by_dot[0], args=by_dot[1])
        if (by_column := _by_columns(ctx, ufunc, _axes(constant_axis))) is not None:
            return Bound(by_column, args=(In(0), Out(0)))
        fixed_args = (Lit(_axes(constant_axis)), Lit(dtype), Out(0), Lit(keep), *(Lit(v) for v in tail))
        return Bound(reduce, args=(In(0), *fixed_args))

    return build


#: A sum of so many terms may be one of BLAS, which adds up a few partial sums, not pairwise as NumPy does along the last axis.
_DOT_TERMS = 2048


def _by_dot(ctx: BuildContext, axes: tuple[int, ...], keep: bool) -> tuple[Any, tuple[In | Out | Lit, ...]] | None:
    """A product with ones that is the sum, and its arguments: it costs a half to a fifth of NumPy's reduction.

    None where it does not apply: another dtype, axes that are neither the first ones nor the last ones, or many terms of what
    NumPy would add pairwise. Down the columns NumPy adds row by row, and BLAS is the more accurate one.
    """
    x = ctx.inputs[0]
    if x.dtype.name not in ("float32", "float64") or not x.contiguous or not known(x.shape):
        return None
    shape: tuple[int, ...] = x.shape  # type: ignore[assignment]
    rank, reduced = len(shape), sorted({a % len(shape) for a in axes}) if shape else []
    if not reduced or not math.prod(shape):
        return None
    count = len(reduced)
    last = reduced == list(range(rank - count, rank))
    if not last and reduced != list(range(count)):
        return None
    terms = math.prod(shape[a] for a in reduced)
    if last and terms > _DOT_TERMS:
        return None
    ones, others = np.ones(terms, x.dtype.np), math.prod(shape) // terms
    ones.flags.writeable = False
    if rank == 1 or (rank == 2 and count == 1):
        if last:
            return np.dot, (In(0), Lit(ones[:, None] if keep else ones), Out(0))
        return np.dot, (Lit(ones[None, :] if keep else ones), In(0), Out(0))

    def trailing(value: np.ndarray, target: np.ndarray) -> None:
        dot(value.reshape(others, terms), ones, target.reshape(others))

    def leading(value: np.ndarray, target: np.ndarray) -> None:
        dot(ones, value.reshape(terms, others), target.reshape(others))

    return (trailing if last else leading), (In(0), Out(0))


#: So many elements behind the axes that are summed are reduced one after the other, where there are so many rows for each: NumPy's
#: loop over few elements costs 3 to 30 times as much.
_FEW_COLUMNS, _ROWS = 8, 512


def _by_columns(ctx: BuildContext, ufunc: np.ufunc, axes: tuple[int, ...]) -> Callable[..., None] | None:
    """A reduction of each column by itself; None where it does not apply: axes apart from each other, or many columns."""
    x = ctx.inputs[0]
    if not x.contiguous or not known(x.shape) or not axes:
        return None
    shape: tuple[int, ...] = x.shape  # type: ignore[assignment]
    reduced = sorted({a % len(shape) for a in axes})
    first, last = reduced[0], reduced[-1] + 1
    dims = (math.prod(shape[:first]), math.prod(shape[first:last]), math.prod(shape[last:]))
    rows, columns = dims[0] * dims[1], dims[2]
    if (
        len(reduced) < last - first
        or not 2 <= columns <= _FEW_COLUMNS
        or rows < _ROWS * columns
        or dims[1] < _FEW_COLUMNS
    ):
        return None
    reduce, dtype = ufunc.reduce, ctx.outputs[0].dtype.np

    def by_columns(value: np.ndarray, target: np.ndarray) -> None:
        value, target = value.reshape(dims), target.reshape(dims[0], columns)
        for column in range(columns):
            reduce(value[:, :, column], 1, dtype, target[:, column])

    return by_columns


def _constant_axis(run: Callable[..., Any], axes: tuple[int, ...]) -> Callable[..., None]:
    def compute(value: np.ndarray, target: np.ndarray, total: np.ndarray) -> None:
        run(value, axes, total)
        np.copyto(target, total, "unsafe")

    return compute


def _mean(ctx: BuildContext) -> Bound | Callable[..., Any]:
    """Sum, then one division. Integers are summed in 64 bits and divide towards zero; the mean of nothing is NaN or 0."""
    x, out = ctx.inputs[0], ctx.outputs[0]
    keep, constant_axis = bool(ctx.attr("keep_dims")), ctx.input("axis").value
    fixed = None if constant_axis is None else _axes(constant_axis)
    total_of = _total_dtype(x.dtype)
    result, dtype = out.dtype.np, total_of.np
    divide = _truncating_divide if x.dtype.is_integer else np.true_divide
    add = np.add.reduce
    count = None
    if known(x.shape) and known(out.shape):
        elements = math.prod(x.shape)  # type: ignore[arg-type]
        count = constant(elements // max(math.prod(out.shape), 1), dtype)  # type: ignore[arg-type]

    def into(value: np.ndarray, axes: tuple[int, ...], total: np.ndarray) -> None:
        add(value, axes, dtype, total, keep)
        divide(total, constant(value.size // max(total.size, 1), dtype) if count is None else count, total)

    if ctx.fresh:

        def fresh(value: np.ndarray, axis: np.ndarray) -> np.ndarray:
            total = np.asarray(add(value, _axes(axis, value.ndim) if fixed is None else fixed, dtype, None, keep))
            divide(total, constant(value.size // max(total.size, 1), dtype), total)
            return total.astype(result, copy=False)

        return fresh
    if total_of is not out.dtype:

        def widened(value: np.ndarray, axis: np.ndarray, target: np.ndarray, total: np.ndarray) -> None:
            into(value, _axes(axis, value.ndim) if fixed is None else fixed, total)
            np.copyto(target, total, "unsafe")

        return Bound(widened, scratch=(Scratch(total_of, tuple(out.shape)),))  # type: ignore[arg-type]
    if fixed is None or count is None or x.dtype.is_integer:
        return lambda value, axis, target: into(value, _axes(axis, value.ndim) if fixed is None else fixed, target)

    by_dot = _by_dot(ctx, fixed, keep)
    if by_dot is None and (by_column := _by_columns(ctx, np.add, fixed)) is not None:
        by_dot = by_column, (In(0), Out(0))
    if by_dot is not None:
        sum_up, true_divide = by_dot[0], np.true_divide

        def divided(*args: np.ndarray) -> None:
            sum_up(*args)
            true_divide(args[-1], count, args[-1])

        return Bound(divided, args=by_dot[1])

    def compute(value: np.ndarray, target: np.ndarray) -> None:
        add(value, fixed, dtype, target, keep)
        divide(target, count, target)

    return Bound(compute, args=(In(0), Out(0)))


def _total_dtype(dtype: dtypes.DType) -> dtypes.DType:
    """What a mean is summed in."""
    if dtype.is_integer:
        return dtypes.int64 if dtype.kind == "i" else dtypes.uint64
    return dtype.accumulator


def _truncating_divide(total: np.ndarray, count: np.ndarray, out: np.ndarray) -> None:
    np.subtract(total, np.fmod(total, count), out)
    np.floor_divide(out, count, out)


def _arg_reduction(
    plain: Callable[..., Any], extreme: np.ufunc, worst: float
) -> Callable[[BuildContext], Bound | Callable[..., Any]]:
    """argmax and argmin, in which NaN counts as ``worst``. NumPy writes int64; another output type goes through scratch."""

    def numbers(x: np.ndarray, axis: int, out: np.ndarray | None = None) -> Any:
        if x.size and np.isnan(extreme.reduce(x, None)):
            x = np.where(np.isnan(x), x.dtype.type(worst), x)
        return plain(x, axis, out)

    def build(ctx: BuildContext) -> Bound | Callable[..., Any]:
        out, value = ctx.outputs[0], ctx.input("axis").value
        fixed = None if value is None else _axes(value)[0]
        dtype = out.dtype.np
        method = plain if ctx.inputs[0].dtype.kind in "biu" else numbers
        if ctx.fresh:
            return lambda x, axis: np.asarray(method(x, _chosen(x, axis) if fixed is None else fixed), dtype)
        if out.dtype == dtypes.int64 and np.dtype(np.intp) == np.int64:
            if fixed is not None:
                return Bound(method, args=(In(0), Lit(fixed), Out(0)))
            return lambda x, axis, target: method(x, _chosen(x, axis), target)

        def narrow(x: np.ndarray, axis: np.ndarray, target: np.ndarray, index: np.ndarray) -> None:
            method(x, _chosen(x, axis) if fixed is None else fixed, index)
            np.copyto(target, index, "unsafe")

        return Bound(narrow, scratch=(Scratch(dtypes.int64, tuple(out.shape)),))  # type: ignore[arg-type]

    return build


def _chosen(x: np.ndarray, axis: np.ndarray) -> int:
    """The axis that the step names, which must have something to choose from."""
    found = _axes(axis, x.ndim)[0]
    if x.shape[found] == 0:
        raise errors.InvalidArgumentError(f"axis {found} has size 0: there is nothing to choose from")
    return found


def _running(ufunc: np.ufunc, first: int) -> Callable[[BuildContext], Any]:
    """``ufunc.accumulate`` over views: reversed for ``reverse``, one place on for ``exclusive``, which begins with ``first``."""
    return lambda ctx: _bind_running(ctx, ufunc, first)


def _bind_running(ctx: BuildContext, ufunc: np.ufunc, first: int) -> Bound | Callable[..., Any]:
    exclusive, reverse = bool(ctx.attr("exclusive")), bool(ctx.attr("reverse"))
    value, dtype = ctx.input("axis").value, ctx.outputs[0].dtype
    fixed = None if value is None else _axes(value)[0]
    wide = is_half(dtype)

    def into(x: np.ndarray, axis: int, out: np.ndarray) -> None:
        if x.size == 0:
            return
        x, out = x.swapaxes(0, axis), out.swapaxes(0, axis)
        if reverse:
            x, out = x[::-1], out[::-1]
        if exclusive:
            out[0] = first
            x, out = x[:-1], out[1:]
        if out.shape[0]:
            ufunc.accumulate(x, 0, out.dtype, out)

    def planned(x: np.ndarray, axis: np.ndarray, out: np.ndarray) -> None:
        into(x, _axes(axis, x.ndim)[0] if fixed is None else fixed, out)

    def widened(x: np.ndarray, axis: np.ndarray, out: np.ndarray, total: np.ndarray) -> None:
        planned(x, axis, total)
        np.copyto(out, total, "unsafe")

    def fresh(x: np.ndarray, axis: np.ndarray) -> np.ndarray:
        out = np.empty(x.shape, np.float32 if wide else dtype.np)
        planned(x, axis, out)
        return out.astype(dtype.np, copy=False)

    if ctx.fresh:
        return fresh
    if wide:
        return Bound(widened, scratch=(Scratch(dtypes.float32, tuple(ctx.outputs[0].shape)),))  # type: ignore[arg-type]
    return planned


def _sum_to(ctx: BuildContext) -> Bound | Callable[..., Any]:
    """Sum over the dims that broadcasting made; a plain copy where it made none."""
    x, out = ctx.inputs[0], ctx.outputs[0]
    result = out.dtype.np
    wide = is_half(out.dtype)
    dtype: Any = np.float32 if wide else result

    def fresh(value: np.ndarray, shape: np.ndarray) -> np.ndarray:
        target = _axes(shape)
        if value.shape == target:
            return value.copy()
        total = np.add.reduce(value, _summed(value.shape, target), dtype, None, True)
        return total.reshape(target).astype(result, copy=False)

    def planned(value: np.ndarray, target: np.ndarray, *total: np.ndarray) -> None:
        if value.shape == target.shape:
            np.copyto(target, value)
            return
        axes = _summed(value.shape, target.shape)
        kept = tuple(1 if axis in axes else size for axis, size in enumerate(value.shape))
        sums = total[0] if total else target
        np.add.reduce(value, axes, dtype, sums.reshape(kept), True)
        if total:
            np.copyto(target, sums, "unsafe")

    if ctx.fresh:
        return fresh
    scratch = (Scratch(dtypes.float32, tuple(out.shape)),) if wide else ()  # type: ignore[arg-type]
    general = Bound(planned, args=(In(0), Out(0), *([Out(len(ctx.outputs))] if wide else ())), scratch=scratch)
    if not known(x.shape):
        return general
    if x.shape == out.shape:
        return Bound(np.copyto, args=(Out(0), In(0)))
    if not wide and 1 not in out.shape:  # type: ignore[operator]
        axes = _summed(x.shape, out.shape)  # type: ignore[arg-type]
        if (by_column := _by_columns(ctx, np.add, axes)) is not None:
            return Bound(by_column, args=(In(0), Out(0)))
        return Bound(np.add.reduce, args=(In(0), Lit(axes), Lit(dtype), Out(0), Lit(False)))
    return general


def _summed(source: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """Axes of ``source`` that broadcasting from ``target`` added or stretched."""
    lead = len(source) - len(target)
    if lead < 0 or any(t not in (1, s) for s, t in zip(source[lead:], target, strict=True)):
        raise errors.InvalidArgumentError(f"shape {list(target)} does not broadcast to {list(source)}")
    return tuple(a for a, size in enumerate(source) if a < lead or (target[a - lead] == 1 and size != 1))


def _kernel(op: str, build: Callable[[BuildContext], Any], host: tuple[str, ...] = ("axis",)) -> KernelDef:
    return KernelDef(op, "cpu", build, layout="strided", host=host)


KERNELS = [
    _kernel("Sum", _reduction(np.add, accumulates=True)),
    _kernel("Prod", _reduction(np.multiply, accumulates=True)),
    _kernel("Max", _reduction(np.maximum, _lowest)),
    _kernel("Min", _reduction(np.minimum, _highest)),
    _kernel("All", _reduction(np.logical_and)),
    _kernel("Any", _reduction(np.logical_or)),
    _kernel("Mean", _mean),
    _kernel("ArgMax", _arg_reduction(np.ndarray.argmax, np.maximum, -math.inf)),
    _kernel("ArgMin", _arg_reduction(np.ndarray.argmin, np.minimum, math.inf)),
    _kernel("Cumsum", _running(np.add, 0)),
    _kernel("Cumprod", _running(np.multiply, 1)),
    _kernel("SumTo", _sum_to, host=("shape",)),
]
