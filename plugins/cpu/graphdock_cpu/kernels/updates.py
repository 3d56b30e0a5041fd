"""Kernels of optimizer updates: in place on the variable and its slots, block by block.

A block of each operand fits the second-level cache together with the scratch buffer, so that the several NumPy calls of
one update read main memory once. Rates and decays are rank-0 arrays, which a ufunc takes at the cost of a scalar.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from graphdock.contracts import ArgInfo, Bound, BuildContext, In, KernelDef, Out, Scratch, errors, shape
from numpy import copyto

from graphdock_cpu.kernels.sharing import Shared, pieces, share_count

__all__ = ["BLOCK", "Rule", "dense_kernel", "derived", "sparse_kernel"]

#: Elements updated at once.
BLOCK = 32768
#: Cheap passes that an update takes, about.
_PASSES = 8


@dataclass(frozen=True, slots=True)
class Rule:
    """One optimizer's update.

    Attributes:
      arrays: indices of the op's inputs that are whole tensors: the variable, its slots, last the gradient.
      scalars: indices of its rank-0 inputs.
      update: ``update(*arrays, *scalars, *scratch)``; it writes all but the gradient.
      prepare: ``prepare(dtype)`` returns a function of the scalars that returns those that the update takes instead.
      scratch: how many scratch buffers of the gradient's shape it wants.
      nesterov: the update where the op's attribute ``use_nesterov`` is true.
    """

    arrays: tuple[int, ...]
    scalars: tuple[int, ...]
    update: Callable[..., None]
    prepare: Callable[[np.dtype[Any]], Callable[..., tuple[Any, ...]]] | None = None
    scratch: int = 1
    nesterov: Callable[..., None] | None = None

    def update_of(self, ctx: BuildContext) -> Callable[..., None]:
        return self.nesterov if self.nesterov is not None and ctx.attr("use_nesterov") else self.update


def derived(formula: Callable[..., tuple[float, ...]]) -> Callable[[np.dtype[Any]], Callable[..., Any]]:
    """A rule's ``prepare``: ``formula`` of the scalars as Python numbers, in rank-0 arrays that are kept."""

    def prepare(dtype: np.dtype[Any]) -> Callable[..., Any]:
        kept: list[np.ndarray] = []

        def scalars(*given: Any) -> list[np.ndarray]:
            made = formula(*[g.item() for g in given])
            if not kept:
                kept.extend(np.empty((), dtype) for _ in made)
            for array, value in zip(kept, made, strict=True):
                array[()] = value
            return kept

        return scalars

    return prepare


def dense_kernel(op: str, rule: Rule) -> KernelDef:
    """The kernel of an op that updates whole variables."""
    return KernelDef(op, "cpu", lambda ctx: _build(ctx, rule))


def _build(ctx: BuildContext, rule: Rule) -> Bound:
    grad = ctx.inputs[rule.arrays[-1]]
    wide = grad.dtype.accumulator
    update = rule.update_of(ctx)
    held = [ctx.inputs[i] for i in rule.arrays[:-1]]
    for info in held:
        _check_fits(info, grad)
    known = all(i.shape is not None and None not in i.shape for i in (grad, *held))
    if wide is grad.dtype and known and math.prod(grad.shape or ()) <= 2 * BLOCK:
        scratch = (Scratch(grad.dtype, tuple(grad.shape or ())),) * rule.scratch
        if rule.prepare is None:
            inputs = tuple(In(i) for i in (*rule.arrays, *rule.scalars))
            return Bound(update, args=inputs + tuple(Out(i) for i in range(rule.scratch)), scratch=scratch)
        return Bound(_prepared(rule, update, wide.np, len(ctx.inputs)), scratch=scratch)
    copies = 0 if wide is grad.dtype else len(rule.arrays)
    scratch = (Scratch(wide, (BLOCK,)),) * (copies + rule.scratch)
    size = math.prod(grad.shape or ()) if known else 0  # type: ignore[arg-type]
    count = share_count(ctx, size * _PASSES)
    found = pieces(size, count, BLOCK) if count > 1 else [slice(None)]
    return Bound(_blocked(ctx, rule, update, wide.np, found), scratch=scratch * len(found))


def _check_fits(held: ArgInfo, grad: ArgInfo) -> None:
    """Raises DTypeError or ShapeError when a variable and the gradient can't belong together."""
    if held.dtype is not grad.dtype:
        raise _misfit("dtype", held.name, grad.name, held.dtype.name, grad.dtype.name)
    if not shape.compatible(held.shape, grad.shape):
        raise _misfit("shape", held.name, grad.name, shape.show(held.shape), shape.show(grad.shape))


