"""Rows of the generated table of ops: what an op's spec says and its name, package and file do not."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from graphdock.contracts.resource import VARIABLE

from graphdock_opgen.library import Library, SpecFile
from graphdock_opgen.model import DTYPE_CLASSES, ArgSpec, AttrSpec, RegionSpec
from graphdock_opgen.op import Op
from graphdock_opgen.pretty import Call, Raw, call, pretty

__all__ = ["table"]

#: Classes of dtypes that have a name in the table; the first one that fits is taken.
_CLASSES = ("any", "numeric", "real", "inexact", "ints", "floats", "complex", "index")


def table(library: Library) -> dict[str, Any]:
    """Return what the template of ``_gen/opdefs.py`` prints."""
    files = []
    for file in library.files:
        oracles = _oracles(file)
        rows = [(pretty(op.type), pretty(_row(op, oracles), 4, len(op.type) + 15)) for op in file.ops]
        files.append({"name": f"_{file.module}", "rows": rows, "oracles": oracles, "spec": file.name})
    text = "".join(text for file in files for _, text in file["rows"])
    operators = {
        o: f"{library.package}._gen.{op.module}:{op.function}" for op in library.ops for o in op.spec.api.operator
    } | dict(library.names.operators)
    return {
        "files": files,
        "classes": sorted(name.upper() for name in _CLASSES if re.search(rf"\b_{name.upper()}\b", text)),
        "makers": [f for f in ("arg", "args", "attr", "attrs", "type_var", "types") if re.search(rf"\b_{f}\(", text)],
        "records": [name for name in ("BodyDef", "RegionForm") if f"_{name}(" in text],
        "ops": pretty(
            call(
                "_op_table",
                f"{library.package}._gen",
                {file["spec"]: (file["oracles"], Raw(file["name"])) for file in files},
            ),
            0,
            len("OPS: dict[str, Callable[[], OpDef]] = "),
        ),
        "operators": pretty(operators),
        "specs": pretty({Path(file.name).name: file.digest for file in library.files}),
    }


def _oracles(file: SpecFile) -> str:
    """The module in which most of a file's references stand."""
    modules = Counter(op.home.full(op.spec.reference).partition(":")[0] for op in file.ops if op.spec.reference)
    return modules.most_common(1)[0][0] if modules else ""


def _row(op: Op, oracles: str) -> Call:
    spec = op.spec
    arguments: list[Any] = [
        call("_args", **{a.name: _arg(a) for a in spec.inputs}) if spec.inputs else (),
        call("_args", **{a.name: _arg(a) for a in spec.outputs}) if spec.outputs else (),
        call("_attrs", **{a.name: _attr(a, op) for a in spec.attrs}) if spec.attrs else (),
    ]
    while arguments and not arguments[-1]:
        arguments.pop()
    reference = op.home.full(spec.reference) if spec.reference else None
    traits = tuple(t for t in spec.traits.names() if op.has_gradient or t != "no_gradient")
    full: dict[str, Any] = {
        "version": spec.version if spec.version != 1 else None,
        "types": call("_types", **{name: _type(name, op) for name in spec.types}) if spec.types else None,
        "let": dict(spec.dims.let),
        "where": tuple((w.check, w.error) for w in spec.dims.where),
        "shape_fn": op.home.full(spec.shape_fn) if spec.shape_fn else None,
        "executes": "" if spec.executes == "kernel" else spec.executes,
        "effects": tuple(sorted(spec.effects)),
        "bodies": tuple(call("_BodyDef", n, b.takes, *([b.gives] if b.gives else [])) for n, b in spec.bodies.items()),
        "resource": spec.resource,
        "host_fn": spec.host_fn,
        "aliases": dict(spec.aliases),
        "scalar": spec.scalar,
        "region": _region(spec.region) if spec.region else None,
        "evaluate": op.home.full(spec.evaluate) if spec.evaluate else None,
        "identity": spec.identity,
        "neutral": dict(spec.neutral),
        "constants": {name: {float(v): tuple(ops) for v, ops in of.items()} for name, of in spec.constants.items()},
        "sum": spec.sum,
        "joint": {} if spec.joint is None else dict(spec.joint),
        "stacked": op.home.full(spec.stacked) if spec.stacked else None,
        "rows": spec.rows,
        "cost": spec.cost.given(),
        "gradient": _gradient(op),
        "decomposed": bool(spec.decompose),
        "operators": tuple(spec.api.operator),
        "deprecated": spec.deprecated,
    }
    facts: dict[str, Any] = {k: v for k, v in full.items() if v}
    if traits != ("pure",):
        facts["traits"] = traits
    if reference != (f"{oracles}:{op.snake}" if oracles else None):
        facts["reference"] = reference
    return call("op", *arguments, **facts)


def _gradient(op: Op) -> str | dict[str, str] | None:
    """None where no input has one; the kind of all, or input -> kind of those that have one."""
    kinds = set(op.kinds.values())
    if len(kinds) == 1:
        (kind,) = kinds
        return None if kind == "none" else kind
    return {name: kind for name, kind in op.kinds.items() if kind != "none"}


def _region(form: RegionSpec) -> Call:
    optional: dict[str, Any] = {
        "let": dict(form.let),
        "leading": tuple(form.leading),
        "when": dict(form.when),
        "writes": dict(form.writes),
        "space": tuple(form.space),
        "axes": dict(form.axes),
        "gathers": dict(form.gathers),
    }
    return call("_RegionForm", dict(form.outputs), **{k: v for k, v in optional.items() if v})


def _arg(arg: ArgSpec) -> str | Call:
    optional: dict[str, Any] = {}
    shape = "" if arg.shape is None or arg.shape.strip() == "?" else arg.shape.strip()
    if arg.arity.kind != "one":
        optional["arity"] = arg.arity.kind
    if arg.arity.many is not None:
        optional["count"] = arg.arity.many.count
    if arg.memory != "device":
        optional["memory"] = arg.memory
    if arg.access is not None:
        optional["access"] = arg.access
    if arg.resource is not None and arg.resource != VARIABLE.name:
        optional["resource"] = arg.resource
    if not arg.grad:
        optional["differentiable"] = False
    text = arg.dtype + shape
    return call("_arg", text, **optional) if optional else text


def _attr(attr: AttrSpec, op: Op) -> str | Call:
    default = [] if attr.required else [attr.default]
    optional: dict[str, Any] = {}
    if attr.min is not None:
        optional["minimum"] = attr.min
    if attr.max is not None:
        optional["maximum"] = attr.max
    if attr.one_of:
        optional["allowed"] = tuple(attr.one_of)
    if attr.name in op.inferred:
        optional["inferred"] = True
    return call("_attr", attr.type, *default, **optional) if default or optional else attr.type


def _type(name: str, op: Op) -> Any:
    spec = op.spec.types[name]
    allowed = op.allow[name]
    known = next((Raw(f"_{c.upper()}") for c in _CLASSES if set(allowed) == set(DTYPE_CLASSES[c])), allowed)
    if spec.default is None and not spec.list_:
        return known
    return call(
        "_type_var", known, *([spec.default] if spec.default else []), **({"is_list": True} if spec.list_ else {})
    )
