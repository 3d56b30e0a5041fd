"""The tests block of an op: samples give what the op takes, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from graphdock import dtypes, errors
from graphdock.errors import did_you_mean

from graphdock_opgen.model import ArgSpec
from graphdock_opgen.op import GradEntry, Op, Place
from graphdock_opgen.reader import Path_
from graphdock_opgen.static_rule import Ragged, dims_of, refusal

__all__ = ["check_samples", "gradcheck_inputs"]


def check_samples(place: Place, op: Op) -> None:
    tests = place.spec.tests
    for group, samples in (("samples", tests.samples), ("error_samples", tests.error_samples)):
        for i, sample in enumerate(samples):
            _sample(place, op, group, i, sample)
    for dtype in tests.tolerances:
        if dtype not in dtypes.ALL:
            place.fail(
                "tests",
                "tolerances",
                dtype,
                message=f"no dtype named {dtype!r}",
                hint=did_you_mean(dtype, dtypes.ALL),
                key=True,
            )


def _sample(place: Place, op: Op, group: str, index: int, sample: Mapping[str, Any]) -> None:
    at = ("tests", group, index)
    inputs = {a.name: a for a in place.spec.inputs}
    extra = ("attrs", "types", "note", *(("match", "error") if group == "error_samples" else ()))
    for key, value in sample.items():
        if key in inputs:
            _sample_input(place, (*at, key), inputs[key], value, group)
        elif key not in extra:
            place.fail(
                *at,
                key,
                message=f"{place.spec.name} has no input {key!r}",
                hint=did_you_mean(key, [*inputs, *extra]),
                key=True,
            )
    for arg in inputs.values():
        if arg.name not in sample and arg.arity.kind != "optional":
            place.fail(*at, message=f"the sample gives nothing for input {arg.name!r}")
    if group == "error_samples":
        _match(place, at, sample.get("match"))
        _error_class(place, at, sample.get("error"))
    attrs = sample.get("attrs") or {}
    if not isinstance(attrs, dict):
        place.fail(*at, "attrs", message="attrs: expected a mapping")
    known = [n for n in (*place.attrs, *place.spec.types) if n not in op.inferred]
    for name in attrs:
        if name not in known:
            place.fail(
                *at,
                "attrs",
                name,
                message=f"{place.spec.name} has no attribute {name!r}",
                hint=did_you_mean(name, known),
                key=True,
            )
    types = sample.get("types") or {}
    if not isinstance(types, dict):
        place.fail(*at, "types", message="types: expected a mapping")
    for name, dtype in types.items():
        if name not in place.spec.types:
            place.fail(
                *at,
                "types",
                name,
                message=f"{place.spec.name} has no type variable {name!r}",
                hint=did_you_mean(name, place.spec.types),
                key=True,
            )
        for d in dtype if isinstance(dtype, list) else [dtype]:
            if not isinstance(d, str) or d not in dtypes.ALL:
                place.fail(*at, "types", name, message=f"no dtype named {d!r}", hint=did_you_mean(str(d), dtypes.ALL))
    if group == "samples":
        for attr in place.spec.attrs:
            if attr.required and attr.name not in op.inferred and attr.name not in attrs:
                place.fail(*at, message=f"the sample gives nothing for attribute {attr.name!r}, which has no default")
    error = refusal(op, sample) if place.home.package else None  # a comparison reads specs that are past mending
    if error is not None and group == "samples":
        place.fail(*at, message=f"the op refuses this sample: {error.message}")
    if error is not None and group == "error_samples" and not re.search(sample["match"], str(error)):
        place.fail(*at, "match", message=f"the op refuses this sample with another message: {error.message}")


def _match(place: Place, at: Path_, match: Any) -> None:
    if not isinstance(match, str):
        place.fail(*at, message="an error sample needs match: a part of the error's message")
    try:
        anything = re.search(match, "") is not None
    except (re.error, RecursionError, OverflowError) as error:
        place.fail(*at, "match", message=f"match is no regular expression: {error}")
    if anything:
        place.fail(*at, "match", message=f"match accepts any message: {match!r}", hint="a part of what the error says")


def _error_class(place: Place, at: Path_, name: Any) -> None:
    if name is None:
        return
    known = [
        n
        for n in errors.__all__
        if isinstance(kind := getattr(errors, n), type) and issubclass(kind, errors.GraphdockError)
    ]
    if name not in known:
        place.fail(*at, "error", message=f"no error class {name!r}", hint=did_you_mean(str(name), known))


def _sample_input(place: Place, at: Path_, arg: ArgSpec, value: Any, group: str) -> None:
    if value is None:
        if arg.arity.kind != "optional":
            place.fail(*at, message=f"input {arg.name!r} is not optional, so it can't be null")
        return
    if arg.arity.kind == "many":
        if not isinstance(value, list):
            place.fail(*at, message=f"input {arg.name!r} takes a list of tensors")
        for i, item in enumerate(value):
            _sample_tensor(place, (*at, i), item)
        return
    _sample_tensor(place, at, value)


def _sample_tensor(place: Place, at: Path_, value: Any) -> None:
    known = ("shape", "value", "low", "high", "dtype")
    if not isinstance(value, dict):
        place.fail(*at, message=f"expected {{shape: [...]}} or {{value: ...}}, got {value!r}")
    for key in value:
        if key not in known:
            place.fail(
                *at,
                key,
                message=f"unknown key {key!r} of a sample",
                hint=did_you_mean(key, known) or f"known keys: {', '.join(known)}",
                key=True,
            )
    if ("shape" in value) == ("value" in value):
        place.fail(*at, message="a sample gives either shape or value")
    shape = value.get("shape", [])
    if not isinstance(shape, list) or not all(isinstance(d, int) and not isinstance(d, bool) and d >= 0 for d in shape):
        place.fail(*at, "shape", message=f"shape: expected a list of sizes, got {shape!r}")
    for key in ("low", "high"):
        if key in value and (isinstance(value[key], bool) or not isinstance(value[key], int | float)):
            place.fail(*at, key, message=f"{key}: expected a number, got {value[key]!r}")
    if "value" in value:
        try:
            dims_of(value["value"])
        except Ragged:
            place.fail(*at, "value", message="value: rows of different lengths are no tensor")
    dtype = value.get("dtype")
    if dtype is not None and (not isinstance(dtype, str) or dtype not in dtypes.ALL):
        place.fail(*at, "dtype", message=f"no dtype named {dtype!r}", hint=did_you_mean(str(dtype), dtypes.ALL))


def gradcheck_inputs(place: Place, op: Op, entries: tuple[GradEntry, ...]) -> tuple[str, ...]:
    able = {n for e in entries if e.kind in ("formula", "op", "fn") for n in e.inputs}
    wide = {"float64", "complex128"}
    able &= {a.name for a in place.spec.inputs if wide & set(op.dtypes_of(a.dtype)) or a.dtype in place.type_attrs}
    ordered = tuple(a.name for a in place.spec.inputs if a.name in able)
    wanted = place.spec.tests.gradcheck
    if wanted is None or wanted.inputs is None:
        return ordered
    for i, name in enumerate(wanted.inputs):
        if name not in able:
            place.fail(
                "tests",
                "gradcheck",
                "inputs",
                i,
                message=f"input {name!r} has no gradient to check",
                hint=did_you_mean(name, able),
            )
    return tuple(wanted.inputs)
