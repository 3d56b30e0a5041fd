"""The page of differences is the table that ``graphdock compat`` reads: its names are names, and programs are searched for them."""

from __future__ import annotations

import pytest
from graphdock_tensorflow.behaviours import behaviours, behaviours_of
from graphdock_tensorflow.catalogue import catalogue, entry
from graphdock_tensorflow.script import Use


def test_every_name_of_the_first_column_is_one_that_is_here():
    names = {name for row in behaviours() for name, _ in row.names if not name.startswith(".")}
    spaces = {n.rpartition(".")[0] for n in catalogue()}
    known = lambda name: (entry(name) is not None and entry(name).status == "here") or name in spaces  # noqa: E731
    wrong = [n for n in names if not known(n) and not known(n.rpartition(".")[0])]
    assert len(names) > 100 and wrong == []


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (Use("map_fn", 1), "one loop node"),
        (Use("Print", 1, frozenset({"first_n"})), "counted in each plan"),
        (Use("train.Saver.save", 1), "safetensors"),
        (Use(".partial_run", 1), "one step, whose operations run once"),
        (Use("Graph.to_json", 1), "graphdock's own form"),
    ],
)
def test_a_use_finds_its_rows(use, words):
    assert any(words in row.here for row in behaviours_of(use))


@pytest.mark.parametrize("use", [Use("Print", 1), Use("map_fnord", 1), Use(".map_fn", 1), Use("placeholder", 1)])
def test_a_use_that_behaves_as_in_tensorflow_finds_none(use):
    assert behaviours_of(use) == []


def test_rows_without_a_first_column_have_that_of_the_row_above():
    rows = [row for row in behaviours() if row.what.startswith("Error classes")]
    assert len({row.here for row in rows}) == 3
    assert all("`" not in text and "](" not in text for row in behaviours() for text in (row.what, row.here, row.why))
