"""From an op of a Python function to a package's files: its entry in a spec, and a module that holds the function.

The module gets the source of the function, of its shape function and gradient, and of whatever they name at the top level of their
own module, imports included. Nothing is run to write it.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import yaml
from graphdock.contracts.opdef import REQUIRED, ArgDef, AttrDef, OpDef
from graphdock.dtypes import ALL, DType
from graphdock.errors import InvalidArgumentError, NotFoundError

from graphdock_opgen.pretty import literal
from graphdock_opgen.render import environment

__all__ = ["Functions", "entry", "kernel_source", "local_imports", "module_source", "needs_sample"]

#: A pattern of names, runs and numbers.
_SIMPLE = re.compile(r"\[\s*(\*?\w+\s*(,\s*\*?\w+\s*)*)?\]")


@dataclass(frozen=True, slots=True)
class Functions:
    """The Python side of an op.

    Attributes:
      name: the wrapper's name.
      body: takes and returns arrays; its parameters are the op's inputs and attributes, in that order.
      shape, gradient: what was registered, or None.
      enums: attribute -> the Enum whose members the body takes.
    """

    name: str
    body: Callable[..., Any]
    shape: Callable[..., Any] | None = None
    gradient: Callable[..., Any] | None = None
    enums: Mapping[str, type] = field(default_factory=dict)

    @property
    def all(self) -> list[Callable[..., Any]]:
        return [f for f in (self.body, self.shape, self.gradient) if f is not None]


# the spec


def entry(opdef: OpDef, functions: Functions, module: str) -> str:
    """The op's entry in a spec file, as YAML; ``module`` is where its functions will stand."""
    spec: dict[str, Any] = {
        "name": opdef.name.rpartition(".")[2],
        "version": opdef.version,
        "summary": opdef.summary,
        "doc": opdef.doc,
        "types": {t.name: {"allow": list(t.allow)} for t in opdef.types},
        "attrs": [_attr(a) for a in opdef.attrs],
        "inputs": [_arg(a) for a in opdef.inputs],
        "outputs": [_arg(a) for a in opdef.outputs],
        "shape_fn": f"{module}:shape_of_{functions.name}" if functions.shape is not None else "",
        "effects": sorted(opdef.effects),
        "traits": dict.fromkeys(sorted(opdef.traits), True),
        "gradient": _gradient(opdef, functions, module),
        "reference": f"{module}:reference",
        "tests": _tests(opdef),
        "api": {"endpoints": [{"name": functions.name}], **_order(opdef, functions)},
    }
    kept = {k: v for k, v in spec.items() if v or k in ("gradient", "inputs", "outputs")}
    text = _dump([kept])
    return text if kept.get("tests") else text + _sample_to_fill(opdef)


def _dump(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, default_flow_style=None, width=118, allow_unicode=True)


def needs_sample(opdef: OpDef) -> bool:
    """Return whether the entry has no sample, because nothing here can tell one: conformance then checks nothing of the op."""
    return not _tests(opdef)


def _sample_to_fill(opdef: OpDef) -> str:
    """A sample as a comment, with a shape for each input and a value for each attribute that needs one."""
    sample: dict[str, Any] = {}
    for arg in opdef.inputs:
        tensor = {"shape": [2, 3]}
        sample[arg.name] = [tensor, dict(tensor)] if arg.arity == "many" else tensor
    attrs = {a.name: _some_value(a) for a in opdef.attrs if a.default is REQUIRED and not a.inferred}
    if attrs:
        sample["attrs"] = attrs
    lines = _dump({"tests": {"samples": [sample]}}).splitlines()
    head = "  # TODO: a sample that fits; without one conformance checks nothing of this op\n"
    return head + "".join(f"  # {line}\n" for line in lines)


def _some_value(attr: AttrDef) -> Any:
    if attr.allowed:
        return _plain(attr.allowed[0])
    inner = attr.type.removeprefix("list(").removesuffix(")")
    value = {"int": 2, "float": 0.5, "bool": True, "type": "float32", "shape": [2, 3]}.get(inner, "")
    return value if inner == attr.type else [value]


def _floats(opdef: OpDef) -> list[str]:
    """Inputs that may be floating."""
    allow = {t.name: t.allow for t in opdef.types}
    kinds = {a.name: [ALL[n].kind for n in allow.get(a.dtype, (a.dtype,))] for a in opdef.inputs}
    return [name for name, found in kinds.items() if set(found) & {"f", "c"}]


