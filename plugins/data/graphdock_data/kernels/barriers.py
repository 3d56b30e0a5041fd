"""Kernels of barriers. The one that takes returns a result, or the Future of it."""

from __future__ import annotations

from typing import Any

from graphdock.contracts import Bound, BuildContext, KernelDef

from graphdock_data.resources.barrier import Barrier

__all__ = ["KERNELS"]


def _insert(ctx: BuildContext) -> Bound:
    component = ctx.attr("component_index")

    def compute(barrier: Barrier, keys: Any, values: Any) -> None:
        barrier.insert(component, keys, values.copy())

    return Bound(compute)


def _take(ctx: BuildContext) -> Bound:
    fewer = ctx.attr("allow_small_batch")
    return Bound(lambda barrier, count: barrier.take(count, fewer))


def _close(ctx: BuildContext) -> Bound:
    cancel = ctx.attr("cancel_pending_enqueues")
    return Bound(lambda barrier: barrier.close(cancel))


KERNELS = [
    KernelDef("BarrierInsertMany", "host", _insert),
    KernelDef("BarrierTakeMany", "host", _take, modes=("fresh",)),
    KernelDef("BarrierClose", "host", _close),
    KernelDef("BarrierReadySize", "host", lambda ctx: Bound(Barrier.ready), modes=("fresh",)),
    KernelDef("BarrierIncompleteSize", "host", lambda ctx: Bound(Barrier.incomplete), modes=("fresh",)),
]
