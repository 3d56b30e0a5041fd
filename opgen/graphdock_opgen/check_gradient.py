"""The gradient block of an op: exactly one entry for every input that may be floating."""

from __future__ import annotations

from typing import Any

from graphdock.errors import did_you_mean

from graphdock_opgen.names import is_name
from graphdock_opgen.op import GradEntry, Op, Place
from graphdock_opgen.reader import Path_

__all__ = ["gradient_entries"]


def gradient_entries(place: Place, op: Op) -> tuple[GradEntry, ...]:
    spec = place.spec
    floating_out = any(op.may_float(a) for a in spec.outputs)
    needing = [a.name for a in spec.inputs if a.grad and op.may_float(a)]
    if spec.gradient is None or not spec.gradient.inputs:
        if spec.gradient is None and needing and floating_out and not spec.traits.no_gradient:
            place.document.fail(
                (*place.path, "name"),
                f"{spec.name} has floating inputs ({', '.join(needing)}) and no gradient block",
                hint="write 'gradient: none' where there is no derivative",
            )
        if spec.gradient is not None and "inputs" in _raw_gradient(place) and needing:
            place.fail("gradient", "inputs", message=f"the gradient block says nothing about {', '.join(needing)}")
        return tuple(GradEntry((a.name,), "none", "", place.path) for a in spec.inputs)
    entries: list[GradEntry] = []
    seen: set[str] = set()
    known = [a.name for a in spec.inputs]
    for key, value in spec.gradient.inputs.items():
        at: Path_ = ("gradient", "inputs", key)
        names = tuple(n.strip() for n in key.split(","))
        for name in names:
            if name not in known:
                place.fail(*at, message=f"{spec.name} has no input {name!r}", hint=did_you_mean(name, known), key=True)
            if name in seen:
                place.fail(*at, message=f"input {name!r} has two gradient entries", key=True)
            seen.add(name)
        kind, text, sub = _entry(place, at, value)
        entries.append(GradEntry(names, kind, text, (*place.path, *sub)))
    missing = [n for n in needing if n not in seen]
    if missing:
        place.fail(
            "gradient",
            "inputs",
            message=f"no gradient entry for {', '.join(map(repr, missing))} of {spec.name}",
            hint="every input that may be floating has one: a formula, {op: X}, {fn: f}, none or {todo: reason}",
            key=True,
        )
    entries += [GradEntry((n,), "none", "", place.path) for n in known if n not in seen]
    return tuple(entries)


def _raw_gradient(place: Place) -> Any:
    raw = place.document.data["ops"][place.path[1]].get("gradient")
    return raw if isinstance(raw, dict) else {}


def _entry(place: Place, at: Path_, value: Any) -> tuple[str, str, Path_]:
    if value == "none":
        return "none", "", at
    if isinstance(value, str):
        return "formula", value, at
    if isinstance(value, dict) and len(value) == 1:
        ((kind, text),) = value.items()
        if kind not in ("op", "fn", "todo"):
            place.fail(
                *at,
                kind,
                message=f"unknown kind of gradient {kind!r}",
                hint=did_you_mean(kind, ("op", "fn", "todo")),
                key=True,
            )
        if not isinstance(text, str) or not text.strip():
            place.fail(*at, kind, message=f"{kind}: expected a non-empty string, got {text!r}")
        if kind == "fn" and ":" in text:
            place.home.check(place.source(*at, "fn", text=text))
        elif kind == "fn" and not is_name(text):
            place.fail(*at, kind, message=f"fn: {text!r} is not the name of a function")
        return kind, text, (*at, kind)
    place.fail(
        *at,
        message="a gradient is a formula, {op: X}, {fn: f}, none or {todo: reason}",
        hint="write none, not null" if value is None else None,
    )
    raise AssertionError("unreachable")
