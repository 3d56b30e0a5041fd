"""From a checked library to the text of every generated file."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import graphdock_templates
import jinja2
from graphdock.contracts.resource import VARIABLE
from graphdock.errors import OpSpecError

from graphdock_opgen import docs, escape
from graphdock_opgen.functions import GRADIENT_ERROR, import_lines
from graphdock_opgen.gradients import Function, decomposition_function, gradient_function
from graphdock_opgen.library import Library, SpecFile
from graphdock_opgen.model import DTYPE_CLASSES, ArgSpec, AttrSpec, RegionSpec
from graphdock_opgen.op import Op, expand_allow
from graphdock_opgen.pretty import Call, Raw, call, literal, parameters, pretty, statement

__all__ = ["environment", "render", "render_library"]


@cache
def environment() -> jinja2.Environment:
    """Jinja2 over the package's templates; an undefined name is an error, and so is text that was not escaped."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(graphdock_templates.DIRECTORY),
        undefined=jinja2.StrictUndefined,
        finalize=escape.landed,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    made.filters.update(escape.FILTERS)
    return made


def render(name: str, source: str = "specs/*.yaml", **context: Any) -> str:
    """The text of a template; at most two lines in a row are empty, and none at the end."""
    text = environment().get_template(name).render(source=source, **context)
    lines = [line.rstrip() for line in text.splitlines()]
    out: list[str] = []
    for line in lines:
        if line or len(out) < 2 or out[-1] or out[-2]:
            out.append(line)
    return "\n".join(out).strip("\n") + "\n"


def render_library(library: Library, report: Callable[[OpSpecError], None]) -> dict[str, str]:
    """Path below the package -> text, for every generated file. Faults found while rendering formulas are reported."""
    gradients = _functions(library, (op for op in library.ops if op.has_gradient), gradient_function, report)
    decompositions = _functions(
        library, (op for op in library.ops if op.spec.decompose), decomposition_function, report
    )
    out = {"__init__.py": render("library/init.py.j2", package=library.package)}
    out["opdefs.py"] = render_opdefs(library)
    out["endpoints.py"] = render(
        "library/endpoints.py.j2", package=library.package, endpoints=pretty(endpoints(library))
    )
    out["gradients.py"] = render_gradients(library, gradients)
    out["decompositions.py"] = render(
        "library/decompositions.py.j2",
        package=library.package,
        imports=_imports(decompositions),
        functions=decompositions,
    )
    for file in library.files:
        out[f"{file.module}.py"] = render_wrappers(library, file)
    return {f"_gen/{name}": text for name, text in sorted(out.items())}


def _functions(
    library: Library, ops: Any, make: Callable[[Op, Library], Function], report: Callable[[OpSpecError], None]
) -> list[Function]:
    out = []
    for op in ops:
        try:
            out.append(make(op, library))
        except OpSpecError as e:
            report(e)
    return out


# OpDefs


def render_opdefs(library: Library) -> str:
    """``_gen/opdefs.py``."""
    ops = [
        {"snake": op.snake, "fields": [(k, pretty(v, 8, len(k) + 1)) for k, v in _opdef(op, library).items()]}
        for op in library.ops
    ]
    table = {op.type: Raw(op.snake) for op in library.ops}
    operators = {
        o: f"{library.package}._gen.{op.module}:{op.function}" for op in library.ops for o in op.spec.api.operator
    }
    return render(
        "library/opdefs.py.j2",
        package=library.package,
        ops=ops,
        groups=_groups(library),
        table=pretty(table),
        operators=pretty(operators),
        specs=pretty({Path(file.name).name: file.digest for file in library.files}),
    )


def _group(allowed: tuple[str, ...]) -> Any:
    """The name of a class of dtypes where it is exactly that, else the dtypes."""
    for name in _GROUPS:
        if set(allowed) == set(DTYPE_CLASSES[name]):
            return Raw(f"_{name.upper()}")
    return allowed


_GROUPS = ("any", "real", "ints", "floats")


def _groups(library: Library) -> dict[str, str]:
    """Classes of dtypes in use -> source of the tuple."""
    used = {str(_group(a)) for op in library.ops for a in op.allow.values() if isinstance(_group(a), Raw)}
    return {f"_{n.upper()}": pretty(expand_allow([n]), 0, len(n) + 4) for n in _GROUPS if f"_{n.upper()}" in used}


def _opdef(op: Op, library: Library) -> dict[str, Any]:
    spec = op.spec
    traits = {*spec.traits.names(), *(() if op.has_gradient else ("no_gradient",))}
    generated = f"{library.package}._gen"
    full = {
        "name": op.type,
        "version": spec.version,
        "summary": spec.summary.strip(),
        "doc": spec.doc.strip(),
        "inputs": tuple(_argdef(a) for a in spec.inputs),
        "outputs": tuple(_argdef(a) for a in spec.outputs),
        "attrs": tuple(_attrdef(a, op) for a in spec.attrs),
        "types": tuple(_typevar(name, op) for name in spec.types),
        "let": dict(spec.dims.let),
        "where": tuple((w.check, w.error) for w in spec.dims.where),
        "shape_fn": op.home.full(spec.shape_fn) if spec.shape_fn else None,
        "executes": "" if spec.executes == "kernel" else spec.executes,
        "effects": frozenset(spec.effects),
        "bodies": tuple(call("BodyDef", n, b.takes, *([b.gives] if b.gives else [])) for n, b in spec.bodies.items()),
        "resource": spec.resource,
        "host_fn": spec.host_fn,
        "traits": frozenset(traits),
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
        "gradient": f"{generated}.gradients:{op.snake}" if op.has_gradient else None,
        "gradient_kinds": op.kinds,
        "decomposition": f"{generated}.decompositions:{op.snake}" if spec.decompose else None,
        "reference": op.home.full(spec.reference) if spec.reference else None,
        "operators": tuple(spec.api.operator),
        "deprecated": spec.deprecated,
        "package": library.package.partition(".")[0],
        "source": f"{op.file}:{op.line}",
    }
    return {k: v for k, v in full.items() if v or k in ("name", "version")}


