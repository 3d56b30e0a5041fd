"""A package's names.py: four tables of literals, read without running it; each fault names file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest
from graphdock.errors import OpSpecError
from graphdock_opgen.generate import plan
from graphdock_opgen.public_names import read_names

from tests.opgen.conftest import CLIP_NORM

GOOD = '''\
"""Names."""

from __future__ import annotations

__all__ = ["FUNCTIONS", "ENDPOINTS", "HELPERS", "OPERATORS"]

FUNCTIONS: dict[str, str] = {
    "unit": "graphdock_clipnorm.more:unit",
    "deep.unit": "graphdock_clipnorm.more:unit",
}
ENDPOINTS = {"Clipper": "graphdock_clipnorm.more:Clipper"}
HELPERS = {"safe": "graphdock_clipnorm.more:safe"}
OPERATORS = {"__matmul__": "graphdock_clipnorm.more:unit"}
'''
MORE = "def unit(x): ...\ndef safe(x): ...\nclass Clipper: ...\n"

#: (text replaced, its replacement, line and column of the fault, part of the message, part of the hint)
FAULTS = {
    "not Python": ("HELPERS = {", "HELPERS = }", (12, 11), "not Python", None),
    "unknown table": ("HELPERS =", "HELPER =", (12, 1), "no table 'HELPER'", "'HELPERS'"),
    "a statement": ("HELPERS =", "import os\nHELPERS =", (12, 1), "holds tables only", None),
    "a computed table": ('{"safe": "graphdock_clipnorm.more:safe"}', "dict()", (12, 11), "not a dict that is written out", None),
    "a computed value": ('"graphdock_clipnorm.more:safe"', '"a" + "b"', (12, 12), "nothing computed", None),
    "another table inside": ('{"safe": ', '{**FUNCTIONS, "safe": ', (12, 14), "nothing computed", None),
    "a name twice": ('"Clipper":', '"unit":', (11, 14), "'unit' stands here twice, first in line 8", None),
    "no target": ("more:safe", "more.safe", (12, 20), "safe: expected 'module:attribute'", None),
    "no dotted name": ('"safe"', '"sa-fe"', (12, 12), "'sa-fe' is not a dotted Python name", None),
    "an unknown operator": ("__matmul__", "__matmull__", (13, 14), "no operator method '__matmull__'", "'__matmul__'"),
    "a name of generated code": ('"safe"', '"ops"', (12, 12), "generated code binds _ops itself", None),
}  # fmt: skip


def test_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "names.py"
    path.write_text(GOOD)
    names = read_names(path.parent)
    assert names.functions == {k: "graphdock_clipnorm.more:unit" for k in ("unit", "deep.unit")}
    assert names.public == {**names.functions, "Clipper": "graphdock_clipnorm.more:Clipper"}
    assert names.helpers == {"safe": "graphdock_clipnorm.more:safe"}
    assert names.operators == {"__matmul__": "graphdock_clipnorm.more:unit"}
    assert names.place("Clipper") == f"{path}:11"


def test_a_module_and_its_namespaces_are_said_once(tmp_path: Path) -> None:
    (tmp_path / "names.py").write_text(
        'FUNCTIONS = {\n'
        '    "p.more": {"tf tf.deep": "unit twice=doubled", "tf.deep": (\n'
        '        "one "\n'
        '        "un-it"\n'
        '    )},\n'
        '    "half": "p.more:half",\n'
        '}\n'
        'ENDPOINTS = {"p.other": {"tf": "Clipper half"}, "p.last": {"tf": 1 + 1}}\n'
    )  # fmt: skip
    errors: list[OpSpecError] = []
    names = read_names(tmp_path, lambda path: path.name, errors.append)
    assert names.functions == {
        **{name: "p.more:unit" for name in ("unit", "deep.unit")},
        **{name: "p.more:doubled" for name in ("twice", "deep.twice")},
        "deep.one": "p.more:one",
        "half": "p.more:half",
    }
    assert names.endpoints == {"Clipper": "p.other:Clipper"}
    assert names.place("deep.unit") == "names.py:2" and names.place("deep.one") == "names.py:3"
    assert [(e.line, e.column) for e in errors] == [(3, 9), (8, 32), (8, 66)]
    for error, part in zip(errors, ("'deep.un-it'", "'half' stands here twice", "nothing computed"), strict=True):
        assert part in str(error)


def test_a_package_without_the_file_has_no_names(tmp_path: Path) -> None:
    assert read_names(tmp_path).targets == {}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_raised_at_its_place(tmp_path: Path, case: str) -> None:
    old, new, place, message, hint = FAULTS[case]
    assert GOOD.count(old) == 1
    path = tmp_path / "names.py"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(OpSpecError) as caught:
        read_names(path.parent)
    error = caught.value
    assert message in str(error) and (error.line, error.column) == place, str(error)
    assert hint is None or hint in (error.hint or "")


def test_the_faults_of_a_package_are_collected(make) -> None:
    package = make()
    (package / "names.py").write_text('FUNCTIONS = {"a": 1, "b": "no target", "c": "graphdock_clipnorm.m:c"}\n')
    result = plan(package)
    assert [(e.line, e.column) for e in result.errors] == [(1, 14), (1, 27)]
    assert result.library.names.functions == {"c": "graphdock_clipnorm.m:c"}


def test_a_name_has_one_maker(make) -> None:
    package = make(clipnorm=CLIP_NORM.replace("clip_norm}]}", "clip_norm}], operator: __matmul__}"))
    (package / "names.py").write_text(GOOD.replace('"unit":', '"clip_norm":'))
    errors = [str(e) for e in plan(package).errors]
    assert any("endpoint 'clip_norm' is written by hand too" in e and "names.py:8" in e for e in errors), errors
    assert any("operator __matmul__ is written by hand too" in e and "names.py:13" in e for e in errors), errors


@pytest.mark.parametrize("name", ["Session", "identity", "constant", "float32", "math.add_n"])
def test_the_standard_library_takes_no_name_of_the_hosts(make, name: str) -> None:
    spec = CLIP_NORM.replace("namespace: clipnorm", "namespace: std").replace("{name: clip_norm}", f"{{name: {name}}}")
    (error,) = plan(make("graphdock_std", clipnorm=spec)).errors
    assert f"endpoint {name!r} is the host's own" in str(error)


def test_a_name_written_by_hand_may_not_be_the_hosts_either(make) -> None:
    package = make("graphdock_std", clipnorm=CLIP_NORM.replace("namespace: clipnorm", "namespace: std"))
    (package / "names.py").write_text('FUNCTIONS = {"gradients": "graphdock_std.m:f"}\n')
    (error,) = plan(package).errors
    assert "'gradients' is the host's own: graphdock.gradients.backprop:gradients" in str(error)


def test_check_names_what_a_target_lacks(make) -> None:
    from click.testing import CliRunner
    from graphdock_opgen.cli import command

    package = make()
    (package / "names.py").write_text(GOOD)
    (package / "gradients.py").write_text("def clip_norm_limit(op, grad_y): ...\n")
    CliRunner().invoke(command, ["generate", str(package)])
    (package / "more.py").write_text(MORE)
    assert CliRunner().invoke(command, ["check", str(package)]).exit_code == 0
    (package / "more.py").write_text(MORE.replace("def safe", "def save"))
    found = CliRunner().invoke(command, ["check", str(package)])
    assert found.exit_code == 1
    assert "names.py:12:1: 'safe' stands for 'graphdock_clipnorm.more:safe', but more.py has no 'safe'" in found.output