def _prepared(rule: Rule, update: Callable[..., None], dtype: np.dtype[Any], count: int) -> Callable[..., None]:
    assert rule.prepare is not None
    prepare, arrays, scalars = rule.prepare(dtype), rule.arrays, rule.scalars

    def compute(*args: Any) -> None:
        update(*[args[i] for i in arrays], *prepare(*[args[i] for i in scalars]), *args[count:])

    return compute


def _blocked(
    ctx: BuildContext, rule: Rule, update: Callable[..., None], dtype: np.dtype[Any], shared: Sequence[slice]
) -> Callable[..., None]:
    """The update block by block, of several pieces at once. Narrow floats are computed in float32 and rounded once per step."""
    count, arrays, scalars = len(ctx.inputs), rule.arrays, rule.scalars
    narrow = ctx.inputs[arrays[-1]].dtype.np != dtype
    prepare = rule.prepare(dtype) if rule.prepare else lambda *values: values

    def cut(*args: Any) -> list[Callable[[], None]]:
        tensors = [args[i] for i in arrays]
        size = tensors[0].shape
        for tensor, index in zip(tensors, arrays, strict=True):
            if tensor.shape != size:
                raise errors.InvalidArgumentError(
                    f"{ctx.inputs[index].name} has not the variable's shape",
                    expected=str(list(size)),
                    got=str(list(tensor.shape)),
                )
        flats = [t.reshape(-1) for t in tensors]
        values = prepare(*[np.asarray(args[i], dtype) for i in scalars])
        buffers = args[count:]
        own = len(buffers) // len(shared)
        return [
            partial(run_blocks, [f[piece] for f in flats], values, buffers[own * i : own * (i + 1)])
            for i, piece in enumerate(shared)
        ]

    def run_blocks(flats: Sequence[Any], values: Sequence[Any], buffers: Sequence[Any]) -> None:
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

    if len(shared) > 1:
        return Shared(len(shared), cut)
    return lambda *args: cut(*args)[0]()


def sparse_kernel(op: str, rule: Rule, indices: int) -> KernelDef:
    """The kernel of an op that updates the rows that its input number ``indices`` names."""
    return KernelDef(op, "cpu", lambda ctx: _sparse(ctx, rule, indices))


def _sparse(ctx: BuildContext, rule: Rule, indices: int) -> Bound:
    """The update of the rows that input ``indices`` names: gathered, updated with their summed gradients, put back.

    How many rows differ is known in the step only, so the rows' copies are made there.
    """
    from graphdock_cpu.kernels.indexing import RowSum  # which a step of dense gradients does without

    grad = ctx.inputs[rule.arrays[-1]]
    for held in (ctx.inputs[i] for i in rule.arrays[:-1]):
        if held.dtype is not grad.dtype:
            raise _misfit("dtype", held.name, grad.name, held.dtype.name, grad.dtype.name)
    adder, dtype = RowSum(grad.dtype.accumulator), grad.dtype.accumulator.np
    update = rule.update_of(ctx)
    arrays, scalars, temporaries = rule.arrays, rule.scalars, range(rule.scratch)
    prepare = rule.prepare(dtype) if rule.prepare else lambda *values: values

    def compute(*args: Any) -> None:
        rows, inverse = np.unique(args[indices], return_inverse=True)
        if not rows.size:
            return
        held, given = [args[i] for i in arrays[:-1]], args[arrays[-1]]
        for tensor, index in zip(held, arrays, strict=False):
            if tensor.shape != held[0].shape:
                raise _misfit("shape", "var", ctx.inputs[index].name, str(held[0].shape), str(tensor.shape))
        if not held[0].ndim or held[0].shape[1:] != given.shape[1:]:
            raise _misfit("row shape", "var", grad.name, str(held[0].shape[1:]), str(given.shape[1:]))
        if rows[0] < 0 or rows[-1] >= held[0].shape[0]:
            raise errors.InvalidArgumentError(
                "a row to update is not there",
                expected=f"rows from 0 to {held[0].shape[0] - 1}",
                got=str(rows[0] if rows[0] < 0 else rows[-1]),
            )
        total = np.zeros((rows.size, *given.shape[1:]), dtype)
        size = math.prod(given.shape[1:])
        named = given.astype(dtype, copy=False).reshape(len(given), size)
        adder.add(named, inverse.reshape(-1), total.reshape(rows.size, size))
        parts = [tensor[rows].astype(dtype, copy=False) for tensor in held]
        values = prepare(*[np.asarray(args[i], dtype) for i in scalars])
        update(*parts, total, *values, *[np.empty_like(total) for _ in temporaries])
        for tensor, part in zip(held, parts, strict=True):
            tensor[rows] = part

    return Bound(compute)


def _misfit(what: str, held: str, given: str, expected: str, got: str) -> errors.InvalidArgumentError:
    kind = errors.DTypeError if what == "dtype" else errors.ShapeError
    return kind(f"{given} has not the {what} of {held}", expected=expected, got=got)
