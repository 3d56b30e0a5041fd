"""Finding out what a prefix names, and opening it."""

from __future__ import annotations

import os

from graphdock.checkpoint.files import explained
from graphdock.checkpoint.layout import INDEX, Index, parse_index
from graphdock.checkpoint.reading import Checkpoint, SafetensorsCheckpoint
from graphdock.errors import DataLossError, NotFoundError, did_you_mean

__all__ = ["exists", "open_checkpoint", "read_index"]

#: An index of more bytes is none.
_LIMIT = 1 << 30
#: How often a save may replace a checkpoint while it is being opened.
_TRIES = 8


def exists(prefix: str) -> bool:
    """Whether a prefix names a checkpoint, of this format or one of TensorFlow's two. What is in it is not looked at."""
    try:
        return os.path.isfile(prefix + INDEX) or os.path.isfile(prefix)
    except ValueError:  # a zero byte
        return False


def open_checkpoint(prefix: str) -> Checkpoint:
    """Open the checkpoint that a prefix names, whichever format it has.

    Raises:
      NotFoundError: there is none; names near ones. DataLossError: it is damaged, or no checkpoint.
      PermissionDeniedError: it may not be read.
    """
    for left in reversed(range(_TRIES)):
        text = _read_index_file(prefix)
        if text is None:
            raise _not_there(prefix)
        index = parse_index(text, prefix + INDEX)
        if index is None:
            raise _foreign(prefix)
        try:
            return SafetensorsCheckpoint(prefix, index)
        except NotFoundError as error:
            if left and _read_index_file(prefix) != text:
                continue  # it was replaced meanwhile
            raise DataLossError(
                f"the checkpoint {prefix!r} lacks a data file",
                got=error.message,
                hint="copy all files that begin with its name",
            ) from error
    raise AssertionError("the last try returns or raises")


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
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > _LIMIT:
                raise DataLossError(f"{path!r} is no index of a checkpoint", got="more than a gibibyte")
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise explained(error, "cannot read", path) from error


def _foreign(prefix: str) -> DataLossError:
    return DataLossError(f"{prefix + INDEX!r} is no index of a checkpoint", hint="was it written by something else?")


def _not_there(prefix: str) -> NotFoundError:
    folder, base = os.path.split(prefix)
    try:
        names = [n.removesuffix(INDEX) for n in os.listdir(folder or os.curdir) if n.endswith(INDEX)]
    except (OSError, ValueError):
        names = []
    return NotFoundError(
        f"there is no checkpoint {prefix!r}",
        hint=did_you_mean(base, names)
        or (f"the folder has {', '.join(sorted(names)[:5])}" if names else "save one first"),
    )
