"""cpu kernels of the host's structural ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, In, KernelDef, Lit, Out, Scratch, dtypes, errors

from graphdock_cpu.kernels.common import copy_bound, fill_bound, is_half, known, mode_input

__all__ = ["KERNELS"]


#: So many inputs of at most so many elements are laid in one array and summed there, row by row, which gives the same bits.
_MANY, _SMALL = 24, 256


def _add_n(ctx: BuildContext) -> Bound | Callable[..., Any]:
    """Left to right; a buffer that is taken over comes first, since it is overwritten first."""
    count, dtype = len(ctx.inputs), ctx.outputs[0].dtype
    if count == 1:
        return copy_bound(ctx)
    if count == 2 and not ctx.fresh:
        return np.add
    taken = mode_input(ctx.outputs[0].mode)
    order = tuple(range(count)) if taken is None else (taken, *(i for i in range(count) if i != taken))
    wide = is_half(dtype)

    def accumulate(inputs: Any, total: np.ndarray) -> None:
        if count >= _MANY and 1 < total.size <= _SMALL:
            rows = np.concatenate([inputs[index] for index in order], dtype=total.dtype)
            np.add.reduce(rows.reshape(count, *total.shape), 0, out=total, dtype=total.dtype, initial=None)
            return
        np.add(inputs[order[0]], inputs[order[1]], total, dtype=total.dtype)
        for index in order[2:]:
            np.add(total, inputs[index], total)

    def fresh(*inputs: Any) -> np.ndarray:
        total = np.empty(inputs[0].shape, np.float32 if wide else dtype.np)
        accumulate(inputs, total)
        return total.astype(dtype.np) if wide else total

    def direct(*args: Any) -> None:
        accumulate(args[:count], args[count])

    def widened(*args: Any) -> None:
        accumulate(args[:count], args[count + 1])
        np.copyto(args[count], args[count + 1], "unsafe")

    if ctx.fresh:
        return fresh
    if wide:
        return Bound(widened, scratch=(Scratch(dtypes.float32, tuple(ctx.outputs[0].shape)),))
    return direct


def _zero(dtype: dtypes.DType) -> Any:
    return b"" if dtype.kind == "S" else False if dtype.is_bool else 0


def _shape(ctx: BuildContext) -> Bound | Callable[..., Any]:
    """A constant where the plan knows the shape."""
    dtype, static = ctx.outputs[0].dtype.np, ctx.inputs[0].shape
    top = np.iinfo(dtype).max

    def checked(dims: Any) -> Any:
        if max(dims, default=0) > top:
            raise errors.InvalidArgumentError(
                f"the shape {list(dims)} has a dim that {ctx.outputs[0].dtype} does not hold",
                hint="use out_type=tf.int64",
            )
        return dims

    if ctx.fresh:
        return lambda x: np.array(checked(x.shape), dtype)
    if known(static) and max(static, default=0) <= top:  # type: ignore[type-var, operator]
        return Bound(np.copyto, args=(Out(0), Lit(np.array(static, dtype))))

    def compute(x: Any, out: np.ndarray) -> None:
        out[...] = checked(x.shape)

    return compute


def _cast(ctx: BuildContext) -> Bound | Callable[..., Any]:
    target = ctx.outputs[0].dtype
    if ctx.inputs[0].dtype.is_complex and not target.is_complex:
        return _cast_complex(ctx)
    if ctx.fresh:
        dtype = target.np
        return lambda x: x.astype(dtype)
    return Bound(np.copyto, args=(Out(0), In(0), Lit("unsafe")))


def _cast_complex(ctx: BuildContext) -> Callable[..., Any]:
    """The real part; for bool whether it is not 0."""
    dtype = ctx.outputs[0].dtype.np
    if dtype.kind == "b":
        return (lambda x: np.asarray(np.not_equal(x, 0))) if ctx.fresh else (lambda x, y: np.not_equal(x, 0, y))
    if ctx.fresh:
        return lambda x: x.real.astype(dtype)
    return lambda x, y: np.copyto(y, x.real, "unsafe")


def _check_numerics(ctx: BuildContext) -> Bound | Callable[..., Any]:
    message = ctx.attr("message")
    here = ctx.outputs[0].mode.kind == "inplace"

    def check(x: np.ndarray, finite: np.ndarray) -> None:
        np.isfinite(x, finite)
        if not np.logical_and.reduce(finite, None):
            found = [name for name, test in (("NaN", np.isnan), ("infinity", np.isinf)) if test(x).any()]
            raise errors.InvalidArgumentError(
                f"{message}: tensor had {' and '.join(found)}" if message else f"tensor had {' and '.join(found)}"
            )

    def allocating(x: np.ndarray, *out: np.ndarray) -> Any:
        check(x, np.empty(x.shape, np.bool_))
        if not out:
            return x.copy()
        if not here:
            np.copyto(out[0], x)
        return None

    shape = ctx.inputs[0].shape
    if ctx.fresh or shape is None or not known(shape):
        return allocating

    def copying(x: np.ndarray, out: np.ndarray, finite: np.ndarray) -> None:
        check(x, finite)
        if not here:
            np.copyto(out, x)

    return Bound(copying, scratch=(Scratch(dtypes.bool_, tuple(shape)),))  # type: ignore[arg-type]


def _update(ufunc: np.ufunc) -> Callable[[BuildContext], Bound]:
    """A variable's own buffer, updated in place: ``(variable, value) -> nothing``. NumPy would stretch a smaller value."""

    def checked(variable: np.ndarray, value: np.ndarray) -> None:
        if variable.shape != value.shape:
            expected, got = list(variable.shape), list(value.shape)
            raise errors.ShapeError("the value has not the shape of the variable", expected=str(expected), got=str(got))
        ufunc(variable, value, variable)

    def build(ctx: BuildContext) -> Bound:
        variable, value = ctx.inputs
        alike = value.shape is not None and None not in value.shape and value.shape == variable.shape
        return Bound(ufunc, args=(In(0), In(1), In(0))) if alike else Bound(checked)

    return build


