"""Texts of an op that stand in its spec alone: its summary, its page, what its arguments are for. No session reads them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from graphdock.contracts.opdef import ArgDef, AttrDef, OpDef

__all__ = ["documented", "documented_op", "tests_of"]

_Def = TypeVar("_Def", ArgDef, AttrDef)


def documented(opdef: OpDef, folder: Path) -> OpDef:
    """A generated op's OpDef with the texts of its spec, and the line where that stands; any other OpDef as it is.

    A file is read once per process, and again when it changes. Where it is not there, as in a wheel that was built without it, the
    summary says so.

    Args:
      folder: the package that ``OpDef.source`` is below.
    """
    path = folder / opdef.source
    if path.suffix != ".yaml":
        return opdef
    if not path.is_file():
        return replace(opdef, summary=f"({opdef.source} is not installed with {opdef.package})")
    entry = _entries(path, path.stat().st_mtime_ns).get(opdef.name.rpartition(".")[2])
    if entry is None:
        return replace(opdef, summary=f"({opdef.source} has changed, and this op is gone from it)")
    line, said = entry
    return replace(
        opdef,
        summary=_text(said, "summary"),
        doc=_text(said, "doc"),
        inputs=_with_docs(opdef.inputs, said.get("inputs")),
        outputs=_with_docs(opdef.outputs, said.get("outputs")),
        attrs=_with_docs(opdef.attrs, said.get("attrs")),
        source=f"{opdef.source}:{line}",
    )


def tests_of(registry: Any, name: str) -> Mapping[str, Any]:
    """Return what the spec of an op says under ``tests``, as written: ``samples``, ``error_samples``, ...; empty where
    there is no spec.

    Args:
      registry: the host's ``ops``.
    """
    opdef: OpDef = registry.get(name)
    folder = registry.specs_of(opdef.package)
    if folder is None or not opdef.source.endswith(".yaml"):
        return {}
    path = Path(importlib.import_module(folder).__path__[0]) / opdef.source
    entry = _entries(path, path.stat().st_mtime_ns).get(name.rpartition(".")[2]) if path.is_file() else None
    found: Mapping[str, Any] = {} if entry is None or "tests" not in entry[1] else _plain(entry[1]["tests"])
    return found


def _plain(node: Any) -> Any:
    """A node of YAML as dicts, lists and the texts of scalars."""
    if not isinstance(node.value, list):
        return node.value
    if node.tag.endswith(":map"):
        return {key.value: _plain(value) for key, value in node.value}
    return [_plain(item) for item in node.value]


def documented_op(registry: Any, name: str) -> OpDef:
    """The OpDef of a host's op with the texts of its spec.

    Args:
      registry: the host's ``ops``.

    Raises:
      UnknownOpError: no allowed plugin declares it.
    """
    opdef: OpDef = registry.get(name)
    folder = registry.specs_of(opdef.package)
    return opdef if folder is None else documented(opdef, Path(importlib.import_module(folder).__path__[0]))


def _with_docs(items: Sequence[_Def], node: Any) -> tuple[_Def, ...]:
    said = [_fields(item) for item in node.value] if node is not None else []
    docs = {_text(fields, "name"): _text(fields, "doc") for fields in said}
    return tuple(replace(item, doc=docs.get(item.name, "")) for item in items)


@lru_cache(maxsize=512)
def _entries(path: Path, changed: int) -> Mapping[str, tuple[int, Mapping[str, Any]]]:
    """Name of an op -> its line in a file of a modification time, and the nodes of its entry."""
    import yaml  # takes 30 ms, which a list of ops without specs need not

    root = yaml.compose(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    ops = [(node.start_mark.line + 1, _fields(node)) for node in _fields(root)["ops"].value]
    return {_text(fields, "name"): (line, fields) for line, fields in ops}


def _fields(node: Any) -> dict[str, Any]:
    return {key.value: value for key, value in node.value}


def _text(fields: Mapping[str, Any], key: str) -> str:
    return str(fields[key].value).strip() if key in fields else ""
