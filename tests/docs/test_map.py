"""The map names files and things in them: each file is there, and each thing is defined in the file named before it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "map.md"
#: A path in backticks, and the names in brackets after it.
CITED = re.compile(r"`(?P<path>[\w.-]+(?:/[\w.-]+)+)`(?:\s+\((?P<names>`\w+`(?:, `\w+`)*)\))?")
LINK = re.compile(r"\]\((?P<target>[^)#]+)\)")


def cited() -> list[tuple[str, tuple[str, ...]]]:
    found: dict[str, set[str]] = {}
    for match in CITED.finditer(MAP.read_text()):
        found.setdefault(match["path"], set()).update(re.findall(r"\w+", match["names"] or ""))
    return [(path, tuple(sorted(names))) for path, names in sorted(found.items())]


def defined(path: Path) -> set[str]:
    """What a module defines, methods included; what a spec calls its ops."""
    if path.suffix == ".yaml":
        return set(re.findall(r"^- name: (\w+)", path.read_text(), re.M))
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    for node in ast.parse(path.read_text()).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names.update(t.id for t in targets if isinstance(t, ast.Name))
    return names


@pytest.mark.parametrize(("path", "names"), cited(), ids=lambda v: v if isinstance(v, str) else "")
def test_what_the_map_names_is_there(path: str, names: tuple[str, ...]) -> None:
    assert (ROOT / path).exists(), f"docs/map.md names {path}"
    if names:
        assert set(names) <= defined(ROOT / path), f"docs/map.md names things that {path} does not define"


def test_the_map_names_enough_to_be_one() -> None:
    assert len(cited()) > 60 and sum(len(names) for _, names in cited()) > 30


def test_the_map_has_few_rows() -> None:
    table = MAP.read_text().partition("## Where a change begins")[2].partition("\n## ")[0]
    assert 30 < table.count("\n| ") - 1 <= 40  # rooms say the rest


def test_its_links_lead_to_pages() -> None:
    for match in LINK.finditer(MAP.read_text()):
        assert (MAP.parent / match["target"]).is_file(), match["target"]
