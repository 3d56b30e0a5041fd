"""The intra-op pool of the process: threads among which native code shares the parts of one kernel.

There is one pool per process, of the plugin that gives it first; whoever compiles kernels asks for it, and passes on where its
function lies. That function is ``void run(void (*function)(void *argument, int64_t part), void *argument, int64_t parts, int64_t
threads)``:

* It calls ``function`` for each part from 0 to ``parts - 1``, each once, in any order, on at most ``threads`` threads, of which the
  calling one is one, and returns when all have returned. Parts write different memory, can't fail and don't call Python.
* The caller takes whatever part no other thread has begun: others that get no turn cost nothing but the parallelism.
* Any thread may call at once, also from within a part: while one caller has the pool, others compute all their parts themselves.
* The others look for work for some microseconds after the last, and then sleep. They are begun when first asked for; a forked child
  begins its own.

Threads of libraries that kernels call (BLAS) would spin in the way of these: a device whose kernels call one offers the service
``single-threaded`` (version 1), a context in which the library computes on the calling thread, and a plan with kernels that are
shared runs in it (``Prepared.within``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graphdock.locks import new_lock

__all__ = ["IntraOpPool", "intra_op_pool"]


@dataclass(frozen=True, slots=True)
class IntraOpPool:
    """The pool: the entry-point name of the ``plugin`` that gives it, and the address of its function ``run``."""

    plugin: str
    run: int


_LOCK = new_lock()
_POOL: list[IntraOpPool] = []


def intra_op_pool(plugin: str, make: Callable[[], int]) -> IntraOpPool:
    """The process's pool. Where there is none, ``make`` gives the address of its function, and it is that plugin's from then on.

    Any thread may call. Raises what ``make`` raises; there is no pool then.
    """
    with _LOCK:
        if not _POOL:
            _POOL.append(IntraOpPool(plugin, make()))
        return _POOL[0]
