"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["file_options"]

Command = TypeVar("Command", bound=Callable[..., Any])


def _stand_for(variable: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    """An option that sets ``variable`` while its command runs: so it has the variable's rank, and plugins see it too."""

    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is None:
            return
        before = os.environ.get(variable)

        def restore() -> None:
            if before is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = before

        os.environ[variable] = value
        ctx.call_on_close(restore)

    return callback


def file_options(command: Command) -> Command:
    """``--config`` and ``--profile``; what is typed beside them, such as ``--backends``, goes over the file."""
    command = click.option(
        "--profile",
        metavar="NAME",
        expose_value=False,
        callback=_stand_for("GRAPHDOCK_PROFILE"),
        help="A profile of the configuration file, as GRAPHDOCK_PROFILE=NAME.",
    )(command)
    return click.option(
        "--config",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        expose_value=False,
        callback=_stand_for("GRAPHDOCK_CONFIG"),
        help="The configuration file, as GRAPHDOCK_CONFIG=FILE.",
    )(command)
