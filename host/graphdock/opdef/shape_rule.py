"""The shape language: what a spec's shape patterns and dim expressions mean, without ever evaluating Python.

A pattern such as ``"[*B, M, 3, _]"`` binds the symbols it names when it meets an input's static shape, and is filled in when it
describes an output. An unknown dim is None and makes whatever depends on it unknown; a check over unknown values passes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.contracts.opdef import ArgDef, OpDef, resolve
from graphdock.errors import OpSpecError, ShapeError
from graphdock.locks import parse_expression
from graphdock.opdef.expression import FACTS, Env, Evaluator, compile_expression, is_open
from graphdock.opdef.shape_context import Assumptions, ShapeContext
from graphdock.opdef.shape_values import Known
from graphdock.shape import Dims, Symbol, plain, show

__all__ = ["MOST_KEPT", "MOST_OUTPUTS", "ShapeRule", "rule_for"]

#: Most results that one op keeps, of shapes and of attributes.
MOST_KEPT = 4096
#: Most tensors of one output argument of an operation.
MOST_OUTPUTS = 1 << 16


class _Pattern:
    """A compiled shape pattern. ``elements`` are (kind, payload): star, any, symbol or expr."""

    def __init__(self, text: str) -> None:
        body = text.strip()
        if not (body.startswith("[") and body.endswith("]")):
            raise OpSpecError(f"{text!r} is not a shape pattern", hint="a form such as '[*B, M, N]'")
        self.text = text
        self.elements: list[tuple[str, Any]] = []
        self.names: set[str] = set()
        self.star: int | None = None
        for part in _split(body[1:-1]):
            if part == "_":
                self.elements.append(("any", None))
            elif part.startswith("*"):
                if self.star is not None:
                    raise OpSpecError(f"{text!r} has two runs of dims")
                self.star = len(self.elements)
                self.elements.append(("star", part[1:].strip()))
                self.names.add(part[1:].strip())
            elif part.isidentifier():
                self.elements.append(("symbol", part))
                self.names.add(part)
            else:
                evaluate, names = compile_expression(part)
                self.elements.append(("expr", evaluate))
                self.names |= names

    def match(self, dims: Any, env: Env, ctx: ShapeContext, arg: str, facts: Assumptions | None) -> None:
        if dims is None or isinstance(dims, Symbol):
            if isinstance(dims, Symbol) and facts is not None:
                if len(self.elements) == 1 and self.star is not None:
                    name = self.elements[0][1]
                    before = env.get(name)
                    if before is not None and not facts.is_same(before, dims):
                        facts.unproven()
                    env[name] = dims if before is None else before
                    return
                facts.unproven()
            for kind, payload in self.elements:
                if kind in ("star", "symbol"):
                    env.setdefault(payload, None)
            return
        fixed = len(self.elements) - (self.star is not None)
        if len(dims) < fixed or (self.star is None and len(dims) != fixed):
            least = "at least " if self.star is not None else ""
            what = "a scalar" if not self.elements else f"of rank {least}{fixed}"
            raise ctx.fail(f"{arg} must be {what}, but its shape is {show(plain(dims))}")
        at = 0
        for position, (kind, payload) in enumerate(self.elements):
            if kind == "star":
                run = dims[at : at + len(dims) - fixed]
                at += len(run)
                before = env.get(payload)
                if isinstance(before, Symbol) and facts is not None:
                    facts.unproven()
                elif before is not None and before != run:
                    message = f"shapes {show(plain(before))} and {show(plain(dims))} (of {arg}) do not agree"
                    if len(before) != len(run):
                        raise ctx.fail(message)
                    run = tuple([ctx.equal(a, b, message) for a, b in zip(before, run, strict=True)])
                env[payload] = run
                continue
            d = dims[at]
            at += 1
            if kind == "symbol":
                before = env.get(payload)
                if before is None or before == d:
                    env[payload] = d
                else:
                    message = f"dim {position} of {arg} is {d}, but {payload} is {before}"
                    env[payload] = ctx.equal(before, d, message)
            elif kind == "expr":
                want = payload(env)
                if want != d:
                    ctx.equal(want, d, f"dim {position} of {arg} must be {want}, but it is {d}")

    def fill(self, env: Env) -> Any:
        out: list[Any] = []
        for kind, payload in self.elements:
            if kind == "star":
                run = env[payload]
                if isinstance(run, Symbol) and len(self.elements) == 1:
                    return run
                if is_open(run):
                    return None
                out.extend(run)
            elif kind == "symbol":
                out.append(env[payload])
            else:
                out.append(None if kind == "any" else payload(env))
        negative = next((d for d in out if isinstance(d, int) and d < 0), None)
        if negative is not None:
            raise ShapeError(f"a dim of {self.text} would be {negative}")
        return tuple(out)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    tail = text[start:].strip()
    if tail or parts:
        parts.append(tail)
    if "" in parts:
        raise OpSpecError(f"[{text}] has an empty element")
    return parts


class ShapeRule:
    """The compiled shape rule of one op; immutable, shared by threads."""

    def __init__(self, opdef: OpDef) -> None:
        self.opdef = opdef
        self._fn = opdef.shape_fn
        self._inputs = [_pattern(a) for a in opdef.inputs]
        self._outputs = [_pattern(a) for a in opdef.outputs]
        self._let = [(name, compile_expression(text)) for name, text in opdef.let.items()]
        self._where = [(compile_expression(check)[0], _sides(check), message) for check, message in opdef.where]
        self._counts = [
            compile_expression(a.count)[0] if a.arity == "many" and a.count else None for a in opdef.outputs
        ]
        read = set().union(*[p.names for p in self._inputs + self._outputs if p], *[n for _, (_, n) in self._let])
        for check, _ in opdef.where:
            read |= compile_expression(check)[1]
        attrs = {a.name for a in opdef.attrs} | {t.name for t in opdef.types}
        self.read_attrs = tuple(sorted(read & attrs))
        #: Dtype of the output, as the spec says it, where there is one output and it is one tensor.
        self.single = opdef.outputs[0].dtype if [a.arity for a in opdef.outputs] == ["one"] else None
        #: Attributes of nodes whose inputs are one tensor each, by dtypes and by what callers gave (graph.binding).
        self.bindings: dict[Any, Mapping[str, Any]] = {}
        #: Whether results may be shared between nodes of equal input shapes and of equal ``read_attrs``.
        self.cacheable = self._fn is None and all(a.arity == "one" for a in opdef.outputs)
        self._cache: dict[Any, list[Dims]] = {}

    @property
    def bound(self) -> set[str]:
        """The names that patterns of inputs and attributes bind."""
        return {a.name for a in self.opdef.attrs} | {"i"}.union(*[p.names for p in self._inputs if p is not None])

    def unbound(self) -> list[tuple[str, str]]:
        """Output and name of what its pattern names and nothing binds."""
        bound, pairs = self.bound, zip(self.opdef.outputs, self._outputs, strict=True)
        return [(arg.name, name) for arg, p in pairs if p is not None for name in sorted(p.names - bound)]

    def output_counts(self, attrs: Mapping[str, Any]) -> list[int]:
        """Number of tensors of each output argument.

        Raises:
          ShapeError: less than none, or more than :data:`MOST_OUTPUTS`: an attribute asks for them, and each takes memory.
        """
        counts = [1 if c is None else int(c(dict(attrs))) for c in self._counts]
        for arg, count in zip(self.opdef.outputs, counts, strict=True):
            if not 0 <= count <= MOST_OUTPUTS:
                raise ShapeError(
                    f"{self.opdef.name} would have {count} tensors as {arg.name}", expected=f"from 0 to {MOST_OUTPUTS}"
                )
        return counts

    def infer(
        self,
        attrs: Mapping[str, Any],
        shapes: Sequence[Sequence[Any]],
        known: Callable[[int], Known],
        facts: Assumptions | None = None,
        building: bool = False,
    ) -> list[Any]:
        """One shape per flattened output.

        Args:
          attrs: every attribute of the node, type variables included.
          shapes: per input argument, the static shapes of its tensors; extents, where ``facts`` are given.
          known: known content of flattened input i.
          facts: takes what the rule assumes about symbols; outputs then hold symbols, and None for dims that are new.
          building: said to shape functions.

        Raises:
          ShapeError: the shapes do not fit the op.
        """
        key: Any = None
        if self.cacheable and (facts is None or not facts.open):
            try:
                key = tuple(map(tuple, shapes))
                if self.read_attrs:
                    key = key, tuple(map(attrs.__getitem__, self.read_attrs))
                found = self._cache.get(key)
            except TypeError:
                key, found = None, None
            if found is not None:
                return found
        if self._fn is not None:
            result = self._from_function(attrs, shapes, known, facts, building)
        else:
            result = self._from_patterns(ShapeContext(self.opdef, attrs, shapes, known, facts), attrs, shapes, facts)
        if key is not None:
            if len(self._cache) >= MOST_KEPT:
                self._cache.clear()
            self._cache[key] = result
        return result

    def _from_function(
        self,
        attrs: Mapping[str, Any],
        shapes: Sequence[Sequence[Any]],
        known: Callable[[int], Known],
        facts: Assumptions | None,
        building: bool,
    ) -> list[Any]:
        assert self._fn is not None
        if any(self._counts):
            self.output_counts(attrs)
        if any(self._inputs):
            self._bind(ShapeContext(self.opdef, attrs, shapes, known, facts), attrs, shapes, facts)
        function = resolve(self._fn)
        knows = getattr(function, "symbolic", False)
        result = list(function(ShapeContext(self.opdef, attrs, shapes, known, facts, knows, building)))
        if facts is not None and not knows:
            facts.unknowing()
        return result

    def bind(self, attrs: Mapping[str, Any], shapes: Sequence[Sequence[Dims]]) -> Env:
        """Return what the names of patterns and ``let`` stand for, attributes included; None where it is not known.

        Raises:
          ShapeError: the shapes do not fit the op.
        """
        return self._bind(ShapeContext(self.opdef, attrs, shapes, lambda i: None), attrs, shapes, None)

    def _bind(
        self, ctx: ShapeContext, attrs: Mapping[str, Any], shapes: Sequence[Sequence[Any]], facts: Assumptions | None
    ) -> Env:
        env: Env = dict(attrs)
        if facts is not None:
            env[FACTS] = facts
        for arg, pattern, found in zip(self.opdef.inputs, self._inputs, shapes, strict=True):
            if pattern is None:
                continue
            for i, dims in enumerate(found):
                env["i"] = i
                pattern.match(dims, env, ctx, arg.name, facts)
            if not found:
                pattern.match(None, env, ctx, arg.name, facts)
        try:
            for name, (evaluate, _) in self._let:
                env[name] = evaluate(env)
        except ShapeError as error:
            raise ctx.fail(error.message) from None
        return env

    def _from_patterns(
        self, ctx: ShapeContext, attrs: Mapping[str, Any], shapes: Sequence[Sequence[Any]], facts: Assumptions | None
    ) -> list[Any]:
        env = self._bind(ctx, attrs, shapes, facts)
        for check, sides, message in self._where:
            if facts is not None and sides is not None:
                a, b = (side(env) for side in sides)
                if a is not None and b is not None and (isinstance(a, Symbol) or isinstance(b, Symbol)):
                    facts.equal(a, b)
                    continue
            passed = check(env)
            if passed is False:
                shown = {k: show(plain(v)) if isinstance(v, tuple) else v for k, v in env.items()}
                raise ctx.fail(message.format(**shown))
            if passed is None and facts is not None:
                facts.unproven()
        result: list[Any] = []
        for pattern, count in zip(self._outputs, self.output_counts(attrs), strict=True):
            for i in range(count):
                env["i"] = i
                try:
                    result.append(None if pattern is None else pattern.fill(env))
                except ShapeError as error:
                    raise ctx.fail(error.message) from None
        return result


def _sides(check: str) -> tuple[Evaluator, Evaluator] | None:
    """Both sides of a check that says that two dims are equal."""
    tree = parse_expression(check)
    if not (isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], ast.Eq)):
        return None
    left, right = (compile_expression(ast.unparse(side))[0] for side in (tree.left, tree.comparators[0]))
    return left, right


def _pattern(arg: ArgDef) -> _Pattern | None:
    return None if arg.shape is None or arg.shape == "?" else _Pattern(arg.shape)


def rule_for(opdef: OpDef) -> ShapeRule:
    """The compiled rule of an op, made at first use; it lives as long as the OpDef."""
    rule = opdef.compiled
    if rule is None:
        rule = ShapeRule(opdef)
        object.__setattr__(opdef, "compiled", rule)
    return rule  # type: ignore[no-any-return]
