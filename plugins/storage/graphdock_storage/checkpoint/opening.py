"""Finding out what a prefix names, and opening it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TypeAlias

from graphdock.contracts import CheckpointFormat
from graphdock.errors import DataLossError, NotFoundError, did_you_mean

from graphdock_storage.checkpoint.files import explained
from graphdock_storage.checkpoint.layout import INDEX, Index, parse_index
from graphdock_storage.checkpoint.reading import Checkpoint, SafetensorsCheckpoint
from graphdock_storage.stores import opened, system

__all__ = ["Others", "exists", "incomplete", "is_file", "open_checkpoint", "read_index"]

#: An index of more bytes is none.
_LIMIT = 1 << 30
#: Gives the formats that other plugins bring (``host.checkpoint_formats.all``).
Others: TypeAlias = Callable[[], Iterable[CheckpointFormat]]
#: How often a save may replace a checkpoint while it is being opened.
_TRIES = 8


def exists(prefix: str, others: Others = tuple) -> bool:
    """Return whether a prefix names a checkpoint, of this format or one of the others. What is in it is not looked at."""
    return is_file(prefix + INDEX) or any(each.exists(prefix) for each in others())


def is_file(path: str) -> bool:
    """Return whether there is such a file; there is none of a name with a zero byte."""
    try:
        return bool(system(path).isfile(path))
    except ValueError:
        return False


def open_checkpoint(prefix: str, others: Others = tuple) -> Checkpoint:
    """Open the checkpoint that a prefix names, whichever format it has.

    Args:
      others: gives the formats besides this package's own; called when it is none of this package's.

    Raises:
      NotFoundError: there is none; names near ones. DataLossError: it is damaged, or no checkpoint.
      PermissionDeniedError: it may not be read.
    """
    for left in reversed(range(_TRIES)):
        text = _read_index_file(prefix)
        index = None if text is None else parse_index(text, prefix + INDEX)
        if index is None:
            return _open_other(prefix, others(), text is None)
        try:
            return SafetensorsCheckpoint(prefix, index)
        except NotFoundError as error:
            if left and _read_index_file(prefix) != text:
                continue  # it was replaced meanwhile
            raise incomplete(prefix, error) from error
    raise AssertionError("the last try returns or raises")


def _open_other(prefix: str, others: Iterable[CheckpointFormat], nothing: bool) -> Checkpoint:
    """A checkpoint of another format; ``nothing`` says that there is no index of that name at all."""
    for each in others:
        if each.exists(prefix):
            found: Checkpoint = each.open(prefix)
            return found
    raise _not_there(prefix) if nothing else _foreign(prefix)


def incomplete(prefix: str, error: NotFoundError) -> DataLossError:
    """The error of a checkpoint of which a file is missing."""
    return DataLossError(
        f"the checkpoint {prefix!r} lacks a data file",
        got=error.message,
        hint="copy all files that begin with its name",
    )


def read_index(prefix: str) -> Index:
    """The index of a checkpoint of this package's own format.

    Raises:
      NotFoundError: there is none. DataLossError: it is damaged, or of another format.
    """
    text = _read_index_file(prefix)
    if text is None:
        raise _not_there(prefix)
    index = parse_index(text, prefix + INDEX)
    if index is None:
        raise _foreign(prefix)
    return index


def _read_index_file(prefix: str) -> bytes | None:
    path = prefix + INDEX
    try:
        with opened(path) as file:
            size = file.seek(0, os.SEEK_END)
            if size > _LIMIT:
                raise DataLossError(f"{path!r} is no index of a checkpoint", got="more than a gibibyte")
            file.seek(0)
            return bytes(file.read(size))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise explained(error, "cannot read", path) from error


def _foreign(prefix: str) -> DataLossError:
    return DataLossError(f"{prefix + INDEX!r} is no index of a checkpoint", hint="was it written by something else?")


def _not_there(prefix: str) -> NotFoundError:
    folder, base = os.path.split(prefix)
    try:
        names = [n.removesuffix(INDEX) for n in system(folder).listdir(folder or os.curdir) if n.endswith(INDEX)]
    except (OSError, ValueError):
        names = []
    return NotFoundError(
        f"there is no checkpoint {prefix!r}",
        hint=did_you_mean(base, names)
        or (f"the folder has {', '.join(sorted(names)[:5])}" if names else "save one first"),
    )
