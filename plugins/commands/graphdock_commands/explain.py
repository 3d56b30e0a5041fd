"""``graphdock explain``: where each node of a program would run, with which kernel and why, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from graphdock.cli.target import build
from graphdock.contracts.command_line.options import file_options
from graphdock.contracts.command_line.output import json_option, print_json
from graphdock.contracts.command_line.scripts import at_step, is_script, script_options


@click.command(
    help="Say where each node of a program runs, with which kernel and why. TARGET is module:name or "
    "path/to/file.py:name; the name is that of what would be fetched, of a pair of that and a feed_dict, or of a function that "
    "builds a graph and returns one of these. Or it is a script, which is run up to a step as `graphdock run` does, and stopped; "
    "its arguments stand behind it.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("target")
@click.option("--backends", help="Comma-separated, the most wanted first.")
@click.option("--fallback", help="forbid, warn or allow.")
@click.option(
    "--plan-for",
    multiple=True,
    metavar="TYPE=ARCH",
    help="Plan for a device that need not be here, such as cuda=sm_90; its kernels are compiled.",
)
@file_options
@script_options
@click.option(
    "--all",
    "lost",
    is_flag=True,
    help="Show every kernel that lost, with its reason, and the passes that changed a node.",
)
@click.option(
    "--source", is_flag=True, help="Show the generated source of the step, and of kernels that were compiled for it."
)
@click.option(
    "--diff",
    "other",
    metavar="SETTINGS",
    help="Say what differs under other settings: a configuration file, or lines of one, such as 'placer = \"simulated\"'.",
)
@click.option("--lock", metavar="FILE", help="Write devices and kernels to a file, which the setting lock replays.")
@click.option(
    "--html", "page", metavar="FILE", help="Write a page: the graph by device, a timeline, memory, and all nodes."
)
@json_option
def command(
    target: str,
    fetch: str | None,
    arguments: tuple[str, ...],
    backends: str | None,
    fallback: str | None,
    plan_for: tuple[str, ...],
    lost: bool,
    source: bool,
    other: str | None,
    lock: str | None,
    page: str | None,
    as_json: bool,
) -> None:
    from graphdock.config.session_config import effective_config
    from graphdock.session.session import Session

    given: dict[str, Any] = {k: v for k, v in (("backends", backends), ("fallback", fallback)) if v is not None}
    if plan_for:
        given["plan_for"] = dict(_pair(text) for text in plan_for)
    config = effective_config(None, given)

    def tell(graph: Any, fetches: Any, feeds: Any) -> None:
        with Session(graph=graph, config=config) as session:
            explanation = session.explain(fetches, feeds)
        if lock is not None:
            try:
                count = explanation.lock(lock)
            except OSError as error:
                raise click.ClickException(f"{lock} can't be written: {error.strerror}") from error
            click.echo(f"{lock}: {count} nodes", err=True)
        if page is not None:
            _write_page(explanation, page)
        if other is None:
            _print(explanation, lost, source, as_json)
            return
        with Session(graph=graph, config=config.replace(**_settings(other))) as session:
            changed = session.explain(fetches, feeds)
        if as_json:
            print_json(explanation.diff_facts(changed))
        else:
            click.echo(explanation.diff(changed))

    if is_script(target, fetch, arguments):
        at_step(target, arguments, fetch, lambda theirs, fetches, feeds: tell(theirs.graph, fetches, feeds))
        return
    step = build(target)
    tell(step.graph, step.fetches, step.feeds)


def _print(explanation: Any, lost: bool, source: bool, as_json: bool) -> None:
    if as_json:
        texts = {"source": explanation.source, "compiled": explanation.compiled()} if source else {}
        print_json({**explanation.facts(), **texts})
        return
    click.echo(explanation.text(lost))
    if source:
        click.echo("\n" + explanation.source, nl=False)
        for name, text in explanation.compiled().items():
            click.echo(f"\n# {name}\n{text}")


def _write_page(explanation: Any, path: str) -> None:
    import graphdock

    text = graphdock.profiler.plan_page(explanation)  # of a plugin, which may be left out
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} can't be written: {error.strerror}") from error


def _settings(text: str) -> dict[str, Any]:
    """The settings of a file, or those that are written out."""
    import tomllib

    from graphdock.config.session_config import SessionConfig

    if text.endswith(".toml"):
        named = SessionConfig.from_toml(text)
        return {name: getattr(named, name) for name in named._given}
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise click.UsageError(
            f"--diff takes a file, or settings such as 'fusion = false', not {text!r}: {error}"
        ) from error


def _pair(text: str) -> tuple[str, str]:
    kind, equals, architecture = text.partition("=")
    if not equals:
        raise click.UsageError(f"--plan-for takes TYPE=ARCH, such as cuda=sm_90, not {text!r}")
    return kind, architecture
