"""Behaviours that differ from TensorFlow's though the name is here: the tables of the page of differences, read from it.

In the first column a name below ``tf`` in backticks (``tf.map_fn``) is what a program is searched for, with arguments in brackets
(``tf.Print(first_n)``) a call that gives one of them by name, and after a dot (``.partial_run``) an attribute of any value.

Threads: read-only after the first use.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

import graphdock

from graphdock_tensorflow.script import Use

__all__ = ["Behaviour", "behaviours", "behaviours_of", "page"]

_NAME = re.compile(r"`(?:tf)?\.(?P<name>[A-Za-z_][\w.]*)(?:\((?P<arguments>[\w, ]+)\))?`")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A row of the page.

    Attributes:
      what: its first column. here: what graphdock does. why: the reason.
      names: (name below ``tf``, or an attribute with its dot; arguments one of which a call has to give, empty for any use).
    """

    what: str
    here: str
    why: str
    names: tuple[tuple[str, frozenset[str]], ...]


def page() -> str:
    """The page of differences, as Markdown. An installed graphdock has it in itself; a checkout, in ``docs``."""
    inside = Path(__file__).parent / "differences.md"
    checkout = Path(graphdock.__file__).parents[2] / "docs" / "differences-from-tensorflow.md"
    return (inside if inside.is_file() else checkout).read_text(encoding="utf-8")


@functools.cache
def behaviours() -> tuple[Behaviour, ...]:
    """The rows of the page, in its order; a row whose first column is empty has that of the row above."""
    found, what = [], ""
    for line in page().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 3 or cells[0] == "what" or set(cells[0]) == {"-"}:
            continue
        what = cells[0] or what
        names = tuple(
            (
                hit["name"] if hit[0].startswith("`tf") else f".{hit['name']}",
                frozenset(re.split(r",\s*", hit["arguments"] or "")) - {""},
            )
            for hit in _NAME.finditer(what)
        )
        found.append(Behaviour(_plain(what), _plain(cells[1]), _plain(cells[2]), names))
    return tuple(found)


def behaviours_of(use: Use) -> list[Behaviour]:
    """Behaviours of what a program uses, which may go on below a name: ``train.Saver.save`` is one of ``train.Saver``."""
    return [row for row in behaviours() if any(_is(use, name, arguments) for name, arguments in row.names)]


def _is(use: Use, name: str, arguments: frozenset[str]) -> bool:
    inside = use.name == name or use.name.startswith(f"{name}.")
    return inside and (not arguments or not arguments.isdisjoint(use.arguments))


def _plain(cell: str) -> str:
    """The text of a cell without the marks of Markdown."""
    return _LINK.sub(r"\1", cell).replace("`", "")
