"""The compliance table tells an op without dtypes from an op without a kernel."""

from __future__ import annotations

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
