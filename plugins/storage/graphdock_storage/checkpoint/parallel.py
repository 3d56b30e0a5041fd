"""Work on many tensors at once, where there are bytes enough to be worth threads.

Checksums, reads and writes of long buffers let other threads run. So two tensors are worked on in about the time of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from graphdock.cores import cores

__all__ = ["each", "is_much"]

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Bytes below which one thread is quicker.
_LITTLE = 8 << 20
#: A disk, and the memory's bandwidth, have no use for more.
_THREADS = 4


def is_much(nbytes: int) -> bool:
    """Return whether bytes are so many that several threads are worth their while."""
    return nbytes >= _LITTLE


def each(
    work: Callable[[Item], Result], items: Sequence[Item], nbytes: int, uninterrupted: bool = False
) -> list[Result]:
    """The results of ``work``, in order of the items. At most four run at once; none runs any more when this returns or raises.

    Args:
      nbytes: of all items.
      uninterrupted: not even one item is worked on by the calling thread, where Ctrl-C would end it half way.

    Raises:
      what ``work`` raises for the first of the items that fail; items that no thread has begun are left out then.
    """
    threads = min(_THREADS, len(items), cores())
    if not uninterrupted and (threads < 2 or not is_much(nbytes)):
        return [work(item) for item in items]
    with ThreadPoolExecutor(max(threads, 1), "checkpoint") as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in futures]
        finally:
            _end(futures)


def _end(futures: Sequence[Future[Any]]) -> None:
    """Leave out what no thread has begun, and wait for the rest. Ctrl-C that comes meanwhile is raised once they have ended."""
    left = [future for future in futures if not future.cancel() and not future.done()]
    interrupt: KeyboardInterrupt | None = None
    while left:
        try:
            wait(left)
            left = []
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt
