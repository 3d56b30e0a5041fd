"""Options that several commands share."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import click

__all__ = ["file_options", "variables"]

Command = TypeVar("Command", bound=Callable[..., Any])


#: Where a context keeps what was typed: variable -> value.
_TYPED = "graphdock.contracts.command_line.options"


def _note(variable: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    """An option that stands for a variable. Parsing changes nothing: a call that is wrong never gets to its command."""

    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None:
            ctx.meta.setdefault(_TYPED, {})[variable] = value

    return callback


@contextlib.contextmanager
def variables(typed: Mapping[str, str]) -> Iterator[None]:
    """Set variables while a command runs: so what was typed has their rank, and plugins see it too."""
    before = {name: os.environ.get(name) for name in typed}
    os.environ.update(typed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def file_options(command: Command) -> Command:
    """``--config`` and ``--profile``; what is typed beside them, such as ``--backends``, goes over the file."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        with variables(click.get_current_context().meta.get(_TYPED, {})):
            return command(*args, **kwargs)

    run = click.option(
        "--profile",
        metavar="NAME",
        expose_value=False,
        callback=_note("GRAPHDOCK_PROFILE"),
        help="A profile of the configuration file, as GRAPHDOCK_PROFILE=NAME.",
    )(run)
    return click.option(  # type: ignore[return-value]
        "--config",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        expose_value=False,
        callback=_note("GRAPHDOCK_CONFIG"),
        help="The configuration file, as GRAPHDOCK_CONFIG=FILE.",
    )(run)
