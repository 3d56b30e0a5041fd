"""``graphdock ops``: the ops that allowed plugins declare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from types import MappingProxyType
from typing import Any

import click
from graphdock.contracts import REQUIRED, AttrDef, OpDef
from graphdock.contracts.command_line.output import count, json_option, print_json, table
from graphdock.plugin.host import configured_host
from graphdock.plugin.kernel_rows import KernelRow

from graphdock_opgen.spec_docs import documented_op, tests_of

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


#: Fields of an OpDef that say something of its results, which rewriting plans, fusing and knowing shapes go by.
_FACTS = ("aliases", "scalar", "evaluate", "identity", "neutral", "constants", "sum", "joint", "stacked", "rows")
_RANDOM = (
    "its kernel gets a stream of random numbers behind the inputs (graphdock/contracts/streams.py): Philox4x64-10 with",
    "the key (seed, seed2) and the counter (block, 0, iteration, ordinal); the wrapper's seed and tf.set_random_seed of",
    "the graph make the key, and with neither it is new in each session; ordinal counts the steps that ran the op,",
    "iteration its loops' iterations: the numbers are the same on every device and executor, and others in every step",
)


def for_authors(
    opdef: OpDef, tests: Mapping[str, Any], kernels: Iterable[tuple[str, KernelRow]]
) -> dict[str, list[str]]:
    """Return what the author of a kernel must know of an op, in lines under a heading each."""
    host = [a.name for a in opdef.inputs if a.memory == "host"]
    errors = [_error(sample) for sample in tests.get("error_samples", ())]
    samples = [", ".join(f"{k}={_flow(v)}" for k, v in sample.items()) for sample in tests.get("samples", ())]
    brought = [
        f"{name} on {row.device}{''.join(f', {v}: ' + ' '.join(n) for v, n in row.types.items())}"
        for name, row in kernels
    ]
    return {
        "host memory": [f"{name}: a NumPy array, whatever the device" for name in host],
        "handles": [f"{a.name}: {a.access}" for a in opdef.inputs if a.access],
        "shapes": [f"{check}: {message}" for check, message in opdef.where],
        "errors": errors,
        "facts": [f"{name}: {_flow(value)}" for name in _FACTS if (value := getattr(opdef, name))]
        + ([] if opdef.region is None else [f"region: {_flow(opdef.region.outputs)}"]),
        "random": [*_RANDOM] if "random" in opdef.effects else [],
        "samples": samples,
        "oracle": [opdef.reference] if opdef.reference else [],
        "kernels": brought,
    }


def _error(sample: Mapping[str, Any]) -> str:
    """An error sample: what is raised for which arguments."""
    given = ", ".join(f"{k}={_flow(v)}" for k, v in sample.items() if k not in ("match", "error"))
    return f"{sample.get('error', 'an error')} that says {sample.get('match', '')!r}: {given}"


def _flow(value: Any) -> str:
    """A value of a spec as it is written on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {_flow(v)}" for k, v in value.items()) + "}"
    return "[" + ", ".join(map(_flow, value)) + "]" if isinstance(value, list | tuple) else str(value)


def describe(opdef: OpDef, author: Mapping[str, Sequence[str]] = MappingProxyType({})) -> str:
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
    for heading, said in author.items():
        lines += [f"{heading if i == 0 else '':<14}{line}" for i, line in enumerate(said)]
    return "\n".join(lines)


@click.command(help="List every op, or describe the op NAME.")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    host = configured_host()
    if name is not None:
        opdef = documented_op(host.ops, name)
        known = [(f"{s.name}.{row.short_name}", row) for s in host.plugins() for row in s.kernels_of(name)]
        author = for_authors(opdef, tests_of(host.ops, name), known)
        if as_json:
            print_json({**facts(opdef), "author": author})
        else:
            click.echo(describe(opdef, author))
        return
    opdefs = [documented_op(host.ops, n) for n in host.ops.names()]
    if as_json:
        print_json([facts(opdef) for opdef in opdefs])
        return
    rows = [(o.name, o.package, "yes" if o.gradient else "-", o.summary) for o in opdefs]
    click.echo(table(("OP", "PACKAGE", "GRADIENT", "SUMMARY"), rows))
    packages = sorted({o.package for o in opdefs})
    click.echo(f"{count(len(opdefs), 'op')} of {', '.join(packages) or 'no package'}.")
