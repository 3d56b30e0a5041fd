"""Errors that kernels find in values: a word of pinned memory per queue, which the host reads after each fence.

A kernel that finds an index out of range, or a number that is not finite, writes a code and two numbers there, straight into
the host's memory: a step without an error pays nothing. The fence that finds a code raises the error of the node that it
stands for.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from graphdock.contracts import PlanNode, errors

if TYPE_CHECKING:
    from graphdock_cuda.device import CudaDevice
    from graphdock_cuda.queue import CudaQueue

__all__ = ["ErrorWords"]

#: Makes the error of a node from the two numbers that the kernel noted.
MakeError = Callable[[int, int], errors.GraphdockError]


class ErrorWords:
    """The error words of a GPU's queues. Safe from any thread.

    Codes are kept in a dict whose single operations are whole, without a lock: :meth:`forget` is called by finalizers, which the
    collector may run within any of these methods, on the same thread.
    """

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._words: WeakKeyDictionary[CudaQueue, Any] = WeakKeyDictionary()
        self._made: dict[int, tuple[str, str | None, MakeError]] = {}
        self._codes = itertools.count(1)
        self._lock = threading.Lock()

    def address(self, queue: CudaQueue) -> int:
        """Return where kernels of a queue write: three words of 64 bits, the code last."""
        with self._lock:
            words = self._words.get(queue)
            if words is None:
                words = self._device.pinned.take(64).view(np.int64)
                words[...] = 0
                self._words[queue] = words
        return int(words.ctypes.data)

    def code(self, node: PlanNode, make: MakeError) -> int:
        """A code for an error of this node."""
        code = next(self._codes)
        self._made[code] = (node.origin, node.site, make)
        return code

    def renew(self, code: int, make: MakeError) -> None:
        """From now on the code stands for another error of its node."""
        op, site, _ = self._made[code]
        self._made[code] = (op, site, make)

    def forget(self, codes: Sequence[int]) -> None:
        """These codes are written by no kernel any more."""
        for code in codes:
            self._made.pop(code, None)

    def check(self, queue: CudaQueue) -> None:
        """Raise the error that a kernel of the queue has noted since the last call, and forget it."""
        words = self._words.get(queue)
        if words is None or not words[2]:
            return
        first, second, code = (int(w) for w in words[:3])
        words[:3] = 0
        known = self._made.get(code)
        if known is None:
            raise errors.InternalError(f"a kernel whose plan is gone noted an error on {queue.name}: {first}, {second}")
        op, site, make = known
        error = make(first, second)
        error.op, error.site = error.op or op, error.site or site
        raise error
