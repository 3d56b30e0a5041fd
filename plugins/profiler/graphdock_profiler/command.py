"""``graphdock profile``: where the time of a program's step goes, call by call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from graphdock.contracts.command import CommandTools
from graphdock.contracts.command_line.options import file_options, variables
from graphdock.contracts.command_line.output import json_option, print_json
from graphdock.contracts.command_line.scripts import at_step, is_script, script_options
from graphdock.contracts.step import TraceLevel
from graphdock.errors import InvalidArgumentError

__all__ = ["command"]

#: Rows that stand for this -> printed by default.
_GROUPS = ("node", "op", "kernel", "device")


@click.command(
    help="Run a step of a program some times and say where its time goes. TARGET is module:name or path/to/file.py:name; the name "
    "is that of what is fetched, of a pair of that and a feed_dict, or of a function that builds a graph and returns one of these. "
    "Variables get their initial values. Or it is a script, which is run up to a step as `graphdock run` does, and stopped; its "
    "arguments stand behind it.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("target")
@click.option("--backends", help="Comma-separated, the most wanted first.")
@click.option("--fallback", help="forbid, warn or allow.")
@file_options
@script_options
@click.option(
    "--steps", default=20, show_default=True, type=click.IntRange(1), help="Traced steps, and as many others."
)
@click.option("--warmup", default=3, show_default=True, type=click.IntRange(0), help="Steps before any is measured.")
@click.option("--by", default="node", show_default=True, type=click.Choice(_GROUPS), help="What a row stands for.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(0), help="Rows to show; 0 for all.")
@click.option(
    "--software", is_flag=True, help="Time calls of the host as they are, without waiting for devices' queues."
)
@click.option(
    "--trace", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write a trace for ui.perfetto.dev."
)
@json_option
@click.pass_obj
def command(
    tools: CommandTools,
    target: str,
    fetch: str | None,
    arguments: tuple[str, ...],
    backends: str | None,
    fallback: str | None,
    steps: int,
    warmup: int,
    by: str,
    limit: int,
    software: bool,
    file: Path | None,
    as_json: bool,
) -> None:
    from graphdock_profiler.profile import profile

    given = {k: v for k, v in (("backends", backends), ("fallback", fallback)) if v is not None}
    if file is not None and not file.parent.is_dir():
        raise InvalidArgumentError(f"--trace {file}: there is no folder {str(file.parent)!r}")
    level = TraceLevel.SOFTWARE_TRACE if software else TraceLevel.FULL_TRACE

    def measure(session: Any, fetches: Any, feeds: Any) -> None:
        made = profile(session, fetches, feeds, steps, warmup, level)
        if file is not None:
            made.save(file)
        if as_json:
            print_json(made.facts())
            return
        click.echo(f"{made.summary()}\n\n{made.table(by, limit or None)}")
        if file is not None:
            click.echo(f"\ntrace written to {file}; open it at https://ui.perfetto.dev")

    if is_script(target, fetch, arguments):
        with variables({f"GRAPHDOCK_{name.upper()}": value for name, value in given.items()}):
            at_step(target, arguments, fetch, measure)
        return
    session, program = tools.session(target, **given)
    with session:
        measure(session, program.fetches, program.feeds)
