"""``graphdock doctor``: load and probe each plugin in a child process, and say what is wrong, and what its devices tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import click
from graphdock.cli.config import problems
from graphdock.config.session_config import effective_config
from graphdock.contracts.command_line.output import count, json_option, print_json, table
from graphdock.plugin import settings
from graphdock.plugin.discovery import how_to_install
from graphdock.plugin.host import configured_host
from graphdock.plugin.state import LedgerEntry

from graphdock_commands import machine
from graphdock_commands.isolated import Examined, examine
from graphdock_commands.limits import Limits, timeout_option


def findings(
    entries: Sequence[LedgerEntry], known: Collection[str], strict: bool, required: Sequence[str]
) -> list[str]:
    """Return what makes the exit status 1: faults under ``strict``, and required plugins that have not registered.

    ``known``: names of all plugins that are installed.
    """
    found = []
    for name in required:
        mine = [e for e in entries if e.plugin == name]
        if not mine:
            hint = how_to_install(name, known)
            found.append(f"{name} is required and not installed: {hint}")
        elif not any(e.stage == "registered" for e in mine):
            found.append(f"{name} is required and stands at {mine[0].stage}")
    if strict:
        found += [f"{e.plugin}: {e.stage}" for e in entries if e.is_fault]
    return found


def _print(examined: Sequence[Examined], about: Mapping[str, Any], config: str) -> None:
    entries = [e.entry for e in examined]
    core = f", {about['blas_core']}" if about["blas_core"] else ""
    click.echo(
        f"host      graphdock {about['graphdock']} · contracts {about['contracts']} · {about['python']} · "
        f"numpy {about['numpy']} ({about['blas']}{core}) · {count(about['cores'], 'core')}"
    )
    click.echo(f"config    {config}")
    text = machine.note(dict(about))
    if text:
        click.echo(f"note      {text}")
    click.echo()
    rows = [
        (
            e.plugin,
            e.stage,
            "" if e.import_ms is None else f"{e.import_ms:.0f} ms",
            str(e.added),
            (e.cause or "").splitlines()[0] if e.cause else "",
        )
        for e in entries
    ]
    lines = table(("PLUGIN", "STAGE", "IMPORT", "ADDED", "CAUSE"), rows, right=("IMPORT",)).splitlines()
    click.echo(lines[0])
    for one, line in zip(examined, lines[1:], strict=True):
        entry = one.entry
        click.echo(click.style(line, fg="red") if entry.is_fault else line)
        for more in (entry.cause or "").splitlines()[1:]:
            click.echo(f"         {more.strip()}")
        if entry.hint and entry.stage != "blocked":
            click.echo(f"         -> {entry.hint}")
        for found in one.found:
            click.echo(f"         {found}")
        for info in (i for told in one.devices.values() if told["status"] == "ready" for i in told["infos"]):
            facts = ", ".join(f"{name}={value}" for name, value in info["attributes"].items())
            if facts:
                click.echo(f"         {info['device']}: {facts}")


@click.command(help="Load and probe each plugin, or those named alone, in a process of its own, and say what is wrong.")
@click.argument("names", nargs=-1, metavar="[PLUGIN]...")
@click.option("--strict", is_flag=True, help="Exit 1 when any plugin is at fault.")
@click.option("--require", "required", multiple=True, metavar="NAME", help="Exit 1 unless this plugin registers.")
@timeout_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, names: tuple[str, ...], strict: bool, required: tuple[str, ...], limits: Limits, as_json: bool
) -> None:
    host = configured_host()
    config = effective_config()
    file = settings.find_file(settings.environment())
    ledger = [e for e in host.ledger if not names or e.plugin in names]
    examined = sorted(examine(ledger, limits), key=lambda e: (e.entry.plugin, e.entry.distribution))
    entries = [e.entry for e in examined]
    found = [*problems(config), *findings(entries, {e.plugin for e in host.ledger}, strict, [*names, *required])]
    about = machine.facts()
    faults = [e.plugin for e in entries if e.is_fault]
    if as_json:
        print_json(
            {
                "host": {**about, "note": machine.note(about)},
                "config": {
                    "file": None if file is None else file.label,
                    "backends": list(config.backends),
                    "source": config.source("backends"),
                },
                "plugins": [{**one.entry.as_json(), "found": list(one.found)} for one in examined],
                "findings": found,
            }
        )
    else:
        name = "no file" if file is None else file.label
        _print(examined, about, f"{name} · backends={','.join(config.backends)} ({config.source('backends')})")
        end = "" if strict or not faults else " With --strict this exits 1."
        click.echo((f"{count(len(faults), 'fault')} ({', '.join(faults)})." if faults else "No faults.") + end)
        for text in found:
            click.echo(text, err=True)
    ctx.exit(1 if found else 0)
