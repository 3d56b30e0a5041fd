"""A program's text with graphdock imported in TensorFlow's place, and names of before TensorFlow 1.0 as they are called today.

What stands between the names (comments, layout, strings) is left as it is. Imports of TensorFlow's inside stay: ``graphdock
run`` answers them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphdock_tensorflow.catalogue import renamed

__all__ = ["rewritten"]

#: Modules of TensorFlow that are graphdock itself, the longest first.
_SELVES = ("tensorflow.compat.v1", "tensorflow")
#: Parts of TensorFlow that are none of its API.
_INSIDES = ("tensorflow.python", "tensorflow.core", "tensorflow.examples", "tensorflow.keras")


def rewritten(text: str) -> str:
    """The program's new text; the same where there is nothing to change.

    Raises:
      SyntaxError: it is no Python of this version.
    """
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    bound = {"tf"} | {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in _SELVES and alias.asname is not None
    }
    edits = sorted({*_imports(tree), *_names(tree, bound)}, reverse=True)
    for line, begin, old, new in edits:
        encoded = lines[line - 1].encode("utf-8")
        at = encoded.find(old.encode("utf-8"), begin)
        if at >= 0:
            lines[line - 1] = (encoded[:at] + new.encode("utf-8") + encoded[at + len(old.encode("utf-8")) :]).decode(
                "utf-8"
            )
    return "".join(lines)


def _imports(tree: ast.AST) -> Iterator[tuple[int, int, str, str]]:
    """Changes of imports: line, first byte to look from, the old text, the new."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                new = _module(alias.name)
                if new is not None and alias.asname is None and "." not in alias.name:
                    yield alias.lineno, alias.col_offset, alias.name, f"{new} as {alias.name}"
                elif new is not None and alias.asname is not None:
                    yield alias.lineno, alias.col_offset, alias.name, new
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            new = _module(node.module)
            if new is not None and not any(alias.name == "v1" for alias in node.names):
                yield node.lineno, node.col_offset, node.module, new


def _module(name: str) -> str | None:
    """Return what a module of TensorFlow is called here; None for one that stays."""
    if any(f"{name}.".startswith(f"{inside}.") for inside in _INSIDES):
        return None
    for package in _SELVES:
        if f"{name}.".startswith(f"{package}."):
            return "graphdock" + name[len(package) :]
    return None


def _names(tree: ast.AST, bound: set[str]) -> Iterator[tuple[int, int, str, str]]:
    """Changes of names of before 1.0."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        parts: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            parts.insert(0, inner.attr)
            inner = inner.value
        name = ".".join(parts)
        if isinstance(inner, ast.Name) and inner.id in bound and name in renamed() and node.end_lineno == node.lineno:
            yield node.lineno, node.col_offset, f"{inner.id}.{name}", f"{inner.id}.{renamed()[name]}"
