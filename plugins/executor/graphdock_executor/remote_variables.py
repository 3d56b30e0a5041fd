"""A call of a kernel on copies of variables that live in other memory spaces, as one function that a step calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from graphdock.contracts.device import Device
from graphdock.contracts.queue import Queue
from graphdock.dtypes import DType

from graphdock_executor.transfers import pull, push

__all__ = ["RemoteVariable", "run_on_copies"]


@dataclass(frozen=True, slots=True)
class RemoteVariable:
    """A variable among the arguments of a kernel elsewhere: where it stands there, and whether the kernel writes it."""

    positions: tuple[int, ...]
    dtype: DType
    writes: bool


def run_on_copies(
    kernel: Callable[..., Any], carried: Sequence[RemoteVariable], worker: Device | Queue, *rest: Any
) -> Any:
    """Call a kernel on copies of variables, and copy what it wrote back; all of it is done on return.

    Args:
      worker: the kernel's device, or its queue.
      rest: the same of each variable, and the arguments of the kernel.
    """
    count = len(carried)
    theirs, args = rest[:count], list(rest[count:])
    originals = []
    for item, other in zip(carried, theirs, strict=True):
        original = args[item.positions[0]]
        with _current(other):
            value = pull(other, original, item.dtype)
        with _current(worker):
            copy = push(worker, value, item.dtype)
        originals.append((original, copy))
        for position in item.positions:
            args[position] = copy
    with _current(worker):
        result = kernel(*args)
        worker.synchronize()
    for item, other, (original, copy) in zip(carried, theirs, originals, strict=True):
        if not item.writes:
            continue
        with _current(worker):
            value = pull(worker, copy, item.dtype)
        with _current(other):
            other.copy(push(other, value, item.dtype), original)
            other.synchronize()
    return result


@contextmanager
def _current(worker: Device | Queue) -> Iterator[None]:
    if isinstance(worker, Queue):
        previous = worker.device.activate(worker)
        try:
            yield
        finally:
            worker.device.restore(previous)
    else:
        worker.activate()
        yield
