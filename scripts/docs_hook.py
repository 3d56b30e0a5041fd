"""Hook of mkdocs (``mkdocs.yml``): pages that stand outside of docs/, links into the source tree, navigation, progress.

``extra.pages`` names files of the repository and where they stand in the site, ``extra.rooms`` folders that have a
README, ``extra.reference`` the folder into which ``graphdock opgen pages`` has written. A link to a file that the site
has becomes a link in the site, one to another file of the repository its path as code. What is left is checked by mkdocs.
"""

from __future__ import annotations

import os
import posixpath
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element, SubElement

from markdown import Extension, Markdown
from markdown.treeprocessors import Treeprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
OPS = "reference/ops/"


class SourceLinks(Treeprocessor):
    """Turns links of a page to files of the repository into what works in the site."""

    def __init__(self) -> None:
        super().__init__()
        #: Path of a file -> where its page stands in the site.
        self.site: dict[Path, str] = {}
        self.page = ""
        self.source = ROOT

    def run(self, root: Element) -> None:
        for link in list(root.iter("a")):
            parts = urlsplit(link.get("href", ""))
            if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
                continue
            target = Path(os.path.normpath(self.source.parent / unquote(parts.path)))
            if target in self.site:
                to = posixpath.relpath(self.site[target], posixpath.dirname(self.page) or ".")
                link.set("href", f"{to}#{parts.fragment}" if parts.fragment else to)
            elif target.is_relative_to(ROOT) and target.exists():
                _unlink(link, target.relative_to(ROOT).as_posix())


def _unlink(link: Element, path: str) -> None:
    """Make a link its text, and the path as code."""
    text, tail = "".join(link.itertext()), link.tail
    link.clear()
    link.tag, link.text, link.tail = "span", f"{text} (", tail
    code = SubElement(link, "code")
    code.text, code.tail = path, ")"
    if text == path:
        link.text = code.tail = None


class _SourceLinks(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        # after links are made (20), before mkdocs looks where they lead (0)
        md.treeprocessors.register(_links, "source_links", 10)


class Progress:
    """A line that counts pages: the same one on a terminal, one for every hundred pages elsewhere."""

    def __init__(self) -> None:
        self.count, self.total = 0, 0

    def step(self, what: str) -> None:
        self.count += 1
        last = self.count == self.total
        if sys.stderr.isatty():
            print(f"\rdocs: {what} {self.count} of {self.total} pages", end="\n" if last else "", file=sys.stderr)
        elif last or self.count % 100 == 0:
            print(f"docs: {what} {self.count} of {self.total} pages", file=sys.stderr)
        self.count = 0 if last else self.count


_links = SourceLinks()
_progress = Progress()


def on_config(config: MkDocsConfig) -> None:
    config.markdown_extensions.append(_SourceLinks())


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages from outside of docs/ and fill the folders of the navigation."""
    reference = ROOT / config.extra["reference"]
    ops = {path: OPS + path.relative_to(reference).as_posix() for path in sorted(reference.rglob("*.md"))}
    if not ops:
        raise PluginError(f"{reference} holds no pages: `make docs` has opgen write them first")
    outside = {ROOT / path: uri for path, uri in config.extra["pages"].items()}
    rooms = [readme for room in config.extra["rooms"] for readme in sorted(ROOT.glob(f"{room}/README.md"))]
    outside |= {path: f"rooms/{path.parent.relative_to(ROOT).as_posix()}.md" for path in rooms}
    for path, uri in (outside | ops).items():
        files.append(File.generated(config, uri, abs_src_path=str(path)))
    pages = files.documentation_pages()
    _links.site = {Path(file.abs_src_path): file.src_uri for file in pages if file.abs_src_path}
    _progress.total = len(pages)
    listed = set(_uris(config.nav))
    config.nav = _filled(config.nav, [file.src_uri for file in pages if file.src_uri not in listed])


def _uris(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [uri for entry in (nav.values() if isinstance(nav, dict) else nav) for uri in _uris(entry)]


def _filled(nav: list, uris: list[str]) -> list:
    """A navigation in which each folder is a list of its pages."""
    filled: list = []
    for entry in nav:
        if isinstance(entry, str):
            filled += _folder(entry, uris) if entry.endswith("/") else [entry]
        else:
            for name, below in entry.items():
                page = isinstance(below, str) and not below.endswith("/")
                filled.append({name: below if page else _filled([below] if isinstance(below, str) else below, uris)})
    return filled


def _folder(folder: str, uris: list[str]) -> list:
    """Pages of a folder; of the reference's by their specs' names, under that of their package."""
    below = [uri for uri in sorted(uris) if uri.startswith(folder)]
    own = [uri for uri in below if "/" not in uri[len(folder) :]]
    folders = dict.fromkeys(uri[len(folder) :].split("/")[0] for uri in below if uri not in own)
    named = [{Path(uri).stem: uri} if folder.startswith(OPS) else uri for uri in own]
    return named + [{name: _folder(f"{folder}{name}/", uris)} for name in folders]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    _links.page, _links.source = page.file.src_uri, Path(page.file.abs_src_path or ROOT)
    _progress.step("read")


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> None:
    _progress.step("written")
