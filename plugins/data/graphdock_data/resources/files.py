"""Files as a whole, and tensors of strings."""

from __future__ import annotations

import glob
import os
from typing import Any

import numpy as np
from graphdock.contracts import errors
from graphdock_storage.checkpoint.files import explained
from graphdock_storage.stores import local_path, opened, system

__all__ = ["matching", "read_whole", "texts"]


def texts(values: Any) -> Any:
    """A tensor of strings: of bytes a scalar, of a list of them a vector."""
    out: Any
    if isinstance(values, bytes):
        out = np.empty((), object)
        out[()] = values
        return out
    out = np.empty(len(values), object)
    out[:] = values
    return out


def matching(pattern: bytes) -> list[bytes]:
    """The paths that match a pattern, in order.

    Raises:
      NotFoundError: the folder is not there.
    """
    spelled = local_path(pattern)
    files, folder = system(spelled), os.path.dirname(spelled)
    try:
        if folder and not glob.has_magic(folder) and not files.isdir(folder):
            raise errors.NotFoundError(f"the folder of {spelled!r} is not there")
        return [os.fsencode(path) for path in sorted(files.glob(spelled))]
    except OSError as error:
        raise explained(error, "cannot list", spelled) from error


def read_whole(path: bytes) -> bytes:
    """What a file holds.

    Raises:
      GraphdockError: of the class that fits, NotFoundError for example.
    """
    try:
        with opened(path) as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise explained(error, "cannot read", os.fsdecode(path)) from error
