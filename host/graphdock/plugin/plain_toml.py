"""TOML of the form that manifests have, read without ``tomllib``, which takes longer to import than to read all manifests.

Here are tables, arrays of tables, keys without dots, and values that are text without escapes, numbers without exponents, ``true``,
``false``, or arrays and inline tables of such. Of a text that has anything else, or that is no TOML, nothing is said:
``tomllib`` reads it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["loads"]

_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
#: Deepest nesting of tables and arrays that is read here; what bounds it elsewhere is told elsewhere.
_DEEPEST = 8
_WORDS = {"true": True, "false": False}


class _OtherForm(Exception):
    """Something is not of the form that is read here."""


def loads(text: str) -> dict[str, Any] | None:
    """The tables of a text, as ``tomllib.loads`` gives them; None where it has another form."""
    if not text.replace("\n", "").replace("\t", "").isprintable():
        return None
    try:
        return _Reader(text + "\n").tables()
    except (_OtherForm, IndexError, ValueError):
        return None


class _Reader:
    """A text that ends with a line's end, and how far it is read."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0

    def tables(self) -> dict[str, Any]:
        text, root = self.text, dict[str, Any]()
        table, headed = root, {id(root)}
        while self.at < len(text):
            self.skip(" \t\n")
            if self.at == len(text):
                break
            if text[self.at] == "[":
                table = self.header(root, headed)
            elif text[self.at] != "#":
                self.pair(table)
            self.skip(" \t")
            if text[self.at] == "#":
                self.at = text.index("\n", self.at)
            if text[self.at] != "\n":
                raise _OtherForm
        return root

    def header(self, root: dict[str, Any], headed: set[int]) -> dict[str, Any]:
        """The table that ``[a.b]`` or ``[[a.b]]`` opens. ``headed``: what headers opened, by identity."""
        text, many = self.text, self.text.startswith("[[", self.at)
        close = "]]" if many else "]"
        end = text.index(close, self.at)
        *path, last = [part.strip(" \t") for part in text[self.at + len(close) : end].split(".")]
        self.at = end + len(close)
        if len(path) > _DEEPEST or not all(part and _BARE.issuperset(part) for part in (*path, last)):
            raise _OtherForm
        parent = root
        for part in path:
            if part not in parent:
                parent[part] = {}
                headed.add(id(parent[part]))
            below = parent[part]
            if id(below) not in headed:
                raise _OtherForm
            parent = below[-1] if isinstance(below, list) else below
        made: dict[str, Any] = {}
        if many and last not in parent:
            parent[last] = []
            headed.add(id(parent[last]))
        elif last in parent and not (many and isinstance(parent[last], list) and id(parent[last]) in headed):
            raise _OtherForm
        if many:
            parent[last].append(made)
        else:
            parent[last] = made
        headed.add(id(made))
        return made

    def pair(self, table: dict[str, Any]) -> None:
        """``key = value``."""
        key = self.value() if self.text[self.at] == '"' else self.word()
        self.skip(" \t")
        if not key or key in table or self.text[self.at] != "=":
            raise _OtherForm
        self.at += 1
        self.skip(" \t")
        table[key] = self.value()

    def value(self) -> Any:
        text, at = self.text, self.at
        if text[at] == '"':
            end = text.index('"', at + 1)
            found = text[at + 1 : end]
            if "\\" in found or "\n" in found or text.startswith('"""', at):
                raise _OtherForm
            self.at = end + 1
            return found
        if text[at] in "[{":
            self.at, self.depth = at + 1, self.depth + 1
            if self.depth > _DEEPEST:
                raise _OtherForm
            inner = self.array() if text[at] == "[" else self.inline()
            self.depth -= 1
            return inner
        word = self.word()
        if word in _WORDS:
            return _WORDS[word]
        digits = word.removeprefix("-")
        if not digits.isdecimal() or len(digits) > 18 or (digits[0] == "0" and word != "0"):
            raise _OtherForm
        if text[self.at] != ".":
            return int(word)
        self.at += 1
        places = self.word()
        if not places.isdecimal():
            raise _OtherForm
        return float(f"{word}.{places}")

    def array(self) -> list[Any]:
        end = self.text.index("]", self.at)
        first, *parts = self.text[self.at : end].split('"')
        texts, between = parts[::2], [part.strip(" \t\n") for part in parts[1::2]]
        plain = len(texts) == len(between) and between[-1:] in ([""], [","]) and {*between[:-1]} <= {","}
        if plain and not first.strip(" \t\n") and "\\" not in (every := "".join(texts)) and "\n" not in every:
            self.at = end + 1  # nothing but texts, of which there may be hundreds
            return texts
        found: list[Any] = []
        self.skip(" \t\n")
        while self.text[self.at] != "]":
            found.append(self.value())
            self.skip(" \t\n")
            if self.text[self.at] == ",":
                self.at += 1
                self.skip(" \t\n")
            elif self.text[self.at] != "]":
                raise _OtherForm
        self.at += 1
        return found

    def inline(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.skip(" \t")
        while self.text[self.at] != "}" or found:
            self.pair(found)
            self.skip(" \t")
            self.at += 1
            if self.text[self.at - 1] == "}":
                return found
            if self.text[self.at - 1] != ",":
                raise _OtherForm
            self.skip(" \t")
        self.at += 1
        return found

    def word(self) -> str:
        start = self.at
        while self.text[self.at] in _BARE:
            self.at += 1
        return self.text[start : self.at]

    def skip(self, blanks: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in blanks:
            self.at += 1
