"""The site has every page: what its navigation names is there, and it leaves no page of docs/ out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def entries(nav):
    """Pages and folders that a navigation names."""
    if isinstance(nav, str):
        return [nav]
    return [entry for part in (nav.values() if isinstance(nav, dict) else nav) for entry in entries(part)]


NAMED = entries(SITE["nav"])
OUTSIDE = SITE["extra"]["pages"]
FOLDERS = [entry for entry in NAMED if entry.endswith("/")]


def test_the_navigation_names_each_page_once_and_no_other():
    pages = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")} | set(OUTSIDE.values())
    named = [entry for entry in NAMED if not entry.endswith("/")]
    assert [page for page, times in Counter(named).items() if times > 1] == []
    assert set(named) - pages == set()
    assert {p for p in pages if not p.startswith(tuple(FOLDERS))} - set(named) == set(), "name it in mkdocs.yml"


def test_pages_from_outside_are_there_and_take_the_place_of_none():
    assert all((ROOT / path).is_file() for path in OUTSIDE)
    assert not [uri for uri in OUTSIDE.values() if (ROOT / "docs" / uri).exists()]


def test_a_folder_of_rooms_has_a_readme_at_least():
    assert all(list(ROOT.glob(f"{room}/README.md")) for room in SITE["extra"]["rooms"])


def test_the_contents_link_every_guide():
    text = (ROOT / "docs" / "README.md").read_text()
    assert {p.name for p in (ROOT / "docs").glob("*.md") if f"]({p.name})" not in text} == {"README.md"}


def test_what_asks_another_server_is_left_out():
    assert SITE["theme"]["font"] is False and "repo_url" not in SITE


def test_warnings_are_errors_where_the_site_is_made():
    """With --quiet mkdocs counts no warning, and --strict means nothing."""
    (line,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if "mkdocs build" in line]
    assert "--strict" in line and "--quiet" not in line


@pytest.mark.exhaustive
def test_the_site_is_built_without_a_warning(tmp_path):
    """Where the extra `docs` is installed: dead links and pages that nothing names are errors."""
    pytest.importorskip("material")
    for part in ROOT.glob("[!.]*"):
        if part.name in ("docs", "scripts"):
            shutil.copytree(part, tmp_path / part.name)
        elif part.name != "build":
            (tmp_path / part.name).symlink_to(part)
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # the theme's notice of its end, as in the Makefile

    def run(*words):
        return subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True, env=environ)

    packages = ["host/graphdock/ops", "plugins/std/graphdock_std"]
    assert run("graphdock_opgen", "pages", "--out", SITE["extra"]["reference"], *packages).returncode == 0
    done = run("mkdocs", "build", "--strict")
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    index = json.loads((tmp_path / SITE["site_dir"] / "search" / "search_index.json").read_text())
    assert "reference/ops/graphdock_std/math.html#matmul" in {entry["location"] for entry in index["docs"]}
    page = (tmp_path / SITE["site_dir"] / "how-a-step-runs.html").read_text()
    assert "<code>host/graphdock</code>" in page and 'href="../host' not in page
    (tmp_path / "docs" / "map.md").write_text("# Map\n\n[dead](gone.md) [dead](versions.md#gone)\n")
    done = run("mkdocs", "build", "--strict")
    assert done.returncode == 1 and "gone.md" in done.stderr and "#gone" in done.stderr
