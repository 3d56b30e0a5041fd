"""``graphdock kernels OP``: who can compute an op, where, for which types, and under which condition.

``graphdock kernels --missing BACKEND`` lists what a backend can't compute (:mod:`graphdock_commands.missing`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import click
from graphdock.contracts import KernelDef, OpDef
from graphdock.contracts.command_line.output import json_option, print_json, table
from graphdock.errors import ManifestError, PluginError
from graphdock.plugin.host import Host, configured_host
from graphdock.plugin.kernel_rows import KernelRow

from graphdock_commands.missing import missing


def facts(host: Host, opdef: OpDef) -> list[dict[str, Any]]:
    """One row per kernel: from the code of plugins that load, from the manifests of those that can't."""
    rows = []
    for state in host.plugins():
        try:
            if state.usable:
                host.backend(state.name)
                continue
        except PluginError:
            pass  # its stage says why; what its manifest promises is listed below
        for row in state.kernels_of(opdef.name):
            status = state.stage if state.stage != "missing module" else str(state.cause)
            rows.append(_row(f"{state.name}.{row.short_name}", row, status))
    for item in host.kernels.for_op(opdef.name) if opdef.verb.kernel else ():
        try:
            kernel = item.kernel
        except (ManifestError, PluginError) as error:
            rows.append(_row(item.full_name, item.facts, error.message))
            continue
        when = [f"{name} in {', '.join(map(str, values))}" for name, values in kernel.attrs.items()]
        if kernel.check is not None:
            when.append(f"check: {_spoken(kernel.check)}")
        if kernel.label:
            when.append(f"only by pin (label {kernel.label})")
        known = {"when": "; ".join(when), "priority": kernel.priority, "writes_out": "planned" in kernel.modes}
        rows.append(_row(item.full_name, kernel, "found", known))
    return sorted(rows, key=lambda r: (r["kernel"], r["device"]))


def _spoken(check: Callable[..., Any]) -> str:
    """Return what a check asks: the first line of its docstring, else its name."""
    if isinstance(check, functools.partial):
        check = check.func
    text = (inspect.getdoc(check) or "").strip() if inspect.isroutine(check) else ""
    name: str = getattr(check, "__name__", type(check).__name__)
    return text.splitlines()[0].rstrip(".") if text else name


_UNKNOWN = {"when": "?", "priority": None, "writes_out": None}


def _row(name: str, facts: KernelDef | KernelRow, status: str, known: Mapping[str, Any] = _UNKNOWN) -> dict[str, Any]:
    types = {var: list(names) for var, names in facts.types.items()}
    return {"kernel": name, "device": facts.device, "types": types, **known, "status": status}


def _types(row: dict[str, Any]) -> str:
    return "; ".join(f"{var}: {' '.join(names)}" for var, names in row["types"].items()) or "all"


def _heading(opdef: OpDef) -> str:
    allowed = "  ".join(f"{t.name}: {' '.join(t.allow) or 'any'}" for t in opdef.types)
    return f"{opdef}  {opdef.package}, version {opdef.version}" + (f"  {allowed}" if allowed else "")


def _print_missing(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    cells = [(row["op"], row["reason"], row["instead"]) for row in found["missing"]]
    if cells:
        click.echo(table(("OP", "WHY", "INSTEAD"), cells))
    share = 100 * found["kernels"] / max(found["ops"], 1)
    click.echo(f"{found['backend']} has kernels for {found['kernels']} of {found['ops']} ops ({share:.1f} %).")


@click.command(help="List the kernels of OP, or the ops that a backend lacks. Exits 1 when nothing can compute OP.")
@click.argument("op", required=False)
@click.option("--missing", "backend", metavar="BACKEND", help="The ops that BACKEND has no kernel for, and why.")
@json_option
@click.pass_context
def command(ctx: click.Context, op: str | None, backend: str | None, as_json: bool) -> None:
    if (op is None) == (backend is None):
        raise click.UsageError("name an op, or a backend with --missing")
    host = configured_host()
    if backend is not None:
        _print_missing(missing(host, backend), as_json)
        return
    assert op is not None
    opdef = host.ops.get(op)
    rows = facts(host, opdef)
    if as_json:
        about = {"op": opdef.name, "executes": opdef.executes, "package": opdef.package}
        print_json({**about, "kernels": rows, "decomposition": opdef.decomposition})
    else:
        words = {None: "?", True: "yes", False: "no"}
        cells: list[tuple[Any, ...]] = []
        for r in rows:
            priority = "?" if r["priority"] is None else r["priority"]
            out = words[r["writes_out"]]
            cells.append((r["kernel"], r["device"], _types(r), r["when"], priority, out, r["status"]))
        if not opdef.verb.kernel:
            cells = [("host", "any", "all", opdef.verb.summary, "", "", "found")]
        cells.append(("decomposition", "any", "-", "", "", "", opdef.decomposition or "none"))
        click.echo(_heading(opdef))
        head = ("KERNEL", "DEVICE", "TYPES", "WHEN", "PRIO", "OUT", "STATUS")
        click.echo(table(head, cells, right=("PRIO",)))
    found = any(r["status"] == "found" for r in rows) or not opdef.verb.kernel
    ctx.exit(0 if found or opdef.decomposition else 1)
