"""``tf.io.gfile``: :mod:`graphdock_tf1.platform.gfile` by the later names of functions and arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from graphdock_tf1.platform import gfile
from graphdock_tf1.platform.gfile import FileStatistics


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copy a file. Raises NotFoundError, and AlreadyExistsError unless ``overwrite``."""
    gfile.Copy(src, dst, overwrite)


def exists(path: Any) -> bool:
    """Return whether there is a file or folder."""
    return gfile.Exists(path)


def glob(pattern: Any) -> list[str]:
    """Paths that fit a pattern, or any of a list of patterns; sorted."""
    return gfile.Glob(pattern)


def isdir(path: Any) -> bool:
    """Return whether there is a folder of that name."""
    return gfile.IsDirectory(path)


def listdir(path: Any) -> list[str]:
    """Names of what lies in a folder. Raises NotFoundError where there is none."""
    return gfile.ListDirectory(path)


def makedirs(path: Any) -> None:
    """Make a folder and those around it; one that is there is left."""
    gfile.MakeDirs(path)


def mkdir(path: Any) -> None:
    """Make a folder in one that is there. Raises AlreadyExistsError, NotFoundError."""
    gfile.MkDir(path)


def remove(path: Any) -> None:
    """Remove a file. Raises NotFoundError where there is none, FailedPreconditionError for a folder."""
    gfile.Remove(path)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Rename a file or folder. Raises NotFoundError, and AlreadyExistsError unless ``overwrite``."""
    gfile.Rename(src, dst, overwrite)


def rmtree(path: Any) -> None:
    """Remove a folder and all in it. Raises NotFoundError where there is none."""
    gfile.DeleteRecursively(path)


def stat(path: Any) -> FileStatistics:
    """Size, time and kind of a file or folder. Raises NotFoundError."""
    return gfile.Stat(path)


def walk(
    top: Any, topdown: bool = True, onerror: Callable[..., Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Folders below one, each as ``(path, names of folders, names of files)``.

    Args:
      onerror: called with the NotFoundError where there is no such folder.
    """
    if onerror is not None:
        try:
            gfile.ListDirectory(top)
        except gfile.NotFoundError as error:
            onerror(error)
            return iter(())
    return gfile.Walk(top, topdown)
