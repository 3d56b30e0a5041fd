"""``graphdock doctor``: load and probe each plugin in a child process; a crash is a line, not an end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from graphdock.cli import machine
from graphdock.cli.config import problems
from graphdock.cli.output import count, json_option, print_json, table
from graphdock.errors import did_you_mean
from graphdock.plugin import settings
from graphdock.plugin.host import Host, configured_host
from graphdock.plugin.ledger import Added, LedgerEntry
from graphdock.session.config import effective_config

__all__ = ["command", "examine"]

#: Seconds a plugin may take to load and probe.
PATIENCE = 120


def examine(host: Host) -> list[LedgerEntry]:
    """The ledger after every plugin that may load was loaded and probed in a process of its own."""
    entries = host.ledger
    with ThreadPoolExecutor(max_workers=2) as pool:
        checked = list(pool.map(lambda e: _load(e) if e.stage == "found" else e, entries))
    return sorted(checked, key=lambda e: (e.plugin, e.distribution))


def _load(entry: LedgerEntry) -> LedgerEntry:
    blame = f'a fault of {entry.distribution} {entry.version}; `block = ["{entry.plugin}"]` under [plugins] silences it'
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "entry.json"
        command = [sys.executable, "-m", "graphdock.cli.probe", entry.plugin, str(file)]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        try:
            child = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environ, check=False)
        except subprocess.TimeoutExpired:
            return replace(entry, stage="import failed", cause=f"it did not finish in {PATIENCE} s", hint=blame)
        if not file.exists():
            cause = _ending(child.returncode)
            last = child.stderr.strip().splitlines()[-1:]
            cause += f"; it wrote: {last[0]}" if last else ""
            return replace(entry, stage="import failed", cause=cause, hint=blame)
        row = json.loads(file.read_text(encoding="utf-8"))
    added = row["added"]
    return replace(
        entry,
        stage=row["stage"],
        cause=row["cause"],
        hint=row["hint"],
        import_ms=row["import_ms"],
        added=Added(tuple(added["devices"]), added["ops"], added["kernels"]),
    )


def _ending(status: int) -> str:
    if status >= 0:
        return f"the process ended with status {status} while it loaded"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"the process died of {name} while it loaded"


def findings(entries: Sequence[LedgerEntry], strict: bool, required: Sequence[str]) -> list[str]:
    """What makes the exit status 1: faults under ``strict``, and required plugins that have not registered."""
    found = []
    for name in required:
        mine = [e for e in entries if e.plugin == name]
        if not mine:
            hint = did_you_mean(name, {e.plugin for e in entries})
            found.append(
                f"{name} is required and not installed: pip install graphdock-{name}" + (f"; {hint}" if hint else "")
            )
        elif not any(e.stage == "registered" for e in mine):
            found.append(f"{name} is required and stands at {mine[0].stage}")
    if strict:
        found += [f"{e.plugin}: {e.stage}" for e in entries if e.is_fault]
    return found


def _print(entries: Sequence[LedgerEntry], about: Mapping[str, Any], config: str) -> None:
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
    for entry, line in zip(entries, lines[1:], strict=True):
        click.echo(click.style(line, fg="red") if entry.is_fault else line)
        for more in (entry.cause or "").splitlines()[1:]:
            click.echo(f"         {more.strip()}")
        if entry.hint and entry.stage != "blocked":
            click.echo(f"         -> {entry.hint}")


@click.command(help="Load and probe each plugin in a process of its own, and say what is wrong.")
@click.option("--strict", is_flag=True, help="Exit 1 when any plugin is at fault.")
@click.option("--require", "required", multiple=True, metavar="NAME", help="Exit 1 unless this plugin registers.")
@json_option
@click.pass_context
def command(ctx: click.Context, strict: bool, required: tuple[str, ...], as_json: bool) -> None:
    host = configured_host()
    config = effective_config()
    file = settings.find_file(settings.environment())
    entries = examine(host)
    found = [*problems(config), *findings(entries, strict, required)]
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
                "plugins": [e.as_json() for e in entries],
                "findings": found,
            }
        )
    else:
        name = "no file" if file is None else file.label
        _print(entries, about, f"{name} · backends={','.join(config.backends)} ({config.source('backends')})")
        end = "" if strict or not faults else " With --strict this exits 1."
        click.echo((f"{count(len(faults), 'fault')} ({', '.join(faults)})." if faults else "No faults.") + end)
        for text in found:
            click.echo(text, err=True)
    ctx.exit(1 if found else 0)
