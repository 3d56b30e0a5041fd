"""The compliance table tells an op without dtypes from an op without a kernel."""

from __future__ import annotations

from types import SimpleNamespace

from graphdock.contracts import ArgDef, AttrDef, KernelDef, OpDef
from graphdock_testing.case import Seen
from graphdock_testing.gaps import gaps_of
from graphdock_testing.report import Compliance


def test_an_op_without_dtypes_has_a_column_and_one_without_a_kernel_is_listed():
    table = Compliance("chip")
    table.add("LogicalAnd", "-", "ok")
    table.add("Add", "float32", "ok")
    table.add("Add", "float32", "failed")
    table.add("Sub", "-", "missing")
    lines = list(table.lines())
    assert lines[0].split() == ["op", "any", "f32"]
    assert [line.split() for line in lines[1:3]] == [["Add", "FAIL"], ["LogicalAnd", "ok"]]
    assert lines[3] == "no kernel (1): Sub"


def test_an_op_without_samples_is_said_and_not_whole():
    table = Compliance("chip")
    table.add("Add", "float32", "ok")
    table.add("demo.Halve", "-", "untested")
    lines = list(table.lines())
    assert "untested: demo.Halve (its spec has no samples)" in lines
    assert "chip: 2 ops, 1 whole; cases: 1 ok, 0 failed, 0 xfail, 0 missing, 1 untested" in lines


def test_the_column_says_what_results_were_held_against():
    table = Compliance("chip", against=lambda op: "itself" if op == "Add" else "reference")
    table.add("Add", "float32", "ok")
    table.add("Subtract", "float32", "ok")
    assert [line.split() for line in table.lines()][:3] == [
        ["op", "against", "f32"],
        ["Add", "itself", "ok"],
        ["Subtract", "reference", "ok"],
    ]


def test_hundreds_of_ops_without_a_kernel_are_a_number():
    table = Compliance("chip")
    for i in range(415):
        table.add(f"Op{i}", "-", "missing")
    assert "no kernel for 415 ops; the report names them" in list(table.lines())


def _gaps(against="reference", size=4100, modes=("planned",), attrs=({}, {"power": 3}), **kernel):
    opdef = OpDef("lab.Op", inputs=(ArgDef("x", "T"),), attrs=(AttrDef("power", "int", 2),))
    registered = SimpleNamespace(
        full_name="chip.op",
        kernel=KernelDef("lab.Op", "chip", lambda ctx: None, types={"T": ["float32", "float16"]}, **kernel),
    )
    data = {"samples": [{"attrs": a} for a in attrs]}
    return gaps_of(opdef, data, [registered], against, ["float32", "float16"], Seen(set(modes), size))


def test_what_was_never_checked_is_a_sentence():
    assert _gaps() == []
    assert "held against nothing" in _gaps(against="itself")[0]
    assert "no case has 100 elements; the largest array has 12" in _gaps(size=12)[0]
    assert _gaps(attrs=({}, {"power": 2})) == ["lab.Op: attribute power is 2 in every sample"]
    assert "never given strided inputs" in _gaps(layout="strided")[0]
    assert _gaps(layout="strided", modes=("planned", "strided")) == []
