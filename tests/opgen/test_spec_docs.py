"""Texts for people stand in the specs: what an op's page says, and what it says where the spec is not there."""

from __future__ import annotations

import os

import pytest
from graphdock.contracts.opdef import ArgDef, AttrDef, OpDef
from graphdock.plugin.host import default_host
from graphdock_opgen.spec_docs import documented, documented_op

SPEC = """\
graphdock_opdef: 1
namespace: lab
ops:
- {name: Other, summary: Another.}
- name: Warp
  summary: >-
    Warps
    space.
  doc: |
    At length.
  inputs: [{name: x, dtype: T, doc: "What is warped: this."}, {name: y, dtype: T}]
  attrs: [{name: k, type: int, doc: How much.}]
"""
WARP = OpDef(
    "lab.Warp",
    inputs=(ArgDef("x", "T"), ArgDef("y", "T")),
    outputs=(ArgDef("z", "T"),),
    attrs=(AttrDef("k", "int"),),
    package="graphdock_lab",
    source="specs/lab.yaml",
)


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "lab.yaml").write_text(SPEC)
    return tmp_path / "specs" / "lab.yaml"


def test_an_op_has_the_texts_and_the_line_of_its_spec(spec):
    found = documented(WARP, spec.parents[1])
    assert (found.summary, found.doc, found.source) == ("Warps space.", "At length.", "specs/lab.yaml:5")
    assert [a.doc for a in (*found.inputs, *found.outputs, *found.attrs)] == [
        "What is warped: this.",
        "",
        "",
        "How much.",
    ]


def test_a_spec_that_changes_is_read_again(spec):
    documented(WARP, spec.parents[1])
    before = spec.stat().st_mtime_ns
    spec.write_text(SPEC.replace("At length", "Briefly"))
    os.utime(spec, ns=(before + 1, before + 1))
    assert documented(WARP, spec.parents[1]).doc == "Briefly."


def test_a_spec_that_is_not_there_or_lost_the_op_is_said(spec):
    spec.write_text(SPEC.replace("Warp", "Bend"))
    assert documented(WARP, spec.parents[1]).summary == "(specs/lab.yaml has changed, and this op is gone from it)"
    spec.unlink()
    assert documented(WARP, spec.parents[1]).summary == "(specs/lab.yaml is not installed with graphdock_lab)"


def test_an_op_that_code_made_says_its_own(tmp_path):
    own = OpDef("me.Op", summary="Mine.", source=f"{__file__}:1")
    assert documented(own, tmp_path) is own


def test_the_host_finds_the_spec_of_each_package():
    host = default_host()
    assert host.ops.get("MatMul").summary == "" and documented_op(host.ops, "MatMul").summary
    assert documented_op(host.ops, "Identity").source.startswith("specs/core.yaml:")
