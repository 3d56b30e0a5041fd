"""Kernels of the ops that hand a tensor from task to task."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import numpy as np
from graphdock.contracts import Answer, Bound, BuildContext, KernelDef

from graphdock_cluster.exchange import find_exchange

__all__ = ["KERNELS"]


def upper_half(array: Any) -> Any:
    """float32 as its upper 16 bits: sign, exponent and 7 bits of the fraction; what follows is cut off. NaN stays NaN."""
    bits = np.ascontiguousarray(array).view(np.uint32)
    half = (bits >> 16).astype(np.uint16).reshape(np.shape(array))
    half[np.isnan(array)] |= 0x40
    return half


def from_upper_half(array: Any) -> Any:
    """float32 of its upper 16 bits, zeros behind them."""
    return (array.astype(np.uint32) << 16).view(np.float32)


def _compressed(ctx: BuildContext, of: Any) -> bool:
    return bool(ctx.attr("compress")) and of.name == "float32"


def _send(ctx: BuildContext) -> Bound:
    exchange = find_exchange(ctx.attr("exchange"))
    edge, task, send = ctx.attr("edge"), ctx.attr("task"), exchange.send
    if _compressed(ctx, ctx.attr("T")):
        return Bound(lambda step, tensor: send(task, int(step), edge, upper_half(tensor)))
    return Bound(lambda step, tensor: send(task, int(step), edge, tensor))


def _recv(ctx: BuildContext) -> Bound:
    exchange = find_exchange(ctx.attr("exchange"))
    edge, take = ctx.attr("edge"), exchange.take
    if not _compressed(ctx, ctx.attr("T")):
        return Bound(lambda step: take(int(step), edge))

    def expanded(step: Any) -> Any:
        found = take(int(step), edge)
        if not isinstance(found, Future):
            return from_upper_half(found)
        whole = Answer()
        found.add_done_callback(lambda done: _pass_on(done, whole))
        whole.add_done_callback(lambda done: found.cancel() if done.cancelled() else None)
        return whole

    return Bound(expanded)


def _pass_on(done: Future[Any], whole: Future[Any]) -> None:
    if done.cancelled() or not whole.set_running_or_notify_cancel():
        return
    error = done.exception()
    if error is not None:
        whole.set_exception(error)
    else:
        whole.set_result(from_upper_half(done.result()))


KERNELS = [
    KernelDef("Send", "host", _send, modes=("fresh",)),
    KernelDef("Recv", "host", _recv, modes=("fresh",)),
]
