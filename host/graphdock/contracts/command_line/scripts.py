"""Scripts as targets: ``graphdock explain script.py --fetch loss`` runs the script up to the step that fetches it, and stops.

The command ``run``, which a plugin brings, runs the script; a context of Click's carries what is to be done at the step.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import click

from graphdock.errors import InvalidArgumentError, NotFoundError

__all__ = ["LOOK", "Look", "at_step", "is_script", "script_options"]

#: Called with a session, the fetches and the feeds of the step that is asked about, which has not run.
Look: TypeAlias = Callable[[Any, Any, Mapping[Any, Any] | None], None]
#: Where a context keeps the Look that ``run`` is to call.
LOOK = "graphdock.contracts.command_line.scripts"


def script_options(command: Any) -> Any:
    """``--fetch`` and the arguments of a script behind it."""
    command = click.argument("arguments", nargs=-1, type=click.UNPROCESSED)(command)
    return click.option(
        "--fetch",
        metavar="NAME",
        help="With a script as TARGET: the step that fetches this tensor, operation or variable of the script; without it the "
        "first step that trains, or else the largest.",
    )(command)


def is_script(target: str, fetch: str | None, arguments: tuple[str, ...]) -> bool:
    """Return whether a target is a script as it stands.

    Raises:
      InvalidArgumentError: it is none, and has a fetch or arguments.
    """
    script = target.endswith(".py")
    if not script and (fetch or arguments):
        raise InvalidArgumentError(
            f"{target!r} is not a script",
            got=f"--fetch {fetch}" if fetch else " ".join(arguments),
            expected="path/to/file.py",
        )
    return script


def at_step(script: str, arguments: tuple[str, ...], fetch: str | None, look: Look) -> None:
    """Run a script up to the step that fetches a name and look at it there; the script is stopped then, and trains nothing.

    What it prints goes to standard error; what ``look`` prints, to standard output.

    Raises:
      NotFoundError: no plugin brings the command ``run``, or no step fetches the name. Exit: the script failed.
    """
    ctx, out = click.get_current_context(), sys.stdout
    root = ctx.find_root()
    run = root.command.get_command(root, "run") if isinstance(root.command, click.Group) else None
    if run is None:
        raise NotFoundError(
            f"the script {script!r} can't be run up to a step: no plugin brings the command `run`",
            hint="name what is fetched, as path/to/file.py:name; or install the plugin tensorflow",
        )

    def printing(session: Any, fetches: Any, feeds: Mapping[Any, Any] | None) -> None:
        with contextlib.redirect_stdout(out):
            look(session, fetches, feeds)

    ctx.meta[LOOK] = printing
    words = [*(("--fetch", fetch) if fetch else ()), script, *arguments]
    with contextlib.redirect_stdout(sys.stderr), run.make_context("run", words, parent=ctx) as inner:
        run.invoke(inner)
