"""Finding out what a prefix names, and opening it."""

from __future__ import annotations

import glob
import os
import re

from graphdock.errors import DataLossError, NotFoundError, did_you_mean
from graphdock_tensorflow.checkpoints.table import MAGIC

from graphdock_storage.checkpoint.files import explained
from graphdock_storage.checkpoint.layout import INDEX, Index, parse_index
from graphdock_storage.checkpoint.reading import Checkpoint, OpenFiles, SafetensorsCheckpoint

__all__ = ["exists", "open_checkpoint", "read_index"]

#: An index of more bytes is none.
_LIMIT = 1 << 30
#: What the name of an old checkpoint of TensorFlow in several files ends with.
_SEVERAL = re.compile(r"-\?{5}-of-\d{5}\Z")
#: How often a save may replace a checkpoint while it is being opened.
_TRIES = 8


def exists(prefix: str) -> bool:
    """Whether a prefix names a checkpoint, of this format or one of TensorFlow's two. What is in it is not looked at."""
    several = _SEVERAL.search(prefix) is not None and bool(_several(prefix))
    return several or _is_file(prefix + INDEX) or _is_file(prefix)


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:  # a zero byte
        return False


def open_checkpoint(prefix: str) -> Checkpoint:
    """Open the checkpoint that a prefix names, whichever format it has.

    Raises:
      NotFoundError: there is none; names near ones. DataLossError: it is damaged, or no checkpoint.
      PermissionDeniedError: it may not be read. UnavailableError: it is TensorFlow's, and the library protobuf is not installed.
    """
    for left in reversed(range(_TRIES)):
        text = _read_index_file(prefix)
        if text is None:
            return _open_old(prefix)
        if text.endswith(MAGIC):
            return _open_bundle(prefix)
        index = parse_index(text, prefix + INDEX)
        if index is None:
            raise _foreign(prefix)
        try:
            return SafetensorsCheckpoint(prefix, index)
        except NotFoundError as error:
            if left and _read_index_file(prefix) != text:
                continue  # it was replaced meanwhile
            raise _incomplete(prefix, error) from error
    raise AssertionError("the last try returns or raises")


def _open_bundle(prefix: str) -> Checkpoint:
    """TensorFlow's format V2."""
    from graphdock_tensorflow.checkpoints.bundle import BundleCheckpoint
    from graphdock_tensorflow.checkpoints.table import Table

    index = OpenFiles([prefix + INDEX])
    try:
        return BundleCheckpoint(prefix, Table(index.fd(0), prefix + INDEX))
    except NotFoundError as error:
        raise _incomplete(prefix, error) from error
    except DataLossError as error:
        raise _named(prefix, error) from error
    finally:
        index.close()


def _open_old(prefix: str) -> Checkpoint:
    """TensorFlow's format V1: a file of that name, or several, whose numbers question marks stand for."""
    from graphdock_tensorflow.checkpoints.old_tensorflow import OldCheckpoint

    several = _SEVERAL.search(prefix) is not None
    paths = _several(prefix) if several else [prefix] if _is_file(prefix) else []
    if not paths:
        raise _not_there(prefix)
    if several and len(paths) != int(prefix[-5:]):
        raise DataLossError(
            f"the checkpoint {prefix!r} lacks a file", expected=f"{int(prefix[-5:])} files", got=str(len(paths))
        )
    try:
        return OldCheckpoint(prefix, paths)
    except DataLossError as error:
        raise _named(prefix, error) from error


def _several(prefix: str) -> list[str]:
    """The files that a name with question marks stands for."""
    found = _SEVERAL.search(prefix)
    assert found is not None
    return sorted(glob.glob(glob.escape(prefix[: found.start()]) + found[0]))


def _named(prefix: str, error: DataLossError) -> DataLossError:
    """The error, with the checkpoint in it."""
    if prefix in error.message:
        return error
    return DataLossError(
        f"the checkpoint {prefix!r} is damaged: {error.message}", expected=error.expected, got=error.got
    )


def _incomplete(prefix: str, error: NotFoundError) -> DataLossError:
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