def _differentiated(opdef: OpDef, functions: Functions) -> list[str]:
    """The inputs whose gradient the registered function gives; none for an op with lists, where a spec's function returns lists."""
    return _floats(opdef) if functions.gradient is not None and opdef.plain else []


def _gradient(opdef: OpDef, functions: Functions, module: str) -> Any:
    floats = _floats(opdef)
    if not floats or "no_gradient" in opdef.traits:
        return "none"
    found = _differentiated(opdef, functions)
    if found:
        return {"inputs": {", ".join(found): {"fn": f"{module}:gradient_of_{functions.name}"}}}
    why = (
        "nobody has written it"
        if functions.gradient is None
        else f"{functions.gradient.__name__}, with a list per list input"
    )
    return {"inputs": {name: {"todo": why} for name in floats}}


def _arg(arg: ArgDef) -> dict[str, Any]:
    found: dict[str, Any] = {"name": arg.name, "dtype": arg.dtype}
    if arg.shape is not None and arg.shape != "?":
        found["shape"] = arg.shape
    if arg.arity == "many":
        found["arity"] = {"many": {"count": arg.count}}
    elif arg.arity != "one":
        found["arity"] = arg.arity
    return found


def _attr(attr: AttrDef) -> dict[str, Any]:
    found: dict[str, Any] = {"name": attr.name, "type": attr.type}
    if attr.default is not REQUIRED:
        found["default"] = _plain(attr.default)
    if attr.minimum is not None:
        found["min"] = attr.minimum
    if attr.allowed:
        found["one_of"] = list(attr.allowed)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, DType):
        return value.name
    return [_plain(v) for v in value] if isinstance(value, tuple) else value


def _order(opdef: OpDef, functions: Functions) -> dict[str, list[str]]:
    """The order of the function's parameters, where the wrapper's would be another one."""
    own = list(inspect.signature(functions.body).parameters)
    usual = [a.name for a in opdef.inputs if a.arity != "optional"]
    usual += [a.name for a in opdef.attrs if a.default is REQUIRED and not a.inferred]
    usual += [a.name for a in opdef.inputs if a.arity == "optional"]
    usual += [a.name for a in opdef.attrs if a.default is not REQUIRED]
    return {} if own == usual else {"order": own}


def _tests(opdef: OpDef) -> dict[str, Any]:
    """One sample that fits the patterns; none where they compute, or where an attribute needs a value."""
    plain = all(a.arity == "one" and a.shape is not None and _SIMPLE.fullmatch(a.shape) for a in opdef.inputs)
    if not plain or any(a.default is REQUIRED for a in opdef.attrs):
        return {}
    sizes: dict[str, list[int]] = {}
    sample = {}
    for arg in opdef.inputs:
        shape: list[int] = []
        for part in (p.strip() for p in (arg.shape or "")[1:-1].split(",") if p.strip()):
            if part.startswith("*"):
                shape += sizes.setdefault(part, [2, 3])
            else:
                shape += [int(part)] if part.isdigit() else sizes.setdefault(part, [2 + len(sizes)])
        sample[arg.name] = {"shape": shape}
    return {"samples": [sample]} if sample else {}


# the module


def module_source(opdef: OpDef, functions: Functions) -> str:
    """Python source: the functions, what they name, and the oracle that calls the body as conformance does.

    Raises:
      InvalidArgumentError: a function stands inside of another. NotFoundError: it has no source file.
    """
    sources = [_Source(f) for f in functions.all]
    own = {f.__name__ for f in functions.all}
    needed = dict.fromkeys(text for source in sources for text in source.needed(own))
    imports = [t for t in needed if t.startswith(("import ", "from "))]
    future = [t for t in imports if t.startswith("from __future__")]
    differentiated = _differentiated(opdef, functions)
    parameters = list(inspect.signature(functions.body).parameters)
    several = len(opdef.outputs) > 1 or any(o.arity == "many" for o in opdef.outputs)
    enums = {name: kind.__name__ for name, kind in functions.enums.items()}
    text = (
        environment()
        .get_template("scaffold/op_from_module.py.j2")
        .render(
            type=opdef.name,
            name=functions.name,
            future=future,
            imports=[t for t in imports if t not in future]
            + (
                ["from graphdock import TensorShape as _TensorShape"]
                if functions.shape is not None and not several
                else []
            )
            + (["from graphdock.ops import zeros_like as _zeros_like"] if differentiated else []),
            texts=[*(t for t in needed if t not in imports), *(source.text for source in sources)],
            parameters=", ".join(parameters),
            body=functions.body.__name__,
            arguments=", ".join(f"{n}={enums[n]}[{n}]" if n in enums else f"{n}={n}" for n in parameters),
            shape="" if functions.shape is None else functions.shape.__name__,
            several=several,
            gradient=functions.gradient.__name__ if functions.gradient is not None and differentiated else "",
            inputs=differentiated,
            indices=[i for i, a in enumerate(opdef.inputs) if a.name in differentiated],
        )
    )
    return re.sub(r"\n{4,}", "\n\n\n", text).strip("\n") + "\n"


