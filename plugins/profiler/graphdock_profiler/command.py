"""``graphdock profile``: where the time of a program's step goes, call by call."""

from __future__ import annotations

from pathlib import Path

import click
from graphdock.cli.target import Step, build
from graphdock.contracts.command_line.options import file_options
from graphdock.contracts.command_line.output import json_option, print_json
from graphdock.errors import InvalidArgumentError

__all__ = ["command"]

#: Rows that stand for this -> printed by default.
_GROUPS = ("node", "op", "kernel", "device")


def _check_fed(target: str, program: Step) -> None:
    """Refuse a program whose step needs a placeholder that it does not feed; on the command line nothing else can.

    Raises:
      InvalidArgumentError: it says how a program gives its feeds.
    """
    from graphdock.planning.translate import needed_operations
    from graphdock.session.fetches import Feed, FetchPlan

    fetch = FetchPlan(program.graph, program.fetches)
    fed = {Feed(program.graph, key).tensor: None for key in program.feeds or ()}
    roots = [t.op for t in fetch.tensors if t not in fed] + fetch.operations
    for op in needed_operations(roots, fed):
        if op.verb == "feed" and op.outputs[0] not in fed:
            raise InvalidArgumentError(
                f"placeholder {op.name!r} is needed, and {target} does not feed it",
                op=op.name,
                site=op.site,
                hint="let the name be that of a pair, (fetches, feed_dict), or of a function that returns one",
            )


@click.command(
    help="Run a step of a program some times and say where its time goes. TARGET is module:name or path/to/file.py:name; the name "
    "is that of what is fetched, of a pair of that and a feed_dict, or of a function that builds a graph and returns one of these. "
    "Variables get their initial values."
)
@click.argument("target")
@click.option("--backends", help="Comma-separated, the most wanted first.")
@click.option("--fallback", help="forbid, warn or allow.")
@file_options
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
def command(
    target: str,
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
    from graphdock.contracts.step import TraceLevel
    from graphdock.session.config import effective_config
    from graphdock.session.session import Session
    from graphdock.variables.initialization import global_variables_initializer

    from graphdock_profiler.profile import profile

    given = {k: v for k, v in (("backends", backends), ("fallback", fallback)) if v is not None}
    config = effective_config(None, given)
    if file is not None and not file.parent.is_dir():
        raise InvalidArgumentError(f"--trace {file}: there is no folder {str(file.parent)!r}")
    program = build(target)
    with program.graph.as_default():
        initializer = global_variables_initializer()
    _check_fed(target, program)
    with Session(graph=program.graph, config=config) as session:
        session.run(initializer)
        level = TraceLevel.SOFTWARE_TRACE if software else TraceLevel.FULL_TRACE
        made = profile(session, program.fetches, program.feeds, steps, warmup, level)
        if file is not None:
            made.save(file)
        if as_json:
            print_json(made.facts())
            return
        click.echo(f"{made.summary()}\n\n{made.table(by, limit or None)}")
    if file is not None:
        click.echo(f"\ntrace written to {file}; open it at https://ui.perfetto.dev")
