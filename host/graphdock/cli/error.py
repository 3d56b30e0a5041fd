"""``graphdock error CODE``: the page of an error class, with its cause and its cure. Every message ends with its code."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import click

import graphdock
from graphdock import errors
from graphdock.contracts.command_line.output import json_option, print_json, table
from graphdock.errors import GraphdockError, NotFoundError, did_you_mean


def classes() -> dict[str, type[GraphdockError]]:
    """Code -> error class, by code."""
    found = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, GraphdockError)]
    return {c.code: c for c in sorted(found, key=lambda c: c.code)}


def page(code: str) -> str:
    """The page of a code, as Markdown. An installed graphdock has the pages in itself; a checkout, in ``docs/errors``."""
    package = Path(graphdock.__file__).parent
    inside = package / "error_pages"
    folder = inside if inside.is_dir() else package.parents[1] / "docs" / "errors"
    return (folder / f"{code}.md").read_text(encoding="utf-8")


def _code(name: str) -> str:
    """The code that a person means: itself in any case, or the name of its class."""
    known = classes()
    by_name = {c.__name__: code for code, c in known.items()}
    if name.upper() in known:
        return name.upper()
    if name in by_name:
        return by_name[name]
    hint = did_you_mean(name, by_name) or did_you_mean(name.upper(), known)
    raise NotFoundError(f"no error has the code or the name {name!r}", hint=hint or "`graphdock error` lists them all")


@click.command(help="Print what causes the error CODE, and what cures it. Without CODE, list every error.")
@click.argument("code", required=False)
@json_option
def command(code: str | None, as_json: bool) -> None:
    chosen = list(classes()) if code is None else [_code(code)]
    rows = [(known, c.__name__, (inspect.getdoc(c) or "").splitlines()[0]) for known, c in classes().items()]
    if as_json:
        facts: list[dict[str, Any]] = [
            {"code": known, "class": name, "summary": summary, "page": page(known)}
            for known, name, summary in rows
            if known in chosen
        ]
        print_json(facts)
    elif code is None:
        click.echo(table(("CODE", "CLASS", "WHAT"), rows))
    else:
        click.echo(page(chosen[0]), nl=False)
