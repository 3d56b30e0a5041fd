"""The shape rule of an op that a Python function declares: patterns that are checked at once, or a shape function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

from graphdock.contracts.opdef import OpDef
from graphdock.errors import InvalidArgumentError, OpSpecError, ShapeError, did_you_mean
from graphdock.ops import ShapeContext, ShapeRule
from graphdock.shape import Dims, as_dims
from graphdock.tensor_shape import TensorShape

from graphdock_customop.signature import Signature

__all__ = ["check_names", "check_patterns", "shape_function"]


def check_names(signature: Signature, shapes: Mapping[str, str], fail: Callable[..., Exception]) -> dict[str, str]:
    """``shapes``, which name inputs and outputs, and every output."""
    known = [a.name for a in (*signature.inputs, *signature.outputs)]
    for name, pattern in shapes.items():
        if name not in known:
            raise fail(f"shapes= names {name!r}, which is no input or output", hint=did_you_mean(name, known))
        if not isinstance(pattern, str):
            raise fail(f"shapes= gives {name!r} no pattern", expected="a pattern such as '[*S, N]'", got=repr(pattern))
    for arg in signature.outputs:
        if arg.name not in shapes:
            hint = 'the pattern "?" says that a shape is known only when it is computed'
            raise fail(f"shapes= says nothing of the output {arg.name!r}", hint=hint)
    return dict(shapes)


def check_patterns(opdef: OpDef, fail: Callable[..., Exception]) -> None:
    """Patterns that can be read, and outputs made of what the inputs and attributes bind."""
    try:
        rule = ShapeRule(opdef)
    except OpSpecError as error:
        raise fail(f"shapes=: {error.message}", hint=error.hint) from None
    for arg, name in rule.unbound():
        raise fail(
            f"shapes=: nothing says what {name} is, of which {arg!r} is made",
            expected="what a pattern of an input names, or an attribute",
            hint=did_you_mean(name, rule.bound),
        )


def _holds_one(found: Any) -> bool:
    """Return whether it is a list of exactly one shape, rather than a shape."""
    return isinstance(found, list) and len(found) == 1 and isinstance(found[0], (tuple, list, TensorShape, NoneType))


def shape_function(
    op: str, signature: Signature, function: Callable[[ShapeContext], Any]
) -> Callable[[ShapeContext], list[Dims]]:
    """A shape function as OpDefs name it, of one that returns just the shape where there is one output.

    Of one output a list that holds one shape is taken too: ``[shape]``, where shape is a tuple, a list, a TensorShape or None.
    """
    several = len(signature.outputs) > 1 or any(a.arity == "many" for a in signature.outputs)
    expected = (
        "a list of one shape per output"
        if several
        else "a tuple of sizes, with None for unknown ones, or None for any rank"
    )
    hint = None if several else f"return the shape itself: {op} has one output"

    def wrong(found: Any) -> ShapeError:
        return ShapeError(f"{op}: its shape function returned no shape", expected=expected, got=repr(found), hint=hint)

    def shape(ctx: ShapeContext) -> list[Dims]:
        found = function(ctx)
        shapes = found if several or _holds_one(found) else [found]
        if not isinstance(shapes, (list, tuple)):
            raise wrong(found)
        try:
            dims = [as_dims(s) for s in shapes]
        except (InvalidArgumentError, TypeError):
            raise wrong(found) from None
        count = sum(int(ctx.attrs[a.count]) if a.arity == "many" and a.count else 1 for a in signature.outputs)
        if len(dims) != count:
            raise wrong(found)
        return dims

    return shape
