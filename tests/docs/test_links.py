"""Links of the pages lead to what is there, and READMEs that package indexes show have none that need files beside them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load():
    spec = importlib.util.spec_from_file_location("links", ROOT / "scripts" / "links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


links = load()


@pytest.mark.parametrize("page", links.pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page):
    assert links.dead(page) == []


@pytest.mark.parametrize("readme", links.readmes(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_package_index_can_follow_the_links_of_a_readme(readme):
    assert links.relative(readme) == []


def test_the_readmes_are_those_of_the_wheels_and_the_examples():
    shown = {str(p.relative_to(ROOT)) for p in links.readmes()}
    assert {"README.md", "plugins/cuda/README.md", "plugins/triton/README.md"} <= shown
    assert {f"{p.parent.relative_to(ROOT)}/README.md" for p in ROOT.glob("examples/plugins/*/pyproject.toml")} <= shown


def test_readmes_of_scaffolds_have_no_links():
    """What is rendered into them is escaped, so that a link could stand in the template alone."""
    for template in (ROOT / "templates" / "graphdock_templates").glob("scaffold/README.md.j2"):
        assert list(links.links(template.read_text())) == []


def test_dead_links_are_found(tmp_path):
    (tmp_path / "there.md").write_text("# `tf` and its names\n\n## Twice\n\n## Twice\n\n```\n## not this\n```\n")
    page = tmp_path / "page.md"
    good = "[a](there.md) [b](there.md#tf-and-its-names) [c](there.md#twice_1) [d](#own) [e](https://example.org/x)"
    page.write_text(f"# Own\n\n{good} `[no](link.md)`\n\n```\n[no](link.md)\n```\n")
    assert links.dead(page, tmp_path) == []
    assert links.relative(page, tmp_path) == [
        f"page.md: {name}: a package index has no such file; write its path as code"
        for name in ("there.md", "there.md#tf-and-its-names", "there.md#twice_1")
    ]
    page.write_text(
        "| [a](gone.md) | ![b](gone.png) |\n|---|---|\n| [c](there.md#not-this) | [d](../out.md) |\n\n[e]\n\n[e]: #x\n"
    )
    assert links.dead(page, tmp_path) == [
        "page.md: gone.md: there is no such file",
        "page.md: gone.png: there is no such file",
        "page.md: there.md#not-this: the page has no such heading",
        "page.md: ../out.md: leads out of the repository",
        "page.md: #x: the page has no such heading",
    ]
