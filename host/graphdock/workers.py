"""Threads on which an executor runs kernels of several nodes at once: one pool per size, made when it is first asked for."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

from graphdock.locks import new_lock

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["WorkerPools"]

_all: weakref.WeakSet[WorkerPools] = weakref.WeakSet()


class WorkerPools:
    """The pools of a host, which all its sessions share. In a forked child, which has none of their threads, they are made anew.

    Threads: may be asked from any thread.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._pools: dict[int, ThreadPoolExecutor] = {}
        _all.add(self)

    def of(self, threads: int) -> ThreadPoolExecutor | None:
        """The pool of so many threads; None where a step's own thread would be as good."""
        if threads < 2:
            return None
        found = self._pools.get(threads)
        if found is None:
            with self._lock:
                found = self._pools.get(threads)
                if found is None:
                    found = self._pools[threads] = _pool(threads)
        return found

    def forget(self) -> None:
        """Forget the pools; what they were given runs to its end."""
        self._pools = {}


def _pool(threads: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    return ThreadPoolExecutor(threads, "graphdock worker", lambda: np.seterr(all="ignore") and None)


def _forget_in_child() -> None:
    for pools in list(_all):
        pools.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
