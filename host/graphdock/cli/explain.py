"""``graphdock explain``: where each node of a program would run, with which kernel and why, before anything runs."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from graphdock.cli.options import file_options
from graphdock.cli.output import json_option, print_json
from graphdock.errors import InvalidArgumentError, NotFoundError, did_you_mean

__all__ = ["command", "load_target"]


def load_target(target: str) -> Callable[[], Any]:
    """The function a target names: ``package.module:function`` or ``path/to/file.py:function``.

    Raises:
      InvalidArgumentError: the target is of another form, or the function needs arguments.
      NotFoundError: no such file, module or function.
    """
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name.isidentifier():
        raise InvalidArgumentError(
            f"{target!r} is not a target",
            expected="module:function or path/to/file.py:function, which returns the fetches",
        )
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise NotFoundError(f"no file {place!r}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, str(path.parent.resolve()))
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path.pop(0)
    else:
        sys.path.insert(0, "")
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not place.startswith(error.name):
                raise
            raise NotFoundError(f"no module {place!r}") from error
        finally:
            sys.path.pop(0)
    function = getattr(module, name, None)
    if not callable(function):
        names = [n for n, v in vars(module).items() if callable(v)]
        raise NotFoundError(f"{place} has no function {name!r}", hint=did_you_mean(name, names))
    required = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if required:
        raise InvalidArgumentError(
            f"{target} is called without arguments, but it needs {', '.join(required)}",
            expected="a function that builds a graph and returns what would be fetched",
        )
    return function  # type: ignore[no-any-return]


@click.command(
    help="Say where each node of a program runs, with which kernel and why. TARGET is module:function or "
    "path/to/file.py:function; the function builds a graph and returns what would be fetched."
)
@click.argument("target")
@click.option("--backends", help="Comma-separated, the most wanted first.")
@click.option("--fallback", help="forbid, warn or allow.")
@file_options
@click.option("--all", "lost", is_flag=True, help="Show every kernel that lost, with its reason.")
@click.option("--source", is_flag=True, help="Show the generated source of the step.")
@json_option
def command(
    target: str,
    backends: str | None,
    fallback: str | None,
    lost: bool,
    source: bool,
    as_json: bool,
) -> None:
    from graphdock.graph.graph import Graph
    from graphdock.session.config import effective_config
    from graphdock.session.session import Session

    given = {k: v for k, v in (("backends", backends), ("fallback", fallback)) if v is not None}
    config = effective_config(None, given)
    build = load_target(target)
    with Graph().as_default() as graph:
        fetches = build()
        with Session(graph=graph, config=config) as session:
            explanation = session.explain(fetches)
    if as_json:
        print_json({**explanation.facts(), **({"source": explanation.source} if source else {})})
        return
    text = str(explanation)
    if lost:
        text = "\n".join([*text.splitlines()[:2], explanation.table(lost=True)])
    click.echo(text)
    if source:
        click.echo("\n" + explanation.source, nl=False)
