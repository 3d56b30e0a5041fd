"""The compliance table tells an op without dtypes from an op without a kernel."""

from __future__ import annotations

from graphdock.testing.report import Compliance


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
