"""Tables of one manifest's text, checked key by key: every error names file, line and key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from graphdock.contracts.version import API_RANGE
from graphdock.errors import ManifestError, did_you_mean
from graphdock.plugin.toml_text import line_of, parse

__all__ = ["ManifestReader"]

#: Key -> a value as it is written.
_EXAMPLES: dict[tuple[str | int, ...], str] = {
    ("plugin", "api"): f'"{API_RANGE}"',
    ("plugin", "imports"): '["mychip_driver"]',
}

#: Keys of earlier versions -> what to write.
RENAMED = {"lacks": "it is called 'unsupported' since contracts 0.3"}


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
        path: tuple[str | int, ...],
        message: str,
        *,
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = None,
    ) -> ManifestError:
        line = line_of(self.text, *path) + self.offset
        return ManifestError(f"{self.label}:{line}: {message}", expected=expected, got=got, hint=hint)

    def table(
        self, value: Any, path: tuple[str | int, ...], keys: Mapping[str, type], required: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        shown = ".".join(str(p) for p in path if isinstance(p, str)) or "the file"
        if not isinstance(value, dict):
            raise self.fail(path, f"{shown} must be a table", got=repr(value))
        for key, item in value.items():
            if key not in keys:
                raise self.fail(
                    (*path, key),
                    f"unknown key {key!r} in {shown}",
                    expected="one of " + ", ".join(keys),
                    hint=RENAMED.get(key) or did_you_mean(key, keys),
                )
            kind = keys[key]
            if kind is not object and (not isinstance(item, kind) or (isinstance(item, bool) and kind is not bool)):
                wanted = {str: "a string", int: "an integer", list: "an array", dict: "a table", bool: "true or false"}[
                    kind
                ]
                raise self.fail(
                    (*path, key),
                    f"{key!r} in {shown} has the wrong type",
                    expected=wanted,
                    got=repr(item),
                    hint=f"such as {key} = {_EXAMPLES[(*path, key)]}" if (*path, key) in _EXAMPLES else None,
                )
        for key in required:
            if key not in value:
                raise self.fail(path, f"{shown} lacks the key {key!r}")
        return value

    def strings(
        self, value: list[Any], path: tuple[str | int, ...], check: Callable[[str], bool] | None = None
    ) -> tuple[str, ...]:
        for item in value:
            if not isinstance(item, str) or (check is not None and not check(item)):
                raise self.fail(path, f"{path[-1]!r} holds {item!r}", expected="names")
        return tuple(value)
