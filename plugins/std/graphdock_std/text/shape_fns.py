"""Shape functions of the ops over strings."""

from __future__ import annotations

from typing import Any

from graphdock import dtypes
from graphdock.ops import symbolic

from graphdock_std.shape_support import axis_of, known, same_run, show


@symbolic
def join(ctx: Any) -> list[Any]:
    """The shape that all inputs but scalars share; ``ctx`` is a ShapeContext."""
    shapes = ctx.shapes("inputs")
    found: Any = ()
    for dims in shapes:
        if dims:
            message = f"inputs of shapes {show(found)} and {show(dims)} do not join"
            found = same_run(ctx, found, dims, message) if found else dims
    if any(dims is None for dims in shapes):
        ctx.unproven()
        return [found or None]
    return [found]


@symbolic
def reduce_join(ctx: Any) -> list[Any]:
    """The dims that are not joined, or 1 for those that are."""
    inputs, axis = ctx.shape("inputs"), ctx.values("axis")
    keep = ctx.attrs["keep_dims"]
    if len(ctx.shape("axis") or ()) > 1:
        raise ctx.fail(f"axis has shape {show(ctx.shape('axis'))}; it is a scalar or a vector of dims")
    axes = axis if axis is None or isinstance(axis, tuple) else (axis,)
    if inputs is None or axes is None or not all(known(a) for a in axes):
        ctx.unproven()
        return [None if inputs is None or not keep else (None,) * len(inputs)]
    places = [axis_of(ctx, a, len(inputs), "inputs") for a in axes]
    if len(set(places)) < len(places):
        raise ctx.fail(f"axis {list(axes)} names a dim twice")
    if keep:
        return [tuple(1 if i in places else d for i, d in enumerate(inputs))]
    return [tuple(d for i, d in enumerate(inputs) if i not in places)]


@symbolic
def as_string(ctx: Any) -> list[Any]:
    """The shape of ``input``; what the format takes depends on its dtype."""
    kind, attrs = ctx.dtype("T"), ctx.attrs
    if attrs["scientific"] and attrs["shortest"]:
        raise ctx.fail("scientific and shortest exclude each other")
    real = kind.is_floating or kind.is_complex
    for name, given in (
        ("scientific", attrs["scientific"]),
        ("shortest", attrs["shortest"]),
        ("precision", attrs["precision"] >= 0),
    ):
        if given and not real and kind is not dtypes.string:
            raise ctx.fail(f"{name} is for floating and complex numbers, not for {kind.name}")
    return [ctx.shape("input")]


@symbolic
def string_format(ctx: Any) -> list[Any]:
    """A scalar, of as many tensors as the template has placeholders."""
    placeholder, count = ctx.attrs["placeholder"], len(ctx.shapes("inputs"))
    if not placeholder or ctx.attrs["template"].count(placeholder) != count:
        raise ctx.fail(f"the template {ctx.attrs['template']!r} does not have {count} placeholders {placeholder!r}")
    return [()]


@symbolic
def decode_csv(ctx: Any) -> list[Any]:
    """Each column has the shape of ``records``."""
    attrs, defaults = ctx.attrs, ctx.shapes("record_defaults")
    if len(attrs["field_delim"].encode()) != 1:
        raise ctx.fail(f"field_delim must be one byte, but it is {attrs['field_delim']!r}")
    columns = list(attrs["select_cols"])
    if columns and (len(columns) != len(defaults) or min(columns) < 0 or sorted(set(columns)) != columns):
        raise ctx.fail(f"select_cols {columns} must be {len(defaults)} columns in rising order")
    for i, dims in enumerate(defaults):
        if dims is None:
            ctx.unproven()
        elif len(dims) > 1:
            raise ctx.fail(f"record_defaults[{i}] must be a scalar or a vector, but its shape is {show(dims)}")
        elif dims and known(dims[0]) and dims[0] > 1:
            raise ctx.fail(f"record_defaults[{i}] must hold one element at most, but its shape is {show(dims)}")
        elif dims and not known(dims[0]):
            ctx.unproven(dims[0])
    return [ctx.shape("records")] * len(defaults)
