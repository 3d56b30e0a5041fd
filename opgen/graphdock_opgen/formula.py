"""Gradient formulas and decompositions: an expression of the spec becomes an expression of Python that builds ops.

Each subexpression is ``static`` (attributes, type variables, constants: a Python value when the graph is built) or a
tensor. Conditions, ``and``, ``or`` and ``not`` are static; ``==`` and ``!=`` between tensors become calls of ``equal``
and ``not_equal``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from graphdock import dtypes
from graphdock.errors import did_you_mean

from graphdock_opgen import expr
from graphdock_opgen.expr import Source
from graphdock_opgen.functions import BUILTINS, Callee
from graphdock_opgen.pretty import unparse

__all__ = ["Scope", "render"]

_STATIC_CALLS = ("present", "len", "min", "max", "int", "float")


@dataclass
class Scope:
    """Meanings of names while expressions of one op are rendered.

    Attributes:
      tensors: name in the spec -> local variable. ``g.y`` has the key ``g.y``.
      statics: name in the spec -> Python source of its value.
      functions: what formulas may call. ``faulty``: what they could call if its spec had no fault.
      used: keys of tensors and statics that were read.
      imports: import lines that the source needs.
    """

    tensors: dict[str, str]
    statics: dict[str, str]
    functions: Mapping[str, Callee]
    faulty: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    grads: tuple[str, ...] = ()
    used: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)


def render(source: Source, scope: Scope) -> tuple[str, bool]:
    """Python source of an expression, and whether it is static. Raises OpSpecError at what has no meaning."""
    tree = source.parse(expr.FORMULA_NODES)
    node, static = _Renderer(source, scope).visit(tree)
    return unparse(node), static


class _Renderer:
    def __init__(self, source: Source, scope: Scope) -> None:
        self.source, self.scope = source, scope

    def visit(self, node: ast.expr) -> tuple[ast.expr, bool]:
        method = getattr(self, f"visit_{type(node).__name__}", None)
        if method is None:
            self.source.fail(f"{type(node).__name__} has no meaning in a formula", node)
            raise AssertionError("unreachable")
        result: tuple[ast.expr, bool] = method(node)
        return result

    def static(self, node: ast.expr, what: str, hint: str | None = None) -> ast.expr:
        out, static = self.visit(node)
        if not static:
            self.source.fail(f"{what} may read only attributes, type variables and present(x)", node, hint=hint)
        return out

    def visit_Constant(self, node: ast.Constant) -> tuple[ast.expr, bool]:
        return node, True

    def visit_Name(self, node: ast.Name) -> tuple[ast.expr, bool]:
        name, scope = node.id, self.scope
        if name in scope.tensors:
            scope.used.add(name)
            return _expr(scope.tensors[name]), False
        if name in scope.statics:
            scope.used.add(name)
            return _expr(scope.statics[name]), True
        if name in dtypes.ALL:
            return ast.Constant(name), True
        known = [*scope.tensors, *scope.statics, *dtypes.ALL]
        if name in scope.functions:
            self.source.fail(f"{name!r} is a function and must be called", node)
        hint = did_you_mean(name, known)
        if name == "g":
            hint = "write g.<output>: " + ", ".join(f"g.{o}" for o in scope.grads)
        self.source.fail(f"no input, output, attribute or let named {name!r}", node, hint=hint)
        raise AssertionError("unreachable")

    def visit_Attribute(self, node: ast.Attribute) -> tuple[ast.expr, bool]:
        if isinstance(node.value, ast.Name) and node.value.id == "g" and "g" not in self.scope.tensors:
            key = f"g.{node.attr}"
            if node.attr not in self.scope.grads:
                self.source.fail(
                    f"no output named {node.attr!r}",
                    node,
                    hint=did_you_mean(node.attr, self.scope.grads) or f"outputs: {', '.join(self.scope.grads)}",
                )
            self.scope.used.add(key)
            return _expr(self.scope.tensors[key]), False
        if node.attr not in ("dtype", "shape"):
            self.source.fail(
                f"no attribute {node.attr!r} in formulas",
                node,
                hint="g.<output>, <tensor>.dtype and <tensor>.shape are the only ones",
            )
        value, _ = self.visit(node.value)
        return ast.Attribute(value, node.attr, ast.Load()), True

    def visit_BinOp(self, node: ast.BinOp) -> tuple[ast.expr, bool]:
        left, a = self.visit(node.left)
        right, b = self.visit(node.right)
        return ast.BinOp(left, node.op, right), a and b

    def visit_UnaryOp(self, node: ast.UnaryOp) -> tuple[ast.expr, bool]:
        value, static = self.visit(node.operand)
        if isinstance(node.op, ast.Not) and not static:
            self.source.fail("not works on attributes only", node, hint="call logical_not(x)")
        return ast.UnaryOp(node.op, value), static

    def visit_BoolOp(self, node: ast.BoolOp) -> tuple[ast.expr, bool]:
        word = "and" if isinstance(node.op, ast.And) else "or"
        values = [self.static(v, f"{word!r}", hint=f"call logical_{word}(x, y)") for v in node.values]
        return ast.BoolOp(node.op, values), True

    def visit_Compare(self, node: ast.Compare) -> tuple[ast.expr, bool]:
        parts = [self.visit(v) for v in (node.left, *node.comparators)]
        static = all(s for _, s in parts)
        if not static:
            if len(node.ops) > 1:
                self.source.fail("tensors can't be compared in a chain", node)
            op = node.ops[0]
            if isinstance(op, ast.In | ast.NotIn):
                self.source.fail("'in' works on attributes only", node)
            if isinstance(op, ast.Eq | ast.NotEq):
                name = "equal" if isinstance(op, ast.Eq) else "not_equal"
                return ast.Call(self.function(name, node), [parts[0][0], parts[1][0]], []), False
        return ast.Compare(parts[0][0], node.ops, [p for p, _ in parts[1:]]), static

    def visit_IfExp(self, node: ast.IfExp) -> tuple[ast.expr, bool]:
        test = self.static(node.test, "the condition of if", hint="choose between tensors with where(condition, a, b)")
        body, a = self.visit(node.body)
        other, b = self.visit(node.orelse)
        return ast.IfExp(test, body, other), a and b

    def visit_Tuple(self, node: ast.Tuple) -> tuple[ast.expr, bool]:
        return self.sequence(node.elts)

    def visit_List(self, node: ast.List) -> tuple[ast.expr, bool]:
        return self.sequence(node.elts)

    def sequence(self, elements: list[ast.expr]) -> tuple[ast.expr, bool]:
        parts = [self.visit(e) for e in elements]
        return ast.List([p for p, _ in parts], ast.Load()), all(s for _, s in parts)

    def visit_Starred(self, node: ast.Starred) -> tuple[ast.expr, bool]:
        value, static = self.visit(node.value)
        return ast.Starred(value, ast.Load()), static

    def visit_Subscript(self, node: ast.Subscript) -> tuple[ast.expr, bool]:
        value, static = self.visit(node.value)
        index, index_static = self.visit(node.slice)
        if isinstance(index, ast.List) and isinstance(node.slice, ast.Tuple):
            index = ast.Tuple(index.elts, ast.Load())
        return ast.Subscript(value, index, ast.Load()), static and index_static

    def visit_Slice(self, node: ast.Slice) -> tuple[ast.expr, bool]:
        parts = [None if p is None else self.visit(p)[0] for p in (node.lower, node.upper, node.step)]
        return ast.Slice(*parts), True

    def visit_Call(self, node: ast.Call) -> tuple[ast.expr, bool]:
        name = _dotted(node.func)
        if name is None:
            self.source.fail("only named functions can be called", node)
            raise AssertionError("unreachable")
        if name == "present":
            return self.present(node), True
        if any(k.arg is None for k in node.keywords):
            self.source.fail("** has no meaning in a formula", node)
        parts = [self.visit(a) for a in node.args]
        keywords = [ast.keyword(k.arg, self.visit(k.value)[0]) for k in node.keywords]
        if name == "len":
            if len(parts) != 1:
                self.source.fail("len takes one argument", node)
            return ast.Call(_expr("len"), [parts[0][0]], []), True
        if name in _STATIC_CALLS and all(s for _, s in parts):
            self.scope.imports.add(BUILTINS)
            return ast.Call(_expr(f"_builtins.{name}"), [p for p, _ in parts], keywords), True
        return ast.Call(self.function(name, node), [p for p, _ in parts], keywords), False

    def present(self, node: ast.Call) -> ast.expr:
        argument = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if not isinstance(argument, ast.Name) or argument.id not in self.scope.optional:
            self.source.fail(
                "present takes the name of an optional input", node, hint=", ".join(sorted(self.scope.optional)) or None
            )
            raise AssertionError("unreachable")
        self.scope.used.add(argument.id)
        return ast.Compare(_expr(self.scope.tensors[argument.id]), [ast.IsNot()], [ast.Constant(None)])

    def function(self, name: str, node: ast.expr) -> ast.expr:
        callee = self.scope.functions.get(name)
        if callee is None and name in self.scope.faulty:
            self.source.follow(f"the op of {name!r} has a fault of its own", node)
        if callee is None:
            self.source.fail(f"no function {name!r}", node, hint=did_you_mean(name, [*self.scope.functions, "present"]))
            raise AssertionError("unreachable")
        self.scope.imports.add(callee.needs)
        return _expr(callee.source)


def _expr(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None
