"""Python source as a formatter would lay it out: on one line where it fits, else one element per line."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Call",
    "Raw",
    "WIDTH",
    "call",
    "expression",
    "literal",
    "parameters",
    "pretty",
    "statement",
    "string",
    "unparse",
]

WIDTH = 120


class Raw(str):
    """Text that is source already."""


@dataclass(frozen=True, slots=True)
class Call:
    """``name(parts)``; each part is source, perhaps with ``key=`` in front, and the value it was made from."""

    name: str
    parts: tuple[tuple[str, Any], ...]


def string(value: str) -> str:
    """A string literal in double quotes, or in single ones where that saves escapes."""
    quote = "'" if '"' in value and "'" not in value else '"'
    out = []
    for c in value:
        if c in ("\\", quote):
            out.append("\\" + c)
        elif c == "\n":
            out.append("\\n")
        elif c == "\t":
            out.append("\\t")
        elif c.isprintable():
            out.append(c)
        else:
            out.append(c.encode("unicode_escape").decode("ascii"))
    return quote + "".join(out) + quote


def literal(value: Any) -> str:
    """A value on one line. Lists become tuples; mappings keep their order."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, Call):
        return f"{value.name}({', '.join(key + literal(v) for key, v in value.parts)})"
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
    """A value that begins after ``lead`` characters of a line indented by ``indent``; a comma may follow it."""
    line = literal(value)
    if indent + lead + len(line) + 1 <= WIDTH:
        return line
    pad, end = " " * (indent + 4), " " * indent
    if isinstance(value, Mapping):
        parts = [f"{literal(k)}: {pretty(v, indent + 4, len(literal(k)) + 2)}" for k, v in value.items()]
        return "{\n" + "".join(f"{pad}{p},\n" for p in parts) + end + "}"
    if isinstance(value, list | tuple):
        return "(\n" + "".join(f"{pad}{pretty(v, indent + 4)},\n" for v in value) + end + ")"
    if isinstance(value, Call):
        flat = ", ".join(key + literal(v) for key, v in value.parts)
        if flat and len(pad) + len(flat) <= WIDTH:
            return f"{value.name}(\n{pad}{flat}\n{end})"
        parts = [key + pretty(v, indent + 4, len(key)) for key, v in value.parts]
        return f"{value.name}(\n" + "".join(f"{pad}{p},\n" for p in parts) + end + ")"
    if isinstance(value, str) and not isinstance(value, Raw):
        return "(\n" + "".join(f"{pad}{string(piece)}\n" for piece in _pieces(value, WIDTH - indent - 6)) + end + ")"
    return line


def _pieces(text: str, width: int) -> list[str]:
    """A string cut after blanks so that no literal of a piece is wider than ``width``."""
    if len(string(text)) <= width + 2:
        return [text]
    pieces, current = [], ""
    for word in text.split(" "):
        longer = current + word + " "
        if current and len(string(longer)) > width:
            pieces.append(current)
            longer = word + " "
        current = longer
    pieces.append(current[:-1])
    return [p for p in pieces if p]


def call(name: str, *args: Any, **kwargs: Any) -> Call:
    """``name(arg, key=value)``."""
    return Call(name, tuple([("", a) for a in args] + [(f"{k}=", v) for k, v in kwargs.items()]))


class _Placeholders(ast.NodeTransformer):
    """Names in place of strings, so that they can be written in double quotes. No name of a spec has such a letter."""

    def __init__(self) -> None:
        self.strings: list[str] = []

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, str):
            return node
        self.strings.append(node.value)
        return ast.Name(f"\N{LATIN SMALL LETTER ETH}{len(self.strings) - 1}", ast.Load())


def unparse(node: ast.expr) -> str:
    """``ast.unparse`` with strings in double quotes."""
    keeper = _Placeholders()
    text = ast.unparse(keeper.visit(copy.deepcopy(node)))
    return re.sub("\N{LATIN SMALL LETTER ETH}([0-9]+)", lambda found: string(keeper.strings[int(found[1])]), text)


def parameters(parts: list[str], lead: int, tail: int) -> str:
    """Parameters of a ``def``, between its parentheses: on its line, on a line of their own, or one per line."""
    line = ", ".join(parts)
    if lead + len(line) + tail <= WIDTH:
        return line
    if 4 + len(line) <= WIDTH:
        return f"\n    {line}\n"
    return "\n" + "".join(f"    {p},\n" for p in parts)


def statement(text: str, indent: int = 4) -> list[str]:
    """An assignment or return statement as lines, broken where its expression is too long; not indented."""
    if len(text) + indent <= WIDTH or "\n" in text:
        return text.splitlines()
    for head in ("return ", "raise "):
        if text.startswith(head):
            return (
                head + expression(ast.parse(text.removeprefix(head), mode="eval").body, indent, len(head))
            ).splitlines()
    target, equals, value = text.partition(" = ")
    if equals and target.isidentifier():
        broken = expression(ast.parse(value, mode="eval").body, indent, len(target) + 3)
        return f"{target} = {broken}".splitlines()
    return [text]


def expression(node: ast.expr, indent: int, lead: int = 0) -> str:
    """An expression that begins after ``lead`` characters of a line indented by ``indent``.

    Continuation lines are indented relative to that line, not to the margin.
    """
    line = unparse(node)
    if indent + lead + len(line) + 1 <= WIDTH:
        return line

    def block(nodes: list[str]) -> str:
        return "".join(f"    {n},\n" for n in nodes)

    def inner(child: ast.expr, lead: int = 0) -> str:
        return expression(child, indent + 4, lead).replace("\n", "\n    ")

    if isinstance(node, ast.Call):
        flat = [unparse(a) for a in node.args] + [f"{k.arg}={unparse(k.value)}" for k in node.keywords]
        if flat and indent + 4 + len(", ".join(flat)) <= WIDTH:
            return f"{unparse(node.func)}(\n    {', '.join(flat)}\n)"
        parts = [inner(a) for a in node.args]
        parts += [f"{k.arg}={inner(k.value, len(k.arg or '') + 1)}" for k in node.keywords]
        return f"{unparse(node.func)}(\n{block(parts)})"
    if isinstance(node, ast.Attribute):
        return f"{expression(node.value, indent, lead)}.{node.attr}"
    if isinstance(node, ast.List):
        return f"[\n{block([inner(e) for e in node.elts])}]"
    if isinstance(node, ast.Starred):
        return "*" + expression(node.value, indent, lead + 1)
    if isinstance(node, ast.IfExp):
        body, test, other = inner(node.body), inner(node.test, 3), inner(node.orelse, 5)
        return f"(\n    {body}\n    if {test}\n    else {other}\n)"
    return line
