"""The Python face of an op: its wrapper's name, parameters and operators."""

from __future__ import annotations

from graphdock.errors import did_you_mean

from graphdock_opgen.names import is_dotted, snake
from graphdock_opgen.op import Param, Place
from graphdock_opgen.pretty import literal

__all__ = ["function_name", "parameters"]

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


def function_name(place: Place) -> str:
    endpoints = place.spec.api.endpoints
    for i, endpoint in enumerate(endpoints):
        parts = endpoint.name.split(".")
        if not is_dotted(endpoint.name) or any(p.startswith("_") for p in parts):
            place.fail("api", "endpoints", i, "name", message=f"{endpoint.name!r} is not a dotted Python name")
    return endpoints[0].name.rpartition(".")[2] if endpoints else snake(place.spec.name)


def parameters(place: Place, inferred: tuple[str, ...], free: tuple[str, ...]) -> tuple[Param, ...]:
    spec, api = place.spec, place.spec.api
    kinds = {a.name: "input" for a in spec.inputs}
    kinds |= {n: "attr" for n in place.attrs if n not in inferred}
    kinds |= {n: "type" for n in free}
    for name, value in api.default.items():
        if kinds.get(name) != "input":
            known = did_you_mean(name, [a.name for a in spec.inputs])
            place.fail("api", "default", name, message=f"{spec.name} has no input {name!r}", hint=known, key=True)
        if isinstance(value, dict):
            place.fail("api", "default", name, message=f"default of {name}: expected a value, got a mapping")
    for name in api.rename:
        if name not in kinds:
            place.fail(
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
        default = _default(place, of, kind)
        params.append(Param(python, of, kind, default))
    names = [p.name for p in params]
    for p in params:
        if names.count(p.name) > 1 or p.name == "name":
            place.fail("api", "rename", p.of, message=f"two arguments of the wrapper are called {p.name!r}")
    label = Param("name", "name", "name", "None")
    by_name = {p.of: p for p in params} | {p.name: p for p in params} | {"name": label}
    ordered: list[Param] = []
    for i, name in enumerate(api.order):
        if name not in by_name:
            place.fail(
                "api", "order", i, message=f"{spec.name} has no argument {name!r}", hint=did_you_mean(name, by_name)
            )
        if by_name[name] in ordered:
            place.fail("api", "order", i, message=f"argument {name!r} stands here twice")
        ordered.append(by_name[name])
    rest = [p for p in params if p not in ordered]
    rest.sort(key=lambda p: p.default is not None)
    if api.order and any(p.default is not None for p in ordered) and any(p.default is None for p in rest):
        needed = next(p.name for p in rest if p.default is None)
        place.fail(
            "api",
            "order",
            message=f"argument {needed!r} has no default, so it must stand in order, before those that have one",
        )
    for i, (a, b) in enumerate(zip(ordered, ordered[1:], strict=False)):
        if a.default is not None and b.default is None:
            place.fail(
                "api",
                "order",
                i + 1,
                message=f"argument {b.name!r} has no default, but {a.name!r} before it has one",
            )
    if api.returns is not None and api.returns not in {a.name for a in spec.outputs}:
        place.fail(
            "api",
            "returns",
            message=f"{spec.name} has no output {api.returns!r}",
            hint=did_you_mean(api.returns, [a.name for a in spec.outputs]),
        )
    for i, operator in enumerate(api.operator):
        if operator not in OPERATOR_METHODS:
            at: tuple[str | int, ...] = ("api", "operator", i)
            if (*place.path, *at) not in place.document.values:
                at = at[:-1]
            place.fail(*at, message=f"no operator method {operator!r}", hint=did_you_mean(operator, OPERATOR_METHODS))
    return (*ordered, *rest, *(() if label in ordered else (label,)))


def _default(place: Place, of: str, kind: str) -> str | None:
    if kind == "input":
        arg = next(a for a in place.spec.inputs if a.name == of)
        if of in place.spec.api.default:
            return literal(place.spec.api.default[of])
        return "None" if arg.arity.kind == "optional" else None
    if kind == "type":
        found = place.spec.types[of].default
        return None if found is None else literal(found)
    attr = place.attrs[of]
    return None if attr.required else literal(attr.default)
