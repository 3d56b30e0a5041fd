"""Cost of a node: arithmetic operations and bytes moved, from the formulas of its spec and the shapes of a plan.

A cost is an estimate that does not depend on a device; ``explain`` shows it. An unknown dim makes what depends on it unknown.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphdock.contracts.opdef import ArgDef, OpDef
from graphdock.contracts.scalar_formula import parse_formula
from graphdock.dtypes import DType
from graphdock.opdef.expression import DIMS, Evaluator, Language, compile_expression
from graphdock.opdef.shape_rule import rule_for
from graphdock.shape import Dims, size

__all__ = ["ARGUMENT_CALLS", "UNKNOWN", "Cost", "cost_of"]

#: A tensor as far as a cost depends on it.
Typed: TypeAlias = "tuple[DType, Dims]"


@dataclass(frozen=True, slots=True)
class Cost:
    """Estimates for one run of a node.

    Attributes:
      flops: arithmetic operations, a function such as ``exp`` counting as one; None where unknown.
      bytes: what is read from and written to the memory of its device; None where unknown.
    """

    flops: int | None
    bytes: int | None


UNKNOWN = Cost(None, None)
_ZERO = Cost(0, 0)


@dataclass(frozen=True, slots=True)
class _Argument:
    """All tensors of one argument together."""

    elements: int | None
    bytes: int | None


def _quotient(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: apply(a, b) if b else None


def _of_argument(what: str) -> Callable[[str], Evaluator]:
    def compiled(name: str) -> Evaluator:
        key = _key(name)
        return lambda env: getattr(env[key], what)

    return compiled


def _key(name: str) -> str:
    """The environment's key of an argument: a dim may have the same name."""
    return f"{name} "


#: Functions of one argument's name: how many elements it has, and how many bytes.
ARGUMENT_CALLS: Mapping[str, Callable[[str], Evaluator]] = {
    "size": _of_argument("elements"),
    "bytes": _of_argument("bytes"),
}

#: The shape language with ``/``, numbers that are no integers, and :data:`ARGUMENT_CALLS`. Nothing is known of a division by zero.
_COSTS = Language(
    binary={
        **DIMS.binary,
        ast.Div: _quotient(operator.truediv),
        ast.FloorDiv: _quotient(operator.floordiv),
        ast.Mod: _quotient(operator.mod),
    },
    calls=DIMS.calls,
    constants=(*DIMS.constants, float),
    of_name=ARGUMENT_CALLS,
)


def cost_of(opdef: OpDef, attrs: Mapping[str, Any], inputs: Sequence[Typed], outputs: Sequence[Typed]) -> Cost:
    """The cost of one run of a node. The shapes fit the op.

    Args:
      attrs: every attribute, type variables included.
      inputs, outputs: dtype and shape of each tensor, list arguments flattened, absent optional inputs left out.
    """
    default = _BY_VERB[opdef.executes](opdef, inputs, outputs)
    if not opdef.cost:
        return default
    groups = _grouped(opdef.inputs, attrs, inputs)
    if groups is None:
        return UNKNOWN
    env = rule_for(opdef).bind(attrs, [[dims for _, dims in group] for group in groups])
    for arg, group in zip(opdef.inputs, groups, strict=True):
        env[_key(arg.name)] = _measure(group)
    for arg, group in zip(opdef.outputs, _grouped(opdef.outputs, attrs, outputs) or (), strict=False):
        env[_key(arg.name)] = _measure(group)
    return Cost(
        _value(opdef.cost["flops"], env) if "flops" in opdef.cost else default.flops,
        _value(opdef.cost["bytes"], env) if "bytes" in opdef.cost else default.bytes,
    )


def _value(text: str, env: dict[str, Any]) -> int | None:
    found = None if text.strip() == "?" else _compiled(text)(env)
    return None if found is None else round(found)


@functools.cache
def _compiled(text: str) -> Evaluator:
    return compile_expression(text, _COSTS)[0]


