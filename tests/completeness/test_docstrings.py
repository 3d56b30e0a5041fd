"""Docstrings of modules begin with a noun or a verb, not with a question word."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("host", "opgen", "plugins", "benchmarks", "scripts", "examples")
#: ``where.py`` of the plugin cuda is named like its op.
_QUESTION = re.compile(r"(What|Which|How|Where(?!: )|When|Who|Why)\b")


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_of_modules_ask_nothing(folder: str) -> None:
    paths = [p for p in (ROOT / folder).rglob("*.py") if "tests" not in p.relative_to(ROOT).parts]
    assert paths
    asking = [p for p in paths if _QUESTION.match(ast.get_docstring(ast.parse(p.read_text())) or "")]
    assert asking == []
