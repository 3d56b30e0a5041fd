"""Decisions are numbered once each, under the number of their file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).parents[2] / "docs" / "adr").glob("*.md"))


def test_numbers_run_from_one_without_gap_or_double():
    assert [int(f.name[:4]) for f in FILES] == list(range(1, len(FILES) + 1))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_decision_begins_with_its_number(file):
    text = file.read_text(encoding="utf-8")
    assert re.match(rf"# 0*{int(file.name[:4])}\. \S", text)
    assert "## " in text
