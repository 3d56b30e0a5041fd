"""The shape language of an op: names that must exist, each of one kind, and expressions that mean something of that kind."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphdock.errors import did_you_mean
from graphdock.opdef.cost import ARGUMENT_CALLS

from graphdock_opgen import expr
from graphdock_opgen.expr import Source
from graphdock_opgen.op import Place
from graphdock_opgen.reader import Path_

__all__ = ["check_shapes"]

_WHAT = "dim, run or attribute"
#: Kinds of values. A ``thing`` is what expressions can only compare: a dtype, a tensor.
NUMBER, REAL, RUN, TRUTH = "a number", "a fraction", "a run of dims", "a condition"
TEXT, LIST, THING = "a text", "a list", "a thing"
_NUMBERS = (NUMBER, REAL)
_OF_ATTRS = {"int": NUMBER, "float": REAL, "bool": TRUTH, "string": TEXT, "shape": RUN}
#: Types of constants -> kinds; the first that fits.
_CONSTANTS = ((bool, TRUTH), (int, NUMBER), (float, REAL), (str, TEXT), (object, THING))
#: Function -> kinds of its arguments, kind of its value, and whether it takes any number of them.
_CALLS: Mapping[str, tuple[tuple[str, ...], str, bool]] = {
    "broadcast": ((RUN,), RUN, True),
    "prod": ((RUN,), NUMBER, False),
    "rank": ((RUN,), NUMBER, False),
    "len": ((LIST, RUN), NUMBER, False),
    "min": (_NUMBERS, NUMBER, True),
    "max": (_NUMBERS, NUMBER, True),
}


def check_shapes(place: Place) -> None:
    """Raise OpSpecError at the first pattern, dim, check, count or cost that can't be evaluated for some inputs."""
    _Shapes(place).check()


