"""Readers: records of files whose names come out of a queue, one file after another."""

from __future__ import annotations

import functools
import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeAlias

import numpy as np
from graphdock.contracts import ResourceKind, ResourceRequest, errors
from graphdock.locks import new_lock
from graphdock_storage.checkpoint.files import explained
from graphdock_storage.compressed import Damaged, inflated
from graphdock_storage.records import FRAME, read_records
from graphdock_storage.stores import opened

from graphdock_data.resources.exchange import Attempt
from graphdock_data.resources.files import read_whole, texts
from graphdock_data.resources.queue import Queue

__all__ = ["READER", "Reader", "counted"]

#: A record: its key and its value.
Record: TypeAlias = tuple[bytes, bytes]


class Reader:
    """The records of files whose names come out of a queue.

    Reads that wait for a name stand in a line; one of them asks the queue for all. A name that comes when nobody waits any more is
    kept for the next read. Any thread may call any method; no callback runs under the lock.

    Args:
      records: the records of a file of that name. single: there is one, so that the file is done with it.
      keeps_state: its state can be saved.
    """

    def __init__(
        self,
        name: str,
        records: Callable[[bytes], Iterator[Record]],
        single: bool = False,
        keeps_state: bool = False,
    ) -> None:
        self.name, self._records, self._single, self._keeps_state = name, records, single, keeps_state
        self._lock = new_lock()
        self._line: deque[Attempt] = deque()
        self._asked: Future[Any] | None = None
        self._asking = False
        self._work: Iterator[Record] | None = None
        self._ahead: deque[Record] = deque()
        self.records_produced = 0
        self.work_started = 0
        self.work_completed = 0

    # -- what steps call --------------------------------------------------------------------------------------------------

    def read(self, queue: Queue) -> Any:
        """The next record, key and value, or the Future of it.

        Raises:
          OutOfRangeError: the queue is closed and empty. And what opening and reading a file raises.
        """
        return self._read(queue, 1, lambda found: tuple(map(texts, found[0])))

    def read_up_to(self, queue: Queue, count: Any) -> Any:
        """At most so many records of one file, and one at least: keys and values, or the Future of them.

        Raises:
          InvalidArgumentError: ``count`` is not above 0. And as :meth:`read`.
        """
        if int(count) <= 0:
            raise errors.InvalidArgumentError("num_records must be above 0", got=str(int(count)))
        return self._read(
            queue, int(count), lambda found: tuple(texts(list(part)) for part in zip(*found, strict=True))
        )

    def reset(self) -> None:
        """Begin anew: forget the file that is read, and count from 0."""
        with self._lock:
            self._forget()
            self.records_produced = self.work_started = self.work_completed = 0

    def _forget(self) -> None:
        self._work = None
        self._ahead.clear()

    def state(self) -> bytes:
        """Its counts and, between two files alone, all that it knows.

        Raises:
          UnimplementedError: a reader of this kind can't say it.
        """
        self._check_state()
        with self._lock:
            counts = [self.work_started, self.work_completed, self.records_produced]
            ahead = [[part.decode("latin-1") for part in record] for record in self._ahead]
            return json.dumps([*counts, ahead]).encode()

    def restore(self, state: bytes) -> None:
        """Take a state over. Raises InvalidArgumentError: it is none."""
        self._check_state()
        try:
            *counts, ahead = json.loads(state)
            started, completed, produced = map(int, counts)
            kept = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in ahead]
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise errors.InvalidArgumentError(
                f"Could not parse state for {self.name!r}", got=repr(state[:40])
            ) from error
        if not 0 <= completed <= started or produced < 0:
            raise errors.InvalidArgumentError(f"the state for {self.name!r} has counts that can't be", got=str(counts))
        with self._lock:
            self._forget()
            self._ahead.extend(kept)
            self.work_started, self.work_completed, self.records_produced = started, completed, produced

    def _check_state(self) -> None:
        if not self._keeps_state:
            raise errors.UnimplementedError(f"the reader {self.name!r} has no state that can be saved")

    # -- reads ------------------------------------------------------------------------------------------------------------

    def _read(self, queue: Queue, count: int, finish: Callable[[list[Record]], Any]) -> Any:
        attempt = Attempt(deque(), count, finish)
        future = attempt.future = Future[Any]()
        with self._lock:
            self._line.append(attempt)
        self._go_on(queue)
        if future.done():
            return future.result()
        future.add_done_callback(self._cancelled)
        return future

    def _go_on(self, queue: Queue) -> None:
        """Serve who waits, and ask for the next file while any does."""
        while True:
            with self._lock:
                ended = self._serve()
                asks = bool(self._line) and not self._asking
                self._asking = self._asking or asks
            for attempt in ended:
                attempt.deliver()
            if not asks:
                return
            try:
                name = queue.dequeue()
            except errors.GraphdockError as error:
                self._came(None, error)
                continue
            if isinstance(name, Future):
                with self._lock:
                    self._asked = name
                name.add_done_callback(functools.partial(self._came_later, queue))
                return
            self._came(name, None)

    def _came_later(self, queue: Queue, asked: Future[Any]) -> None:
        if asked.cancelled():
            with self._lock:
                self._asked, self._asking = None, False
        elif (error := asked.exception()) is not None:
            self._came(None, error)
        else:
            self._came(asked.result(), None)
        self._go_on(queue)

    def _came(self, name: Any, error: BaseException | None) -> None:
        """A file's name, or the reason why there is none, which is the first one's who waits."""
        failed = None
        with self._lock:
            self._asked, self._asking = None, False
            if error is None:
                self._work = self._records(name.item())
                self.work_started += 1
            else:
                failed = self._fail(error)
        if failed is not None:
            failed.deliver()

    def _fail(self, error: BaseException) -> Attempt | None:
        while self._line:
            attempt = self._line.popleft()
            if attempt.claim():
                attempt.error = error  # type: ignore[assignment]
                return attempt
        return None

    def _serve(self) -> list[Attempt]:
        """Give records to who waits, as long as there are any; who has ended. Under the lock."""
        ended = []
        while self._line:
            attempt = self._line[0]
            try:
                found = self._next(attempt.count)
            except errors.GraphdockError as error:
                self._work = None
                if (failed := self._fail(error)) is not None:
                    ended.append(failed)
                continue
            if not found:
                break
            self._line.popleft()
            if attempt.claim():
                attempt.items.extend(found)
                self.records_produced += len(found)
                ended.append(attempt)
            else:
                self._ahead.extendleft(reversed(found))
        return ended

    def _next(self, count: int) -> list[Record]:
        found: list[Record] = []
        while len(found) < count and self._ahead:
            found.append(self._ahead.popleft())
        while self._work is not None and len(found) < count:
            record = next(self._work, None)
            if record is not None:
                found.append(record)
            if record is None or self._single:
                self._work = None
                self.work_completed += 1
        return found

    def _cancelled(self, future: Future[Any]) -> None:
        """Take a cancelled read out of the line; when nobody waits any more, no name is asked for."""
        if not future.cancelled():
            return
        with self._lock:
            self._line = deque(a for a in self._line if a.future is not future)
            asked = None if self._line else self._asked
        if asked is not None:
            asked.cancel()

    def abandon(self) -> None:
        """Wake all who wait: the container was reset, or the session closed."""
        with self._lock:
            waiting, asked = list(self._line), self._asked
            self._line.clear()
            self._forget()
            for attempt in waiting:
                attempt.error = errors.CancelledError(
                    f"the reader {self.name!r} was closed with its session or container"
                )
            ended = [attempt for attempt in waiting if attempt.claim()]
        if asked is not None:
            asked.cancel()
        for attempt in ended:
            attempt.deliver()