def local_imports(opdef: OpDef, functions: Functions, package: str) -> list[str]:
    """Modules that the module would import, at its top or inside of a function, from the folder that the functions come from.

    Those of the package itself are there, and those of an installed distribution can be required.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(module_source(opdef, functions))):
        if isinstance(node, ast.Import):
            names.update(a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    home = functions.body.__module__
    folder = Path(inspect.getfile(functions.body)).resolve().parents[home.count(".")]
    installed = {*sys.stdlib_module_names, *packages_distributions(), package.partition(".")[0]}
    return sorted(n for n in names if n.startswith(".") or _stands_in(folder, n.partition(".")[0], installed))


def _stands_in(folder: Path, name: str, installed: Iterable[str]) -> bool:
    return name not in installed and any((folder / f).exists() for f in (name, f"{name}.py"))


def kernel_source(opdef: OpDef, functions: Functions, module: str) -> str | None:
    """A kernel to append to ``kernels.py``, which calls the oracle until a quicker one is written in its place.

    None for an op with lists or optional inputs, whose stub is opgen's own.
    """
    if not opdef.plain or any(o.arity != "one" for o in opdef.outputs):
        return None
    return (
        environment()
        .get_template("scaffold/op_from_kernel.py.j2")
        .render(
            type=opdef.name,
            name=functions.name,
            module=module,
            inputs=literal([a.name for a in opdef.inputs]),
            attrs=literal([a.name for a in opdef.attrs]),
        )
    )


class _Source:
    """One function's text without its decorators, and the module it stands in."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        if "<" in function.__qualname__:  # <locals>, <lambda>
            raise InvalidArgumentError(
                f"{function.__qualname__} stands inside of another function or statement",
                hint="a package's functions stand at the top level of a module, under a name: move it there",
            )
        try:
            path = inspect.getsourcefile(function)
            text = Path(path or "").read_text(encoding="utf-8")
        except (OSError, TypeError) as error:
            raise NotFoundError(f"{function.__qualname__} has no source file") from error
        self.lines = text.splitlines()
        self.module = ast.parse(text)
        (self.node,) = [n for n in self.module.body if isinstance(n, ast.FunctionDef) and n.name == function.__name__][
            -1:
        ]

    @property
    def text(self) -> str:
        return "\n".join(self.lines[self.node.lineno - 1 : self.node.end_lineno])

    def needed(self, own: Iterable[str]) -> list[str]:
        """The statements that bind what the function names, and what those name, in the order of the module."""
        binds = {name: node for node in self.module.body for name in _bound(node)}
        found: dict[ast.stmt, set[str]] = {n: {"annotations"} for n in self.module.body if _is_future(n)}
        pending: list[ast.AST] = [self.node.args, *([self.node.returns] if self.node.returns else []), *self.node.body]
        while pending:
            for name in _names(pending.pop()):
                node = binds.get(name)
                if node is None or name in own:
                    continue
                if node not in found:
                    pending.append(node)
                found.setdefault(node, set()).add(name)
        return [text for n in self.module.body if n in found for text in self._statements(n, found[n])]

    def _statements(self, node: ast.stmt, names: set[str]) -> list[str]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            return [self._import(node, alias) for alias in node.names if _binding(alias) in names]
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        return ["\n".join(self.lines[first - 1 : node.end_lineno])]

    def _import(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
        text = alias.name + (f" as {alias.asname}" if alias.asname else "")
        if isinstance(node, ast.Import):
            return f"import {text}"
        package = self.function.__globals__.get("__package__") or ""
        module = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
        return f"from {module} import {text}"


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _binding(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [_binding(a) for a in node.names]
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name)]


def _names(node: ast.AST) -> set[str]:
    """Names that a tree reads, those in annotations that are strings included."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    for text in [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]:
        found.update(re.findall(r"[A-Za-z_]\w*", text) if text.isidentifier() else ())
    return found
