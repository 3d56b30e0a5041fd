"""``graphdock devices``: what the probes of the installed plugins find."""

from __future__ import annotations

from typing import Any

import click
from graphdock.contracts.command_line.output import json_option, print_json, table
from graphdock.plugin.host import Host, configured_host
from graphdock.units import in_bytes

from graphdock_commands.isolated import examine
from graphdock_commands.limits import Limits, timeout_option


def facts(host: Host, limits: Limits | None = None) -> list[dict[str, Any]]:
    """One row per device, and one per device type that has none, with the reason.

    Plugins with devices are loaded and probed, each in a process of its own.
    """
    states = [s for s in host.plugins() if s.manifest is not None and s.usable and s.manifest.devices]
    rows: list[dict[str, Any]] = []
    for state, examined in zip(states, examine([s.entry() for s in states], limits), strict=True):
        assert state.manifest is not None
        entry = examined.entry
        unknown = {"status": "fault", "cause": f"{entry.stage}: {entry.cause}", "hint": entry.hint}
        for declared in state.manifest.devices:
            row = {"device": declared.type, "plugin": state.name, "aliases": list(declared.aliases)}
            told = examined.devices.get(declared.type, unknown)
            if told["status"] != "ready":
                rows.append({**row, **told})
                continue
            rows += [{**row, "status": "ready", **info} for info in told["infos"]]
    return rows


@click.command(
    help="List the devices that plugins find, each probed in a process of its own. Exits 1 when a plugin fails to load or to probe."
)
@timeout_option
@json_option
@click.pass_context
def command(ctx: click.Context, limits: Limits, as_json: bool) -> None:
    rows = facts(configured_host(), limits)
    if as_json:
        print_json(rows)
    else:
        cells = []
        for row in rows:
            if row["status"] == "ready":
                known = {k: v for k, v in row["facts"].items() if v is not None}
                about = ", ".join(f"{k}={v}" for k, v in (row["attributes"] | known).items())
                cells.append(
                    (row["device"], row["plugin"], in_bytes(row["memory_bytes"]) if row["memory_bytes"] else "-", about)
                )
            else:
                cells.append((row["device"], row["plugin"], "-", f"{row['status']}: {row['cause']}"))
        click.echo(table(("DEVICE", "PLUGIN", "MEMORY", "ABOUT"), cells, right=("MEMORY",)))
    ctx.exit(1 if any(row["status"] == "fault" for row in rows) else 0)
