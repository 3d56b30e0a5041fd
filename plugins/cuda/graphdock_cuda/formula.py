"""The formula of an elementwise op, as its OpDef states it, printed as CUDA C++; see ``source/scalar.cuh`` for what it calls."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from typing import Any

from graphdock.contracts import errors
from graphdock.contracts.scalar_formula import parse_formula

__all__ = ["printed"]

#: Function of a formula -> the function that stands for it; others keep their name.
_FUNCTIONS = {
    "abs": "absolute",
    "floordiv": "floor_div",
    "floormod": "floor_mod",
    "isfinite": "finite",
    "isinf": "infinite",
    "isnan": "not_a_number",
    "pow": "power",
    "rsqrt": "reciprocal_root",
    "sigmoid": "logistic",
}
_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "divide"}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


@functools.lru_cache(1024)
def _parsed(text: str) -> ast.expr:
    return parse_formula(text)


def printed(text: str, inputs: Mapping[str, str], attrs: Mapping[str, Any], out: str) -> str:
    """The formula as an expression of C++.

    Args:
      inputs: what each input is called. ``attrs``: the values of the others. ``out``: type of elements of the output.

    Numbers have the type ``C``. Raises InternalError for what a formula may not hold.
    """

    def show(node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return inputs[name] if name in inputs else number(attrs[name])
            case ast.Constant(value=value):
                return number(value)
            case ast.BinOp(left=left, op=op, right=right):
                if isinstance(op, ast.Div) and isinstance(left, ast.Constant) and left.value == 1:
                    return f"reciprocal_of({show(right)})"
                return f"{_OPERATORS[type(op)]}({show(left)}, {show(right)})"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"neg({show(operand)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!({show(operand)})"
            case ast.BoolOp(op=op, values=values):
                return "(" + (" && " if isinstance(op, ast.And) else " || ").join(map(show, values)) + ")"
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return f"({show(left)} {_COMPARISONS[type(op)]} {show(right)})"
            case ast.Call(func=ast.Name(id="select"), args=[condition, yes, no]):
                return f"({show(condition)} ? {show(yes)} : {show(no)})"
            case ast.Call(func=ast.Name(id="cast"), args=[operand]):
                return f"converted<{out}>({show(operand)})"
            case ast.Call(func=ast.Name(id=name), args=args):
                return f"{_FUNCTIONS.get(name, name)}({', '.join(map(show, args))})"
        raise errors.InternalError(f"no CUDA for {ast.unparse(node)!r} in the formula {text!r}")

    def number(value: Any) -> str:
        return ("true" if value else "false") if isinstance(value, bool) else f"number<C>({float(value)!r})"

    return show(_parsed(text))
