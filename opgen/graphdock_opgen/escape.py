"""Text escaped for where it lands in a rendered file: a comment, a docstring, a TOML string, a line or cell of Markdown.

Templates print nothing else: :func:`landed` refuses whatever is neither escaped here nor plain. So a spec's summary, a file's name
or a default can't become code, a key or a heading, whatever a template's author forgets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from graphdock.errors import InternalError

__all__ = [
    "FILTERS",
    "Landed",
    "c_comment",
    "cell",
    "code",
    "comment",
    "docstring",
    "html",
    "landed",
    "line",
    "prose",
    "python",
    "toml",
    "verbatim",
]

#: Names, numbers and what joins them: the same wherever they stand.
_PLAIN = re.compile(r"[A-Za-z0-9_.,:/* -]*")
#: A code span of Markdown: as many backticks close it as have opened it. One that goes on in the next line might end there.
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
#: What Markdown would read as something else: two stars of a power, as in 2**32, among them.
_MARKUP = re.compile(r"[\\<&`]|(?<=\])(?=[(\[:])|(?<=[\w)])\*(?=\*[\w(-])|(?<=[\w)]\*)\*(?=[\w(-])")
#: What begins something other than a paragraph or a list, at the beginning of a line.
_BLOCK = re.compile(r"^(?=#|>|\||~{3}|(?:=+|-+)$)", re.M)


class Landed(str):
    """Text that may stand where it is printed."""


def landed(value: Any) -> Any:
    """``value``, when it may be printed into any file: it was escaped, or is plain.

    Raises:
      InternalError: a template prints text as it came.
    """
    if isinstance(value, Landed | int) or (isinstance(value, str) and _PLAIN.fullmatch(value)):
        return value
    raise InternalError(f"a template prints {value!r} as it came", hint="say where it lands: {{ value | docstring }}")


def python(text: str) -> Landed:
    """Source: printed by opgen itself from literals and checked names, or copied from a module that its author runs anyway."""
    return Landed(text)


def _visible(text: str, keep: str = "") -> str:
    """The text with escapes in place of what does not print: line ends, control characters, halves of surrogate pairs."""
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)


def comment(text: str) -> Landed:
    """The rest of a ``#`` comment: one line."""
    return Landed(_visible(text))


def c_comment(text: str) -> Landed:
    """The inside of a comment in C: one line, that ends no comment and begins none."""
    text = re.sub(r"(?<=/)(?=\*)|(?<=\*)(?=/)", " ", " ".join(_visible(text, keep="\n").split()))
    return Landed(text.rstrip("*/\\ "))


def docstring(text: str) -> Landed:
    """A part of a string in three double quotes; it may hold line ends, and a quote may follow it."""
    text = _visible(text.replace("\\", "\\\\"), keep="\n")
    return Landed(re.sub(r'"{3,}|"+\Z', lambda run: '\\"' * len(run[0]), text))


def toml(text: str) -> Landed:
    """A basic string of TOML, with its quotes."""
    out = []
    for c in text:
        if c in '"\\':
            out.append("\\" + c)
        elif c.isprintable():
            out.append(c)
        elif 0xD800 <= ord(c) <= 0xDFFF:
            out.append("\\uFFFD")  # half of a surrogate pair, for which TOML has no escape
        else:
            out.append(f"\\u{ord(c):04X}" if ord(c) <= 0xFFFF else f"\\U{ord(c):08X}")
    return Landed(f'"{"".join(out)}"')


def html(text: str) -> Landed:
    """The inside of an HTML comment."""
    return Landed(
        _visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("--", "-&#45;")
    )


def prose(text: str) -> Landed:
    """Paragraphs of Markdown. Code spans, emphasis and lists stay; HTML, links, headings and fences become the text they are."""
    return Landed("\n\n".join(_paragraph(p) for p in re.split(r"\n\s*\n", _visible(text, keep="\n").strip())))


def _paragraph(text: str) -> str:
    text = "\n".join(part.strip() for part in text.split("\n"))
    out, at = [], 0
    for span in _SPAN.finditer(text):
        out += [_plain(text[at : span.start()]), span[0]]
        at = span.end()
    return _BLOCK.sub(r"\\", "".join([*out, _plain(text[at:])]))


def _plain(text: str) -> str:
    return _MARKUP.sub(lambda found: "\\" + found[0], text)


def line(text: str) -> Landed:
    """The same on one line."""
    return Landed(prose(" ".join(text.split())))


def cell(text: str) -> Landed:
    """One cell of a table of Markdown."""
    return Landed(line(text).replace("|", "\\|"))


def verbatim(text: str) -> Landed:
    """An indented code block of Markdown."""
    lines = _visible(text.strip("\n"), keep="\n").split("\n")
    return Landed("\n".join(f"    {each}" if each.strip() else "" for each in lines))


def code(text: str) -> Landed:
    """A code span of Markdown."""
    text = " ".join(_visible(text, keep="\n").split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return Landed(f"{fence}{pad}{text}{pad}{fence}")


#: What templates call.
FILTERS: dict[str, Callable[[str], Landed]] = {
    f.__name__: f for f in (c_comment, cell, code, comment, docstring, html, line, prose, python, toml, verbatim)
}
