"""The formula of an elementwise op over single elements, as its spec states it, and its text for Python scalars.

A formula is a Python expression over the op's inputs, numbers, arithmetic, comparisons, ``and``, ``or``, ``not`` and the functions
in :data:`FUNCTIONS`. Each compiler prints it for its own target; here it is printed for the small integers and booleans that
generated steps keep as Python scalars.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Mapping
from types import MappingProxyType

from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import DType
from graphdock.locks import parse_expression

__all__ = [
    "AXIS_WORDS",
    "FUNCTIONS",
    "NODES",
    "REGION_FUNCTIONS",
    "host_scalar",
    "parse_formula",
    "wrap",
]


def wrap(value: int, bits: int) -> int:
    """Two's complement wrap-around of a Python int."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


#: Function -> number of arguments. ``cast`` converts to the dtype of the output, or of the variable that is updated;
#: ``sigmoid(x)`` is ``1 / (1 + exp(-x))``.
FUNCTIONS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(
            "abs cast ceil cos cosh erf erfc exp expm1 floor isfinite isinf isnan log log1p rint".split(), 1
        ),
        **dict.fromkeys("acos acosh asin asinh atan atanh rsqrt sigmoid sign sin sinh sqrt tan tanh".split(), 1),
        **dict.fromkeys("atan2 floordiv floormod maximum minimum pow".split(), 2),
        "select": 3,
    }
)

#: Functions of the formulas of a region: those above, reductions ``sum(x, axes)``, ``count(axes)`` (of the points along them),
#: ``index(axis)``, ``reshaped(x)`` (the same elements under the output's shape), ``total(inputs)``, the sum of a list, and
#: ``uniform()``, a number in [0, 1) of the op's random stream for each element of the output. Axes
#: are a number, the name of an attribute or host input, ``since(name)`` (that axis and all after it), ``before(name)`` (all before
#: it), or one of :data:`AXIS_WORDS`.
REGION_FUNCTIONS: Mapping[str, int] = MappingProxyType(
    {
        **FUNCTIONS,
        **dict.fromkeys(("all", "any", "max", "min", "prod", "sum"), 2),
        **dict.fromkeys(("before", "count", "index", "reshaped", "since", "total"), 1),
        "uniform": 0,
    }
)
#: All axes; those that the first output has not.
AXIS_WORDS = ("every", "missing")

#: What a formula is made of.
NODES: tuple[type[ast.AST], ...] = (
    *(ast.Constant, ast.Name, ast.Load, ast.Call),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div),
    *(ast.UnaryOp, ast.USub, ast.Not, ast.BoolOp, ast.And, ast.Or),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)

#: Functions that Python scalars have, as templates; integers divided by zero are 0.
_PYTHON: Mapping[str, str] = MappingProxyType(
    {
        "abs": "abs({0})",
        "floordiv": "{0} // {1} if {1} else 0",
        "floormod": "{0} % {1} if {1} else 0",
        "maximum": "{0} if {0} >= {1} else {1}",
        "minimum": "{0} if {0} <= {1} else {1}",
        "select": "{1} if {0} else {2}",
    }
)


@functools.cache
def parse_formula(text: str) -> ast.expr:
    """The formula's tree. It was checked when the spec was generated."""
    return parse_expression(text)


def host_scalar(opdef: OpDef, dtype: DType) -> str | None:
    """The formula as a template for ``str.format`` over the inputs' expressions, for a result of ``dtype``.

    None when the op has no formula, one over attributes, or one with a function that Python's integers and booleans have not.
    """
    return None if opdef.scalar is None else _template(opdef.scalar, tuple([a.name for a in opdef.inputs]), dtype.name)


@functools.cache
def _template(text: str, inputs: tuple[str, ...], dtype: str) -> str | None:
    tree = _Python(inputs, dtype)
    shown = tree.text(copy.deepcopy(parse_formula(text)), True)
    return None if tree.foreign else shown


class _Python:
    def __init__(self, inputs: tuple[str, ...], dtype: str) -> None:
        self.inputs = inputs
        self.dtype = dtype
        self.foreign = False

    def text(self, node: ast.expr, outer: bool) -> str:
        if isinstance(node, ast.Name):
            self.foreign |= node.id not in self.inputs  # an attribute
            return "{" + str(self.inputs.index(node.id)) + "}" if node.id in self.inputs else node.id
        if isinstance(node, ast.Constant):
            return repr(node.value)
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            arguments = [self.text(a, False) for a in node.args]
            name = node.func.id
            if name == "cast":
                return f"{arguments[0]} != 0" if self.dtype == "bool" else f"int({arguments[0]})"
            self.foreign |= name not in _PYTHON
            shown = _PYTHON.get(name, "").format(*arguments)
            return shown if outer else f"({shown})"
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, field, ast.Name(self.text(value, False)))
            elif field in ("values", "comparators"):
                setattr(node, field, [ast.Name(self.text(v, False)) for v in value])
        self.foreign |= isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        shown = ast.unparse(node)
        return shown if outer else f"({shown})"
