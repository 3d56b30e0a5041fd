"""Checks that need context, and the op they yield: a frozen :class:`Op` per entry of a file, ready to render."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphdock import dtypes
from graphdock.errors import OpSpecError, did_you_mean

from graphdock_opgen import expr
from graphdock_opgen.expr import Source
from graphdock_opgen.model import DTYPE_CLASSES, ArgSpec, AttrSpec, FileSpec, OpSpec
from graphdock_opgen.names import op_type, snake
from graphdock_opgen.pretty import literal
from graphdock_opgen.reader import Document, Path_

__all__ = ["GradEntry", "Op", "Param", "check_file", "expand_allow"]

OPERATOR_METHODS = (
    *(
        f"__{n}__"
        for n in (
            "add",
            "sub",
            "mul",
            "truediv",
            "floordiv",
            "mod",
            "pow",
            "matmul",
            "and",
            "or",
            "xor",
            "lshift",
            "rshift",
            "divmod",
        )
    ),
    *(f"__{n}__" for n in ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "getitem", "div")),
    *(
        f"__r{n}__"
        for n in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "div")
    ),
)


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of the Python wrapper. ``default`` is source text, None when the caller must give it."""

    name: str
    of: str
    kind: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class GradEntry:
    """How one or several inputs get their gradient. ``kind``: formula, op, fn, none or todo."""

    inputs: tuple[str, ...]
    kind: str
    value: str
    path: Path_


@dataclass(frozen=True, slots=True)
class Op:
    """An op that passed every check.

    Attributes:
      type: the type string.
      function: name of its wrapper in ``module``.
      allow: type variable -> dtype names, () for all.
      entries: gradient entries in the order of the file, then ``none`` for inputs that have no entry.
      has_gradient: whether a gradient function is generated.
      inferred: int attributes that are the length of a list argument.
      free_types: type variables that no input binds; they are arguments of the wrapper.
    """

    spec: OpSpec
    type: str
    snake: str
    function: str
    module: str
    file: str
    line: int
    document: Document
    path: Path_
    allow: Mapping[str, tuple[str, ...]]
    entries: tuple[GradEntry, ...]
    has_gradient: bool
    inferred: tuple[str, ...]
    free_types: tuple[str, ...]
    params: tuple[Param, ...]
    gradcheck: tuple[str, ...] = ()
    lets: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def kinds(self) -> dict[str, str]:
        """Input -> kind, with the reason of a todo."""
        found = {n: (f"todo: {e.value}" if e.kind == "todo" else e.kind) for e in self.entries for n in e.inputs}
        return {a.name: found[a.name] for a in self.spec.inputs if a.name in found}

    def source(self, path: Path_, text: str) -> Source:
        return Source(text, self.document, (*self.path, *path))

    def input(self, name: str) -> ArgSpec | None:
        return next((a for a in self.spec.inputs if a.name == name), None)

    def output(self, name: str) -> ArgSpec | None:
        return next((a for a in self.spec.outputs if a.name == name), None)

    def attr(self, name: str) -> AttrSpec | None:
        return next((a for a in self.spec.attrs if a.name == name), None)

    def dtypes_of(self, dtype: str) -> tuple[str, ...]:
        """dtypes that an argument's ``dtype`` may stand for."""
        if dtype in dtypes.ALL:
            return (dtype,)
        return self.allow.get(dtype) or tuple(dtypes.ALL)


def expand_allow(allow: list[str]) -> tuple[str, ...]:
    """dtype names in the order of the dtype table; () for no restriction."""
    wanted: set[str] = set()
    for item in allow:
        wanted.update(DTYPE_CLASSES.get(item, (item,)))
    return tuple(name for name in dtypes.ALL if name in wanted)


def check_file(document: Document, spec: FileSpec, stem: str, report: Callable[[OpSpecError], None]) -> list[Op]:
    """Every op of a file. A faulty op is reported and left out, so that one run shows the first fault of each."""
    ops = []
    for index, op in enumerate(spec.ops):
        try:
            ops.append(_Checker(document, spec.namespace, stem, index, op).run())
        except OpSpecError as e:
            report(e)
    return ops


