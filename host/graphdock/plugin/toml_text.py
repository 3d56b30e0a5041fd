"""TOML with positions: tomllib has none, so the line of a key is found by reading the text again."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from graphdock.errors import GraphdockError

__all__ = ["line_of", "parse"]

_HEADER = re.compile(r"\s*\[\[?\s*(?P<key>[^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(
    r"""\s*(?P<key>(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


def _parts(key: str) -> tuple[str, ...]:
    return tuple(p.strip("\"'") for p in _PART.findall(key))


def parse(text: str, label: str, error: type[GraphdockError]) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises:
      error: the text is not TOML; the message begins with ``label:line``.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as cause:
        found = re.search(r"line (\d+)", str(cause))
        where = f"{label}:{found[1]}" if found else label
        raise error(f"{where}: not valid TOML: {re.sub(r' *[(]at .*[)]$', '', str(cause))}") from cause


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
        header = _HEADER.match(line)
        if header is not None and "=" not in header["key"]:
            current = _parts(header["key"])
            if occurrence is not None and current == names[: len(current)] and line.lstrip().startswith("[["):
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
