"""Measuring candidates of a kernel while it is prepared: on lent buffers, one kernel at a time per device."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.kernel import ArgInfo, OutInfo
from graphdock.contracts.queue import QueuedDevice, queue_of
from graphdock.errors import KernelRefused
from graphdock.locks import new_lock
from graphdock.planning.pool import HostMemory
from graphdock.shape import concrete

__all__ = ["measurer"]

#: Timed calls of each candidate, after one that is not timed.
CALLS = 3

_turns: weakref.WeakKeyDictionary[Device, Any] = weakref.WeakKeyDictionary()
_lock = new_lock()


def measurer(
    node: PlanNode, device: Device, infos: Sequence[ArgInfo | OutInfo], allowed: bool
) -> Callable[[Sequence[Callable[..., Any]]], int]:
    """The ``measure`` of a PrepareContext: see there.

    Args:
      infos: the node's inputs, then its outputs. ``allowed``: whether anything may be measured at all.
    """

    def measure(candidates: Sequence[Callable[..., Any]]) -> int:
        if not allowed or len(candidates) < 2 or any(concrete(i.shape) is None for i in infos):
            return 0
        with _turn(device), _lent_queue(device) as queue:
            buffers = [_lent(device, info, queue) for info in infos]
            times = [_seconds(candidate, queue, buffers, device) for candidate in candidates]
        known = [t for t in times if t is not None]
        if not known:
            raise KernelRefused(f"none of its {len(candidates)} candidates runs", op=node.origin, site=node.site)
        return times.index(min(known))

    return measure


@contextlib.contextmanager
def _turn(device: Device) -> Iterator[None]:
    with _lock:
        turn = _turns.get(device)
        if turn is None:
            turn = _turns[device] = new_lock()
    with turn:
        yield


@contextlib.contextmanager
def _lent_queue(device: Device) -> Iterator[Any]:
    if not isinstance(device, QueuedDevice):
        device.activate()
        yield device.queue
        return
    queue = queue_of(device)
    previous = device.activate(queue)
    try:
        yield queue
    finally:
        queue.synchronize()
        device.restore(previous)


def _lent(device: Device, info: ArgInfo | OutInfo, queue: Any) -> Any:
    shape = tuple(concrete(info.shape) or ())
    if info.memory_space == HOST_MEMORY:
        return HostMemory().empty(info.dtype, shape)
    return (queue if isinstance(device, QueuedDevice) else device).empty(info.dtype, shape)


def _seconds(candidate: Callable[..., Any], queue: Any, buffers: Sequence[Any], device: Device) -> float | None:
    """The quickest of a few calls; None for a candidate that raises."""
    settle = queue.synchronize if isinstance(device, QueuedDevice) else device.synchronize
    times = []
    try:
        for _ in range(1 + CALLS):
            start = time.perf_counter()
            candidate(queue, *buffers)
            settle()
            times.append(time.perf_counter() - start)
    except Exception:  # noqa: BLE001 - a candidate that can't run is no candidate; the kernel is refused when none can
        return None
    return min(times[1:])
