"""Kernels of queues. They return what a queue's methods do: a result, or the Future of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef

from graphdock_data.resources.queue import Queue, Staging

__all__ = ["KERNELS"]


def _enqueue(ctx: BuildContext) -> Bound:
    return Bound(Queue.enqueue, retains=tuple(range(1, len(ctx.inputs))))


def _enqueue_many(ctx: BuildContext) -> Bound:
    return Bound(Queue.enqueue_many, retains=tuple(range(1, len(ctx.inputs))))


def _close(ctx: BuildContext) -> Bound:
    cancel = ctx.attr("cancel_pending_enqueues")
    return Bound(lambda queue: queue.close(cancel))


def _reset(ctx: BuildContext) -> Bound:
    stays = ctx.attr("stays")
    return Bound(lambda queue, begins: queue.reset(begins, stays))


def _is_closed(queue: Queue) -> Any:
    return np.array(queue.closed)


def _generation(queue: Queue) -> Any:
    return np.array(queue.generation, np.int64)


def _size(queue: Queue) -> Any:
    return np.array(queue.size(), np.int32)


KERNELS = [
    KernelDef("QueueEnqueueV2", "host", _enqueue, modes=("fresh",)),
    KernelDef("QueueEnqueueManyV2", "host", _enqueue_many, modes=("fresh",)),
    KernelDef("QueueDequeueV2", "host", lambda ctx: Bound(Queue.dequeue), modes=("fresh",)),
    KernelDef("QueueDequeueManyV2", "host", lambda ctx: Bound(Queue.dequeue_many), modes=("fresh",)),
    KernelDef("QueueDequeueUpToV2", "host", lambda ctx: Bound(Queue.dequeue_up_to), modes=("fresh",)),
    KernelDef("QueueCloseV2", "host", _close, modes=("fresh",)),
    KernelDef("GraphdockQueueDequeueSince", "host", lambda ctx: Bound(Queue.dequeue_since), modes=("fresh",)),
    KernelDef("GraphdockQueueGeneration", "host", lambda ctx: Bound(_generation), modes=("fresh",)),
    KernelDef("GraphdockQueueReset", "host", _reset),
    KernelDef("QueueIsClosedV2", "host", lambda ctx: Bound(_is_closed), modes=("fresh",)),
    KernelDef("GraphdockStagePeek", "host", lambda ctx: Bound(Staging.peek), modes=("fresh",)),
    KernelDef("GraphdockStageClear", "host", lambda ctx: Bound(Staging.clear)),
    KernelDef("QueueSizeV2", "host", lambda ctx: Bound(_size), modes=("fresh",)),
]
