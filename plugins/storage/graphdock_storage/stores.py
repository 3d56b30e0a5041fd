"""Files by path or by URL: paths are of this machine, URLs (``memory://``, ``s3://``, ``gs://``) of a store that fsspec reaches.

Both kinds answer to the same calls and raise OSError with an errno. A store is asked anew each time: no listing is remembered.
Credentials and endpoints are fsspec's matter: its configuration files and ``FSSPEC_...`` of the environment.

Threads: any.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from graphdock.errors import UnimplementedError

__all__ = ["Status", "Store", "copied", "descriptor", "is_url", "local_path", "opened", "renamed", "system"]

#: A path of this machine, or a URL.
Path: TypeAlias = "str | bytes | os.PathLike[str]"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
#: Schemes whose stores show a file when all of it has arrived, and have no renaming.
OBJECTS = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "r2", "memory"})
_ERRNOS = (
    (FileNotFoundError, errno.ENOENT),
    (PermissionError, errno.EACCES),
    (FileExistsError, errno.EEXIST),
    (IsADirectoryError, errno.EISDIR),
    (NotADirectoryError, errno.ENOTDIR),
)


class Status(NamedTuple):
    """Size in bytes, time of the last change in nanoseconds since 1970 (0 where a store does not say), kind."""

    length: int
    mtime_nsec: int
    is_directory: bool


def local_path(path: Path) -> str:
    """A path as a string, of a ``file://`` URL the path in it; other URLs as they are."""
    text = os.fsdecode(path)
    return text.removeprefix("file://") if text.startswith("file://") else text


def is_url(path: Path) -> bool:
    """Return whether it names a file of a store."""
    text = os.fsdecode(path)
    return _URL.match(text) is not None and not text.startswith("file://")


class Machine:
    """File systems of this machine, by the calls that a :class:`Store` has."""

    exists, lexists = staticmethod(os.path.exists), staticmethod(os.path.lexists)
    isdir, isfile = staticmethod(os.path.isdir), staticmethod(os.path.isfile)
    mkdir, rmdir = staticmethod(os.mkdir), staticmethod(os.rmdir)
    remove, replace = staticmethod(os.remove), staticmethod(os.replace)
    rmtree, copyfile = staticmethod(shutil.rmtree), staticmethod(shutil.copyfile)
    glob = staticmethod(glob.glob)

    @staticmethod
    def islink(path: str) -> bool:
        return os.path.islink(path)

    @staticmethod
    def listdir(path: str) -> list[str]:
        return sorted(os.listdir(path))

    @staticmethod
    def makedirs(path: str) -> None:
        os.makedirs(path, exist_ok=True)

    @staticmethod
    def stat(path: str) -> Status:
        found = os.stat(path)
        return Status(found.st_size, found.st_mtime_ns, os.path.isdir(path))

    @staticmethod
    def walk(path: str, topdown: bool) -> Iterator[tuple[str, list[str], list[str]]]:
        for folder, folders, files in os.walk(path, topdown=topdown):
            folders.sort()
            yield folder, folders, sorted(files)


class Store:
    """A file system of fsspec's. Folders of object stores are there while a file is below them."""

    def __init__(self, scheme: str, files: Any) -> None:
        self._scheme, self._files = scheme, files
        self.atomic = scheme in OBJECTS

    def _inner(self, url: str) -> str:
        inner: str = self._files._strip_protocol(url)
        return inner

    def _outer(self, url: str, inner: str) -> str:
        """The URL of a path that the store has listed, spelled as the one that was asked about."""
        asked, found = self._inner(url).rstrip("/"), inner.rstrip("/")
        if found == asked or found.startswith(asked + "/"):
            return url.rstrip("/") + found[len(asked) :]
        return f"{self._scheme}://{found.lstrip('/')}"

    @contextlib.contextmanager
    def asked(self, url: str) -> Iterator[tuple[Any, str]]:
        """The file system and the path in it, for a call whose errors become OSErrors with an errno."""
        try:
            self._files.invalidate_cache()
            yield self._files, self._inner(url)
        except OSError as error:
            if error.errno is not None:
                raise
            code = next((code for kind, code in _ERRNOS if isinstance(error, kind)), errno.EIO)
            raise OSError(code, _reason(error, code), url) from error
        except Exception as error:  # noqa: BLE001 - what a store's own client raises: credentials, addresses, quotas
            raise OSError(errno.EIO, f"{type(error).__name__}: {error}", url) from error

    def exists(self, url: str) -> bool:
        with self.asked(url) as (files, path):
            return bool(files.exists(path))

    lexists = exists

    def isdir(self, url: str) -> bool:
        with self.asked(url) as (files, path):
            return bool(files.isdir(path))

    def isfile(self, url: str) -> bool:
        with self.asked(url) as (files, path):
            return bool(files.isfile(path))

    def islink(self, url: str) -> bool:
        return False

    def listdir(self, url: str) -> list[str]:
        with self.asked(url) as (files, path):
            names = {found.rstrip("/").rpartition("/")[2] for found in files.ls(path, detail=False)}
        return sorted(names - {""})

    def makedirs(self, url: str) -> None:
        with self.asked(url) as (files, path):
            files.makedirs(path, exist_ok=True)

    def mkdir(self, url: str) -> None:
        with self.asked(url) as (files, path):
            files.mkdir(path, create_parents=False)

    def remove(self, url: str) -> None:
        with self.asked(url) as (files, path):
            files.rm_file(path)

    def rmdir(self, url: str) -> None:
        with self.asked(url) as (files, path):
            files.rmdir(path)

    def rmtree(self, url: str) -> None:
        with self.asked(url) as (files, path):
            files.rm(path, recursive=True)

    def copyfile(self, old: str, new: str) -> None:
        with self.asked(old) as (files, path):
            files.cp_file(path, self._inner(new))

    def replace(self, old: str, new: str) -> None:
        """Rename; an object store copies and removes."""
        with self.asked(old) as (files, path):
            files.mv(path, self._inner(new), recursive=files.isdir(path))

    def glob(self, url: str) -> list[str]:
        with self.asked(url) as (files, path):
            return sorted(self._outer(_fixed(url), found) for found in files.glob(path))

    def stat(self, url: str) -> Status:
        with self.asked(url) as (files, path):
            about = files.info(path)
        when = next(
            (about[key] for key in ("mtime", "LastModified", "last_modified", "updated", "created") if key in about), 0
        )
        if isinstance(when, str):
            when = datetime.fromisoformat(when)
        seconds = when.timestamp() if isinstance(when, datetime) else when
        return Status(int(about.get("size") or 0), int(float(seconds or 0) * 1e9), about.get("type") == "directory")

    def walk(self, url: str, topdown: bool) -> Iterator[tuple[str, list[str], list[str]]]:
        with self.asked(url) as (files, path):
            found = [(self._outer(url, at), sorted(folders), sorted(names)) for at, folders, names in files.walk(path)]
        yield from found if topdown else reversed(found)

    def put(self, source: str, url: str) -> None:
        """Bring a file of this machine to the store: an object when all of it is there, elsewhere under a name of its own first."""
        with self.asked(url) as (files, path):
            if self.atomic:
                files.put_file(source, path)
                return
            draft = f"{path}.{os.urandom(4).hex()}.tmp"
            files.put_file(source, draft)
            files.mv(draft, path)