class _Shapes:
    """Names that are known so far, with the kind of each."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.kinds: dict[str, str] = {}
        self.first: dict[str, str] = {}
        for attr in place.spec.attrs:
            kind = LIST if attr.type.startswith("list(") else _OF_ATTRS.get(attr.type, THING)
            self.bind(attr.name, kind, "an attribute")
        for name, spec in place.spec.types.items():
            self.bind(name, LIST if spec.list_ else THING, "a type variable")

    def bind(self, name: str, kind: str, where: str) -> None:
        self.kinds[name] = kind
        self.first[name] = f"{kind} ({where})"

    def check(self) -> None:
        place, spec = self.place, self.place.spec
        everything = dict.fromkeys([*self.kinds, "i"])
        for i, arg in enumerate(spec.inputs):
            if arg.shape is not None:
                elements = expr.pattern(place.source("inputs", i, "shape", text=arg.shape)) or []
                everything |= dict.fromkeys(expr.symbols(elements))
        for i, arg in enumerate(spec.inputs):
            if arg.shape is not None:
                source = place.source("inputs", i, "shape", text=arg.shape)
                for element in expr.pattern(source) or []:
                    self.element(source, element, everything, arg.name)
        for name, text in spec.dims.let.items():
            if name in self.kinds:
                message = f"{name!r} is {self.first[name]} already"
                place.fail("dims", "let", name, message=message, key=True)
            source = place.source("dims", "let", name, text=text)
            self.bind(name, self.kind(source, self.parse(source)), "let")
        for i, where in enumerate(spec.dims.where):
            self.condition(("dims", "where", i), where.check, where.error)
        for i, arg in enumerate(spec.outputs):
            if arg.shape is not None:
                source = place.source("outputs", i, "shape", text=arg.shape)
                for element in expr.pattern(source) or []:
                    self.element(source, element, None, arg.name)
        for group, args in (("inputs", spec.inputs), ("outputs", spec.outputs)):
            for i, arg in enumerate(args):
                if arg.arity.many is not None:
                    source = place.source(group, i, "arity", "many", "count", text=arg.arity.many.count)
                    tree = expr.count_names(source, place.attrs, spec.types)
                    self.wanted(source, tree, self.kind(source, tree), (NUMBER,), "a count")
        arguments = [a.name for a in (*spec.inputs, *spec.outputs)]
        for key, text in spec.cost.given().items():
            source = place.source("cost", key, text=text)
            expr.check_cost(source, self.kinds, arguments)
            if text.strip() != "?":
                tree = source.parse(expr.COST_NODES)
                self.wanted(source, tree, self.kind(source, tree), _NUMBERS, "a cost")

    def parse(self, source: Source) -> ast.expr:
        tree = source.parse(expr.DIM_NODES)
        expr.check_names(source, tree, self.kinds, _WHAT)
        return tree

    def condition(self, path: Path_, check: str, error: str) -> None:
        source = self.place.source(*path, "check", text=check)
        tree = self.parse(source)
        self.wanted(source, tree, self.kind(source, tree), (TRUTH,), "a check")
        message = self.place.source(*path, "error", text=error)
        for name in expr.placeholders(message):
            if name not in self.kinds:
                hint = did_you_mean(name, self.kinds)
                message.fail(f"no {_WHAT} named {name!r}", column=error.find("{" + name), hint=hint)

    def element(self, source: Source, node: ast.expr, later: Mapping[str, None] | None, arg: str) -> None:
        """One element of a pattern. ``later``: of an input, with the names that inputs after it bind; None of an output."""
        kind, bare = (RUN, node.value) if isinstance(node, ast.Starred) else (NUMBER, node)
        if isinstance(bare, ast.Name):
            if bare.id == "_" and kind is NUMBER:
                return
            if bare.id in self.kinds:
                if self.kinds[bare.id] != kind:
                    source.fail(f"{bare.id!r} is {self.first[bare.id]}, here it is {kind}", node)
                return
            if later is None:
                expr.check_names(source, bare, self.kinds, _WHAT)
            if bare.id == "i":
                source.fail("'i' is the index of a list's element, and part of an expression", node)
            self.bind(bare.id, kind, f"of {arg}")
            return
        if later is not None:
            expr.check_names(source, bare, later, _WHAT)
            unbound = next((n for n in expr.names(bare) if n.id not in self.kinds and n.id != "i"), None)
            if unbound is not None:
                source.fail(f"{unbound.id!r} is not bound yet: inputs are looked at in their order", unbound)
        self.kinds["i"] = NUMBER
        expr.check_names(source, bare, self.kinds, _WHAT)
        self.wanted(source, bare, self.kind(source, bare), (NUMBER,), "a dim")
        del self.kinds["i"]

    def wanted(self, source: Source, node: ast.expr, kind: str, kinds: tuple[str, ...], what: str) -> None:
        if kind not in kinds:
            source.fail(f"{what} is {' or '.join(kinds)}, and {ast.unparse(node)!r} is {kind}", node)

    def kind(self, source: Source, node: ast.expr) -> str:
        """The kind of an expression's value, whatever the names stand for. Raises OpSpecError where it has none."""
        if isinstance(node, ast.Constant):
            return next(kind for type_, kind in _CONSTANTS if isinstance(node.value, type_))
        if isinstance(node, ast.Name):
            return self.kinds[node.id]
        if isinstance(node, ast.BinOp):
            return self.arithmetic(source, node)
        if isinstance(node, ast.UnaryOp):
            kind, negated = self.kind(source, node.operand), isinstance(node.op, ast.Not)
            self.wanted(source, node.operand, kind, (TRUTH, NUMBER) if negated else _NUMBERS, "an operand")
            return TRUTH if negated else kind
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self.wanted(source, value, self.kind(source, value), (TRUTH, NUMBER), "an operand")
            return TRUTH
        if isinstance(node, ast.Compare):
            left, right = self.kind(source, node.left), self.kind(source, node.comparators[0])
            ordered = not isinstance(node.ops[0], ast.Eq | ast.NotEq)
            alike = _NUMBERS if ordered or left in _NUMBERS else (left,)
            for side, kind in ((node.left, left), (node.comparators[0], right)):
                self.wanted(source, side, kind, alike, "what is compared")
            return TRUTH
        if isinstance(node, ast.IfExp):
            self.wanted(source, node.test, self.kind(source, node.test), (TRUTH, NUMBER), "the condition of if")
            body, other = self.kind(source, node.body), self.kind(source, node.orelse)
            self.wanted(source, node.orelse, other, _NUMBERS if body in _NUMBERS else (body,), "what follows else")
            return REAL if REAL in (body, other) else body
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in ARGUMENT_CALLS:
            return NUMBER
        kinds, result, many = _CALLS[node.func.id]
        if not node.args or (len(node.args) > 1 and not many):
            source.fail(f"{node.func.id} takes {'at least ' if many else ''}one argument", node)
        found = [self.kind(source, argument) for argument in node.args]
        for argument, kind in zip(node.args, found, strict=True):
            self.wanted(source, argument, kind, kinds, f"an argument of {node.func.id}")
        return REAL if REAL in found else result

    def arithmetic(self, source: Source, node: ast.BinOp) -> str:
        left, right = self.kind(source, node.left), self.kind(source, node.right)
        if isinstance(node.op, ast.Add) and left == right == RUN:
            return RUN
        for side, kind in ((node.left, left), (node.right, right)):
            self.wanted(source, side, kind, _NUMBERS, "an operand")
        if (
            isinstance(node.op, ast.FloorDiv | ast.Mod)
            and isinstance(node.right, ast.Constant)
            and not node.right.value
        ):
            source.fail("nothing can be divided by zero", node)
        return REAL if REAL in (left, right) or isinstance(node.op, ast.Div) else NUMBER
