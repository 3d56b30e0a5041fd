"""The small expression language of shape patterns, dims and gradient formulas: parsed with :mod:`ast`, never evaluated.

``parse`` yields an ``ast.expr`` that holds only whitelisted nodes; a fault is an OpSpecError with the column inside the
expression, and the column in the file where the expression stands on one line.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from graphdock.errors import OpSpecError, did_you_mean
from graphdock.opdef.cost import ARGUMENT_CALLS

from graphdock_opgen.reader import Document, Path_

__all__ = ["DIM_CALLS", "FollowingError", "Source", "check_arity", "count_names", "names", "pattern", "placeholders"]

#: Calls that dims and counts may make, as :mod:`graphdock.opdef.shape_rule` evaluates them.
DIM_CALLS = ("broadcast", "prod", "rank", "len", "min", "max")

#: Deepest nesting of an expression; what walks one may recurse.
_DEEPEST = 50

DIM_NODES: tuple[type[ast.AST], ...] = (
    ast.Constant,
    ast.Name,
    ast.Load,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Call,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.FloorDiv,
    ast.Mod,
    ast.USub,
    ast.Not,
    ast.And,
    ast.Or,
    ast.Eq,
    ast.NotEq,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
)
PATTERN_NODES: tuple[type[ast.AST], ...] = (*DIM_NODES, ast.List, ast.Starred)
COST_NODES: tuple[type[ast.AST], ...] = (*DIM_NODES, ast.Div)
FORMULA_NODES: tuple[type[ast.AST], ...] = (
    *PATTERN_NODES,
    ast.Attribute,
    ast.BitAnd,
    ast.BitOr,
    ast.Div,
    ast.In,
    ast.Invert,
    ast.keyword,
    ast.MatMult,
    ast.NotIn,
    ast.Pow,
    ast.Slice,
    ast.Subscript,
    ast.Tuple,
    ast.UAdd,
)


class FollowingError(OpSpecError):
    """An error of what uses an op whose spec has a fault of its own: it goes with that."""


@dataclass(frozen=True, slots=True)
class Source:
    """An expression and where it stands."""

    text: str
    document: Document
    path: Path_

    def fail(
        self, message: str, node: ast.AST | None = None, *, column: int | None = None, hint: str | None = None
    ) -> None:
        """Raise OpSpecError at a node of this expression."""
        if column is None:
            column = getattr(node, "col_offset", 0)
            if getattr(node, "lineno", 1) > 1:
                column = 0
        shown = " ".join(self.text.split())
        self.document.fail(self.path, f"{message}, in {shown!r}, column {column + 1}", hint=hint, offset=column)

    def follow(self, message: str, node: ast.AST | None = None) -> NoReturn:
        """Raise FollowingError at a node of this expression."""
        line, column = self.document.position(self.path, offset=getattr(node, "col_offset", 0))
        shown = " ".join(self.text.split())
        raise FollowingError(f"{message}, in {shown!r}", file=self.document.file, line=line, column=column)

    def parse(self, allowed: tuple[type[ast.AST], ...]) -> ast.expr:
        """The expression's tree. Raises OpSpecError where it is not of the language."""
        text = self.text.strip()
        lead = len(self.text) - len(self.text.lstrip())
        if not text:
            self.fail("an expression is empty")
        try:
            tree = ast.parse(text.replace("\n", " "), mode="eval").body
        except SyntaxError as e:
            self.fail(f"bad expression: {e.msg}", column=lead + max((e.offset or 1) - 1, 0))
            raise AssertionError("unreachable") from e
        except (ValueError, RecursionError, MemoryError) as e:
            self.fail(f"bad expression: {e}")
            raise AssertionError("unreachable") from e
        if _depth(tree) > _DEEPEST:
            self.fail(f"an expression is nested deeper than {_DEEPEST}")
        for part in ast.walk(tree):
            if not isinstance(part, allowed):
                self.fail(f"{_describe(part)} has no meaning here", part)
            if isinstance(part, ast.Constant) and not isinstance(part.value, bool | int | float | str | None):
                self.fail(f"{part.value!r} has no meaning here", part)
            if isinstance(part, ast.Constant) and isinstance(part.value, int) and part.value >= 2**63:
                self.fail("a number does not fit into 64 bits", part)
        return tree


def _depth(tree: ast.AST) -> int:
    depth, level = 0, [tree]
    while level:
        level = [
            child for node in level for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr | ast.keyword)
        ]
        depth += 1
    return depth


def _describe(node: ast.AST) -> str:
    names = {
        "Attribute": "an attribute access",
        "Lambda": "a lambda",
        "ListComp": "a comprehension",
        "GeneratorExp": "a comprehension",
        "Div": "true division",
        "Pow": "a power",
        "keyword": "a keyword argument",
        "NamedExpr": "an assignment",
        "JoinedStr": "an f-string",
        "Await": "await",
    }
    return names.get(type(node).__name__, type(node).__name__)


def names(tree: ast.AST) -> Iterator[ast.Name]:
    """Every name that is read, calls' function names excluded, in the order of the tree."""
    if isinstance(tree, ast.Call):
        if not isinstance(tree.func, ast.Name):
            yield from names(tree.func)
        for part in [*tree.args, *(k.value for k in tree.keywords)]:
            yield from names(part)
        return
    if isinstance(tree, ast.Name):
        yield tree
    for child in ast.iter_child_nodes(tree):
        yield from names(child)


