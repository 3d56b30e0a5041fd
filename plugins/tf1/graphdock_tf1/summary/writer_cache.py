"""One FileWriter per folder, which everything in a program shares."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from graphdock.errors import GraphdockError
from graphdock.locks import new_lock

from graphdock_tf1.summary.file_writer import FileWriter


class FileWriterCache:
    """The FileWriters of a process, by folder. Any thread may call it."""

    _cache: ClassVar[dict[str, FileWriter]] = {}
    _lock: ClassVar[Any] = new_lock()

    @staticmethod
    def get(logdir: str) -> FileWriter:
        """The writer of a folder, which is made at the first call. Raises GraphdockError: its file can't be made."""
        path = os.fsdecode(logdir)
        with FileWriterCache._lock:
            found = FileWriterCache._cache.get(path)
            if found is None:
                found = FileWriterCache._cache[path] = FileWriter(path)
            return found

    @staticmethod
    def clear() -> None:
        """Close all writers and forget them. Raises GraphdockError: of the first that can't write what waits; those are kept."""
        first: GraphdockError | None = None
        with FileWriterCache._lock:
            for path, writer in list(FileWriterCache._cache.items()):
                try:
                    writer.close()
                except GraphdockError as error:
                    first = first or error
                else:
                    del FileWriterCache._cache[path]
        if first is not None:
            raise first
