"""Site where an operation was made: remembered as a code object and an instruction, read as file and line only when asked for."""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType
from typing import TypeAlias

__all__ = ["Site", "add_internal_folder", "call_site", "capture", "describe", "frames"]

#: (code object, instruction offset) of the user's own frame.
Site: TypeAlias = tuple[CodeType, int]

_host = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_folders: list[str] = [_host + os.sep]
#: Name of a file -> whether its frames are not the user's.
_internal: dict[str, bool] = {}


def add_internal_folder(folder: str) -> None:
    """Frames of files under ``folder`` are not the user's (std does this for its wrappers)."""
    _folders.append(os.path.abspath(folder) + os.sep)
    _internal.clear()


def _is_internal(name: str) -> bool:
    found = (
        name.startswith((*_folders, "<graphdock", "<frozen"))
        or f"{os.sep}_gen{os.sep}" in name
        or name.endswith(f"{os.sep}contextlib.py")
    )
    _internal[name] = found
    return found


def capture() -> Site | None:
    """The innermost frame that is not graphdock's own, within 40 frames; about a microsecond."""
    frame = sys._getframe(2)
    for _ in range(40):
        code = frame.f_code
        inside = _internal.get(code.co_filename)
        if inside is None:
            inside = _is_internal(code.co_filename)
        if not inside:
            return code, frame.f_lasti
        back = frame.f_back
        if back is None:
            return None
        frame = back
    return None


def _line(site: Site) -> int:
    code, offset = site
    lines = (number for start, end, number in code.co_lines() if start <= offset < end and number is not None)
    return next(lines, code.co_firstlineno)


def call_site() -> str | None:
    """``"train.py:14"``: the line of the user's own frame that called."""
    return describe(capture())


def frames(site: Site | None) -> list[tuple[str, int, str, str]]:
    """``(file, line, function, text of the line)`` of the user's own frame, in a list as ``traceback`` gives a stack."""
    if site is None:
        return []
    code, line = site[0], _line(site)
    return [(code.co_filename, line, code.co_name, linecache.getline(code.co_filename, line).strip())]


def describe(site: Site | None) -> str | None:
    """``"train.py:14"``: the path relative to the working directory where that is shorter, and the line."""
    if site is None:
        return None
    path, line = site[0].co_filename, _line(site)
    if os.path.isabs(path):
        relative = os.path.relpath(path)
        path = relative if not relative.startswith("..") else path
    return f"{path}:{line}"
