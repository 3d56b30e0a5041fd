"""Kernels of accumulators. Those that take return a result, or the Future of it."""

from __future__ import annotations

from typing import Any

from graphdock.contracts import Bound, BuildContext, KernelDef

from graphdock_data.resources.accumulator import Accumulator

__all__ = ["KERNELS"]


def _apply_rows(ctx: BuildContext) -> Bound:
    known = ctx.attr("has_known_shape")

    def compute(accumulator: Accumulator, step: Any, indices: Any, values: Any, shape: Any) -> None:
        accumulator.apply(step, indices.copy(), values.copy(), shape.copy() if known else shape[:0])

    return Bound(compute)


KERNELS = [
    KernelDef("ResourceAccumulatorApplyGradient", "host", lambda ctx: Bound(Accumulator.apply)),
    KernelDef("SparseAccumulatorApplyGradient", "host", _apply_rows),
    KernelDef("ResourceAccumulatorTakeGradient", "host", lambda ctx: Bound(Accumulator.take), modes=("fresh",)),
    KernelDef("SparseAccumulatorTakeGradient", "host", lambda ctx: Bound(Accumulator.take), modes=("fresh",)),
    KernelDef("ResourceAccumulatorNumAccumulated", "host", lambda ctx: Bound(Accumulator.number), modes=("fresh",)),
    KernelDef("ResourceAccumulatorSetGlobalStep", "host", lambda ctx: Bound(Accumulator.set_step)),
]
