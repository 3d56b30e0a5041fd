"""Kernels of optimizer updates: in place on the variable and its slots, block by block.

A block of each operand fits the second-level cache together with the scratch buffer, so that the several NumPy calls of
one update read main memory once. Rates and decays are rank-0 arrays, which a ufunc takes at the cost of a scalar.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.contracts import ArgInfo, Bound, BuildContext, In, KernelDef, Out, Scratch, errors, shape

__all__ = ["KERNELS"]

#: Elements updated at once.
BLOCK = 32768


@dataclass(frozen=True, slots=True)
class Rule:
    """One optimizer's update.

    Attributes:
      arrays: indices of the op's inputs that are whole tensors: the variable, its slots, last the gradient.
      scalars: indices of its rank-0 inputs.
      make: ``make(dtype, attrs)`` returns ``update(*arrays, *scalars, *scratch)``; it writes all but the gradient.
      prepare: ``prepare(dtype)`` returns a function of the scalars that returns those that the update takes instead.
      scratch: how many scratch buffers of the gradient's shape it wants.
    """

    arrays: tuple[int, ...]
    scalars: tuple[int, ...]
    make: Callable[[np.dtype[Any], Any], Callable[..., None]]
    prepare: Callable[[np.dtype[Any]], Callable[..., tuple[Any, ...]]] | None = None
    scratch: int = 1


def _kernel(op: str, rule: Rule) -> KernelDef:
    return KernelDef(op, "cpu", lambda ctx: _build(ctx, rule))


def _build(ctx: BuildContext, rule: Rule) -> Bound:
    grad = ctx.inputs[rule.arrays[-1]]
    wide = grad.dtype.accumulator
    update = rule.make(wide.np, ctx.node.attrs)
    held = [ctx.inputs[i] for i in rule.arrays[:-1]]
    for info in held:
        _check_fits(ctx, info, grad)
    known = all(i.shape is not None and None not in i.shape for i in (grad, *held))
    if wide is grad.dtype and known and math.prod(grad.shape or ()) <= 2 * BLOCK:
        scratch = (Scratch(grad.dtype, tuple(grad.shape or ())),) * rule.scratch
        if rule.prepare is None:
            inputs = tuple(In(i) for i in (*rule.arrays, *rule.scalars))
            return Bound(update, args=inputs + tuple(Out(i) for i in range(rule.scratch)), scratch=scratch)
        return Bound(_prepared(rule, update, wide.np, len(ctx.inputs)), scratch=scratch)
    copies = 0 if wide is grad.dtype else len(rule.arrays)
    return Bound(_blocked(ctx, rule, update, wide.np), scratch=(Scratch(wide, (BLOCK,)),) * (copies + rule.scratch))


def _check_fits(ctx: BuildContext, held: ArgInfo, grad: ArgInfo) -> None:
    """Raises DTypeError or ShapeError when a variable and the gradient can't belong together."""
    if held.dtype is not grad.dtype:
        raise _misfit(ctx, "dtype", held.name, grad.name, held.dtype.name, grad.dtype.name)
    if not shape.compatible(held.shape, grad.shape):
        raise _misfit(ctx, "shape", held.name, grad.name, shape.show(held.shape), shape.show(grad.shape))


def _prepared(rule: Rule, update: Callable[..., None], dtype: np.dtype[Any], count: int) -> Callable[..., None]:
    assert rule.prepare is not None
    prepare, arrays, scalars = rule.prepare(dtype), rule.arrays, rule.scalars

    def compute(*args: Any) -> None:
        update(*[args[i] for i in arrays], *prepare(*[args[i] for i in scalars]), *args[count:])

    return compute


