"""Python literals as a formatter would lay them out: on one line where they fit, else one element per line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Raw", "call", "literal", "pretty", "string"]

WIDTH = 120


class Raw(str):
    """Text that is source already."""


def string(value: str) -> str:
    """A string literal in double quotes."""
    out = []
    for c in value:
        if c in '\\"':
            out.append("\\" + c)
        elif c == "\n":
            out.append("\\n")
        elif c == "\t":
            out.append("\\t")
        elif c.isprintable():
            out.append(c)
        else:
            out.append(c.encode("unicode_escape").decode("ascii"))
    return '"' + "".join(out) + '"'


def literal(value: Any) -> str:
    """A value on one line. Lists become tuples; mappings keep their order."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, frozenset):
        inner = ", ".join(literal(v) for v in sorted(value))
        return f"frozenset({{{inner}}})" if inner else "frozenset()"
    if isinstance(value, list | tuple):
        inner = ", ".join(literal(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def pretty(value: Any, indent: int = 0, lead: int = 0) -> str:
    """A value that begins after ``lead`` characters of a line indented by ``indent``."""
    line = literal(value)
    if "\n" not in line and indent + lead + len(line) + 1 <= WIDTH or isinstance(value, Raw | str | int | float | None):
        return line
    pad = " " * (indent + 4)
    if isinstance(value, Mapping):
        parts = [f"{pad}{literal(k)}: {pretty(v, indent + 4, len(literal(k)) + 2)},\n" for k, v in value.items()]
        return "{\n" + "".join(parts) + " " * indent + "}"
    if isinstance(value, list | tuple):
        return "(\n" + "".join(f"{pad}{pretty(v, indent + 4)},\n" for v in value) + " " * indent + ")"
    return line


def call(name: str, *args: Any, **kwargs: Any) -> Raw:
    """``name(arg, key=value)`` on one line."""
    parts = [literal(a) for a in args] + [f"{k}={literal(v)}" for k, v in kwargs.items()]
    return Raw(f"{name}({', '.join(parts)})")
