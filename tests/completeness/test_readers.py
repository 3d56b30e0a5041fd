"""A setting, hook, field or trait has a reader, or stands in a list here with the reason why it has none."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest
from graphdock import contracts
from graphdock.config.values import FIELDS
from graphdock.plugin import hookspecs
from graphdock.plugin.hookspecs import HOOKS

ROOT = Path(__file__).parents[2]
HOST = ROOT / "host" / "graphdock"

#: Fields of contracts that nobody in this distribution reads by name: packages do, or whoever takes the record as a whole.
FOR_OTHERS = {
    "pattern.Pattern.worth": "read by its name, beside check",
}
#: Fields that wait for their reader.
WAITING: dict[str, str] = {}


@functools.cache
def _nodes(folder: Path) -> list[tuple[Path, ast.AST]]:
    """What attributes and comparisons stand in the sources below a folder, each file parsed once."""
    paths = (p for p in folder.rglob("*.py") if "_gen" not in p.parts)
    return [
        (path, node)
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute | ast.Compare)
    ]


@functools.cache
def _readers() -> dict[str, set[Path]]:
    """Attribute name -> the files that read an attribute of that name."""
    found: dict[str, set[Path]] = {}
    for folder in ("host", "plugins", "opgen", "templates"):
        for path, node in _nodes(ROOT / folder):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.attr, set()).add(path)
    return found


def _is_read(name: str, declared_in: set[Path]) -> bool:
    return bool(_readers().get(name, set()) - declared_in)


# -- settings


@pytest.mark.parametrize("name", FIELDS)
def test_a_setting_is_read_outside_of_the_configuration(name):
    own = {*(HOST / "config").glob("*.py"), HOST / "cli" / "config.py"}
    assert _is_read(name, own), f"nobody reads SessionConfig.{name}"


# -- hooks


def _hooks() -> list[str]:
    return [name for name, item in vars(hookspecs).items() if inspect.isfunction(item) and name.startswith("register_")]


def test_the_page_of_hooks_and_the_loader_know_the_same():
    assert set(_hooks()) == set(HOOKS)


@pytest.mark.parametrize("name", _hooks())
def test_a_hook_is_documented_and_implemented_by_a_plugin_of_the_tests(name):
    assert inspect.getdoc(getattr(hookspecs, name))
    users = [p for p in (ROOT / "tests").rglob("*.py") if p != Path(__file__) and name in p.read_text()]
    assert users, f"no plugin of the tests implements {name}"


# -- fields of contracts, and traits


def _fields() -> list[tuple[str, str, Path]]:
    """``module.Class.field``, the field, and the module's file, of every record in contracts."""
    found = []
    for info in pkgutil.iter_modules(contracts.__path__):
        module = importlib.import_module(f"graphdock.contracts.{info.name}")
        for cls in vars(module).values():
            if not inspect.isclass(cls) or cls.__module__ != module.__name__ or cls.__name__.startswith("_"):
                continue
            if dataclasses.is_dataclass(cls):
                names = [f.name for f in dataclasses.fields(cls)]
            else:
                names = list(getattr(cls, "_fields", ()))
            path = Path(inspect.getfile(cls))
            found += [(f"{info.name}.{cls.__name__}.{name}", name, path) for name in names if not name.startswith("_")]
    return found


def _traits() -> list[str]:
    from graphdock_opgen.model import TraitsSpec

    return [name for name in TraitsSpec.model_fields if name != "deterministic"]


def _trait_is_read(name: str) -> bool:
    """Whether the host or a room of plugins/ compares a trait with something, in any module."""
    return any(
        isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Constant)
        and node.left.value == name
        and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
        for folder in ("host", "plugins")
        for _, node in _nodes(ROOT / folder)
    )


def test_every_field_of_a_contract_has_a_reader_or_a_reason():
    unread = {key for key, name, path in _fields() if not _is_read(name, {path})}
    # what its own module reads on behalf of others, as `api_accepts` does, is read
    mine = {key for key, name, path in _fields() if path in _readers().get(name, set())}
    unread = {key for key in unread if key not in mine}
    listed = {key for key in {**FOR_OTHERS, **WAITING} if not key.startswith("trait.")}
    assert unread - listed == set(), "no reader"
    assert listed - unread == set(), "it has a reader by now: take it off the list"


def test_every_trait_has_a_reader_or_a_reason():
    unread = {f"trait.{name}" for name in _traits() if not _trait_is_read(name)}
    listed = {key for key in WAITING if key.startswith("trait.")}
    assert unread == listed