def _history_unstack(ctx: BuildContext) -> Callable[..., Any]:
    """Rows of one copy of the tensor: a history owns its elements."""
    from graphdock.contracts import RowHistory  # of programs with loops over rows

    step, partial = -1 if ctx.attr("reverse") else 1, ctx.attr("partial")

    def rows(value: np.ndarray, count: np.ndarray) -> RowHistory:
        if partial:
            value = value[: int(count)]
        if len(value) != count:
            raise errors.InvalidArgumentError(
                "HistoryUnstack: another number of rows than expected", expected=str(int(count)), got=str(len(value))
            )
        return RowHistory(value.copy()[::step])

    return rows


def _history_stack(ctx: BuildContext) -> Callable[..., Any]:
    """The elements, copied row by row; those of small integers may be Python's own."""
    from graphdock.contracts import RowHistory

    dtype, backwards, padded = ctx.outputs[0].dtype.np, ctx.attr("reverse"), ctx.attr("padded")

    def write(history: Sequence[Any], dims: np.ndarray, out: np.ndarray) -> None:
        if len(history) != len(out):
            raise errors.InvalidArgumentError(
                "HistoryStack: another number of elements than expected", expected=str(len(out)), got=str(len(history))
            )
        if isinstance(history, RowHistory) and history.array.shape[1:] == out.shape[1:]:
            out[...] = history.rows[::-1] if backwards else history.rows
            return
        if out.ndim == 1:
            out[...] = history[::-1] if backwards else history
            return
        for place, element in zip(out, reversed(history) if backwards else history, strict=True):
            shape = np.shape(element)
            if shape != place.shape:
                if not padded:
                    raise errors.ShapeError(
                        "HistoryStack: the elements differ in shape", expected=str(place.shape), got=str(shape)
                    )
                place[...] = 0
                place = place[tuple([slice(n) for n in shape])]
            place[...] = element

    def fresh(history: Sequence[Any], dims: np.ndarray) -> np.ndarray:
        count, *rest = dims.tolist()
        element = list(np.shape(history[0])) if history else [max(d, 0) for d in rest]
        if len(element) != len(rest) or any(d not in (-1, e) for d, e in zip(rest, element, strict=True) if history):
            raise errors.ShapeError(
                "HistoryStack: the elements have another shape", expected=str(rest), got=str(element)
            )
        if padded and history and not isinstance(history, RowHistory):  # whose elements are of one shape
            element = [max(sizes) for sizes in zip(*map(np.shape, history), strict=True)]
        out = np.empty([len(history) if count < 0 else count, *element], dtype)
        write(history, dims, out)
        return out

    return fresh if ctx.fresh else write


KERNELS = [
    KernelDef(
        "CheckNumerics",
        "cpu",
        _check_numerics,
        layout="strided",
        # no view: the planner makes views of planned buffers once, but the check is due in every step
        inplace={"output": ("tensor",)},
        modes=("planned", "fresh", "inplace"),
    ),
    KernelDef(
        "AddN",
        "cpu",
        _add_n,
        layout="strided",
        inplace={"sum": ("inputs",)},
        modes=("planned", "fresh", "inplace"),
    ),
    KernelDef("ZerosLike", "cpu", lambda ctx: fill_bound(ctx, _zero(ctx.outputs[0].dtype)), layout="strided"),
    KernelDef("OnesLike", "cpu", lambda ctx: fill_bound(ctx, 1), layout="strided"),
    KernelDef("HistoryUnstack", "cpu", _history_unstack, layout="strided", modes=("fresh",)),
    KernelDef("HistoryStack", "cpu", _history_stack, layout="strided"),
    KernelDef("Shape", "cpu", _shape, layout="strided", host=("output",)),
    KernelDef("Cast", "cpu", _cast, layout="strided"),
    KernelDef("AssignAddVariableOp", "cpu", _update(np.add), layout="strided"),
    KernelDef("AssignSubVariableOp", "cpu", _update(np.subtract), layout="strided"),
]
