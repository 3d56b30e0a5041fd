"""``graphdock devices``: what the probes of the installed plugins find."""

from __future__ import annotations

from typing import Any

import click

from graphdock.cli.output import json_option, print_json, table
from graphdock.errors import DeviceUnavailable, PluginError
from graphdock.plugin.host import Host, configured_host

__all__ = ["command"]

#: Typed facts of a DeviceInfo; None where the probe does not know.
TYPED = ("architecture", "multiprocessors", "shared_memory_bytes", "warp_size")


def facts(host: Host) -> list[dict[str, Any]]:
    """One row per device, and one per device type that has none, with the reason."""
    rows: list[dict[str, Any]] = []
    for state in host.plugins():
        if state.manifest is None or not state.usable:
            continue
        for declared in state.manifest.devices:
            row = {"device": declared.type, "plugin": state.name, "aliases": list(declared.aliases)}
            try:
                infos = host.device_infos(declared.type)
            except DeviceUnavailable as error:
                rows.append({**row, "status": "no device", "cause": error.reason, "hint": error.hint})
                continue
            except PluginError as error:
                rows.append({**row, "status": "fault", "cause": error.message, "hint": error.hint})
                continue
            for info in infos:
                rows.append(
                    {
                        **row,
                        "device": f"{info.device_type}:{info.index}",
                        "status": "ready",
                        "memory_bytes": info.memory_bytes,
                        "attributes": dict(info.attributes),
                        "facts": {name: getattr(info, name) for name in TYPED},
                    }
                )
    return rows


def memory(nbytes: int) -> str:
    """``15.6 GiB``; ``-`` when it is not known."""
    size, unit = float(nbytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:.1f} {unit}" if nbytes else "-"


@click.command(help="List the devices that plugins find. Exits 1 when a plugin fails to load or to probe.")
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    rows = facts(configured_host())
    if as_json:
        print_json(rows)
    else:
        cells = []
        for row in rows:
            if row["status"] == "ready":
                known = {k: v for k, v in row["facts"].items() if v is not None}
                about = ", ".join(f"{k}={v}" for k, v in (row["attributes"] | known).items())
                cells.append((row["device"], row["plugin"], memory(row["memory_bytes"]), about))
            else:
                cells.append((row["device"], row["plugin"], "-", f"{row['status']}: {row['cause']}"))
        click.echo(table(("DEVICE", "PLUGIN", "MEMORY", "ABOUT"), cells, right=("MEMORY",)))
    ctx.exit(1 if any(row["status"] == "fault" for row in rows) else 0)
