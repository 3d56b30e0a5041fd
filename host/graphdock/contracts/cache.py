"""The cache of what plugins compile: a file is whole or not there, and behind a checksum."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["cache_dir", "read_cache", "replace_file", "write_cache"]

_DIGEST = 32


def cache_dir(variables: Mapping[str, str] = os.environ) -> Path:
    """The folder: ``GRAPHDOCK_CACHE_DIR``, else ``graphdock`` in the user's cache folder. It may not exist yet."""
    named = variables.get("GRAPHDOCK_CACHE_DIR")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphdock"


def _digest(data: bytes) -> bytes:
    from hashlib import sha256  # loads OpenSSL, which a session without compiled code has no use for

    return sha256(data).digest()


def read_cache(path: Path) -> bytes | None:
    """Data that :func:`write_cache` wrote; None where there is nothing, or where it is damaged: it is then made again."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return data[_DIGEST:] if _digest(data[_DIGEST:]) == data[:_DIGEST] else None


def write_cache(path: Path, data: bytes) -> bool:
    """Write a file of the cache, and its folders; from any thread and process, the last one stands.

    Returns False where the folder can't be written: nothing is then kept, which costs time alone.
    """
    try:
        replace_file(path, _digest(data) + data)
    except OSError:
        return False
    return True


def replace_file(path: Path, data: bytes) -> None:
    """Write a whole file, or leave what was there; whoever reads meanwhile sees one of the two. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    try:
        with beside.open("xb") as file:
            file.write(data)
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)  # a full disk keeps nothing of it
        raise
