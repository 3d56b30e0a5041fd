"""``graphdock ops``: the ops that allowed plugins declare."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import click
from graphdock.contracts import REQUIRED, AttrDef, OpDef
from graphdock.contracts.command_line.output import count, json_option, print_json, table
from graphdock.plugin.host import configured_host

from graphdock_opgen.spec_docs import documented_op

__all__ = ["command"]


def facts(opdef: OpDef) -> dict[str, Any]:
    """An OpDef as JSON; a required attribute has no ``default``."""
    row: dict[str, Any] = {
        k: (dict(v) if hasattr(v, "items") else v)
        for k, v in ((f.name, getattr(opdef, f.name)) for f in fields(opdef) if f.init)
    }
    row["traits"] = sorted(opdef.traits)
    row["effects"] = sorted(opdef.effects)
    for kind in ("inputs", "outputs", "types", "bodies"):
        row[kind] = [asdict(item) for item in getattr(opdef, kind)]
    row["attrs"] = []
    for attr in opdef.attrs:
        item = asdict(attr)
        if attr.default is REQUIRED:
            del item["default"]
        row["attrs"].append(item)
    return row


def _attr(attr: AttrDef) -> str:
    text = attr.type if attr.default is REQUIRED else f"{attr.type} = {attr.default!r}"
    if attr.allowed:
        text += f", one of {', '.join(map(str, attr.allowed))}"
    if attr.minimum is not None:
        text += f", at least {attr.minimum}"
    if attr.maximum is not None:
        text += f", at most {attr.maximum}"
    return text


def _gradient(opdef: OpDef) -> str:
    if opdef.gradient is None:
        return "none"
    kinds = ", ".join(f"{name}: {kind}" for name, kind in opdef.gradient_kinds.items())
    return opdef.gradient + (f" ({kinds})" if kinds else "")


def describe(opdef: OpDef) -> str:
    """The page of one op."""
    lines = [str(opdef), opdef.summary]
    if opdef.doc:
        lines += ["", opdef.doc.strip()]
    rows = [(name, "type", ", ".join(t.allow) or "any") for t in opdef.types for name in (t.name,)]
    rows += [
        (arg.name, kind, f"{arg.dtype} {arg.shape or ''}".strip() + (f"  {arg.doc}" if arg.doc else ""))
        for kind, args in (("input", opdef.inputs), ("output", opdef.outputs))
        for arg in args
    ]
    rows += [(attr.name, "attribute", _attr(attr) + (f"  {attr.doc}" if attr.doc else "")) for attr in opdef.attrs]
    if rows:
        lines += ["", table(("NAME", "KIND", "WHAT"), rows)]
    about = [
        ("package", opdef.package),
        ("version", str(opdef.version)),
        ("executes", f"{opdef.executes}: {opdef.verb.summary}"),
        ("effects", ", ".join(sorted(opdef.effects))),
        ("traits", ", ".join(sorted(opdef.traits))),
        ("gradient", _gradient(opdef)),
        ("decomposition", opdef.decomposition or ""),
        ("operators", ", ".join(opdef.operators)),
        ("deprecated", opdef.deprecated or ""),
        ("spec", opdef.source),
    ]
    lines += ["", *(f"{key:<14}{value}" for key, value in about if value)]
    return "\n".join(lines)


@click.command(help="List every op, or describe the op NAME.")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    host = configured_host()
    if name is not None:
        opdef = documented_op(host.ops, name)
        if as_json:
            print_json(facts(opdef))
        else:
            click.echo(describe(opdef))
        return
    opdefs = [documented_op(host.ops, n) for n in host.ops.names()]
    if as_json:
        print_json([facts(opdef) for opdef in opdefs])
        return
    rows = [(o.name, o.package, "yes" if o.gradient else "-", o.summary) for o in opdefs]
    click.echo(table(("OP", "PACKAGE", "GRADIENT", "SUMMARY"), rows))
    packages = sorted({o.package for o in opdefs})
    click.echo(f"{count(len(opdefs), 'op')} of {', '.join(packages) or 'no package'}.")