# -- kinds of records -------------------------------------------------------------------------------------------------------


def _lines(attrs: Any, path: bytes) -> Iterator[Record]:
    """The lines of a text file, by their numbers, from 1."""
    skipped = attrs["skip_header_lines"]
    try:
        with opened(path) as file:
            for number, line in enumerate(file, 1):
                if number > skipped:
                    yield b"%s:%d" % (path, number), line.rstrip(b"\n").replace(b"\r", b"")
    except (OSError, ValueError) as error:
        raise explained(error, "cannot read", os.fsdecode(path)) from error


def _whole(attrs: Any, path: bytes) -> Iterator[Record]:
    yield path, read_whole(path)


def _name(attrs: Any, work: bytes) -> Iterator[Record]:
    yield work, work


def _records(attrs: Any, path: bytes) -> Iterator[Record]:
    """The records of a TFRecord file, by the bytes at which they begin."""
    at = 0
    for record in read_records(os.fsdecode(path), attrs["compression_type"]):
        yield b"%s:%d" % (path, at), record
        at += len(record) + FRAME


def _fixed(attrs: Any, path: bytes) -> Iterator[Record]:
    """Records of one length, between a header and a footer, by their numbers, from 0."""
    size, hop = attrs["record_bytes"], attrs["hop_bytes"] or attrs["record_bytes"]
    footer, kept = attrs["footer_bytes"], b""
    try:
        with inflated(opened(path), attrs["encoding"]) as file:
            file.read(attrs["header_bytes"])
            number = 0
            while part := file.read(max(1 << 16, size + footer)):
                kept += part
                at = 0
                while at + size + footer <= len(kept):
                    yield b"%s:%d" % (path, number), kept[at : at + size]
                    number += 1
                    at += hop
                if at > len(kept):
                    file.read(at - len(kept))
                kept = kept[at:]
    except Damaged as error:
        raise errors.DataLossError(f"{os.fsdecode(path)!r} can't be decompressed: {error}") from error
    except errors.GraphdockError:
        raise
    except (OSError, ValueError) as error:
        raise explained(error, "cannot read", os.fsdecode(path)) from error


_KINDS: dict[str, Callable[[Any, bytes], Iterator[Record]]] = {
    "fixed": _fixed,
    "identity": _name,
    "lines": _lines,
    "records": _records,
    "whole": _whole,
}


def _create(request: ResourceRequest) -> Reader:
    attrs = request.attrs
    kind = attrs["kind"]
    if kind == "fixed":
        for name, least in (("record_bytes", 1), ("header_bytes", 0), ("footer_bytes", 0), ("hop_bytes", 0)):
            if attrs[name] < least:
                raise errors.InvalidArgumentError(f"{name} must be >= {least}", got=str(attrs[name]))
    single = kind in ("identity", "whole")
    return Reader(request.name, functools.partial(_KINDS[kind], attrs), single, kind == "identity")


READER = ResourceKind("data.Reader", _create, lock="own", close=lambda reader, request: reader.abandon())


def counted(what: str) -> Callable[[Reader], Any]:
    """A function that gives one of a reader's counts."""
    return lambda reader: np.array(getattr(reader, what), np.int64)