def _region(form: RegionSpec) -> Call:
    optional: dict[str, Any] = {"let": dict(form.let), "leading": tuple(form.leading), "when": dict(form.when)}
    return call("RegionForm", dict(form.outputs), **{k: v for k, v in optional.items() if v})


def _argdef(arg: ArgSpec) -> Call:
    optional: dict[str, Any] = {}
    if arg.shape is not None and arg.shape.strip() != "?":
        optional["shape"] = arg.shape.strip()
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
    if arg.doc:
        optional["doc"] = arg.doc.strip()
    return call("ArgDef", arg.name, arg.dtype, **optional)


def _attrdef(attr: AttrSpec, op: Op) -> Call:
    optional: dict[str, Any] = {}
    if not attr.required:
        optional["default"] = attr.default
    if attr.min is not None:
        optional["minimum"] = attr.min
    if attr.max is not None:
        optional["maximum"] = attr.max
    if attr.one_of:
        optional["allowed"] = tuple(attr.one_of)
    if attr.doc:
        optional["doc"] = attr.doc.strip()
    if attr.name in op.inferred:
        optional["inferred"] = True
    return call("AttrDef", attr.name, attr.type, **optional)


def _typevar(name: str, op: Op) -> Call:
    spec = op.spec.types[name]
    optional: dict[str, Any] = {}
    if op.allow[name]:
        optional["allow"] = _group(op.allow[name])
    if spec.default is not None:
        optional["default"] = spec.default
    if spec.list_:
        optional["is_list"] = True
    return call("TypeVarDef", name, **optional)


# wrappers


def endpoints(library: Library) -> dict[str, str]:
    """Public name -> ``"module:function"``."""
    found = {
        e.name: f"{library.package}._gen.{op.module}:{op.function}" for op in library.ops for e in op.spec.api.endpoints
    }
    return dict(sorted(found.items()))


def render_wrappers(library: Library, file: SpecFile) -> str:
    """``_gen/<file>_ops.py``."""
    ops = []
    for op in file.ops:
        returns, tuple_, fields = docs.typed_returns(op)
        ops.append(
            {
                "function": op.function,
                "signature": parameters(docs.typed_signature(op), len(op.function) + 5, len(returns) + 6),
                "returns": returns,
                "tuple": tuple_,
                "fields": fields,
                "doc": docs.docstring(op),
                "body": statement(f"return {_call(op)}"),
            }
        )
    import_ops = "from graphdock.ops import apply as _ops" if library.is_core else "from graphdock import ops as _ops"
    return render(
        "library/wrappers.py.j2",
        source=file.name,
        count=len(ops),
        import_ops=import_ops,
        imports=_type_imports(ops),
        ops=ops,
    )


#: Module -> names of it that annotations of wrappers may have, in the order of imports.
_TYPES = {
    "collections.abc": ("Callable", "Sequence"),
    "typing": ("Any", "Literal", "NamedTuple"),
    "": (),
    "graphdock": ("Operation", "Tensor"),
    "graphdock.typing": ("DTypeLike", "ShapeLike", "TensorLike"),
}


def _type_imports(ops: list[dict[str, Any]]) -> list[str]:
    """The imports that a module's annotations need; checkers alone run them."""
    text = " ".join([o["signature"] + " " + o["returns"] for o in ops] + [t for o in ops for _, t in o["fields"]])
    used = {*re.findall(r"\w+", text), *("NamedTuple" for o in ops if o["tuple"])}
    lines = []
    for module, names in _TYPES.items():
        wanted = ", ".join(n for n in names if n in used)
        if wanted or not module:
            lines.append(f"from {module} import {wanted}" if module else "")
    return lines[1:] if not lines[0] else lines


def _call(op: Op) -> str:
    arguments = [literal(op.type), *(f"{p.of}={p.name}" for p in op.params), "name=name"]
    picked = f".{op.spec.api.returns}" if op.spec.api.returns and len(op.spec.outputs) > 1 else ""
    return f"_ops.apply_op({', '.join(arguments)}){picked}"


# gradients


def render_gradients(library: Library, functions: list[Function]) -> str:
    """``_gen/gradients.py``."""
    return render(
        "library/gradients.py.j2",
        package=library.package,
        imports=_imports(functions),
        todo=any(GRADIENT_ERROR in f.imports for f in functions),
        functions=functions,
    )


def _imports(functions: list[Function]) -> list[str]:
    return import_lines(line for f in functions for line in f.imports)
