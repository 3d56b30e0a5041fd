"""Checks that need context: from a file's model to frozen :class:`Op` objects, ready to render."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from graphdock import dtypes
from graphdock.errors import OpSpecError, did_you_mean

from graphdock_opgen import expr
from graphdock_opgen.check_api import function_name, parameters
from graphdock_opgen.check_gradient import gradient_entries
from graphdock_opgen.check_semantics import check_semantics
from graphdock_opgen.check_shapes import check_shapes
from graphdock_opgen.check_tests import check_samples, gradcheck_inputs
from graphdock_opgen.home import Home
from graphdock_opgen.model import DTYPE_CLASSES, AttrSpec, FileSpec
from graphdock_opgen.names import op_type, snake
from graphdock_opgen.op import Op, Place, expand_allow
from graphdock_opgen.reader import Document

__all__ = ["check_file"]


def check_file(
    document: Document, spec: FileSpec, file: str, module: str, home: Home, report: Callable[[OpSpecError], None]
) -> list[Op]:
    """Every op of a file. A faulty op is reported and left out, so that one run shows the first fault of each.

    Args:
      file: its path below what ships it, for messages. module: what the module of its wrappers is called.
    """
    if not spec.ops:
        report(document.error(("ops",), "the file declares no op", hint="remove the file, or write an op"))
    ops = []
    for index, op in enumerate(spec.ops):
        try:
            ops.append(_check(Place(document, spec.namespace, index, op, home), file, module))
        except OpSpecError as e:
            report(e)
    return ops


def _check(place: Place, file: str, module: str) -> Op:
    """The op at a place. Raises OpSpecError at its first fault."""
    spec = place.spec
    _unique_names(place)
    allow = _types(place)
    _attributes(place)
    inferred = _arguments(place, allow)
    check_shapes(place)
    _aliases(place)
    _named_functions(place)
    check_semantics(place)
    bound = {a.dtype for a in spec.inputs}
    free = tuple(t for t in spec.types if t not in bound)
    params = parameters(place, inferred, free)
    op = Op(
        spec=spec,
        type=op_type(place.namespace, spec.name),
        snake=snake(spec.name),
        function=function_name(place),
        module=module,
        file=file,
        line=place.document.line(place.path),
        document=place.document,
        path=place.path,
        allow=allow,
        entries=(),
        has_gradient=False,
        inferred=inferred,
        free_types=free,
        params=params,
        home=place.home,
    )
    entries = gradient_entries(place, op)
    has = any(e.kind != "none" for e in entries)
    check_samples(place, op)
    checked = gradcheck_inputs(place, op, entries)
    lets = dict(spec.gradient.let) if spec.gradient else {}
    return replace(op, entries=entries, has_gradient=has, gradcheck=checked, lets=lets)


def _unique_names(place: Place) -> None:
    seen: dict[str, str] = {}
    groups: list[tuple[str, Any]] = [
        ("inputs", place.spec.inputs),
        ("outputs", place.spec.outputs),
        ("attrs", place.spec.attrs),
    ]
    for group, items in groups:
        for i, item in enumerate(items):
            if item.name in seen:
                place.fail(
                    group,
                    i,
                    "name",
                    message=f"{place.spec.name} has {item.name!r} among its {seen[item.name]} already",
                )
            if item.name == "name":
                place.fail(group, i, "name", message="'name' is the wrapper's own last argument")
            seen[item.name] = group
    for name in place.spec.types:
        if name in seen:
            place.fail(
                "types", name, message=f"{place.spec.name} has {name!r} among its {seen[name]} already", key=True
            )


def _dtype_names(place: Place) -> list[str]:
    return [*place.spec.types, *place.type_attrs, *dtypes.ALL]


def _types(place: Place) -> dict[str, tuple[str, ...]]:
    out = {}
    for name, spec in place.spec.types.items():
        if name in dtypes.ALL:
            place.fail("types", name, message=f"a type variable can't be called {name!r}, a dtype's name", key=True)
        for i, item in enumerate(spec.allow):
            if item not in dtypes.ALL and item not in DTYPE_CLASSES:
                known = [*dtypes.ALL, *DTYPE_CLASSES]
                at = (
                    ("types", name, "allow", i)
                    if (*place.path, "types", name, "allow", i) in place.document.values
                    else ("types", name, "allow")
                )
                place.fail(*at, message=f"no dtype named {item!r}", hint=did_you_mean(item, known))
        out[name] = expand_allow(spec.allow)
        if spec.default is not None:
            if spec.default not in dtypes.ALL:
                place.fail(
                    "types",
                    name,
                    "default",
                    message=f"no dtype named {spec.default!r}",
                    hint=did_you_mean(spec.default, dtypes.ALL),
                )
            if out[name] and spec.default not in out[name]:
                place.fail(
                    "types", name, "default", message=f"default {spec.default!r} is not among what {name} allows"
                )
    return out


def _attributes(place: Place) -> None:
    for i, attr in enumerate(place.spec.attrs):
        base, is_list = attr.type.removeprefix("list(").removesuffix(")"), attr.type.startswith("list(")
        _bounds(place, ("attrs", i), attr, is_list or base in ("int", "float"))
        for k, value in enumerate(attr.one_of):
            if not _fits(base, value):
                place.fail("attrs", i, "one_of", k, message=f"one_of of {attr.name}: {value!r} is not of type {base}")
        if attr.required or attr.default is None:
            continue

        def fail(message: str, hint: str | None = None, i: int = i, name: str = attr.name) -> NoReturn:
            place.fail("attrs", i, "default", message=f"default of {name}: {message}", hint=hint)

        values = attr.default if is_list else [attr.default]
        if not isinstance(values, list):
            fail(f"expected a list for {attr.type}, got {attr.default!r}")
        for value in values:
            if not _fits(base, value):
                fail(f"{value!r} is not of type {base}", _dtype_hint(base, value))
            if attr.one_of and value not in attr.one_of:
                fail(f"{value!r} is not among one_of", did_you_mean(str(value), [str(v) for v in attr.one_of]))
        measured = len(values) if is_list else attr.default
        if attr.min is not None and measured < attr.min:
            fail(f"{attr.default!r} is less than min, {attr.min}")
        if attr.max is not None and measured > attr.max:
            fail(f"{attr.default!r} is more than max, {attr.max}")


def _bounds(place: Place, at: tuple[str | int, ...], attr: AttrSpec, measurable: bool) -> None:
    for key in ("min", "max"):
        if getattr(attr, key) is not None and not measurable:
            place.fail(
                *at,
                key,
                message=f"{key} bounds numbers and lengths of lists, and {attr.name} is a {attr.type}",
                key=True,
            )
    if attr.min is not None and attr.max is not None and attr.min > attr.max:
        place.fail(*at, "max", message=f"max of {attr.name}, {attr.max}, is less than min, {attr.min}")


def _arguments(place: Place, allow: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    inferred: list[str] = []
    for group, args in (("inputs", place.spec.inputs), ("outputs", place.spec.outputs)):
        for i, arg in enumerate(args):
            if arg.dtype not in _dtype_names(place):
                place.fail(
                    group,
                    i,
                    "dtype",
                    message=f"{arg.dtype!r} is neither a dtype nor a type variable of {place.spec.name}",
                    hint=did_you_mean(arg.dtype, _dtype_names(place)),
                )
            if arg.arity.kind == "optional" and group == "outputs":
                place.fail(group, i, "arity", message="an output can't be optional")
            is_list = arg.dtype in place.spec.types and place.spec.types[arg.dtype].list_
            is_list = is_list or (arg.dtype in place.attrs and place.attrs[arg.dtype].type == "list(type)")
            if is_list and arg.arity.kind != "many":
                place.fail(group, i, "dtype", message=f"{arg.dtype} is a list of types, so {arg.name} must be many")
            if arg.arity.many is not None:
                source = place.source(group, i, "arity", "many", "count", text=arg.arity.many.count)
                tree = expr.count_names(source, place.attrs, place.spec.types)
                if (
                    group == "inputs"
                    and isinstance(tree, ast.Name)
                    and tree.id in place.attrs
                    and tree.id not in inferred
                ):
                    if place.attrs[tree.id].type != "int":
                        source.fail(f"{tree.id} counts tensors, so it must be an int attribute", tree)
                    inferred.append(tree.id)
    return tuple(inferred)


def _aliases(place: Place) -> None:
    spec = place.spec
    for out, source_input in spec.aliases.items():
        if out not in {a.name for a in spec.outputs}:
            place.fail(
                "aliases",
                out,
                message=f"{spec.name} has no output {out!r}",
                hint=did_you_mean(out, [a.name for a in spec.outputs]),
                key=True,
            )
        if source_input not in {a.name for a in spec.inputs}:
            place.fail(
                "aliases",
                out,
                message=f"{spec.name} has no input {source_input!r}",
                hint=did_you_mean(source_input, [a.name for a in spec.inputs]),
            )


def _named_functions(place: Place) -> None:
    for key in ("shape_fn", "reference"):
        text = getattr(place.spec, key)
        if text is not None:
            place.home.check(place.source(key, text=text))


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
        return isinstance(value, str) and value in dtypes.ALL
    if base == "shape":
        return isinstance(value, list) and all(
            d is None or (isinstance(d, int) and not isinstance(d, bool)) for d in value
        )
    return True


def _dtype_hint(base: str, value: Any) -> str | None:
    return did_you_mean(str(value), dtypes.ALL) if base == "type" else None
