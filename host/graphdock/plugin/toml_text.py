"""TOML with positions, and tables read key by key: every error names file, line and key.

tomllib has no positions, so the line of a key is found by reading the text again.

Time and memory are bounded by the text's size: tables and arrays nest no deeper than :data:`DEEPEST`, and integers have 64
bits, which is what TOML promises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.version import API_RANGE
from graphdock.errors import GraphdockError, ManifestError, did_you_mean
from graphdock.plugin import plain_toml

#: Deepest nesting of tables and arrays.
DEEPEST = 32
# Patterns, not compiled: errors alone need them. The first is of all of a line without the blanks around it.
_HEADER = r"\[\[?(?P<key>[^\[\]]+)\]\]?\s*(?:#.*)?"
_DOTTED = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*"""
_KEY = rf"(?P<key>{_DOTTED})\s*="
_PART = r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'"""


def _parts(key: str) -> tuple[str, ...]:
    return tuple(p.strip("\"'") for p in re.findall(_PART, key))


def parse(text: str, label: str, error: type[GraphdockError]) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises:
      error: the text is not TOML, or goes beyond its bounds; the message begins with ``label:line``.
    """
    plain = plain_toml.loads(text)
    if plain is not None:
        _check_bounds(plain, text, label, error)
        return plain
    import tomllib  # few processes read a text of another form

    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if (
            line.count(".") > DEEPEST
        ):  # tomllib would walk down all of a header for each key below it, and of a key for each part
            header, key = re.fullmatch(_HEADER, line), re.match(_KEY, line)
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
        header = re.fullmatch(_HEADER, line)
        if header is not None and "=" not in header["key"]:
            current = _parts(header["key"])
            if occurrence is not None and current == names[: len(current)] and line.startswith("[["):
                seen += 1
            here: Sequence[str] = current
        else:
            key = re.match(_KEY, line)
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


#: Where something stands: keys, and the numbers of rows of arrays.
Path: TypeAlias = tuple[str | int, ...]
#: Key -> a value as it is written.
_EXAMPLES: dict[Path, str] = {
    ("plugin", "api"): f'"{API_RANGE}"',
    ("plugin", "imports"): '["mychip_driver"]',
}

#: Keys of earlier versions -> what to write.
RENAMED = {"lacks": "it is called 'unsupported' since contracts 0.3"}

_WANTED = {str: "a string", int: "an integer", list: "an array", dict: "a table", bool: "true or false"}


@lazy_dataclass(frozen=True, slots=True)
class Key:
    """A key of a table, and what its value must be.

    Attributes:
      kind: the type; ``object`` for any.
      fits: whether a value of that type is right.
      message: of the error about one that is not; a ``{!r}`` in it stands for the value.
      known: what it may be, of which the nearest is suggested.
      items: of an array of strings, whether each is right; the array becomes a tuple.
    """

    kind: type
    required: bool = False
    fits: Callable[[Any], object] | None = None
    message: str = ""
    expected: str | None = None
    known: Collection[str] = ()
    items: Callable[[str], bool] | None = None


class ManifestReader:
    """The tables of a manifest's upper or lower part.

    Args:
      label: the file as messages name it. offset: lines of the file that come before ``text``.

    Raises:
      ManifestError: the text is not TOML.
    """

    def __init__(self, text: str, label: str, offset: int = 0) -> None:
        self.text, self.label, self.offset = text, label, offset
        try:
            self.root = parse(text, label, ManifestError)
        except ManifestError as error:
            if not offset:
                raise
            raise ManifestError(
                re.sub(r":(\d+):", lambda m: f":{int(m[1]) + offset}:", error.message, count=1)
            ) from error

    def fail(
        self,
        path: Path,
        message: str,
        *,
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = None,
    ) -> ManifestError:
        line = line_of(self.text, *path) + self.offset
        return ManifestError(f"{self.label}:{line}: {message}", expected=expected, got=got, hint=hint)

    def table(self, value: Any, path: Path, keys: Mapping[str, Key]) -> dict[str, Any]:
        """The values of a table's keys, as their checks leave them."""
        shown = ".".join(str(p) for p in path if isinstance(p, str)) or "the file"
        if not isinstance(value, dict):
            raise self.fail(path, f"{shown} must be a table", got=repr(value))
        for name, item in value.items():
            if name not in keys:
                raise self.fail(
                    (*path, name),
                    f"unknown key {name!r} in {shown}",
                    expected="one of " + ", ".join(keys),
                    hint=RENAMED.get(name) or did_you_mean(name, keys),
                )
            kind = keys[name].kind
            if kind is not object and (not isinstance(item, kind) or (isinstance(item, bool) and kind is not bool)):
                raise self.fail(
                    (*path, name),
                    f"{name!r} in {shown} has the wrong type",
                    expected=_WANTED[kind],
                    got=repr(item),
                    hint=f"such as {name} = {_EXAMPLES[(*path, name)]}" if (*path, name) in _EXAMPLES else None,
                )
        for name, key in keys.items():
            if key.required and name not in value:
                raise self.fail(path, f"{shown} lacks the key {name!r}")
        return {name: self._checked(item, keys[name], (*path, name)) for name, item in value.items()}

    def _checked(self, value: Any, key: Key, path: Path) -> Any:
        if key.fits is not None and not key.fits(value):
            got = None if "{" in key.message else repr(value)
            near = did_you_mean(value, key.known) if key.known else None
            raise self.fail(path, key.message.format(value), expected=key.expected, got=got, hint=near)
        if key.items is None:
            return value
        for item in value:
            if not isinstance(item, str) or not key.items(item):
                raise self.fail(path, f"{path[-1]!r} holds {item!r}", expected="names")
        return tuple(value)

    def rows(self, value: list[Any], path: Path, keys: Mapping[str, Key]) -> list[dict[str, Any]]:
        """The tables of an array."""
        return [self.table(row, (*path, i), keys) for i, row in enumerate(value)]
