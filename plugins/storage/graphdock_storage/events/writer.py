"""Writing events while a program goes on: they wait in a list, and a thread brings them to the file.

Nothing is lost on the way. What can't be written stays in the list; the next call says why, and whatever writes next tries again.
When the program ends, or the writer is forgotten, what waits is written. Only a process that is killed loses what it had not
flushed. A forked child has none of its parent's events: its writer is closed.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from graphdock.errors import GraphdockError, NotFoundError
from graphdock.locks import new_lock

from graphdock_storage.events.file import EventFile
from graphdock_storage.events.summaries import event_bytes
from graphdock_storage.records import framed

__all__ = ["EventWriter"]

#: Bytes that may wait; who adds more writes them itself, so that a slow disk slows the program and does not fill its memory.
_MOST = 64 << 20
#: Seconds that the thread leaves to others between two writes, however much is added.
_REST = 0.1

_all: weakref.WeakSet[Any] = weakref.WeakSet()


class EventWriter:
    """An event file, and the events that wait for it. Any thread may call it.

    Args:
      folder: where the file is made. ``suffix``: what its name ends with.
      max_queue: how many events may wait before the thread is woken. ``flush_secs``: how long one waits at most.

    Attributes:
      closed: it takes no events.

    Raises:
      GraphdockError: of the class that fits: the file can't be made.
    """

    def __init__(self, folder: str, max_queue: int, flush_secs: float, suffix: str = "") -> None:
        self._folder = folder
        self._suffix = suffix
        self._max_queue = max(max_queue, 1)
        self._flush_secs = min(flush_secs, threading.TIMEOUT_MAX)
        # the first guards what waits, the second the file; who takes both takes the second first
        self._lock: Any = new_lock()
        self._file_lock: Any = new_lock()
        self._wake = threading.Condition(self._lock)
        self._waiting: list[tuple[float, int | None, bytes, bytes]] = []
        self._bytes = 0
        self._records: list[bytes] = []
        self._count = 0
        self._error: GraphdockError | None = None
        self._full = False
        self._forgotten = False
        self._thread: threading.Thread | None = None
        self._file: EventFile | None = EventFile(folder, suffix)
        self.closed = False
        _all.add(self)

    def add(self, wall_time: float, step: int | None, key: bytes, payload: bytes) -> None:
        """Let an event wait for the file: seconds since 1970, the step, and a field of Event with its content.

        Raises:
          GraphdockError: of the class that fits: the thread could not write. This event is not added then; those before wait on.
        """
        with self._lock:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            self._waiting.append((wall_time, step, key, payload))
            self._bytes += len(payload)
            if self._thread is None:
                self._start()
            if not self._full and len(self._waiting) >= self._max_queue:
                self._full = True
                self._wake.notify()
        if self._bytes > _MOST:
            self.flush()

    def flush(self, bring: bool = True) -> None:
        """Write what waits. It is in the file then, where others read it; a store's has it at once if ``bring``.

        Raises:
          GraphdockError: of the class that fits: it can't be written, and waits on.
        """
        with self._file_lock:
            with self._lock:
                taken, self._waiting, self._bytes, self._error = self._waiting, [], 0, None
            if taken:
                self._frame(taken)
            if not self._records:
                if self._file is not None:
                    self._file.flush(bring)
                return
            if self._file is None:
                self._file = EventFile(self._folder, self._suffix)
            try:
                self._file.append(b"".join(self._records))
            except NotFoundError:
                self._file.close()
                self._file = None
                raise
            self._records.clear()
            self._count = 0
            self._file.flush(bring)

    def _frame(self, taken: list[tuple[float, int | None, bytes, bytes]]) -> None:
        try:
            records = framed(*[event_bytes(*event) for event in taken])
        except BaseException:  # no memory, or Ctrl-C, which goes on: what was taken waits again
            with self._lock:
                self._waiting = taken + self._waiting
            raise
        self._records.append(records)
        self._count += len(taken)

    def close(self) -> None:
        """Write what waits and close the file. Nothing happens where it is closed.

        Raises:
          GraphdockError: of the class that fits: it can't be written. The writer stays open.
        """
        with self._lock:
            if self.closed:
                return
            self.closed = True
        try:
            with self._file_lock:
                self.flush()
                if self._file is not None:
                    self._file.close()
                    self._file = None
        except BaseException:  # Ctrl-C too leaves it open, with what waits; it goes on
            self.closed = False
            raise
        with self._lock:
            thread, self._thread = self._thread, None
            self._wake.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def reopen(self) -> None:
        """Take events again, for a new file. Nothing happens where it is open. Raises GraphdockError: it can't be made."""
        with self._file_lock:
            if self.closed:
                self._file = EventFile(self._folder, self._suffix)
                self.closed = False

    def close_at_last(self) -> None:
        """Close it when nobody can any more: the program ends, or has forgotten it.

        Raises:
          GraphdockError: what waits can't be written; it says how much is lost.
        """
        if threading.current_thread() is self._thread:  # it was forgotten while the thread made something else
            self._forgotten = True
        else:
            self._close_or_tell()

    def _close_or_tell(self) -> None:
        try:
            self.close()
        except GraphdockError as error:
            error.message = f"{self._count + len(self._waiting)} events are lost: {error.message}"
            raise

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="graphdock-events", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        mine = threading.current_thread()
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._full or self._forgotten or self._thread is not mine, self._flush_secs)
                self._full = False
                if self._thread is not mine:
                    return
            try:
                self.flush(bring=False)
            except GraphdockError as error:
                with self._lock:
                    self._error = error
            with self._wake:
                self._wake.wait_for(lambda: self._forgotten or self._thread is not mine, _REST)
                forgotten, self._forgotten = self._forgotten, False
            if forgotten:
                self._close_or_tell()

    def _forked(self) -> None:
        """In a child: what waits is the parent's, and so is the file."""
        self._waiting, self._records, self._count, self._bytes, self._error = [], [], 0, 0, None
        self._thread, self._file, self.closed, self._full = None, None, True, False
        self._wake = threading.Condition(self._lock)


def _close_in_child() -> None:
    for writer in list(_all):
        writer._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