def _reason(error: OSError, code: int) -> str:
    return os.strerror(code) if code != errno.EIO else str(error) or type(error).__name__


def _fixed(pattern: str) -> str:
    """The folder of a pattern up to its first part with a wildcard."""
    found = glob.magic_check.search(pattern)  # type: ignore[attr-defined]
    return pattern.rpartition("/")[0] if found is None else pattern[: found.start()].rpartition("/")[0]


def system(path: Path) -> Any:
    """The one that answers for a path or URL: :class:`Machine` or a :class:`Store`.

    Raises:
      UnimplementedError: it is a URL, and fsspec, or what it needs for the scheme, is not installed; or there is no such scheme.
    """
    return _store(os.fsdecode(path)) if is_url(path) else Machine


def _store(url: str) -> Store:
    scheme = url.partition("://")[0]
    try:
        from fsspec import core
        from fsspec.registry import known_implementations
    except ImportError as error:
        raise UnimplementedError(
            f"{url!r} is a URL: its store is reached with fsspec, which is not installed",
            hint="pip install 'graphdock[remote]', or copy the files here",
        ) from error
    try:
        files, _ = core.url_to_fs(url)
    except ImportError as error:
        raise UnimplementedError(
            f"{url!r}: fsspec needs another package for {scheme}://: {error}",
            hint=f"pip install {_package(known_implementations, scheme)}",
        ) from error
    except ValueError as error:
        raise UnimplementedError(
            f"file system scheme {scheme!r} is not here: {error}", got=url, hint="mount it, or copy the files"
        ) from error
    except Exception as error:  # noqa: BLE001 - a client that can't reach its store
        raise OSError(errno.EIO, f"{type(error).__name__}: {error}", url) from error
    return Store(scheme, files)


def _package(table: Any, scheme: str) -> str:
    """The distribution that brings a scheme, by fsspec's own table."""
    return str(table.get(scheme, {}).get("class", scheme)).partition(".")[0]


def opened(path: Path, mode: str = "rb") -> BinaryIO:
    """Open a file, bytes alone. What is written to a store's file is there when it is closed.

    Raises:
      OSError: as ``open`` does. UnimplementedError: as of :func:`system`.
    """
    if not is_url(path):
        return open(local_path(path) if isinstance(path, str) else path, mode)  # type: ignore[return-value]  # noqa: SIM115
    url = os.fsdecode(path)
    with system(url).asked(url) as (files, inner):
        found: BinaryIO = files.open(inner, mode)
    return found


def descriptor(path: str, flags: int) -> int:
    """A descriptor to read a file by, as ``os.open`` gives it; of a store's file a copy that has no name.

    Raises:
      OSError: as ``os.open`` does. UnimplementedError: as of :func:`system`.
    """
    if not is_url(path):
        return os.open(path, flags)
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy")
        with system(path).asked(path) as (files, inner):
            files.get_file(inner, copy)
        return os.open(copy, flags)


def _scheme(path: str) -> str:
    return path.partition("://")[0] if is_url(path) else ""


def copied(old: str, new: str) -> None:
    """Copy a file, from one system to another too."""
    if _scheme(old) == _scheme(new):
        system(old).copyfile(old, new)
        return
    with opened(old) as source, opened(new, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def renamed(old: str, new: str) -> None:
    """Rename a file or folder; from one system to another a file is copied, and removed then."""
    if _scheme(old) == _scheme(new):
        system(old).replace(old, new)
    else:
        copied(old, new)
        system(old).remove(old)
