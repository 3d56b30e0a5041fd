"""Stubs of public names: a package's own, and those of ``tf``, which follow the host's names and std's."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import graphdock
import graphdock_std
import pytest
from graphdock_opgen import reexports
from graphdock_opgen.generate import drift, plan
from graphdock_opgen.reexports import FACADE, stubs

SPEC = """\
graphdock_opdef: 1
namespace: lab
ops:
- name: Warp
  summary: Warps.
  types: {T: {allow: floats}, P: {allow: ints, list: true}, out: {allow: index, default: int32}}
  attrs:
  - {name: mode, type: string, default: up, one_of: [up, 'do"wn']}
  - {name: order, type: int, one_of: [1, 3]}
  - {name: kinds, type: list(string), one_of: [a, b]}
  - {name: size, type: shape, default: null}
  - {name: limit, type: float, default: null}
  inputs:
  - {name: x, dtype: T}
  - {name: more, dtype: P, arity: {many: {count: "len(P)"}}}
  - {name: bias, dtype: T, arity: optional}
  outputs: [{name: y, dtype: T}, {name: at, dtype: out}]
  gradient: none
  api: {endpoints: [{name: warp}, {name: deep.warp}]}
"""


def public(files, name="public.pyi"):
    return next(text for path, text in files.items() if path.name == name)


def test_a_package_lists_its_public_names(make):
    package = make("graphdock_lab", lab=SPEC)
    (package / "names.py").write_text('ENDPOINTS: dict[str, str] = {"Warper": "graphdock_lab.warper:Warper"}\n')
    (package / "warper.py").write_text("class Warper: ...\n")
    result = plan(package)
    assert result.errors == ()
    assert public(result.files).splitlines()[1:] == [
        "from graphdock_lab._gen.lab_ops import warp as warp",
        "from graphdock_lab.warper import Warper as Warper",
        "",
        "__all__ = [",
        '    "Warper",',
        '    "warp",',
        "]",
    ]


def test_enumerations_are_literals_and_absent_values_none(make):
    text = public(plan(make("graphdock_lab", lab=SPEC)).files, "lab_ops.py")
    (function,) = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    assert {a.arg: ast.unparse(a.annotation) for a in function.args.args if a.annotation} == {
        "x": "TensorLike",
        "more": "Sequence[TensorLike]",
        "order": "Literal[1, 3]",
        "bias": "TensorLike | None",
        "mode": "Literal['up', 'do\"wn']",
        "kinds": "Sequence[Literal['a', 'b']]",
        "size": "ShapeLike",
        "limit": "float | None",
        "out": "DTypeLike",
        "name": "str | None",
    }
    assert ast.unparse(function.returns) == "_WarpOutputs"


@pytest.mark.exhaustive
def test_namespaces_that_hold_the_same_have_one_stub():
    found = stubs(plan(Path(graphdock_std.__file__).parent).library)
    assert len(set(found.values())) == len(found)
    folder = Path(graphdock.__file__).parent / FACADE
    assert folder / "flags.pyi" in found and folder / "app" / "flags.pyi" not in found
    assert f"from graphdock.{FACADE} import flags as flags" in found[folder / "app.pyi"].splitlines()
    assert f"from graphdock.{FACADE}.contrib.layers import initializers as initializers" in (
        found[folder / "contrib" / "slim" / "__init__.pyi"].splitlines()
    )


def test_the_stubs_of_tf_follow_its_names(monkeypatch):
    """What stands there is right; a name that is added is drift of all stubs it belongs to."""
    library = plan(Path(graphdock_std.__file__).parent).library
    found = stubs(library)
    top = Path(graphdock.__file__).parent
    assert {p.name for p in found if p.parent == top} == {"__init__.pyi"}
    assert {"image.pyi", "losses.pyi"} < {p.name for p in found if p.parent == top / FACADE}
    for path, text in found.items():
        assert path.read_text() == text
    monkeypatch.setattr(graphdock, "_MODULES", [*graphdock._MODULES, "cli"])
    assert "from graphdock import cli as cli" in stubs(library)[top / "__init__.pyi"]
    changed = drift(plan(library.directory))
    assert len(changed) == 1 and "+from graphdock import cli as cli" in changed[0]


def test_a_copy_of_std_writes_nothing_outside_of_itself(tmp_path):
    copy = tmp_path / "graphdock_std"
    shutil.copytree(Path(graphdock_std.__file__).parent, copy)
    assert all(path.is_relative_to(copy) for path in plan(copy).files)


@pytest.mark.exhaustive
def test_a_namespace_that_is_gone_is_stale(monkeypatch, tmp_path):
    (tmp_path / FACADE).mkdir()
    for name in (FACADE + "/stray.pyi", FACADE + "/image.pyi"):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(reexports, "_GRAPHDOCK", tmp_path)
    assert plan(Path(graphdock_std.__file__).parent).stale == (tmp_path / FACADE / "stray.pyi",)