def check_dim(source: Source, known: Collection[str], what: str) -> ast.expr:
    """Parse a dim expression whose names must all be known."""
    tree = source.parse(DIM_NODES)
    check_names(source, tree, known, what)
    return tree


def check_cost(source: Source, known: Collection[str], arguments: Collection[str]) -> None:
    """Check a cost: ``?``, or a dim expression that may also divide, and call ``size`` and ``bytes`` of an argument."""
    if source.text.strip() == "?":
        return
    tree = source.parse(COST_NODES)
    check_names(source, tree, (*known, *arguments), "dim, run or attribute", (*DIM_CALLS, *ARGUMENT_CALLS))
    measured: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ARGUMENT_CALLS:
            if len(node.args) != 1 or not isinstance(node.args[0], ast.Name) or node.args[0].id not in arguments:
                source.fail(
                    f"{node.func.id} takes the name of an input or output", node, hint=f"known: {', '.join(arguments)}"
                )
            measured.update(node.args)
    for name in names(tree):
        if name not in measured and name.id not in known:
            source.fail(f"{name.id!r} is a tensor, not a number", name, hint=f"write size({name.id})")


def check_names(
    source: Source, tree: ast.AST, known: Collection[str], what: str, calls: Collection[str] = DIM_CALLS
) -> None:
    """Every name is known and every call is one of ``calls``; comparisons are not chained."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or node.func.id not in calls):
            called = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
            source.fail(
                f"no function {called!r} in shape expressions",
                node,
                hint=did_you_mean(called, calls) or f"known: {', '.join(calls)}",
            )
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            source.fail("comparisons can't be chained", node, hint="write 'a < b and b < c'")
    for name in names(tree):
        if name.id not in known:
            source.fail(f"no {what} named {name.id!r}", name, hint=did_you_mean(name.id, known))


def check_arity(source: Source, tree: ast.AST, arity: Mapping[str, int]) -> None:
    """Every call has as many arguments as its function takes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            wanted = arity[node.func.id]
            if len(node.args) != wanted or node.keywords:
                source.fail(f"{node.func.id} takes {wanted} argument{'s' if wanted > 1 else ''}", node)


def pattern(source: Source) -> list[ast.expr] | None:
    """The elements of a shape pattern; None for ``?``."""
    text = source.text.strip()
    if text == "?":
        return None
    if not (text.startswith("[") and text.endswith("]")):
        source.fail("a shape pattern is a list in brackets, such as '[*B, M, N]', or '?'")
    tree = source.parse(PATTERN_NODES)
    if not isinstance(tree, ast.List):
        source.fail("a shape pattern is a list in brackets, such as '[*B, M, N]'")
        return None
    stars = [e for e in tree.elts if isinstance(e, ast.Starred)]
    for star in stars:
        if not isinstance(star.value, ast.Name):
            source.fail("a run of dims is one name, such as *B", star, hint="name the expression in dims: let:")
    if len(stars) > 1:
        source.fail("a pattern can hold one run of dims only", stars[1])
    for element in tree.elts:
        if isinstance(element, ast.Constant) and (
            isinstance(element.value, bool) or not isinstance(element.value, int) or element.value < 0
        ):
            source.fail(f"a dim can't be {element.value!r}", element)
        if any(
            isinstance(n, ast.List | ast.Starred)
            for n in ast.walk(element)
            if n is not element or isinstance(n, ast.List)
        ):
            source.fail("a dim can't be a list", element)
        if isinstance(element, ast.UnaryOp) and isinstance(element.operand, ast.Constant):
            source.fail(f"a dim can't be {ast.unparse(element)}", element)
    return tree.elts


def symbols(elements: list[ast.expr]) -> dict[str, ast.expr]:
    """Names that an input pattern binds: bare names and starred names, ``_`` excluded."""
    out: dict[str, ast.expr] = {}
    for element in elements:
        bare = element.value if isinstance(element, ast.Starred) else element
        if isinstance(bare, ast.Name) and bare.id != "_":
            out.setdefault(bare.id, element)
    return out


def count_names(source: Source, attrs: Collection[str], types: Collection[str]) -> ast.expr:
    """Check a count expression: integers, attributes, ``len`` of a type list."""
    tree = source.parse(DIM_NODES)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            argument = node.args[0] if len(node.args) == 1 and not node.keywords else None
            if not (isinstance(node.func, ast.Name) and node.func.id == "len" and isinstance(argument, ast.Name)):
                source.fail("a count may call only len(T)", node)
    known = {*attrs, *types}
    for name in names(tree):
        if name.id not in known:
            source.fail(f"no attribute named {name.id!r}", name, hint=did_you_mean(name.id, known))
    return tree


def placeholders(source: Source) -> list[str]:
    """Names in braces of an error message."""
    out = []
    text = source.text
    position = 0
    while (start := text.find("{", position)) >= 0:
        end = text.find("}", start)
        name = text[start + 1 : end] if end > 0 else ""
        if not name.isidentifier():
            source.fail("a brace in a message encloses one name", column=start)
        if "}" in text[position:start]:
            break
        out.append(name)
        position = end + 1
    stray = text.find("}", position)
    if stray >= 0:
        source.fail("a brace in a message encloses one name", column=stray)
    return out
