"""Prefetch: a thread that makes elements ahead, and pauses when its buffer is full.

The thread knows its buffer and the iterator that it reads, nothing else: it ends with the elements, when its run is closed, and
when nobody holds :class:`Ahead` any more.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import errors

from graphdock_data.dataset.stages.order import Passing
from graphdock_data.dataset.stages.stage import Element, Run, Value

__all__ = ["Ahead", "Prefetch"]

#: Buffer size of ``prefetch(-1)``, which TensorFlow tunes.
AUTO = 16


@dataclass(frozen=True, eq=False, kw_only=True)
class Prefetch(Passing):
    """The same elements, made ahead of their use; as many as the buffer holds."""

    title = "PrefetchDataset"
    size: Value

    def check(self, run: Run) -> None:
        if run.number(self.size) < -1:
            raise self.refusal("buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning")

    def iterate(self, run: Run) -> Iterator[Element]:
        size = run.number(self.size)
        source = self.source.iterate(run)
        return Ahead(source, AUTO if size < 0 else size, run) if size else source


class _Buffer:
    """Elements between a thread that makes them and whoever takes them.

    Attributes:
      items: made elements, and errors. ended: no more will come. stopped: nobody wants any.
      waits: Futures of who waits for the next, each with what makes its result of an element.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.items: deque[Element | BaseException] = deque()
        self.waits: deque[tuple[Future[Any], Callable[[Element], Any]]] = deque()
        self.ended = self.stopped = False
        self.changed = threading.Condition(threading.Lock())

    def fill(self, source: Iterator[Element]) -> None:
        """Make elements until there are no more, or nobody wants any; the thread's function."""
        while True:
            with self.changed:
                while len(self.items) >= self.size and not self.stopped:
                    self.changed.wait()
                if self.stopped:
                    return
            made: Element | BaseException
            try:
                made = next(source)
            except StopIteration:
                self.end(None)
                return
            except BaseException as error:  # noqa: BLE001 - whoever takes it raises it
                made = error
            self._put(made)
            del made

    def _put(self, made: Element | BaseException) -> None:
        with self.changed:
            if self.stopped:
                return
            while self.waits:
                future, finish = self.waits.popleft()
                if future.set_running_or_notify_cancel():
                    break
            else:
                self.items.append(made)
                return
        _deliver(future, finish, made)

    def take(self, finish: Callable[[Element], Any]) -> Any:
        """What ``finish`` makes of the next element, or the Future of that. Raises StopIteration at the end."""
        with self.changed:
            if self.items:
                made = self.items.popleft()
                self.changed.notify()
            elif self.stopped:
                raise _closed()
            elif self.ended:
                raise StopIteration
            else:
                future: Future[Any] = Future()
                self.waits.append((future, finish))
                return future
        if isinstance(made, BaseException):
            raise made
        return finish(made)

    def end(self, error: Callable[[], BaseException] | None) -> None:
        """No more elements: at their end without an error, else because nobody is to have any."""
        with self.changed:
            self.ended = True
            if error is not None:
                self.stopped = True
                self.items.clear()
            waits = list(self.waits)
            self.waits.clear()
            self.changed.notify()
        for future, finish in waits:
            if future.set_running_or_notify_cancel():
                _deliver(future, finish, StopIteration() if error is None else error())

    def stop(self) -> None:
        self.end(_closed)


def _closed() -> errors.GraphdockError:
    return errors.CancelledError("the iterator was closed, or begun anew")


def _deliver(future: Future[Any], finish: Callable[[Element], Any], made: Element | BaseException) -> None:
    if not isinstance(made, BaseException):
        future.set_result(finish(made))
    elif isinstance(made, StopIteration):
        future.set_exception(errors.OutOfRangeError("End of sequence"))
    else:
        future.set_exception(made)


class Ahead(Iterator[Element]):
    """An iterator whose elements a thread makes ahead. The thread begins with the first one that is asked for.

    Args:
      source: of which nobody else asks for elements. size: elements that wait at most. run: closes it.
    """

    def __init__(self, source: Iterator[Element], size: int, run: Run) -> None:
        self._buffer = _Buffer(size)
        self._source: Iterator[Element] | None = source
        run.closers[id(self._buffer)] = self._buffer.stop
        weakref.finalize(self, _forget, run.closers, self._buffer)

    def take(self, finish: Callable[[Element], Any]) -> Any:
        """What ``finish`` makes of the next element, or the Future of that. Raises StopIteration at the end."""
        if self._source is not None:
            source, self._source = self._source, None
            threading.Thread(target=self._buffer.fill, args=(source,), name="graphdock-prefetch", daemon=True).start()
        return self._buffer.take(finish)

    def __next__(self) -> Element:
        made = self.take(_same)
        if not isinstance(made, Future):
            element: Element = made
            return element
        try:
            element = made.result()
        except errors.OutOfRangeError as error:
            if self._buffer.ended and error.message == "End of sequence":
                raise StopIteration from None
            raise
        return element


def _forget(closers: dict[Any, Callable[[], None]], buffer: _Buffer) -> None:
    closers.pop(id(buffer), None)
    buffer.stop()


def _same(element: Element) -> Element:
    return element