def _blocked(ctx: BuildContext, rule: Rule, update: Callable[..., None], dtype: np.dtype[Any]) -> Callable[..., None]:
    """The update block by block. Narrow floats are computed in float32 and rounded once per step."""
    count, arrays, scalars, node = len(ctx.inputs), rule.arrays, rule.scalars, ctx.node
    narrow = ctx.inputs[arrays[-1]].dtype.np != dtype
    prepare = rule.prepare(dtype) if rule.prepare else lambda *values: values
    copyto = np.copyto

    def compute(*args: Any) -> None:
        tensors = [args[i] for i in arrays]
        size = tensors[0].shape
        for tensor, index in zip(tensors, arrays, strict=True):
            if tensor.shape != size:
                raise errors.InvalidArgumentError(
                    f"{ctx.inputs[index].name} has not the variable's shape",
                    op=node.origin,
                    site=node.site,
                    expected=str(list(size)),
                    got=str(list(tensor.shape)),
                )
        flats = [t.reshape(-1) for t in tensors]
        values = prepare(*[np.asarray(args[i], dtype) for i in scalars])
        buffers = args[count:]
        wides, rest = (buffers[: len(arrays)], buffers[len(arrays) :]) if narrow else ((), buffers)
        for start in range(0, flats[0].size, BLOCK):
            parts = [f[start : start + BLOCK] for f in flats]
            length = parts[0].size
            temporaries = [b[:length] for b in rest]
            if not narrow:
                update(*parts, *values, *temporaries)
                continue
            blocks = [w[:length] for w in wides]
            for block, part in zip(blocks, parts, strict=True):
                copyto(block, part)
            update(*blocks, *values, *temporaries)
            for block, part in zip(blocks[:-1], parts[:-1], strict=True):
                copyto(part, block, "same_kind")

    return compute


def _sparse_kernel(op: str, rule: Rule, indices: int) -> KernelDef:
    return KernelDef(op, "cpu", lambda ctx: _sparse(ctx, rule, indices))


def _sparse(ctx: BuildContext, rule: Rule, indices: int) -> Bound:
    """The update of the rows that input ``indices`` names: gathered, updated with their summed gradients, put back.

    How many rows differ is known in the step only, so the rows' copies are made there.
    """
    grad = ctx.inputs[rule.arrays[-1]]
    for held in (ctx.inputs[i] for i in rule.arrays[:-1]):
        if held.dtype is not grad.dtype:
            raise _misfit(ctx, "dtype", held.name, grad.name, held.dtype.name, grad.dtype.name)
    dtype = grad.dtype.accumulator.np
    update = rule.make(dtype, ctx.node.attrs)
    arrays, scalars, node = rule.arrays, rule.scalars, ctx.node

    def compute(*args: Any) -> None:
        rows, inverse = np.unique(args[indices], return_inverse=True)
        if not rows.size:
            return
        held, given = [args[i] for i in arrays[:-1]], args[arrays[-1]]
        if rows[0] < 0 or rows[-1] >= held[0].shape[0]:
            raise errors.InvalidArgumentError(
                "a row to update is not there",
                op=node.origin,
                site=node.site,
                expected=f"rows from 0 to {held[0].shape[0] - 1}",
                got=str(rows[0] if rows[0] < 0 else rows[-1]),
            )
        for tensor in held:
            if tensor.shape[1:] != given.shape[1:]:
                raise _misfit(ctx, "row shape", "var", grad.name, str(tensor.shape[1:]), str(given.shape[1:]))
        total = np.zeros((rows.size, *given.shape[1:]), dtype)
        np.add.at(total, inverse.reshape(-1), given.astype(dtype, copy=False))
        parts = [tensor[rows].astype(dtype, copy=False) for tensor in held]
        update(*parts, total, *[np.asarray(args[i], dtype) for i in scalars], np.empty_like(total))
        for tensor, part in zip(held, parts, strict=True):
            tensor[rows] = part

    return Bound(compute)


def _misfit(
    ctx: BuildContext, what: str, held: str, given: str, expected: str, got: str
) -> errors.InvalidArgumentError:
    kind = errors.DTypeError if what == "dtype" else errors.ShapeError
    return kind(
        f"{given} has not the {what} of {held}", op=ctx.node.origin, site=ctx.node.site, expected=expected, got=got
    )


