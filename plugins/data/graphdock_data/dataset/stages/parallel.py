"""Map with several calls at once, in the order of the elements."""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import errors

from graphdock_data.dataset.stages.functional import Map, unpacked
from graphdock_data.dataset.stages.stage import Element, Run, Value

__all__ = ["ParallelMap"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ParallelMap(Map):
    """What a function makes of each element, so many calls at once; -1 for as many as there are processors."""

    title = "ParallelMapDataset"
    calls: Value

    def check(self, run: Run) -> None:
        if run.number(self.calls) < 1 and run.number(self.calls) != -1:
            raise self.refusal("num_parallel_calls must be greater than zero.", got=str(run.number(self.calls)))

    def iterate(self, run: Run) -> Iterator[Element]:
        calls = run.number(self.calls)
        count = os.cpu_count() or 1 if calls < 0 else calls
        return _InOrder(unpacked(self, run.call(self.function)), self.source.iterate(run), count, run)


class _InOrder(Iterator[Element]):
    """Results of calls on a pool of threads, which ends with this iterator or its run."""

    def __init__(self, call: Callable[[Element], Any], source: Iterator[Element], count: int, run: Run) -> None:
        self._call, self._source, self._count = call, source, count
        self._pool = ThreadPoolExecutor(count, "graphdock-map")
        self._pending: deque[Future[Any]] = deque()
        pool = self._pool
        run.closers[id(pool)] = lambda: pool.shutdown(wait=False, cancel_futures=True)
        weakref.finalize(self, _forget, run.closers, pool)

    def __next__(self) -> Element:
        while len(self._pending) < self._count:
            try:
                element = next(self._source, None)
            except Exception as error:  # noqa: BLE001 - raised when it is its turn
                self._pending.append(_failed(error))
                continue
            if element is None:
                break
            self._pending.append(self._pool.submit(self._call, element))
        if not self._pending:
            raise StopIteration
        try:
            made: Element = self._pending.popleft().result()
        except CancelledError:
            raise errors.CancelledError("the iterator was closed, or begun anew") from None
        return made


def _failed(error: Exception) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def _forget(closers: dict[Any, Callable[[], None]], pool: ThreadPoolExecutor) -> None:
    closers.pop(id(pool), None)
    pool.shutdown(wait=False, cancel_futures=True)
