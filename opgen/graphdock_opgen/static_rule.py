"""Static rule of a sample: its own shape rule and attribute checks, over the sample's shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphdock import dtypes
from graphdock.contracts.opdef import REQUIRED, ArgDef, AttrDef, OpDef, TypeVarDef
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.opdef.attrs import normal_attrs
from graphdock.opdef.shape_rule import ShapeRule

from graphdock_opgen.op import Op

__all__ = ["Ragged", "dims_of", "refusal"]


class Ragged(Exception):  # noqa: N818 - a finding, caught by its one caller
    """A literal whose rows differ in length."""


def dims_of(value: Any) -> tuple[int, ...]:
    """The shape of a literal of nested lists. Raises Ragged."""
    if not isinstance(value, list):
        return ()
    inner = {dims_of(v) for v in value} or {()}
    if len(inner) > 1:
        raise Ragged
    return (len(value), *inner.pop())


def refusal(op: Op, sample: Mapping[str, Any]) -> InvalidArgumentError | None:
    """The error of building the op with a sample whose form was checked, as far as a spec decides it; None where there is none."""
    opdef = _opdef(op)
    shapes = {a.name: _shapes(a.dtype, sample.get(a.name)) for a in op.spec.inputs}
    attrs: dict[str, Any] = {}
    given = {n: v for n, v in (sample.get("attrs") or {}).items() if n in {a.name for a in op.spec.attrs}}
    try:
        for arg in opdef.inputs:
            if arg.count in op.inferred:
                found = attrs.setdefault(arg.count, len(shapes[arg.name]))
                if found != len(shapes[arg.name]):
                    raise InvalidArgumentError(
                        f"{op.type}: {arg.name} needs {found} tensors", got=str(len(shapes[arg.name]))
                    )
        normal_attrs(opdef, given, attrs)
        for arg in opdef.inputs:
            if arg.dtype in op.allow and op.spec.types[arg.dtype].list_:
                attrs[arg.dtype] = (dtypes.float32,) * len(shapes[arg.name])
        _types(op, sample, attrs)
        rule = ShapeRule(opdef)
        rule.infer(attrs, [shapes[a.name] for a in opdef.inputs], lambda i: None)
    except InvalidArgumentError as error:
        return error
    return None


def _types(op: Op, sample: Mapping[str, Any], attrs: dict[str, Any]) -> None:
    """Bind each type variable; raise DTypeError where the sample says one that the op does not take."""
    said = {**(sample.get("attrs") or {}), **(sample.get("types") or {})}
    for name in op.spec.types:
        asked = said.get(name)
        for dtype in asked if isinstance(asked, list) else [asked]:
            if dtype is not None and op.allow[name] and dtype not in op.allow[name]:
                raise DTypeError(f"{op.type} does not take {dtype}", expected="one of " + ", ".join(op.allow[name]))
        attrs.setdefault(name, (dtypes.float32,) * 2 if op.spec.types[name].list_ else dtypes.float32)


def _shapes(dtype: str, value: Any) -> list[tuple[int, ...]]:
    tensors = [] if value is None else value if isinstance(value, list) else [value]
    if dtype == "resource":  # the sample says what the handle names
        return [()] * len(tensors)
    return [tuple(t["shape"]) if "shape" in t else dims_of(t["value"]) for t in tensors]


def _opdef(op: Op) -> OpDef:
    """The op with what shapes and attributes depend on."""
    spec = op.spec
    pattern = spec.shape_fn is None

    def args(specs: Any) -> tuple[ArgDef, ...]:
        return tuple(
            ArgDef(a.name, a.dtype, a.shape, a.arity.kind, a.arity.many.count if a.arity.many else None) for a in specs
        )

    return OpDef(
        op.type,
        inputs=args(spec.inputs),
        outputs=args(spec.outputs) if pattern else (),
        attrs=tuple(
            AttrDef(
                a.name,
                a.type,
                REQUIRED if a.required else a.default,
                a.min,
                a.max,
                tuple(a.one_of),
                inferred=a.name in op.inferred,
            )
            for a in spec.attrs
        ),
        types=tuple(
            TypeVarDef(n, allow=op.allow[n], default=s.default, is_list=s.list_) for n, s in spec.types.items()
        ),
        let=dict(spec.dims.let),
        where=tuple((w.check, w.error) for w in spec.dims.where),
    )
