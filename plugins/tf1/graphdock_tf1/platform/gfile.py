"""``tf.gfile``: files and folders by TensorFlow's names, with graphdock's errors, by paths or by URLs of stores."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Final

from graphdock.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
)
from graphdock_storage.checkpoint.files import explained
from graphdock_storage.stores import copied, local_path, opened, renamed, system


def _path(given: str | bytes | os.PathLike[str]) -> str:
    return local_path(given)


@contextlib.contextmanager
def _doing(what: str, path: str) -> Iterator[None]:
    """Names the system's errors after what was being done."""
    try:
        yield
    except FileExistsError as error:
        raise AlreadyExistsError(f"{what} {path!r}: {error.strerror}") from error
    except (OSError, ValueError) as error:
        raise explained(error, what, path) from error


#: Modes, less ``b``, that read, and those that write.
_READING: Final = ("r", "r+", "w+", "a+")
_WRITING: Final = ("w", "a", "r+", "w+", "a+")
_MODES: Final = ("r", "w", "a", "r+", "w+", "a+")


class GFile:
    """A file: ``GFile(name, mode)``, where the mode is ``r``, ``w`` or ``a``, with ``+`` or ``b`` behind it.

    Texts are UTF-8; with ``b`` what is read is bytes. Writing takes text and bytes in every mode. The first reading opens the
    file for reading, the first writing opens it for writing: at its end (``a``), or anew, which empties it, or makes it (``w``
    and, as TensorFlow has it, ``r+``). The two go separate ways: what is read begins at the file's start, and sees what was
    written once it was flushed.

    Raises:
      InvalidArgumentError: another mode.
      NotFoundError, FailedPreconditionError: as the system refuses to open it.
      PermissionDeniedError: that, or the mode does not read, or write.
    """

    def __init__(self, name: str | bytes | os.PathLike[str], mode: str = "r") -> None:
        self._name, self._mode = _path(name), mode
        self._reader: IO[bytes] | None = None
        self._writer: IO[bytes] | None = None
        self._text = "b" not in mode
        self._plain = mode.replace("b", "")
        if self._plain not in _MODES:
            raise InvalidArgumentError(
                f"no mode {mode!r} of a file", expected=f"one of {', '.join(_MODES)}, or with a b"
            )

    @property
    def name(self) -> str:
        """The path."""
        return self._name

    @property
    def mode(self) -> str:
        """As it was given."""
        return self._mode

    def _reading(self) -> IO[bytes]:
        if self._reader is None:
            self._allowed(_READING, "reading")
            with _doing("cannot open", self._name):
                self._reader = opened(self._name)
        return self._reader

    def _writing(self) -> IO[bytes]:
        if self._writer is None:
            self._allowed(_WRITING, "writing")
            with _doing("cannot open", self._name):
                self._writer = opened(self._name, "ab" if "a" in self._plain else "wb")
        return self._writer

    def _allowed(self, modes: tuple[str, ...], what: str) -> None:
        if self._plain not in modes:
            raise PermissionDeniedError(f"{self._name!r} is not open for {what}", got=f"mode {self._mode!r}")

    def _out(self, data: bytes) -> Any:
        return data.decode("utf-8") if self._text else data

    def read(self, n: int = -1) -> Any:
        """The next n bytes, or all that follows."""
        file = self._reading()
        with _doing("cannot read", self._name):
            data = file.read(n)
        return self._out(data)

    def readline(self) -> Any:
        """The next line with its end, less carriage returns; empty at the end of the file."""
        file = self._reading()
        with _doing("cannot read", self._name):
            data = file.readline()
        return self._out(data.replace(b"\r", b""))

    def readlines(self) -> list[Any]:
        """The lines that follow."""
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.readline, self._out(b""))

    def __next__(self) -> Any:
        if line := self.readline():
            return line
        raise StopIteration

    next = __next__

    def write(self, file_content: str | bytes) -> None:
        """Write text or bytes behind what was written."""
        data = file_content.encode("utf-8") if isinstance(file_content, str) else file_content
        file = self._writing()
        with _doing("cannot write", self._name):
            file.write(data)

    def seek(self, offset: int | None = None, whence: int = os.SEEK_SET, position: int | None = None) -> None:
        """Go on reading at a byte, told from the start, from where one is (1) or from the end (2).

        Args:
          position: an older name of ``offset``.

        Raises:
          InvalidArgumentError: a byte before the start, or another ``whence``.
          OutOfRangeError: one behind the end, where reading goes on then.
          TypeError: neither of offset and position, or both.
        """
        if (offset is None) == (position is None):
            raise TypeError("seek takes an offset")
        file = self._reading()
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: file.tell(), os.SEEK_END: self.size()}
        if whence not in starts:
            raise InvalidArgumentError("seek knows 0, 1 and 2", got=f"whence={whence}")
        at = starts[whence] + (position if offset is None else offset)  # type: ignore[operator]
        if at < 0:
            raise InvalidArgumentError("seek before the start of the file", got=at)
        file.seek(min(at, self.size()))
        if at > self.size():
            raise OutOfRangeError(f"seek behind the end of {self._name!r}", expected=f"at most {self.size()}", got=at)

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The byte that is read next; where the mode does not read, the one that is written next."""
        return (self._reading() if self._plain in _READING else self._writing()).tell()

    def size(self) -> int:
        """Bytes of the file."""
        self.flush()
        return Stat(self._name).length

    def flush(self) -> None:
        """Hand what was written to the system."""
        if self._writer is not None:
            with _doing("cannot write", self._name):
                self._writer.flush()

    def close(self) -> None:
        """Write out and close; a later use opens it again."""
        reader, writer = self._reader, self._writer
        self._reader = self._writer = None
        if reader is not None:
            reader.close()
        if writer is not None:
            with _doing("cannot write", self._name):
                writer.close()

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


@dataclass(frozen=True)
class FileStatistics:
    """Result of ``Stat``: bytes, nanoseconds since 1970, whether it is a folder."""

    length: int
    mtime_nsec: int
    is_directory: bool


def Exists(path: Any) -> bool:  # noqa: N802 - TensorFlow's names, here and below
    """Return whether there is a file or folder."""
    found = _path(path)
    with _doing("cannot look at", found):
        return bool(system(found).exists(found))


def IsDirectory(dirname: Any) -> bool:  # noqa: N802
    """Return whether there is a folder of that name."""
    path = _path(dirname)
    with _doing("cannot look at", path):
        return bool(system(path).isdir(path))


def ListDirectory(dirname: Any) -> list[str]:  # noqa: N802
    """Names of what lies in a folder. Raises NotFoundError where there is none."""
    path = _path(dirname)
    if not IsDirectory(path):
        raise NotFoundError(f"there is no folder {path!r}")
    with _doing("cannot list", path):
        found: list[str] = system(path).listdir(path)
    return found


def MakeDirs(dirname: Any) -> None:  # noqa: N802
    """Make a folder and those around it; one that is there is left."""
    path = _path(dirname)
    if Exists(path) and not IsDirectory(path):
        raise FailedPreconditionError(f"{path!r} is a file")
    with _doing("cannot make the folder", path):
        system(path).makedirs(path)


def MkDir(dirname: Any) -> None:  # noqa: N802
    """Make a folder in one that is there. Raises AlreadyExistsError, NotFoundError."""
    path = _path(dirname)
    with _doing("cannot make the folder", path):
        system(path).mkdir(path)


def Remove(filename: Any) -> None:  # noqa: N802
    """Remove a file. Raises NotFoundError where there is none, FailedPreconditionError for a folder."""
    path = _path(filename)
    if IsDirectory(path):
        raise FailedPreconditionError(
            f"{path!r} is a folder", hint="tf.gfile.DeleteRecursively removes it with its contents"
        )
    with _doing("cannot remove", path):
        system(path).remove(path)


def DeleteRecursively(dirname: Any) -> None:  # noqa: N802
    """Remove a folder and all in it, or a file; a link, not what it leads to. Raises NotFoundError where there is none."""
    path = _path(dirname)
    with _doing("cannot remove", path):
        files = system(path)
        if files.isdir(path) and not files.islink(path):
            files.rmtree(path)
        else:
            files.remove(path)


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:  # noqa: N802
    """Copy a file. Raises NotFoundError, and AlreadyExistsError unless ``overwrite``."""
    old, new = _path(oldpath), _free(newpath, overwrite)
    with _doing("cannot copy", old):
        copied(old, new)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:  # noqa: N802
    """Rename a file or folder. Raises NotFoundError, and AlreadyExistsError unless ``overwrite``."""
    old, new = _path(oldname), _free(newname, overwrite)
    with _doing("cannot rename", old):
        renamed(old, new)


def _free(given: Any, overwrite: bool) -> str:
    path = _path(given)
    with _doing("cannot look at", path):
        there = system(path).lexists(path)
    if there and not overwrite:
        raise AlreadyExistsError(f"{path!r} is there", hint="overwrite=True replaces it")
    return path


def Glob(filename: Any) -> list[str]:  # noqa: N802
    """Paths that fit a pattern with ``*``, ``?`` and ``[...]``, or any of a list of patterns; sorted."""
    patterns = filename if isinstance(filename, Sequence) and not isinstance(filename, (str, bytes)) else [filename]
    found: set[str] = set()
    for pattern in map(_path, patterns):
        with _doing("cannot list", pattern):
            found.update(system(pattern).glob(pattern))
    return sorted(found)


def Stat(filename: Any) -> FileStatistics:  # noqa: N802
    """Size, time and kind of a file or folder. Raises NotFoundError."""
    path = _path(filename)
    with _doing("cannot look at", path):
        found = system(path).stat(path)
    return FileStatistics(*found)


def Walk(top: Any, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:  # noqa: N802
    """Folders below one, each as ``(path, names of folders, names of files)``; those inside come later, or first with
    ``in_order=False``."""
    found = _path(top)
    if "\0" in found:  # no file system has such a name
        return
    with _doing("cannot list", found):
        yield from system(found).walk(found, in_order)