class _Checker:
    """The checks of one op, in the order of the file's blocks."""

    def __init__(self, document: Document, namespace: str, stem: str, index: int, spec: OpSpec) -> None:
        self.document, self.namespace, self.stem, self.spec = document, namespace, stem, spec
        self.path: Path_ = ("ops", index)
        self.attrs = {a.name: a for a in spec.attrs}
        self.type_attrs = {a.name for a in spec.attrs if a.type in ("type", "list(type)")}

    def fail(self, *path: str | int, message: str, hint: str | None = None, key: bool = False) -> None:
        self.document.fail((*self.path, *path), message, hint=hint, key=key)

    def source(self, *path: str | int, text: str) -> Source:
        return Source(text, self.document, (*self.path, *path))

    def run(self) -> Op:
        spec = self.spec
        self.unique_names()
        allow = self.types()
        self.attributes()
        inferred = self.arguments(allow)
        self.shapes()
        self.named_functions()
        bound = {a.dtype for a in spec.inputs}
        free = tuple(t for t in spec.types if t not in bound)
        params = self.parameters(inferred, free)
        op = Op(
            spec=spec,
            type=op_type(self.namespace, spec.name),
            snake=snake(spec.name),
            function=self.function_name(),
            module=f"{self.stem}_ops",
            file=f"specs/{self.stem}.yaml",
            line=self.document.line(self.path),
            document=self.document,
            path=self.path,
            allow=allow,
            entries=(),
            has_gradient=False,
            inferred=inferred,
            free_types=free,
            params=params,
        )
        entries = self.gradient(op)
        has = any(e.kind != "none" for e in entries)
        self.samples(op)
        checked = self.gradcheck(op, entries)
        lets = dict(spec.gradient.let) if spec.gradient else {}
        values = {name: getattr(op, name) for name in Op.__dataclass_fields__}
        return Op(**{**values, "entries": entries, "has_gradient": has, "gradcheck": checked, "lets": lets})

    # names and types

    def unique_names(self) -> None:
        seen: dict[str, str] = {}
        groups: list[tuple[str, Any]] = [
            ("inputs", self.spec.inputs),
            ("outputs", self.spec.outputs),
            ("attrs", self.spec.attrs),
        ]
        for group, items in groups:
            for i, item in enumerate(items):
                if item.name in seen:
                    self.fail(
                        group,
                        i,
                        "name",
                        message=f"{self.spec.name} has {item.name!r} among its {seen[item.name]} already",
                    )
                if item.name == "name":
                    self.fail(group, i, "name", message="'name' is the wrapper's own last argument")
                seen[item.name] = group
        for name in self.spec.types:
            if name in seen:
                self.fail(
                    "types", name, message=f"{self.spec.name} has {name!r} among its {seen[name]} already", key=True
                )

    def dtype_names(self) -> list[str]:
        return [*self.spec.types, *self.type_attrs, *dtypes.ALL]

    def types(self) -> dict[str, tuple[str, ...]]:
        out = {}
        for name, spec in self.spec.types.items():
            if name in dtypes.ALL:
                self.fail("types", name, message=f"a type variable can't be called {name!r}, a dtype's name", key=True)
            for i, item in enumerate(spec.allow):
                if item not in dtypes.ALL and item not in DTYPE_CLASSES:
                    known = [*dtypes.ALL, *DTYPE_CLASSES]
                    at = (
                        ("types", name, "allow", i)
                        if (*self.path, "types", name, "allow", i) in self.document.values
                        else ("types", name, "allow")
                    )
                    self.fail(*at, message=f"no dtype named {item!r}", hint=did_you_mean(item, known))
            out[name] = expand_allow(spec.allow)
            if spec.default is not None:
                if spec.default not in dtypes.ALL:
                    self.fail(
                        "types",
                        name,
                        "default",
                        message=f"no dtype named {spec.default!r}",
                        hint=did_you_mean(spec.default, dtypes.ALL),
                    )
                if out[name] and spec.default not in out[name]:
                    self.fail(
                        "types", name, "default", message=f"default {spec.default!r} is not among what {name} allows"
                    )
        return out

    def attributes(self) -> None:
        for i, attr in enumerate(self.spec.attrs):
            if attr.required:
                continue
            base = attr.type.removeprefix("list(").removesuffix(")")
            values = attr.default if attr.type.startswith("list(") else [attr.default]
            if attr.default is None:
                continue
            if not isinstance(values, list):
                self.fail(
                    "attrs",
                    i,
                    "default",
                    message=f"default of {attr.name}: expected a list for {attr.type}, got {attr.default!r}",
                )
            for value in values:
                if not _fits(base, value):
                    self.fail(
                        "attrs",
                        i,
                        "default",
                        message=f"default of {attr.name}: {value!r} is not of type {base}",
                        hint=_dtype_hint(base, value),
                    )
            if attr.one_of and attr.default not in attr.one_of:
                self.fail(
                    "attrs",
                    i,
                    "default",
                    message=f"default of {attr.name}: {attr.default!r} is not among one_of",
                    hint=did_you_mean(str(attr.default), [str(v) for v in attr.one_of]),
                )

    def arguments(self, allow: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        inferred: list[str] = []
        for group, args in (("inputs", self.spec.inputs), ("outputs", self.spec.outputs)):
            for i, arg in enumerate(args):
                if arg.dtype not in self.dtype_names():
                    self.fail(
                        group,
                        i,
                        "dtype",
                        message=f"{arg.dtype!r} is neither a dtype nor a type variable of {self.spec.name}",
                        hint=did_you_mean(arg.dtype, self.dtype_names()),
                    )
                if arg.arity.kind == "optional" and group == "outputs":
                    self.fail(group, i, "arity", message="an output can't be optional")
                is_list = arg.dtype in self.spec.types and self.spec.types[arg.dtype].list_
                is_list = is_list or (arg.dtype in self.attrs and self.attrs[arg.dtype].type == "list(type)")
                if is_list and arg.arity.kind != "many":
                    self.fail(group, i, "dtype", message=f"{arg.dtype} is a list of types, so {arg.name} must be many")
                if arg.arity.many is not None:
                    source = self.source(group, i, "arity", "many", "count", text=arg.arity.many.count)
                    tree = expr.count_names(source, self.attrs, self.spec.types)
                    if (
                        group == "inputs"
                        and isinstance(tree, ast.Name)
                        and tree.id in self.attrs
                        and tree.id not in inferred
                    ):
                        if self.attrs[tree.id].type != "int":
                            source.fail(f"{tree.id} counts tensors, so it must be an int attribute", tree)
                        inferred.append(tree.id)
                if arg.mutates and (group == "outputs" or arg.dtype != "resource"):
                    self.fail(group, i, "mutates", message="only an input of dtype resource can be mutated", key=True)
        return tuple(inferred)

    # shapes

    def shapes(self) -> None:
        spec = self.spec
        known: dict[str, None] = dict.fromkeys(("i", "_", *self.attrs, *spec.types))
        for i, arg in enumerate(spec.inputs):
            if arg.shape is not None:
                elements = expr.pattern(self.source("inputs", i, "shape", text=arg.shape)) or []
                known |= dict.fromkeys(expr.symbols(elements))
        for i, arg in enumerate(spec.inputs):
            if arg.shape is not None:
                source = self.source("inputs", i, "shape", text=arg.shape)
                for element in expr.pattern(source) or []:
                    expr.check_names(source, element, known, "dim, run or attribute")
        for name, text in spec.dims.let.items():
            expr.check_dim(self.source("dims", "let", name, text=text), known, "dim, run or attribute")
            known[name] = None
        for i, where in enumerate(spec.dims.where):
            expr.check_dim(self.source("dims", "where", i, "check", text=where.check), known, "dim, run or attribute")
            source = self.source("dims", "where", i, "error", text=where.error)
            for name in expr.placeholders(source):
                if name not in known:
                    source.fail(
                        f"no dim, run or attribute named {name!r}",
                        column=where.error.find("{" + name),
                        hint=did_you_mean(name, known),
                    )
        for i, arg in enumerate(spec.outputs):
            if arg.shape is not None:
                source = self.source("outputs", i, "shape", text=arg.shape)
                for element in expr.pattern(source) or []:
                    expr.check_names(source, element, known, "dim, run or attribute")
        known |= dict.fromkeys(a.name for a in (*spec.inputs, *spec.outputs))
        for key, text in spec.cost.items():
            expr.check_cost(self.source("cost", key, text=text), known)
        for out, source_input in spec.aliases.items():
            if out not in {a.name for a in spec.outputs}:
                self.fail(
                    "aliases",
                    out,
                    message=f"{spec.name} has no output {out!r}",
                    hint=did_you_mean(out, [a.name for a in spec.outputs]),
                    key=True,
                )
            if source_input not in {a.name for a in spec.inputs}:
                self.fail(
                    "aliases",
                    out,
                    message=f"{spec.name} has no input {source_input!r}",
                    hint=did_you_mean(source_input, [a.name for a in spec.inputs]),
                )

    def named_functions(self) -> None:
        for key in ("shape_fn", "reference"):
            text = getattr(self.spec, key)
            if text is not None:
                _module_name(self.source(key, text=text))

    # the wrapper

    def function_name(self) -> str:
        endpoints = self.spec.api.endpoints
        for i, endpoint in enumerate(endpoints):
            parts = endpoint.name.split(".")
            if not all(p.isidentifier() and not keyword.iskeyword(p) for p in parts):
                self.fail("api", "endpoints", i, "name", message=f"{endpoint.name!r} is not a dotted Python name")
        return endpoints[0].name.rpartition(".")[2] if endpoints else snake(self.spec.name)

    def parameters(self, inferred: tuple[str, ...], free: tuple[str, ...]) -> tuple[Param, ...]:
        spec, api = self.spec, self.spec.api
        kinds = {a.name: "input" for a in spec.inputs}
        kinds |= {n: "attr" for n in self.attrs if n not in inferred}
        kinds |= {n: "type" for n in free}
        for name in api.rename:
            if name not in kinds:
                self.fail(
                    "api",
                    "rename",
                    name,
                    message=f"{spec.name} has no argument {name!r}",
                    hint=did_you_mean(name, kinds),
                    key=True,
                )
        params = []
        for of, kind in kinds.items():
            python = api.rename.get(of, of)
            if keyword.iskeyword(python):
                self.fail(
                    "api", message=f"{python!r} is a Python keyword", hint=f"api: {{rename: {{{of}: {python}_}}}}"
                )
            default = self.default(of, kind)
            params.append(Param(python, of, kind, default))
        names = [p.name for p in params]
        for p in params:
            if names.count(p.name) > 1 or p.name == "name":
                self.fail("api", "rename", p.of, message=f"two arguments of the wrapper are called {p.name!r}")
        by_name = {p.of: p for p in params} | {p.name: p for p in params}
        ordered: list[Param] = []
        for i, name in enumerate(api.order):
            if name not in by_name:
                self.fail(
                    "api", "order", i, message=f"{spec.name} has no argument {name!r}", hint=did_you_mean(name, by_name)
                )
            if by_name[name] in ordered:
                self.fail("api", "order", i, message=f"argument {name!r} stands here twice")
            ordered.append(by_name[name])
        rest = [p for p in params if p not in ordered]
        rest.sort(key=lambda p: p.default is not None)
        if api.order and any(p.default is not None for p in ordered) and any(p.default is None for p in rest):
            needed = next(p.name for p in rest if p.default is None)
            self.fail(
                "api",
                "order",
                message=f"argument {needed!r} has no default, so it must stand in order, before those that have one",
            )
        for i, (a, b) in enumerate(zip(ordered, ordered[1:], strict=False)):
            if a.default is not None and b.default is None:
                self.fail(
                    "api",
                    "order",
                    i + 1,
                    message=f"argument {b.name!r} has no default, but {a.name!r} before it has one",
                )
        if api.returns is not None and api.returns not in {a.name for a in spec.outputs}:
            self.fail(
                "api",
                "returns",
                message=f"{spec.name} has no output {api.returns!r}",
                hint=did_you_mean(api.returns, [a.name for a in spec.outputs]),
            )
        for i, operator in enumerate(api.operator):
            if operator not in OPERATOR_METHODS:
                at: tuple[str | int, ...] = ("api", "operator", i)
                if (*self.path, *at) not in self.document.values:
                    at = at[:-1]
                self.fail(
                    *at, message=f"no operator method {operator!r}", hint=did_you_mean(operator, OPERATOR_METHODS)
                )
        return (*ordered, *rest)

    def default(self, of: str, kind: str) -> str | None:
        if kind == "input":
            arg = next(a for a in self.spec.inputs if a.name == of)
            return "None" if arg.arity.kind == "optional" else None
        if kind == "type":
            found = self.spec.types[of].default
            return None if found is None else literal(found)
        attr = self.attrs[of]
        return None if attr.required else literal(attr.default)

    # gradients

    def gradient(self, op: Op) -> tuple[GradEntry, ...]:
        spec = self.spec
        floating_out = any(self.may_float(op, a) for a in spec.outputs)
        needing = [a.name for a in spec.inputs if a.grad and self.may_float(op, a)]
        if spec.gradient is None or not spec.gradient.inputs:
            if spec.gradient is None and needing and floating_out and not spec.traits.no_gradient:
                self.document.fail(
                    (*self.path, "name"),
                    f"{spec.name} has floating inputs ({', '.join(needing)}) and no gradient block",
                    hint="write 'gradient: none' where there is no derivative",
                )
            if spec.gradient is not None and "inputs" in self.raw_gradient() and needing:
                self.fail("gradient", "inputs", message=f"the gradient block says nothing about {', '.join(needing)}")
            return tuple(GradEntry((a.name,), "none", "", self.path) for a in spec.inputs)
        entries: list[GradEntry] = []
        seen: set[str] = set()
        known = [a.name for a in spec.inputs]
        for key, value in spec.gradient.inputs.items():
            at: Path_ = ("gradient", "inputs", key)
            names = tuple(n.strip() for n in key.split(","))
            for name in names:
                if name not in known:
                    self.fail(
                        *at, message=f"{spec.name} has no input {name!r}", hint=did_you_mean(name, known), key=True
                    )
                if name in seen:
                    self.fail(*at, message=f"input {name!r} has two gradient entries", key=True)
                seen.add(name)
            kind, text, sub = self.entry(at, value)
            entries.append(GradEntry(names, kind, text, (*self.path, *sub)))
        missing = [n for n in needing if n not in seen]
        if missing:
            self.fail(
                "gradient",
                "inputs",
                message=f"no gradient entry for {', '.join(map(repr, missing))} of {spec.name}",
                hint="every input that may be floating has one: a formula, {op: X}, {fn: f}, none or {todo: reason}",
                key=True,
            )
        entries += [GradEntry((n,), "none", "", self.path) for n in known if n not in seen]
        return tuple(entries)

    def raw_gradient(self) -> Any:
        raw = self.document.data["ops"][self.path[1]].get("gradient")
        return raw if isinstance(raw, dict) else {}

    def entry(self, at: Path_, value: Any) -> tuple[str, str, Path_]:
        if value == "none":
            return "none", "", at
        if isinstance(value, str):
            return "formula", value, at
        if isinstance(value, dict) and len(value) == 1:
            ((kind, text),) = value.items()
            if kind not in ("op", "fn", "todo"):
                self.fail(
                    *at,
                    kind,
                    message=f"unknown kind of gradient {kind!r}",
                    hint=did_you_mean(kind, ("op", "fn", "todo")),
                    key=True,
                )
            if not isinstance(text, str) or not text.strip():
                self.fail(*at, kind, message=f"{kind}: expected a non-empty string, got {text!r}")
            if kind == "fn" and ":" in text:
                _module_name(self.source(*at, "fn", text=text))
            elif kind == "fn" and not text.isidentifier():
                self.fail(*at, kind, message=f"fn: {text!r} is not the name of a function")
            return kind, text, (*at, kind)
        self.fail(
            *at,
            message="a gradient is a formula, {op: X}, {fn: f}, none or {todo: reason}",
            hint="write none, not null" if value is None else None,
        )
        raise AssertionError("unreachable")

    def may_float(self, op: Op, arg: ArgSpec) -> bool:
        if arg.dtype in self.type_attrs:
            return True
        return any(dtypes.ALL[d].kind in "fc" for d in op.dtypes_of(arg.dtype))

    # tests

    def samples(self, op: Op) -> None:
        tests = self.spec.tests
        for group, samples in (("samples", tests.samples), ("error_samples", tests.error_samples)):
            for i, sample in enumerate(samples):
                self.sample(op, group, i, sample)
        for dtype in tests.tolerances:
            if dtype not in dtypes.ALL:
                self.fail(
                    "tests",
                    "tolerances",
                    dtype,
                    message=f"no dtype named {dtype!r}",
                    hint=did_you_mean(dtype, dtypes.ALL),
                    key=True,
                )

    def sample(self, op: Op, group: str, index: int, sample: Mapping[str, Any]) -> None:
        at = ("tests", group, index)
        inputs = {a.name: a for a in self.spec.inputs}
        extra = ("attrs", "types", "note", *(("match",) if group == "error_samples" else ()))
        for key, value in sample.items():
            if key in inputs:
                self.sample_input((*at, key), inputs[key], value, group)
            elif key not in extra:
                self.fail(
                    *at,
                    key,
                    message=f"{self.spec.name} has no input {key!r}",
                    hint=did_you_mean(key, [*inputs, *extra]),
                    key=True,
                )
        for arg in inputs.values():
            if arg.name not in sample and arg.arity.kind != "optional":
                self.fail(*at, message=f"the sample gives nothing for input {arg.name!r}")
        if group == "error_samples" and not isinstance(sample.get("match"), str):
            self.fail(*at, message="an error sample needs match: a part of the error's message")
        attrs = sample.get("attrs") or {}
        if not isinstance(attrs, dict):
            self.fail(*at, "attrs", message="attrs: expected a mapping")
        known = [n for n in (*self.attrs, *self.spec.types) if n not in op.inferred]
        for name in attrs:
            if name not in known:
                self.fail(
                    *at,
                    "attrs",
                    name,
                    message=f"{self.spec.name} has no attribute {name!r}",
                    hint=did_you_mean(name, known),
                    key=True,
                )
        types = sample.get("types") or {}
        if not isinstance(types, dict):
            self.fail(*at, "types", message="types: expected a mapping")
        for name, dtype in types.items():
            if name not in self.spec.types:
                self.fail(
                    *at,
                    "types",
                    name,
                    message=f"{self.spec.name} has no type variable {name!r}",
                    hint=did_you_mean(name, self.spec.types),
                    key=True,
                )
            for d in dtype if isinstance(dtype, list) else [dtype]:
                if d not in dtypes.ALL:
                    self.fail(
                        *at, "types", name, message=f"no dtype named {d!r}", hint=did_you_mean(str(d), dtypes.ALL)
                    )
        if group == "samples":
            for attr in self.spec.attrs:
                if attr.required and attr.name not in op.inferred and attr.name not in attrs:
                    self.fail(
                        *at, message=f"the sample gives nothing for attribute {attr.name!r}, which has no default"
                    )

    def sample_input(self, at: Path_, arg: ArgSpec, value: Any, group: str) -> None:
        if value is None:
            if arg.arity.kind != "optional":
                self.fail(*at, message=f"input {arg.name!r} is not optional, so it can't be null")
            return
        if arg.arity.kind == "many":
            if not isinstance(value, list):
                self.fail(*at, message=f"input {arg.name!r} takes a list of tensors")
            for i, item in enumerate(value):
                self.sample_tensor((*at, i), item)
            return
        self.sample_tensor(at, value)

    def sample_tensor(self, at: Path_, value: Any) -> None:
        known = ("shape", "value", "low", "high", "dtype", "unique", "sorted", "static")
        if not isinstance(value, dict):
            self.fail(*at, message=f"expected {{shape: [...]}} or {{value: ...}}, got {value!r}")
        for key in value:
            if key not in known:
                self.fail(
                    *at,
                    key,
                    message=f"unknown key {key!r} of a sample",
                    hint=did_you_mean(key, known) or f"known keys: {', '.join(known)}",
                    key=True,
                )
        if ("shape" in value) == ("value" in value):
            self.fail(*at, message="a sample gives either shape or value")
        shape = value.get("shape", [])
        if not isinstance(shape, list) or not all(
            isinstance(d, int) and not isinstance(d, bool) and d >= 0 for d in shape
        ):
            self.fail(*at, "shape", message=f"shape: expected a list of sizes, got {shape!r}")
        dtype = value.get("dtype")
        if dtype is not None and dtype not in dtypes.ALL:
            self.fail(*at, "dtype", message=f"no dtype named {dtype!r}", hint=did_you_mean(str(dtype), dtypes.ALL))

    def gradcheck(self, op: Op, entries: tuple[GradEntry, ...]) -> tuple[str, ...]:
        able = {n for e in entries if e.kind in ("formula", "op", "fn") for n in e.inputs}
        able &= {a.name for a in self.spec.inputs if "float64" in op.dtypes_of(a.dtype) or a.dtype in self.type_attrs}
        ordered = tuple(a.name for a in self.spec.inputs if a.name in able)
        wanted = self.spec.tests.gradcheck
        if wanted is None or wanted.inputs is None:
            return ordered
        for i, name in enumerate(wanted.inputs):
            if name not in able:
                self.fail(
                    "tests",
                    "gradcheck",
                    "inputs",
                    i,
                    message=f"input {name!r} has no gradient to check",
                    hint=did_you_mean(name, able),
                )
        return tuple(wanted.inputs)


def _fits(base: str, value: Any) -> bool:
    if base == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    if base == "float":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if base == "bool":
        return isinstance(value, bool)
    if base == "string":
        return isinstance(value, str)
    if base == "type":
        return value in dtypes.ALL
    if base == "shape":
        return isinstance(value, list)
    return True


def _dtype_hint(base: str, value: Any) -> str | None:
    return did_you_mean(str(value), dtypes.ALL) if base == "type" else None


def _module_name(source: Source) -> None:
    module, colon, name = source.text.partition(":")
    if not colon or not name.isidentifier() or not all(p.isidentifier() for p in module.split(".")):
        source.fail("expected 'module:name'")
