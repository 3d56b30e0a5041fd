"""An event file that grows: its name, and adding bytes to it so that it never ends within a record.

A store's file can't grow: it is written here, and brought to the store as a whole from time to time.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time

from graphdock import messages
from graphdock.errors import NotFoundError

from graphdock_storage.checkpoint.files import explained, token
from graphdock_storage.records import framed
from graphdock_storage.stores import is_url, system

__all__ = ["VERSION", "EventFile"]

#: What the first event of a file says.
VERSION = "brain.Event:2"
#: Seconds from one copy in a store to the next, unless it is flushed.
_PERIOD = 10.0


class EventFile:
    """A new event file in a folder, which is made where it is not there: ``events.out.tfevents.TIME.HOST``.

    One thread at a time may call it.

    Args:
      suffix: what its name ends with.

    Attributes:
      path: of the file. No other file was ever opened under it: a number is added where two would have one name.

    Raises:
      GraphdockError: of the class that fits, PermissionDeniedError for example: it can't be made.
    """

    def __init__(self, folder: str, suffix: str = "") -> None:
        now = time.time()
        self._store = system(folder) if is_url(folder) else None
        self._brought, self._ahead = -_PERIOD, False
        name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}"
        try:
            system(folder).makedirs(folder)
        except (OSError, ValueError) as error:
            raise explained(error, "cannot make the folder of events", folder) from error
        tries = 0
        while True:
            self.path = os.path.join(folder, name + (f".{tries}" if tries else "") + suffix)
            try:
                if self._store is not None and self._store.exists(self.path):
                    raise FileExistsError
                local = self._here = self.path if self._store is None else _nameless()
                self._fd = os.open(local, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
                break
            except FileExistsError:
                tries += 1
            except (OSError, ValueError) as error:
                raise explained(error, "cannot make the event file", self.path) from error
        self._size = 0
        self._torn = False
        try:
            self.append(framed(messages.Event(wall_time=now, file_version=VERSION).SerializeToString()))
        except BaseException:  # Ctrl-C too leaves no empty file; it goes on
            self.close()
            with contextlib.suppress(OSError):
                os.unlink(self._here)
            raise

    def append(self, records: bytes) -> None:
        """Add whole records. When it raises, none of them is in the file.

        Raises:
          GraphdockError: of the class that fits: ResourceExhaustedError when the disk is full; NotFoundError when somebody has
            removed the file.
        """
        try:
            if os.fstat(self._fd).st_nlink == 0:
                raise NotFoundError(
                    f"the event file {self.path!r} has disappeared: somebody has removed it while it was written",
                    hint="the events after it go into a new file",
                )
            if self._torn:
                os.ftruncate(self._fd, self._size)
                self._torn = False
            view = memoryview(records)
            while len(view):
                self._torn = True
                view = view[os.write(self._fd, view) :]
            self._torn = False
            self._size += len(records)
            self._ahead = self._store is not None
        except OSError as error:
            if self._torn:
                with contextlib.suppress(OSError):  # tried again before the next record
                    os.ftruncate(self._fd, self._size)
                    self._torn = False
            raise explained(error, "cannot write the event file", self.path) from error

    def flush(self, now: bool = True) -> None:
        """Bring to the store what it lacks, ``now`` or when it is time. Nothing happens for a file of this machine.

        Raises:
          GraphdockError: of the class that fits: the store refuses. The next call tries again.
        """
        if self._store is None or not self._ahead or not (now or time.monotonic() - self._brought > _PERIOD):
            return
        self._brought = time.monotonic()
        try:
            self._store.put(self._here, self.path)
        except OSError as error:
            raise explained(error, "cannot write the event file", self.path) from error
        self._ahead = False

    def close(self) -> None:
        """Close the file; it is not brought to the disk before the system does, and to a store by :meth:`flush` alone."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
            if self._store is not None:
                os.unlink(self._here)


def _nameless() -> str:
    """A path that is free, for a file of a store."""
    return os.path.join(tempfile.gettempdir(), f"graphdock.{token()}.tmp")
