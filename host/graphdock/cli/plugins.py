"""``graphdock plugins``: what manifests and the import system can know. Imports no plugin and no NumPy."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from graphdock.cli.output import count, json_option, print_json, table
from graphdock.errors import ManifestError
from graphdock.plugin.host import configured_host
from graphdock.plugin.loader import PluginState

__all__ = ["command"]


def facts(state: PluginState) -> dict[str, Any]:
    """What is known of one plugin without importing it."""
    manifest = state.manifest
    kernels, ops, foreign = 0, 0, set()
    if manifest is not None:
        try:
            kernels, ops = len(manifest.kernels), len(manifest.op_names)
            own = {d.type for d in manifest.devices}
            foreign = {k.device for k in manifest.kernels} - own - {"host"}  # which is no device: any will do
        except ManifestError as error:
            state.stop(
                "bad manifest", str(error), f"a fault of {state.found.distribution} {state.found.version}", error
            )
    return {
        "plugin": state.name,
        "distribution": state.found.distribution,
        "version": state.found.version,
        "summary": manifest.summary if manifest else None,
        "api": manifest.api if manifest else None,
        "devices": [d.type for d in manifest.devices] if manifest else [],
        "devices_of_others": sorted(foreign),
        "kernels": kernels,
        "ops": ops,
        "stage": state.stage,
        "cause": state.cause,
        "hint": state.hint,
    }


def _status(row: dict[str, Any]) -> str:
    if row["stage"] == "found":
        return "found"
    if row["stage"] == "blocked":
        return f"blocked ({row['cause']})"
    cause = row["cause"].splitlines()[0]
    if row["stage"] == "missing module":
        return f"{cause}: {row['hint']}"
    return f"{row['stage']}: {cause}"


@click.command(help="List installed plugins and what their manifests say. Nothing is imported.")
@json_option
def command(as_json: bool) -> None:
    rows = [facts(state) for state in configured_host().plugins()]
    rows.sort(key=lambda r: (r["plugin"], r["distribution"]))
    if as_json:
        print_json(rows)
        return
    cells = []
    for row in rows:
        devices = [*row["devices"], *(f"({d})" for d in row["devices_of_others"])]
        cells.append(
            (
                row["plugin"],
                row["distribution"],
                row["version"],
                row["api"] or "-",
                ",".join(devices) or "-",
                row["kernels"],
                row["ops"] or "",
                _status(row),
            )
        )
    head = ("PLUGIN", "DISTRIBUTION", "VERSION", "API", "DEVICES", "KERNELS", "OPS", "STATUS")
    click.echo(table(head, cells, right=("KERNELS", "OPS")))
    stages = Counter(row["stage"] for row in rows)
    listed = ", ".join(f"{n} {stage}" for stage, n in sorted(stages.items(), key=lambda s: (s[0] != "found", s[0])))
    click.echo(f"{count(len(rows), 'plugin')}: {listed}. Nothing was imported; `graphdock doctor` loads and probes.")
