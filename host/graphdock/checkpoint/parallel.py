"""Work on many tensors at once, where there are bytes enough to be worth threads.

Checksums, reads and writes of long buffers let other threads run. So two tensors are worked on in about the time of one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["each"]

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Bytes below which one thread is quicker.
_LITTLE = 8 << 20
#: A disk, and the memory's bandwidth, have no use for more.
_THREADS = 4


def each(work: Callable[[Item], Result], items: Sequence[Item], nbytes: int) -> list[Result]:
    """The results of ``work``, in order of the items. At most four run at once; none runs any more when this returns or raises.

    Args:
      nbytes: of all items.

    Raises:
      what ``work`` raises for the first of the items that fail; items that no thread has begun are left out then.
    """
    threads = min(_THREADS, len(items), _cores())
    if nbytes < _LITTLE or threads < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads, "checkpoint") as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _cores() -> int:
    """How many this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
