# ruff: noqa: E501 -- a table reads best with one case per line
"""``opgen diff``: what breaks programs, what only adds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from graphdock_opgen.cli import command
from graphdock_opgen.compare import compare, of_directory

from .test_spec_errors import GOOD

#: (text replaced, its replacement, breaking, part of what is said)
CASES = {
    "op removed": (GOOD[GOOD.index("- name: Other") :], "", True, "toy.Other: removed"),
    "op renamed": ("- name: Other", "- name: Otter", True, "toy.Other: removed"),
    "input dtype": ("w, dtype: T", "w, dtype: float32", True, "dtype of input w changed"),
    "output removed": ('  - {name: y, dtype: T, shape: "[*S, K]"}', '  - {name: z, dtype: T, shape: "[*S, K]"}', True, "output y removed"),
    "optional input appended": (
        'shape: "[A]", arity: optional}\n',
        'shape: "[A]", arity: optional}\n  - {name: c, dtype: T, arity: optional, grad: false}\n',
        False,
        "input c added",
    ),
    "input added in front": ("  inputs:\n  - {name: a,", "  inputs:\n  - {name: q, dtype: int32}\n  - {name: a,", True, "toy.Other: input q added"),
    "dtype narrowed": ("allow: [float32, float64]", "allow: [float32]", True, "T may no longer be float64"),
    "dtype widened": ("allow: [float32, float64]", "allow: [float16, float32, float64]", False, "T may also be float16"),
    "default changed": ("bool, default: false", "bool, default: true", True, "default of keep is True, was False"),
    "default dropped": ("bool, default: false", "bool", True, "attribute keep lost its default"),
    "attribute added with default": ("default: float32}\n  inputs", "default: float32}\n  - {name: z, type: int, default: 0}\n  inputs", False, "attribute z added"),
    "attribute added in between": ("  - {name: keep", "  - {name: z, type: int, default: 0}\n  - {name: keep", True, "arguments are in another order"),
    "attribute added without default": ("  - {name: a, dtype: int32", "  - {name: q, dtype: int32}\n  - {name: a, dtype: int32", True, "input q added"),
    "bound raised": ("type: int, min: 1", "type: int, min: 2", True, "least N is 2, was 1"),
    "bound lowered": ("type: int, min: 1", "type: int, min: 0", False, "least N is 0, was 1"),
    "choice added": ("one_of: [up, down]", "one_of: [up, down, both]", False, "mode may be"),
    "choice removed": ("one_of: [up, down]", "one_of: [up]", True, "mode may be"),
    "shape rule": ('"A if keep else 1"', '"1 if keep else A"', True, "the shape rule changed"),
    "endpoint removed": ("[{name: mix}]", "[{name: blend}]", True, "endpoint mix removed"),
    "endpoint added": ("[{name: mix}]", "[{name: mix}, {name: blend}]", False, "endpoint blend added"),
    "argument renamed": ("rename: {xs: inputs}", "rename: {xs: values}", True, "the wrapper calls inputs now values"),
    "gradient gone": ('w: "gw if keep else g.y"', "w: none", True, "gradient of w is none"),
    "gradient by other means": ('w: "gw if keep else g.y"', "w: {fn: mix_w}", False, "gradient of w is fn, was formula"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_change(make, case: str) -> None:
    old, new, breaking, text = CASES[case]
    assert old in GOOD
    changed = (
        GOOD.replace(old, new)
        .replace("g.y", "g.z" if case == "output removed" else "g.y")
        .replace("gradcheck: {inputs: [w]}", "gradcheck: false")
    )
    changes = compare(of_directory(make("old", toy=GOOD)), of_directory(make("new", toy=changed)))
    said = [c for c in changes if text in str(c)]
    assert said, [str(c) for c in changes]
    assert said[0].breaking is breaking
    moved = case == "optional input appended"  # attributes come after inputs: positional callers notice
    assert any(c.breaking for c in changes) is (breaking or moved)


def test_words_for_people_are_no_change(make) -> None:
    changed = GOOD.replace("A mix.", "A blend.").replace("A is {A}", "A is not {A}")
    assert compare(of_directory(make("old", toy=GOOD)), of_directory(make("new", toy=changed))) == []


def test_a_breaking_change_needs_a_new_version(make) -> None:
    changed = GOOD.replace("bool, default: false", "bool, default: true")
    old = make("old", toy=GOOD)
    kept, raised = (
        make("kept", toy=changed),
        make("raised", toy=changed.replace("name: Mix", "name: Mix\n  version: 2")),
    )
    run = lambda new: CliRunner().invoke(command, ["diff", str(new), "--old", str(old)])  # noqa: E731
    assert run(kept).exit_code == 1
    assert "raise the version of: toy.Mix" in run(kept).output
    done = run(raised)
    assert done.exit_code == 0 and "default of keep is True, was False (new version)" in done.output


def test_an_op_that_is_gone_has_no_version_to_raise(make) -> None:
    without = GOOD.partition("- name: Other")[0]
    deprecated = GOOD.replace("  summary: Another.", "  summary: Another.\n  deprecated: Mix does more.")
    run = lambda old: CliRunner().invoke(command, ["diff", str(new), "--old", str(old)])  # noqa: E731
    new = make("new", toy=without)
    at_once = run(make("old", toy=GOOD))
    assert at_once.exit_code == 1 and "breaking    toy.Other: removed\n" in at_once.output
    assert "raise the version" not in at_once.output and "with deprecated: REASON" in at_once.output
    announced = run(make("older", toy=deprecated))
    assert (announced.exit_code, announced.output) == (
        0,
        "breaking    toy.Other: removed (was deprecated)\n1 breaking, 0 compatible\n",
    )


def test_against_a_revision(make, tmp_path: Path) -> None:
    package = make("pkg", toy=GOOD)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for args in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *args], check=True)
    spec = package / "specs" / "toy.yaml"
    spec.write_text(GOOD.replace("min: 1", "min: 0"))
    done = CliRunner().invoke(command, ["diff", str(package)])
    assert (done.exit_code, done.output) == (0, "compatible  toy.Mix: least N is 0, was 1\n0 breaking, 1 compatible\n")
    lost = CliRunner().invoke(command, ["diff", str(package), "--against", "nowhere"])
    assert lost.exit_code == 1 and "no revision 'nowhere'" in lost.output


HANDLE = """\
graphdock_opdef: 1
namespace: toy
ops:
- name: Table
  summary: A handle.
  executes: handle
  resource: toy.Table
  attrs:
  - {name: container, type: string, default: ""}
  - {name: shared_name, type: string, default: ""}
  outputs: [{name: table, dtype: resource, shape: "[]"}]
  traits: {stateful: true}
- name: Push
  summary: A push.
  inputs: [{name: table, dtype: resource, shape: "[]", resource: toy.Table, access: writes}]
  gradient: none
"""


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("  resource: toy.Table\n", "  resource: toy.Map\n", "names a toy.Map, was toy.Table"),
        ("resource: toy.Table, access", "resource: toy.Map, access", "resource of input table changed"),
    ],
)
def test_another_kind_of_resource_breaks_programs(make, old: str, new: str, text: str) -> None:
    changes = compare(of_directory(make("old", toy=HANDLE)), of_directory(make("new", toy=HANDLE.replace(old, new, 1))))
    assert [c.breaking for c in changes if text in str(c)] == [True]
