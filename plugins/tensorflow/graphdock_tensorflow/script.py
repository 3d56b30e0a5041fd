"""Public names of TensorFlow that a Python file uses: read from its syntax, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphdock.errors import InvalidArgumentError

__all__ = ["Use", "attributes", "uses"]

_PACKAGES = ("tensorflow.compat.v1", "tensorflow", "graphdock")


@dataclass(frozen=True, slots=True)
class Use:
    """A name below ``tf``, or an attribute of any value with its dot; the line where it stands; arguments given by name there."""

    name: str
    line: int
    arguments: frozenset[str] = frozenset()


def uses(path: Path) -> list[Use]:
    """The names that a file uses through ``import tensorflow as tf``, ``import graphdock as tf`` or ``from tensorflow import nn``.

    Raises:
      InvalidArgumentError: the file is no Python of this version; with its line.
    """
    tree = _parsed(path)
    bound: dict[str, str] = {}
    found: dict[Use, None] = {}
    for node in ast.walk(tree):
        for name, full in _imports(node):
            bound[name] = full
            if full:
                found[Use(full, node.lineno)] = None  # type: ignore[attr-defined]
    inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    given = _arguments(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            dotted = _dotted(node)
            if dotted is not None and dotted[0] in bound:
                name = ".".join(p for p in (bound[dotted[0]], *dotted[1:]) if p).removeprefix("compat.v1.")
                if not name.startswith("__"):  # tf.__version__: every module has it
                    found[Use(name, node.lineno, given.get(id(node), frozenset()))] = None
        elif isinstance(node, ast.Name) and id(node) in given and bound.get(node.id):
            found[Use(bound[node.id], node.lineno, given[id(node)])] = None
    return sorted(found, key=lambda use: (use.line, use.name))


def attributes(path: Path) -> list[Use]:
    """Attributes of any value that a file uses, each with its dot: ``.partial_run``.

    Raises:
      InvalidArgumentError: as of :func:`uses`.
    """
    found = {Use(f".{n.attr}", n.lineno) for n in ast.walk(_parsed(path)) if isinstance(n, ast.Attribute)}
    return sorted(found, key=lambda use: (use.line, use.name))


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes())
    except SyntaxError as error:
        raise InvalidArgumentError(
            f"{path}:{error.lineno}: not Python 3: {error.msg}", hint="2to3 or a formatter may help"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{path}: not Python: {error}") from None


def _arguments(tree: ast.Module) -> dict[int, frozenset[str]]:
    """``id`` of what is called -> arguments that the call gives by name."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {id(c.func): frozenset(k.arg for k in c.keywords if k.arg is not None) for c in calls if c.keywords}


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what an import binds -> its name below ``tf``, empty for ``tf`` itself."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            below = _below(alias.name)
            if below is not None and alias.asname is not None:
                yield alias.asname, below
            elif below is not None:
                yield alias.name.partition(".")[0], ""
    elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
        below = _below(node.module)
        if below is not None:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                full = "" if inside in _PACKAGES else ".".join(p for p in (below, alias.name) if p)
                yield alias.asname or alias.name, full


def _below(module: str) -> str | None:
    """The name below ``tf`` of a module: empty for ``tensorflow`` itself, None for another's."""
    for package in _PACKAGES:
        if module == package:
            return ""
        if module.startswith(package + "."):
            return module[len(package) + 1 :]
    return None


def _dotted(node: ast.expr) -> list[str] | None:
    """``tf.nn.relu`` as its parts; None for what does not begin with a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else None
