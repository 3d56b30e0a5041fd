"""Docstrings of sources begin with a noun or a verb, not with a question word."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_QUESTION = re.compile(r"(?:What|How|Which|Where|Whether|Who|Whose|When|Why)\b")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
#: Docstrings of a room that begin so still; a bar only falls.
STILL = {
    "host": 1,
    "plugins/cpu": 20,
    "plugins/data": 35,
    "plugins/dataflow": 7,
    "plugins/executor": 1,
    "plugins/llvm": 4,
    "plugins/testing": 44,
}
ROOMS = [
    "host",
    "opgen",
    "scripts",
    "benchmarks",
    "examples",
    *sorted(f"plugins/{p.name}" for p in (ROOT / "plugins").iterdir() if any(p.glob("graphdock_*"))),
]


def questions(text: str) -> list[str]:
    """First lines of the docstrings of a source that begin with a question word."""
    documented = (node for node in ast.walk(ast.parse(text)) if isinstance(node, _DOCUMENTED))
    found = (ast.get_docstring(node) or "" for node in documented)
    return [doc.splitlines()[0] for doc in found if _QUESTION.match(doc)]


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_begin_with_a_noun_or_a_verb(room):
    sources = [p for p in sorted((ROOT / room).rglob("*.py")) if not {"tests", "_gen"} & {*p.parts[len(ROOT.parts) :]}]
    found = [f"{p.relative_to(ROOT)}: {line}" for p in sources for line in questions(p.read_text(encoding="utf-8"))]
    assert len(found) <= STILL.get(room, 0), "\n".join(found)


def test_a_question_is_seen_wherever_it_stands():
    source = '"""What it is."""\nclass A:\n    """Whether.\n\n    More."""\n    def f(self):\n        """Whatever it is."""\n'
    assert questions(source) == ["What it is.", "Whether."]
