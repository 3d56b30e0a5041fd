"""Values of formulas, ``scalar`` and ``region``, in NumPy: what a spec says that an op computes, to be held against what it does.

The rules are those of :mod:`graphdock.contracts.region_program`: halves are held in float32, integers wrap around and give 0 where
they are divided by 0, NaN is passed on. A formula that draws, or counts places, has no value here.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from graphdock.contracts.opdef import OpDef
from graphdock.contracts.scalar_formula import parse_formula

__all__ = ["FUNCTIONS", "INTEGERS", "NoValue", "formula_values"]

Array = np.ndarray[Any, Any]


class NoValue(Exception):
    """The formula says what this module does not compute."""


def _sigmoid(x: Array) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def _each(function: Callable[[float], float]) -> Callable[[Array], Any]:
    return lambda x: np.array([function(v) for v in x.reshape(-1).tolist()], x.dtype).reshape(x.shape)


def _quotient(x: Array, y: Array) -> Any:
    """Towards zero; 0 where y is 0."""
    down, left = np.floor_divide(x, y), np.remainder(x, y)
    back = (left != 0) & ((x < 0) != (y < 0))
    return np.where(y == 0, 0, down + back.astype(x.dtype))


def _where_divided(function: Callable[..., Any]) -> Callable[[Array, Array], Any]:
    return lambda x, y: np.where(y == 0, 0, function(x, y))


#: Function of integers -> what computes it, where they are not as floating numbers.
INTEGERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "divide": _quotient,
        "floordiv": _where_divided(np.floor_divide),
        "floormod": _where_divided(np.remainder),
    }
)
#: Function -> what computes it.
FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        **{
            name: getattr(np, name)
            for name in "ceil cos cosh exp expm1 floor log log1p rint sin sinh sqrt tan tanh isfinite isinf isnan "
            "abs sign maximum minimum divide greater greater_equal less less_equal equal not_equal".split()
        },
        **{f"a{name}": getattr(np, f"arc{name}") for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
        "add": np.add,
        "and": np.logical_and,
        "atan2": np.arctan2,
        "erf": _each(math.erf),
        "erfc": _each(math.erfc),
        "floordiv": np.floor_divide,
        "floormod": np.remainder,
        "mul": np.multiply,
        "neg": np.negative,
        "not": np.logical_not,
        "or": np.logical_or,
        "pow": np.power,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "select": np.where,
        "sigmoid": _sigmoid,
        "sub": np.subtract,
    }
)
_OPERATORS: Mapping[type[ast.AST], str] = MappingProxyType(
    {
        ast.Add: "add",
        ast.Sub: "sub",
        ast.Mult: "mul",
        ast.Div: "divide",
        ast.And: "and",
        ast.Or: "or",
        ast.USub: "neg",
        ast.Not: "not",
        ast.Eq: "equal",
        ast.NotEq: "not_equal",
        ast.Lt: "less",
        ast.LtE: "less_equal",
        ast.Gt: "greater",
        ast.GtE: "greater_equal",
    }
)
_REDUCTIONS = ("all", "any", "max", "min", "prod", "sum")


def formula_values(
    opdef: OpDef, arrays: Mapping[str, Any], attrs: Mapping[str, Any], outputs: Sequence[Array]
) -> list[Array]:
    """Return what the op's ``scalar`` formula, or those of its ``region``, give.

    Args:
      arrays: input name -> array. attrs: of the op, all of them.
      outputs: arrays of the shapes and dtypes that the results are to have.

    Raises:
      NoValue: the op has neither, or they draw, count places or take lists, or an attribute is not as ``when`` says.
    """
    form = opdef.region
    if opdef.scalar is None and form is None or any(o.dtype.kind in "cO" for o in outputs):
        raise NoValue("no formula of these dtypes")
    if form is not None and form.space:
        raise NoValue("a space that is none of its inputs'")
    for name, wanted in ({} if form is None else form.when).items():
        said = attrs[name] if name in attrs else arrays[name]
        if str(getattr(said, "name", said)) not in [
            str(w) for w in (wanted if isinstance(wanted, list | tuple) else (wanted,))
        ]:
            raise NoValue(f"{name} is {said}")
    if form is not None and form.gathers:
        arrays = {**arrays, **{name: np.take(arrays[name], arrays[by], 0) for name, by in form.gathers.items()}}
    leading = () if form is None else form.leading
    steering = {a.name for a in opdef.inputs if a.memory == "host"}
    rank = max((np.ndim(a) for n, a in arrays.items() if n not in leading and n not in steering), default=0)
    values: dict[str, Any] = dict(attrs)
    for name, array in arrays.items():
        values[name] = _held(array, rank if name in leading else None)
    dtype = outputs[0].dtype
    evaluating = _Evaluating(values, rank, dtype, set(arrays) - steering)
    with np.errstate(all="ignore"):
        if form is None:
            assert opdef.scalar is not None
            made = [evaluating.value(parse_formula(opdef.scalar))]
        else:
            for name, text in form.let.items():
                values[name] = evaluating.value(parse_formula(text))
            made = [evaluating.value(parse_formula(form.outputs[a.name])) for a in opdef.outputs]
        return [_written(value, like) for value, like in zip(made, outputs, strict=True)]


def _held(array: Any, rank: int | None) -> Any:
    """The array as formulas hold it: halves as float32; with dims of 1 behind its own up to ``rank``."""
    if not isinstance(array, np.ndarray):
        raise NoValue("a list of tensors, or none")
    if array.dtype.hasobject or array.dtype.kind == "c":
        raise NoValue("strings and complex numbers stand in no region")
    held = array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind not in "iu" else array
    return held if rank is None else held.reshape(held.shape + (1,) * (rank - held.ndim))


def _written(value: Any, like: Array) -> Array:
    made = np.asarray(value)
    made = made != 0 if like.dtype == bool else made.astype(like.dtype)
    if made.size == like.size:
        return np.asarray(made.reshape(like.shape))
    try:
        return np.array(np.broadcast_to(made, like.shape))
    except ValueError:
        raise NoValue(f"shape {made.shape}, where the output has {like.shape}") from None


class _Evaluating:
    def __init__(self, values: Mapping[str, Any], rank: int, dtype: Any, arrays: set[str]) -> None:
        self.values, self.rank, self.dtype, self.arrays = values, rank, dtype, arrays

    def value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.values[node.id]
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            return self._called(node.func.id, node.args)
        if isinstance(node, ast.BinOp):
            return self._applied(_OPERATORS[type(node.op)], [node.left, node.right])
        if isinstance(node, ast.UnaryOp):
            return self._applied(_OPERATORS[type(node.op)], [node.operand])
        if isinstance(node, ast.BoolOp):
            first, *rest = (self.value(v) for v in node.values)
            for other in rest:
                first = FUNCTIONS[_OPERATORS[type(node.op)]](first, other)
            return first
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._applied(_OPERATORS[type(node.ops[0])], [node.left, node.comparators[0]])
        raise NoValue(ast.unparse(node))

    def _called(self, name: str, args: Sequence[ast.expr]) -> Any:
        if name == "cast":
            value = np.asarray(self.value(args[0]))
            if value.dtype.kind in "fc" and self.dtype.kind in "iu":
                raise NoValue("a cast from floating numbers to integers")
            return value != 0 if self.dtype == bool else value.astype(self.dtype)
        if name == "count":
            return math.prod(self._extents()[a] for a in self._axes(args[0]))
        if name in _REDUCTIONS:
            value = self.value(args[0])
            full = np.broadcast_to(value, np.broadcast_shapes(np.shape(value), self._extents()))
            axes = self._axes(args[1])
            if name in ("max", "min") and full.size == 0:
                raise NoValue("the largest of nothing")
            return getattr(np, name)(full, axis=axes, keepdims=True)
        if name not in FUNCTIONS:
            raise NoValue(name)
        return self._applied(name, args)

    def _extents(self) -> tuple[int, ...]:
        return np.broadcast_shapes(*(np.shape(self.values[n]) for n in self.arrays))

    def _axes(self, node: ast.expr) -> tuple[int, ...]:
        if isinstance(node, ast.Name) and node.id == "every":
            return tuple(range(self.rank))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("since", "before"):
            first = int(self.value(node.args[0])) % max(self.rank, 1)
            return tuple(range(first, self.rank)) if node.func.id == "since" else tuple(range(first))
        if isinstance(node, ast.Name) and node.id == "missing":
            raise NoValue("missing")
        given = np.atleast_1d(self.value(node))
        return tuple(int(a) % max(self.rank, 1) for a in given)

    def _applied(self, name: str, args: Sequence[ast.expr]) -> Any:
        operands = [self.value(a) for a in args]
        kinds = {np.asarray(o).dtype.kind for o in operands[-2:] if isinstance(o, np.ndarray | np.generic)}
        table = INTEGERS if kinds and kinds <= {"i", "u"} and name in INTEGERS else FUNCTIONS
        return table[name](*operands)
