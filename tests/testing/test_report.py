"""The compliance table: cells, totals and the JSON, from outcomes that were added one by one."""

from __future__ import annotations

import json

from graphdock_testing.report import Compliance


def filled():
    table = Compliance("toy", gradients={"formula": 3, "none": 1})
    for op, dtype, outcome, times in [
        ("Add", "float32", "ok", 5),
        ("Add", "bfloat16", "ok", 1),
        ("Add", "bfloat16", "xfail", 2),
        ("Add", "int8", "failed", 1),
        ("Add", "int8", "ok", 4),
        ("Exp", "float32", "ok", 2),
        ("Erf", "float32", "missing", 3),
        ("Tan", "float32", "missing", 1),
        ("Tan", "float64", "ok", 1),
    ]:
        for _ in range(times):
            table.add(op, dtype, outcome)
    return table


def test_a_cell_shows_the_worst():
    table = filled()
    cells = {(op, d): table.cell(op, d) for op in ("Add", "Erf") for d in ("float32", "bfloat16", "int8")}
    assert list(cells.values()) == ["ok", "xfail", "FAIL", "-", "", ""]


def test_totals_are_of_all_cases():
    assert filled().totals() == {"ok": 13, "xfail": 2, "failed": 1, "missing": 4}


def test_columns_stand_in_the_usual_order_and_unknown_ones_last():
    table = filled()
    table.add("Add", "float8", "ok")
    assert table.dtypes() == ["int8", "bfloat16", "float32", "float64", "float8"]


def test_the_table():
    lines = list(filled().lines())
    assert lines[0].split() == ["op", "i8", "bf16", "f32", "f64"]
    assert lines[1].split() == ["Add", "FAIL", "xfail", "ok"]
    assert lines[2].split() == ["Exp", "ok"] and lines[3].split() == ["Tan", "-", "ok"]
    assert lines[4] == "no kernel (1): Erf"
    assert lines[5] == "toy: 4 ops, 1 whole; cases: 13 ok, 1 failed, 2 xfail, 4 missing"
    assert lines[6] == "gradients of inputs: 3 formula, 1 none"


def test_what_was_not_checked_of_a_part_is_a_sentence_beside_what_was():
    table = filled()
    for outcome in ("ok", "untested", "untested"):
        table.add("compiler toy.region", "-", outcome)
    table.add("Sin", "-", "untested")
    table.reasons["compiler toy.region"] = ["products: it claimed none", "updates: it claimed none"]
    assert table.untested() == [
        "untested: Sin (its spec has no samples)",
        "untested: compiler toy.region (products: it claimed none)",
        "untested: compiler toy.region (updates: it claimed none)",
    ]
    assert table.cell("compiler toy.region", "-") == "ok"


def test_the_json_holds_every_count(tmp_path):
    path = tmp_path / "table.json"
    filled().write(path)
    data = json.loads(path.read_text())
    assert data["ops"]["Add"] == {
        "bfloat16": {"ok": 1, "xfail": 2},
        "float32": {"ok": 5},
        "int8": {"failed": 1, "ok": 4},
    }
    assert data["backend"] == "toy" and data["gradients"] == {"formula": 3, "none": 1}
    assert sum(data["totals"].values()) == 20
