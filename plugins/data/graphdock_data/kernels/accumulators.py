"""Kernels of accumulators. Those that take return a result, or the Future of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from graphdock.contracts import Bound, BuildContext, KernelDef

from graphdock_data.resources.accumulator import Accumulator

__all__ = ["KERNELS"]


def _apply(in_order: bool, ctx: BuildContext) -> Bound:
    replica = ctx.attr("replica")

    def compute(accumulator: Accumulator, step: Any, gradient: Any) -> None:
        accumulator.apply(step, gradient, replica=replica, in_order=in_order)

    return Bound(compute)


def _apply_rows(in_order: bool, ctx: BuildContext) -> Bound:
    known, replica = ctx.attr("has_known_shape"), ctx.attr("replica")

    def compute(accumulator: Accumulator, step: Any, indices: Any, values: Any, shape: Any) -> None:
        rows = indices.copy(), values.copy(), shape.copy() if known else shape[:0]
        accumulator.apply(step, *rows, replica=replica, in_order=in_order)

    return Bound(compute)


def _reset(ctx: BuildContext) -> Bound:
    once = ctx.attr("once")
    return Bound(lambda accumulator, step: accumulator.reset(step, once))


def _adding(op: str, build: Callable[[bool, BuildContext], Bound], name: str) -> list[KernelDef]:
    """Two kernels: one adds a gradient at once, the other, that of deterministic sessions, in the order of replicas."""
    return [
        KernelDef(op, "host", partial(build, False), name=name, priority=1, deterministic=False),
        KernelDef(op, "host", partial(build, True), name=f"{name}_in_order"),
    ]


KERNELS = [
    *_adding("ResourceAccumulatorApplyGradient", _apply, "resource_accumulator_apply_gradient"),
    *_adding("SparseAccumulatorApplyGradient", _apply_rows, "sparse_accumulator_apply_gradient"),
    KernelDef("ResourceAccumulatorReset", "host", _reset, modes=("fresh",)),
    KernelDef("ResourceAccumulatorTakeGradient", "host", lambda ctx: Bound(Accumulator.take), modes=("fresh",)),
    KernelDef("SparseAccumulatorTakeGradient", "host", lambda ctx: Bound(Accumulator.take), modes=("fresh",)),
    KernelDef("ResourceAccumulatorNumAccumulated", "host", lambda ctx: Bound(Accumulator.number), modes=("fresh",)),
    KernelDef("ResourceAccumulatorSetGlobalStep", "host", lambda ctx: Bound(Accumulator.set_step)),
]
