"""``tf.resource_loader``: files beside the module that asks for them."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def _folder_of_caller(depth: int) -> str:
    """The folder of the source that called, ``depth`` calls above this one; the current one where it has no file."""
    file = sys._getframe(depth + 1).f_globals.get("__file__")
    return os.path.dirname(os.path.abspath(file)) if file else os.getcwd()


def get_data_files_path() -> str:
    """The folder of the module that calls."""
    return _folder_of_caller(1)


def get_path_to_datafile(path: str) -> str:
    """The path of a file that is given relative to the module that calls."""
    return os.path.join(_folder_of_caller(1), path)


def load_resource(path: str) -> bytes:
    """The bytes of a file that is given relative to the module that calls.

    Raises:
      OSError: it cannot be read.
    """
    return Path(_folder_of_caller(1), path).read_bytes()


def get_root_dir_with_all_resources() -> str:
    """The folder of the module that calls: there are no runfiles of a build tool here."""
    return _folder_of_caller(1)


def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """The path itself: files are read ahead by the operating system."""
    return path
