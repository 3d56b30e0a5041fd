"""Output of commands: tables whose columns line up, JSON that keeps its order, counts in words."""

from __future__ import annotations

import json

import pytest
from graphdock.contracts.command_line.output import count, print_json, table


@pytest.mark.parametrize(("number", "text"), [(0, "0 devices"), (1, "1 device"), (2, "2 devices")])
def test_counts(number, text):
    assert count(number, "device") == text


def test_columns_line_up_and_no_line_ends_in_blanks():
    text = table(("NAME", "N", "WHY"), [("a", 1, "x"), ("longer", 100, ""), ("b", 20, "yes")], right=["N"])
    assert text.splitlines() == ["NAME      N  WHY", "a         1  x", "longer  100", "b        20  yes"]


def test_a_table_without_rows_is_its_head():
    assert table(("A", "B"), []) == "A  B"


def test_every_row_has_a_cell_per_column():
    with pytest.raises((ValueError, IndexError)):
        table(("A", "B"), [("only one",)])


def test_json_keeps_the_order_of_keys_and_sorts_sets(capsys):
    from types import MappingProxyType

    print_json({"b": 1, "a": MappingProxyType({"z": {3, 1}}), "c": object})
    text = capsys.readouterr().out
    data = json.loads(text)
    assert list(data) == ["b", "a", "c"] and data["a"] == {"z": [1, 3]} and "object" in data["c"]