def _gradient_descent(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, subtract = np.multiply, np.subtract

    def update(var: Any, delta: Any, alpha: Any, t: Any) -> None:
        multiply(delta, alpha, t)
        subtract(var, t, var)

    return update


def _momentum(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, add, subtract = np.multiply, np.add, np.subtract

    def update(var: Any, accum: Any, grad: Any, lr: Any, momentum: Any, t: Any) -> None:
        multiply(accum, momentum, accum)
        add(accum, grad, accum)
        multiply(accum, lr, t)
        subtract(var, t, var)

    def nesterov(var: Any, accum: Any, grad: Any, lr: Any, momentum: Any, t: Any) -> None:
        multiply(accum, momentum, accum)
        add(accum, grad, accum)
        multiply(accum, momentum, t)
        add(t, grad, t)
        multiply(t, lr, t)
        subtract(var, t, var)

    return nesterov if attrs["use_nesterov"] else update


def _adagrad(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, add, sqrt, divide, subtract = np.multiply, np.add, np.sqrt, np.divide, np.subtract

    def update(var: Any, accum: Any, grad: Any, lr: Any, t: Any) -> None:
        multiply(grad, grad, t)
        add(accum, t, accum)
        sqrt(accum, t)
        divide(grad, t, t)
        multiply(t, lr, t)
        subtract(var, t, var)

    return update


def _adam(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, add, sqrt, divide, subtract = np.multiply, np.add, np.sqrt, np.divide, np.subtract

    def update(var: Any, m: Any, v: Any, grad: Any, rate: Any, rest1: Any, rest2: Any, epsilon: Any, t: Any) -> None:
        subtract(grad, m, t)
        multiply(t, rest1, t)
        add(m, t, m)
        multiply(grad, grad, t)
        subtract(t, v, t)
        multiply(t, rest2, t)
        add(v, t, v)
        sqrt(v, t)
        add(t, epsilon, t)
        divide(m, t, t)
        multiply(t, rate, t)
        subtract(var, t, var)

    return update


def _adam_scalars(dtype: np.dtype[Any]) -> Callable[..., tuple[Any, ...]]:
    """The bias-corrected rate and the complements of the decays, as rank-0 arrays that are kept."""
    rate, rest1, rest2 = np.empty((), dtype), np.empty((), dtype), np.empty((), dtype)
    root = math.sqrt

    def prepare(power1: Any, power2: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any) -> tuple[Any, ...]:
        rate[()] = lr.item() * root(1.0 - power2.item()) / (1.0 - power1.item())
        rest1[()] = 1.0 - beta1.item()
        rest2[()] = 1.0 - beta2.item()
        return rate, rest1, rest2, epsilon

    return prepare


def _adam_w(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, adam = np.multiply, _adam(dtype, attrs)

    def update(var: Any, m: Any, v: Any, grad: Any, keep: Any, *rest: Any) -> None:
        multiply(var, keep, var)
        adam(var, m, v, grad, *rest)

    return update


def _adam_w_scalars(dtype: np.dtype[Any]) -> Callable[..., tuple[Any, ...]]:
    keep, adam = np.empty((), dtype), _adam_scalars(dtype)

    def prepare(power1: Any, power2: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any) -> tuple[Any, ...]:
        keep[()] = 1.0 - lr.item() * decay.item()
        return keep, *adam(power1, power2, lr, beta1, beta2, epsilon)

    return prepare


def _rms_prop(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, add, sqrt, divide, subtract = np.multiply, np.add, np.sqrt, np.divide, np.subtract

    def update(var: Any, ms: Any, mom: Any, grad: Any, lr: Any, rest: Any, momentum: Any, epsilon: Any, t: Any) -> None:
        multiply(grad, grad, t)
        subtract(t, ms, t)
        multiply(t, rest, t)
        add(ms, t, ms)
        add(ms, epsilon, t)
        sqrt(t, t)
        divide(grad, t, t)
        multiply(t, lr, t)
        multiply(mom, momentum, mom)
        add(mom, t, mom)
        subtract(var, mom, var)

    return update


def _centered_rms_prop(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, add, sqrt, divide, subtract = np.multiply, np.add, np.sqrt, np.divide, np.subtract

    def update(
        var: Any, mg: Any, ms: Any, mom: Any, grad: Any, lr: Any, rest: Any, momentum: Any, epsilon: Any, t: Any
    ) -> None:
        subtract(grad, mg, t)
        multiply(t, rest, t)
        add(mg, t, mg)
        multiply(grad, grad, t)
        subtract(t, ms, t)
        multiply(t, rest, t)
        add(ms, t, ms)
        multiply(mg, mg, t)
        subtract(ms, t, t)
        add(t, epsilon, t)
        sqrt(t, t)
        divide(grad, t, t)
        multiply(t, lr, t)
        multiply(mom, momentum, mom)
        add(mom, t, mom)
        subtract(var, mom, var)

    return update


def _rms_prop_scalars(dtype: np.dtype[Any]) -> Callable[..., tuple[Any, ...]]:
    rest = np.empty((), dtype)

    def prepare(lr: Any, rho: Any, momentum: Any, epsilon: Any) -> tuple[Any, ...]:
        rest[()] = 1.0 - rho.item()
        return lr, rest, momentum, epsilon

    return prepare


def _ftrl(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, add, power, divide, subtract = np.multiply, np.add, np.power, np.divide, np.subtract
    sign, absolute, greater = np.sign, np.absolute, np.greater

    def update(
        var: Any, accum: Any, linear: Any, grad: Any, rate: Any, l1: Any, l2: Any, exponent: Any, t: Any, n: Any
    ) -> None:
        power(accum, exponent, t)
        multiply(grad, grad, n)
        add(accum, n, accum)
        power(accum, exponent, n)
        subtract(n, t, t)
        multiply(t, rate, t)
        multiply(t, var, t)
        subtract(grad, t, t)
        add(linear, t, linear)
        multiply(n, rate, n)
        add(n, l2, n)
        sign(linear, t)
        multiply(t, l1, t)
        subtract(t, linear, t)
        divide(t, n, t)
        absolute(linear, n)
        greater(n, l1, n)
        multiply(t, n, var)

    return update


def _ftrl_scalars(dtype: np.dtype[Any]) -> Callable[..., tuple[Any, ...]]:
    rate, double, exponent = np.empty((), dtype), np.empty((), dtype), np.empty((), dtype)

    def prepare(lr: Any, l1: Any, l2: Any, lr_power: Any) -> tuple[Any, ...]:
        rate[()] = 1.0 / lr.item()
        double[()] = 2.0 * l2.item()
        exponent[()] = -lr_power.item()
        return rate, l1, double, exponent

    return prepare


KERNELS = [
    _kernel("ResourceApplyGradientDescent", Rule((0, 2), (1,), _gradient_descent)),
    _kernel("ResourceApplyMomentum", Rule((0, 1, 3), (2, 4), _momentum)),
    _kernel("ResourceApplyAdagrad", Rule((0, 1, 3), (2,), _adagrad)),
    _kernel("ResourceApplyAdam", Rule((0, 1, 2, 9), (3, 4, 5, 6, 7, 8), _adam, _adam_scalars)),
    _kernel("ResourceApplyAdamW", Rule((0, 1, 2, 10), (3, 4, 5, 6, 7, 8, 9), _adam_w, _adam_w_scalars)),
    _kernel("ResourceApplyRMSProp", Rule((0, 1, 2, 7), (3, 4, 5, 6), _rms_prop, _rms_prop_scalars)),
    _kernel("ResourceApplyCenteredRMSProp", Rule((0, 1, 2, 3, 8), (4, 5, 6, 7), _centered_rms_prop, _rms_prop_scalars)),
    _kernel("ResourceApplyFtrl", Rule((0, 1, 2, 3), (4, 5, 6, 7), _ftrl, _ftrl_scalars, scratch=2)),
    _sparse_kernel("ResourceSparseApplyGradientDescent", Rule((0, 2), (1,), _gradient_descent), 3),
    _sparse_kernel("ResourceSparseApplyMomentum", Rule((0, 1, 3), (2, 5), _momentum), 4),
    _sparse_kernel("ResourceSparseApplyAdagrad", Rule((0, 1, 3), (2,), _adagrad), 4),
]
