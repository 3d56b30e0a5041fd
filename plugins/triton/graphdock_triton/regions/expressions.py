"""Each primitive of a region program as an expression of Triton."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from graphdock.contracts import DType, Term

__all__ = ["NEUTRAL", "expression", "literal", "neutral", "reduction", "type_name"]

_TYPES = {"bool": "tl.int1", "bfloat16": "tl.bfloat16"}


def type_name(dtype: DType) -> str:
    """``tl.float32``."""
    return _TYPES.get(dtype.name, f"tl.{dtype.name}")


def literal(value: float | bool, dtype: DType) -> str:
    """A number of a dtype; plain where Triton gives it that dtype anyway."""
    if dtype.name == "float32":
        return _number(float(value))
    return f"tl.full([1, 1], {_number(value)}, {type_name(dtype)})"


def _number(value: float | bool) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(int(value)) if isinstance(value, bool) else repr(value)


_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "greater": ">",
    "greater_equal": ">=",
    "less": "<",
    "less_equal": "<=",
    "equal": "==",
    "not_equal": "!=",
    "and": "&",
    "or": "|",
}
#: Functions of triton.language, and of CUDA's libdevice, which keeps to one or two units in the last place.
_LANGUAGE = {
    "abs": "abs",
    "ceil": "ceil",
    "cos": "cos",
    "erf": "erf",
    "exp": "exp",
    "floor": "floor",
    "log": "log",
    "sin": "sin",
}
_LIBDEVICE = (
    *(
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cosh",
        "erfc",
        "expm1",
        "log1p",
        "pow",
        "rint",
        "sinh",
    ),
    *("tan", "tanh"),
)
_SPECIAL: Mapping[str, str] = MappingProxyType(
    {
        "isnan": "{0} != {0}",
        "isinf": "tl.abs({0}) == float('inf')",
        "isfinite": "tl.abs({0}) < float('inf')",
        "not": "~{0}",
        "rsqrt": "tl.rsqrt({0})",
        "select": "tl.where({0}, {1}, {2})",
        "sigmoid": "1 / (1 + tl.exp(-{0}))",
        "sign": "tl.where({0} > 0, 1, tl.where({0} < 0, -1, {0}))",
        "sqrt": "tl.sqrt({0})",
    }
)


def expression(term: Term, dtype: DType, args: list[str]) -> str:
    """A primitive over the names of its operands. ``dtype``: of the last of them."""
    op = term.op
    if op in _INFIX:
        return f"{args[0]} {_INFIX[op]} {args[1]}"
    if op == "cast":
        return f"{args[0]} != 0" if term.dtype.is_bool else f"{args[0]}.to({type_name(term.dtype)})"
    if op == "round":
        return f"{args[0]}.to(tl.{term.value}).to(tl.float32)"
    if op == "draw":
        return f"_draw_{term.dtype.name}({', '.join(args)})"
    if op == "neg":
        return f"0 - {args[0]}" if dtype.is_integer else f"-{args[0]}"
    if op in ("maximum", "minimum"):
        nan = ", propagate_nan=tl.PropagateNan.ALL" if dtype.is_floating else ""
        return f"tl.{op}({args[0]}, {args[1]}{nan})"
    if op == "divide":
        return f"{args[0]} / {args[1]}" if dtype.is_floating else f"_quotient({args[0]}, {args[1]})"
    if op in ("floordiv", "floormod"):
        kind = "float" if dtype.is_floating else "unsigned" if dtype.is_unsigned else "int"
        return f"_{op}_{kind}({args[0]}, {args[1]})"
    if op in ("abs", "sign") and dtype.is_unsigned:
        return args[0] if op == "abs" else f"tl.where({args[0]} > 0, 1, {args[0]})"
    if op == "sqrt" and dtype.name == "float32":
        return f"tl.sqrt_rn({args[0]})"
    if op in _SPECIAL:
        made = _SPECIAL[op].format(*args)
        return f"({made}).to({type_name(term.dtype)})" if op == "sign" else made
    if op in _LANGUAGE:
        return f"tl.{_LANGUAGE[op]}({args[0]})"
    assert op in _LIBDEVICE, op
    return f"libdevice.{op}({', '.join(args)})"


#: What changes nothing in a reduction, by name.
NEUTRAL: Mapping[str, Callable[[DType], float | bool]] = MappingProxyType(
    {
        "sum": lambda dtype: 0,
        "prod": lambda dtype: 1,
        "max": lambda dtype: -math.inf if dtype.is_floating else dtype.min,
        "min": lambda dtype: math.inf if dtype.is_floating else dtype.max,
        "any": lambda dtype: False,
        "all": lambda dtype: True,
    }
)


def neutral(op: str, dtype: DType) -> str:
    """The neutral element, as a number."""
    value = NEUTRAL[op](dtype)
    return _number(float(value)) if dtype.is_floating else _number(value if dtype.is_bool else int(value))


def reduction(op: str, dtype: DType, tile: str) -> str:
    """A tile reduced along its columns, in its dtype."""
    kept = f".to({type_name(dtype)})"
    if op in ("any", "all"):
        return f"tl.{'max' if op == 'any' else 'min'}({tile}.to(tl.int32), axis=1, keep_dims=True) != 0"
    if op == "sum":
        return f"tl.sum({tile}, axis=1, keep_dims=True){'' if dtype.is_floating else kept}"
    if op == "prod" or dtype.is_floating:
        return f"tl.reduce({tile}, 1, _{op}, keep_dims=True)"
    return f"tl.{op}({tile}, axis=1, keep_dims=True){kept}"


def combined(op: str, dtype: DType, so_far: str, tile: str) -> str:
    """Two tiles of partial results as one."""
    if op in ("any", "all"):
        return f"{so_far} {'|' if op == 'any' else '&'} {tile}"
    if op in ("sum", "prod"):
        return f"{so_far} {'+' if op == 'sum' else '*'} {tile}"
    nan = ", propagate_nan=tl.PropagateNan.ALL" if dtype.is_floating else ""
    return f"tl.{op}imum({so_far}, {tile}{nan})"
