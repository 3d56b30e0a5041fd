"""Expressions of specs: parsed with :mod:`ast`, checked against a whitelist, turned into closures, never evaluated as Python.

An unknown operand is None and makes whatever depends on it unknown.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.errors import OpSpecError, ShapeError
from graphdock.locks import parse_expression
from graphdock.shape import Symbol, broadcast, plain, size

__all__ = ["DIMS", "FACTS", "Env", "Evaluator", "Language", "compile_expression", "is_open"]

Env: TypeAlias = dict[str, Any]
Evaluator: TypeAlias = Callable[[Env], Any]

#: Name under which an environment holds the assumptions of a plan (:mod:`graphdock.opdef.shape_context`).
FACTS = "<facts>"


def is_open(value: Any) -> bool:
    """Return whether nothing is known of a dim, or of a rank."""
    return value is None or isinstance(value, Symbol)


@lazy_dataclass(frozen=True, slots=True)
class Language:
    """Vocabulary of expressions of one kind, beside names, comparisons, ``and``, ``or``, ``not`` and ``a if c else b``.

    Attributes:
      binary: operator -> what it does to two known operands.
      calls: function -> what it does to its arguments, unknown ones included.
      constants: types of the constants.
      of_name: functions that take a name, not a value -> what makes their evaluator from that name.
      assumed: calls that a plan's assumptions answer, where the environment holds such.
    """

    binary: Mapping[type[ast.operator], Callable[[Any, Any], Any]]
    calls: Mapping[str, Callable[..., Any]]
    constants: tuple[type, ...] = (int, str)
    of_name: Mapping[str, Callable[[str], Evaluator]] = field(default_factory=dict)
    assumed: frozenset[str] = frozenset()


def _nonzero(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        if b == 0:
            raise ShapeError(f"{a} can't be divided by zero")
        return operation(a, b)

    return apply


#: Dims, checks and counts.
DIMS = Language(
    binary={
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.FloorDiv: _nonzero(operator.floordiv),
        ast.Mod: _nonzero(operator.mod),
    },
    calls={
        "broadcast": broadcast,
        "prod": lambda s: size(plain(s)),
        "rank": lambda s: None if is_open(s) else len(s),
        "len": lambda s: None if is_open(s) else len(s),
        "min": lambda *a: None if any(map(is_open, a)) else min(a),
        "max": lambda *a: None if any(map(is_open, a)) else max(a),
    },
    assumed=frozenset({"broadcast"}),
)

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def compile_expression(text: str, language: Language = DIMS) -> tuple[Evaluator, frozenset[str]]:
    """An evaluator for an expression of the language, and the names it reads.

    Raises:
      OpSpecError: the text is not such an expression.
    """
    try:
        tree = parse_expression(text)
    except SyntaxError as error:
        raise OpSpecError(f"{text!r} is not an expression: {error.msg}") from None
    names: set[str] = set()
    return _compile(tree, text, names, language), frozenset(names)


def _compile(node: ast.expr, text: str, names: set[str], language: Language) -> Evaluator:
    def part(node: ast.expr) -> Evaluator:
        return _compile(node, text, names, language)

    if isinstance(node, ast.Constant) and isinstance(node.value, language.constants):
        value = node.value
        return lambda env: value
    if isinstance(node, ast.Name):
        name = node.id
        names.add(name)
        return lambda env: env[name]
    if isinstance(node, ast.BinOp) and type(node.op) in language.binary:
        left, right, apply = part(node.left), part(node.right), language.binary[type(node.op)]

        def binary(env: Env) -> Any:
            a, b = left(env), right(env)
            return None if is_open(a) or is_open(b) else apply(a, b)

        return binary
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        inner, negate = part(node.operand), isinstance(node.op, ast.USub)

        def unary(env: Env) -> Any:
            a = inner(env)
            return None if is_open(a) else (-a if negate else not a)

        return unary
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        left, right = part(node.left), part(node.comparators[0])
        compare = _COMPARE[type(node.ops[0])]

        def comparison(env: Env) -> Any:
            a, b = left(env), right(env)
            return None if is_open(a) or is_open(b) else compare(a, b)

        return comparison
    if isinstance(node, ast.BoolOp):
        parts, is_and = [part(v) for v in node.values], isinstance(node.op, ast.And)

        def boolean(env: Env) -> Any:
            values = [p(env) for p in parts]
            decided = [v for v in values if v is not None and bool(v) is not is_and]
            return (not is_and) if decided else (None if None in values else is_and)

        return boolean
    if isinstance(node, ast.IfExp):
        test, yes, no = part(node.test), part(node.body), part(node.orelse)

        def choice(env: Env) -> Any:
            t = test(env)
            return None if t is None else (yes(env) if t else no(env))

        return choice
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        called = node.func.id
        if called in language.of_name and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
            return language.of_name[called](node.args[0].id)
        if called in language.calls:
            function, args = language.calls[called], [part(a) for a in node.args]
            if called not in language.assumed:
                return lambda env: function(*[a(env) for a in args])

            def assumed(env: Env) -> Any:
                facts = env.get(FACTS)
                return (function if facts is None else getattr(facts, called))(*[a(env) for a in args])

            return assumed
    raise OpSpecError(f"{ast.unparse(node)!r} in {text!r} is not part of the language of specs")
