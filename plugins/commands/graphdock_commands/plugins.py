"""``graphdock plugins``: what manifests and the import system can know. Imports no other plugin and no NumPy; ``--probe`` has them
imported elsewhere, and ``--all`` lists those too that graphdock ships blocked."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click
from graphdock.contracts.command_line.output import count, json_option, print_json, table
from graphdock.errors import ManifestError
from graphdock.plugin.hookspecs import HOOKS
from graphdock.plugin.host import configured_host
from graphdock.plugin.state import PluginState, counted, plural

from graphdock_commands.limits import Limits, timeout_option

if TYPE_CHECKING:
    from graphdock_commands.isolated import Examined


def facts(state: PluginState) -> dict[str, Any]:
    """Return what is known of one plugin without importing it."""
    manifest = state.manifest
    kernels: int | None = 0
    ops, foreign, provided = 0, set(), {}
    if manifest is not None:
        try:
            kernels = None if manifest.generated is None else len(manifest.kernels)
            ops, provided = len(manifest.op_names), dict(manifest.provided)
            own = {d.type for d in manifest.devices}
            manifest.kernels.check()
            foreign = manifest.kernels.devices() - own - {"host"}  # which is no device: any will do
        except ManifestError as error:
            state.fault("bad manifest", error.text, error)
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
        "provides": provided,
        "hooks": None if manifest is None or manifest.hooks is None else list(manifest.hooks),
        "names": manifest is not None and manifest.endpoints is not None,
        "commands": [] if manifest is None else [c.name for c in manifest.commands],
        "stage": state.stage,
        "cause": state.cause,
        "hint": state.hint,
    }


def _others(row: dict[str, Any]) -> str:
    """Return what it brings besides devices, kernels and ops: how many where the manifest lists their names."""
    parts = []
    for name, hook in HOOKS.items():
        count = len(row["provides"].get(hook.registry, ()))
        if count:
            parts.append(counted(hook.singular, count))
        elif name in (row["hooks"] or ()) and hook.noun is None and hook.registry not in ("devices", "ops", "kernels"):
            parts.append(plural(hook.singular))
    if row["commands"]:
        parts.append(counted("command", len(row["commands"])))
    return ", ".join([*parts, *(["names below tf"] if row["names"] else [])])


def _probed(row: dict[str, Any], examined: Examined) -> dict[str, Any]:
    """The row, and what became of the plugin when it was loaded and probed."""
    entry = examined.entry
    found = {kind: len(told.get("infos", ())) for kind, told in examined.devices.items()}
    return {**row, "stage": entry.stage, "cause": entry.cause, "hint": entry.hint, "found": found}


def _status(row: dict[str, Any]) -> str:
    if row["stage"] in ("found", "registered"):
        found = ", ".join(f"{number} {kind}" for kind, number in row.get("found", {}).items())
        return f"{row['stage']} ({found})" if found else str(row["stage"])
    if row["stage"] == "blocked":
        return f"blocked ({row['cause']})"
    cause = row["cause"].splitlines()[0]
    if row["stage"] == "missing module":
        return f"{cause}: {row['hint']}"
    return f"{row['stage']}: {cause}"


@click.command(
    help="List installed plugins and what their manifests say. Nothing is imported, unless --probe asks for it."
)
@click.option("--probe", is_flag=True, help="Load and probe each in a process of its own, and say how far it comes.")
@click.option("--all", "every", is_flag=True, help="Also those that graphdock ships and that nothing allows.")
@timeout_option
@json_option
def command(probe: bool, every: bool, limits: Limits, as_json: bool) -> None:
    host = click.get_current_context().meta.get("graphdock.host") or configured_host()
    states = host.plugins(every=every)
    rows = [facts(state) for state in states]
    if probe:
        from graphdock_commands.isolated import examine  # processes, which a listing has no use for

        rows = [_probed(r, e) for r, e in zip(rows, examine([s.entry() for s in states], limits), strict=True)]
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
                "-" if row["kernels"] is None else row["kernels"],
                row["ops"] or "",
                _others(row),
                _status(row),
            )
        )
    head = ("PLUGIN", "DISTRIBUTION", "VERSION", "API", "DEVICES", "KERNELS", "OPS", "BRINGS", "STATUS")
    click.echo(table(head, cells, right=("KERNELS", "OPS")))
    stages = Counter(row["stage"] for row in rows)
    hints = [f"{state.name}: {state.hint}" for state in states if state.hidden]
    listed = ", ".join(f"{n} {stage}" for stage, n in sorted(stages.items(), key=lambda s: (s[0] != "found", s[0])))
    end = (
        "Each was loaded and probed by itself."
        if probe
        else "Nothing was imported; `graphdock doctor` loads and probes."
    )
    click.echo(f"{count(len(rows), 'plugin')}: {listed}. {end}")
    for text in hints:
        click.echo(text)