def _measure(tensors: Sequence[Typed]) -> _Argument:
    return _Argument(_total([size(dims) for _, dims in tensors]), _total([_bytes(*t) for t in tensors]))


def _bytes(dtype: DType, dims: Dims) -> int | None:
    """A handle has none; strings have as many as their contents, which nobody knows."""
    if dtype.kind in "RS":
        return 0 if dtype.kind == "R" else None
    elements = size(dims)
    return None if elements is None else elements * dtype.size


def _total(parts: Sequence[int | None]) -> int | None:
    return None if None in parts else sum(p for p in parts if p is not None)


def _grouped(
    args: Sequence[ArgDef], attrs: Mapping[str, Any], tensors: Sequence[Typed]
) -> list[Sequence[Typed]] | None:
    """The tensors of each argument; None where it can't be told which optional input is absent."""
    lengths = [_length(a, attrs) for a in args]
    present = len(tensors) - sum(n for n in lengths if n is not None)
    optional = lengths.count(None)
    if present not in (0, optional):
        return None
    groups, start = [], 0
    for length in lengths:
        taken = (1 if present else 0) if length is None else length
        groups.append(tensors[start : start + taken])
        start += taken
    return groups


def _length(arg: ArgDef, attrs: Mapping[str, Any]) -> int | None:
    """Number of tensors of an argument; None for an optional one."""
    if arg.arity == "many" and arg.count is not None:
        return int(compile_expression(arg.count)[0](dict(attrs)))
    return 1 if arg.arity == "one" else None


# What a cost is where the spec says nothing, by verb.


def _kernel(opdef: OpDef, inputs: Sequence[Typed], outputs: Sequence[Typed]) -> Cost:
    """Each output element takes the operations of the scalar formula, one without a formula; all tensors are moved once."""
    elements = _total([size(dims) for _, dims in outputs])
    each = 1 if opdef.scalar is None else _operations(opdef.scalar)
    moved = [_bytes(*t) for t in (*_on_device(opdef.inputs, inputs), *_on_device(opdef.outputs, outputs))]
    return Cost(None if elements is None else each * elements, _total(moved))


def _on_device(args: Sequence[ArgDef], tensors: Sequence[Typed]) -> Sequence[Typed]:
    """Without small integers in host memory, of which no list argument is one."""
    if any(a.arity != "one" for a in args):
        return tensors
    return [t for arg, t in zip(args, tensors, strict=True) if arg.memory == "device"]


@functools.cache
def _operations(formula: str) -> int:
    """Arithmetic, comparisons, choices and calls in a scalar formula; 1 for a formula without any."""
    counted = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call)
    return max(1, sum(isinstance(node, counted) for node in ast.walk(parse_formula(formula))))


def _copy(opdef: OpDef, inputs: Sequence[Typed], outputs: Sequence[Typed]) -> Cost:
    """Return what enters is read once and written once, on either side of the copy."""
    moved = _total([_bytes(*t) for t in inputs or outputs])
    return Cost(0, None if moved is None else 2 * moved)


def _nothing(opdef: OpDef, inputs: Sequence[Typed], outputs: Sequence[Typed]) -> Cost:
    """Nothing runs. A node with bodies costs what the nodes of its bodies cost; a reader of a variable pays for reading."""
    return _ZERO


def _unknown(opdef: OpDef, inputs: Sequence[Typed], outputs: Sequence[Typed]) -> Cost:
    return UNKNOWN


_BY_VERB: Mapping[str, Callable[[OpDef, Sequence[Typed], Sequence[Typed]], Cost]] = {
    "kernel": _kernel,
    "alias": _nothing,
    "none": _nothing,
    "constant": _nothing,
    "feed": _nothing,
    "handle": _nothing,
    "read": _nothing,
    "assign": _copy,
    "move": _copy,
    "branch": _nothing,
    "loop": _nothing,
    "call": _nothing,
    "host": _unknown,
    **dict.fromkeys(("switch", "merge", "enter", "exit", "next", "trigger"), _nothing),
}
