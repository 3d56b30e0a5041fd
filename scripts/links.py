"""Check the links of pages: what each leads to is there, and what a package index shows leads nowhere else.

A link to a file or folder of the repository must find it, one with ``#heading`` that heading of the page. A README that
a ``pyproject.toml`` names is shown by package indexes, which have no files beside it: its links are whole addresses.

    python scripts/links.py     # prints what is dead; exits with 1 if anything is
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent
#: Folders that hold no pages of ours: what is installed, built, or kept for tests.
_OTHERS = {"tests", "build", "site", "node_modules"}
_MARKDOWN = MarkdownIt("commonmark").enable("table")


def pages(root: Path = ROOT) -> list[Path]:
    """Every Markdown file of the repository but those of tests."""
    return [p for p in sorted(root.rglob("*.md")) if not _hidden(p.relative_to(root))]


def readmes(root: Path = ROOT) -> list[Path]:
    """Return what package indexes show: files that a ``pyproject.toml`` names as ``readme``."""
    found = []
    for path in sorted(root.rglob("pyproject.toml")):
        if not _hidden(path.relative_to(root)):
            readme = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {}).get("readme")
            found += [path.parent / readme] if isinstance(readme, str) else []
    return found


def _hidden(path: Path) -> bool:
    return any(part in _OTHERS or part.startswith(".") for part in path.parts)


def links(text: str) -> Iterator[str]:
    """Targets of the links and images of a page."""
    for token in _tokens(text):
        target = token.attrGet("href") or token.attrGet("src")
        if token.type in ("link_open", "image") and isinstance(target, str):
            yield target


def headings(text: str) -> set[str]:
    """Return what ``#heading`` may be: headings in lower case, words joined by hyphens, a number behind those that repeat."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    tokens = _MARKDOWN.parse(text)
    for opening, inline in zip(tokens, tokens[1:], strict=False):
        if opening.type == "heading_open":
            plain = "".join(t.content for t in inline.children or () if t.type in ("text", "code_inline"))
            name = re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
            found.add(f"{name}_{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return found


def _tokens(text: str) -> Iterator[Token]:
    for token in _MARKDOWN.parse(text):
        yield token
        yield from token.children or ()


def dead(page: Path, root: Path = ROOT) -> list[str]:
    """Return what is wrong with the links of a page, a line each."""
    text = page.read_text(encoding="utf-8")
    wrong = []
    for link in links(text):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not target.is_relative_to(root):
            wrong.append(f"{link}: leads out of the repository")
        elif not target.exists():
            wrong.append(f"{link}: there is no such file")
        elif parts.fragment and target.suffix == ".md" and parts.fragment not in headings(target.read_text("utf-8")):
            wrong.append(f"{link}: the page has no such heading")
    return [f"{page.relative_to(root)}: {line}" for line in wrong]


def relative(readme: Path, root: Path = ROOT) -> list[str]:
    """Links of a README that a package index can't follow, a line each."""
    targets = links(readme.read_text(encoding="utf-8"))
    return [
        f"{readme.relative_to(root)}: {link}: a package index has no such file; write its path as code"
        for link in targets
        if not urlsplit(link).scheme and not link.startswith("#")
    ]


def main() -> int:
    every, shown = pages(), readmes()
    wrong = [line for page in every for line in dead(page)] + [line for page in shown for line in relative(page)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"links of {len(every)} pages, {len(shown)} of them shown by package indexes: {len(wrong) or 'none'} dead")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
