"""TOML with positions: tomllib has none, so the line of a key is found by reading the text again.

Time and memory are bounded by the text's size: tables and arrays nest no deeper than :data:`DEEPEST`, and integers have 64
bits, which is what TOML promises.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from graphdock.errors import GraphdockError

#: Deepest nesting of tables and arrays.
DEEPEST = 32
# all of a line without the blanks around it
_HEADER = re.compile(r"\[\[?(?P<key>[^\[\]]+)\]\]?\s*(?:#.*)?")
_DOTTED = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*"""
_KEY = re.compile(rf"(?P<key>{_DOTTED})\s*=")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


def _parts(key: str) -> tuple[str, ...]:
    return tuple(p.strip("\"'") for p in _PART.findall(key))


def parse(text: str, label: str, error: type[GraphdockError]) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises:
      error: the text is not TOML, or goes beyond its bounds; the message begins with ``label:line``.
    """
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if (
            line.count(".") > DEEPEST
        ):  # tomllib would walk down all of a header for each key below it, and of a key for each part
            header, key = _HEADER.fullmatch(line), _KEY.match(line)
            if header is not None and re.fullmatch(_DOTTED, header["key"].strip()):
                key = header
            if key is not None and len(_parts(key["key"])) > DEEPEST:
                raise error(f"{label}:{number}: nested deeper than {DEEPEST}")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as cause:
        found = re.search(r"line (\d+)", str(cause))
        where = f"{label}:{found[1] if found else max(1, len(text.splitlines()))}"  # what has no line is at the end
        raise error(f"{where}: not valid TOML: {str(cause).partition(' (at ')[0]}") from cause
    except RecursionError:
        raise error(f"{label}: not valid TOML: nested deeper than {DEEPEST}") from None
    except ValueError as cause:  # the digits of a number
        raise error(f"{label}: not valid TOML: {cause}") from cause
    _check_bounds(data, text, label, error)
    return data


def _check_bounds(data: dict[str, Any], text: str, label: str, error: type[GraphdockError]) -> None:
    """Raise ``error`` for what is nested too deep or is too large a number."""
    waiting: list[tuple[Any, tuple[str, ...], int]] = [(data, (), 0)]
    while waiting:
        value, path, depth = waiting.pop()
        if depth > DEEPEST:
            raise error(f"{label}:{line_of(text, *path)}: nested deeper than {DEEPEST}")
        if isinstance(value, dict):
            waiting.extend((inner, (*path, key), depth + 1) for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend((inner, path, depth + 1) for inner in value)
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise error(f"{label}:{line_of(text, *path)}: {'.'.join(path)} does not fit into 64 bits")


def line_of(text: str, *path: str | int) -> int:
    """The line, from 1, on which the key at ``path`` stands.

    An int in the path counts the tables of an array (``"kernels", 2, "op"``). Where the key itself is not on a line
    of its own (an inline table), the line of its nearest parent is given; 1 where there is none.
    """
    names = tuple(p for p in path if isinstance(p, str))
    occurrence = next((p for p in path if isinstance(p, int)), None)
    current: tuple[str, ...] = ()
    seen = -1
    best, best_length = 1, 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        header = _HEADER.fullmatch(line)
        if header is not None and "=" not in header["key"]:
            current = _parts(header["key"])
            if occurrence is not None and current == names[: len(current)] and line.startswith("[["):
                seen += 1
            here: Sequence[str] = current
        else:
            key = _KEY.match(line)
            if key is None:
                continue
            here = (*current, *_parts(key["key"]))
        if occurrence is not None and seen != occurrence:
            continue
        if len(here) > best_length and tuple(here) == names[: len(here)]:
            best, best_length = number, len(here)
            if best_length == len(names):
                break
    return best
