"""Output of commands: aligned tables and JSON. Plain text, so that it can be piped; colours only on a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

__all__ = ["count", "json_option", "print_json", "table"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def count(number: int, noun: str) -> str:
    """``1 device``, ``2 devices``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], right: Iterable[str] = ()) -> str:
    """Rows under a head, two spaces apart; columns named in ``right`` are aligned right, and the last is not padded."""
    cells = [list(head), *([str(c) for c in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    flush = [name in set(right) for name in head]
    lines = []
    for row in cells:
        parts = [c.rjust(w) if f else c.ljust(w) for c, w, f in zip(row, widths, flush, strict=True)]
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def _encode(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)


def print_json(value: Any) -> None:
    """Print facts as JSON, with keys in the order given."""
    click.echo(json.dumps(value, indent=2, default=_encode))
