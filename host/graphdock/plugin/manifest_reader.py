"""Tables of one manifest's text, checked key by key: every error names file, line and key."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphdock.contracts.version import API_RANGE
from graphdock.errors import ManifestError, did_you_mean
from graphdock.plugin.toml_text import line_of, parse

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


@dataclass(frozen=True, slots=True)
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
