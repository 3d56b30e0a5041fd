"""The shape language: what a spec's shape patterns and dim expressions mean, without ever evaluating Python.

A pattern such as ``"[*B, M, 3, _]"`` binds the symbols it names when it meets an input's static shape, and is filled in when it
describes an output. An unknown dim is None and makes whatever depends on it unknown; a check over unknown values passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.contracts.opdef import ArgDef, OpDef
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import OpSpecError, ShapeError
from graphdock.opdef.expression import Env, compile_expression
from graphdock.opdef.resolve import resolve
from graphdock.opdef.shape_values import Known
from graphdock.shape import Dims, merge, show

__all__ = ["ShapeContext", "ShapeRule", "rule_for"]


class ShapeContext:
    """What a shape function sees.

    Attributes:
      opdef: the op; ``attrs`` its attributes, complete.
    """

    __slots__ = ("_known", "_shapes", "attrs", "opdef")

    def __init__(
        self,
        opdef: OpDef,
        attrs: Mapping[str, Any],
        shapes: Sequence[Sequence[Dims]],
        known: Callable[[int], Known],
    ) -> None:
        self.opdef = opdef
        self.attrs = attrs
        self._shapes = shapes
        self._known = known

    def _index(self, name: str) -> int:
        for i, arg in enumerate(self.opdef.inputs):
            if arg.name == name:
                return i
        raise KeyError(name)

    def shape(self, name: str) -> Dims:
        """Static shape of an input; None also for an absent optional one."""
        found = self._shapes[self._index(name)]
        return found[0] if found else None

    def shapes(self, name: str) -> list[Dims]:
        """Static shapes of a list input's elements."""
        return list(self._shapes[self._index(name)])

    def dtype(self, name: str) -> DType:
        """The dtype bound to a type variable."""
        return as_dtype(self.attrs[name])

    def values(self, name: str, element: int = 0) -> Known:
        """What is known of a small integer input; None when nothing is.

        An int at rank 0, a tuple at rank 1 with None for each unknown element, a tuple of rows at rank 2.
        """
        index = self._index(name)
        if element >= len(self._shapes[index]):
            return None
        return self._known(sum(len(s) for s in self._shapes[:index]) + element)

    def fail(self, message: str) -> ShapeError:
        """The error to raise: the message with the op's type and its input shapes."""
        args = ", ".join(
            f"{arg.name} {' '.join(map(show, shapes))}"
            for arg, shapes in zip(self.opdef.inputs, self._shapes, strict=True)
        )
        return ShapeError(
            f"{self.opdef.name}: {message} (input shapes: {args})" if args else f"{self.opdef.name}: {message}"
        )


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

    def match(self, dims: Dims, env: Env, ctx: ShapeContext, arg: str) -> None:
        if dims is None:
            for kind, payload in self.elements:
                if kind in ("star", "symbol"):
                    env.setdefault(payload, None)
            return
        fixed = len(self.elements) - (self.star is not None)
        if len(dims) < fixed or (self.star is None and len(dims) != fixed):
            least = "at least " if self.star is not None else ""
            what = "a scalar" if not self.elements else f"of rank {least}{fixed}"
            raise ctx.fail(f"{arg} must be {what}, but its shape is {show(dims)}")
        at = 0
        for position, (kind, payload) in enumerate(self.elements):
            if kind == "star":
                run = dims[at : at + len(dims) - fixed]
                at += len(run)
                if env.get(payload) is not None:
                    try:
                        run = merge(env[payload], run)  # type: ignore[assignment]
                    except ShapeError:
                        raise ctx.fail(
                            f"shapes {show(env[payload])} and {show(dims)} (of {arg}) do not agree"
                        ) from None
                env[payload] = run
                continue
            d = dims[at]
            at += 1
            if kind == "symbol":
                before = env.get(payload)
                if before is not None and d is not None and before != d:
                    raise ctx.fail(f"dim {position} of {arg} is {d}, but {payload} is {before}")
                env[payload] = before if d is None else d
            elif kind == "expr":
                want = payload(env)
                if want is not None and d is not None and want != d:
                    raise ctx.fail(f"dim {position} of {arg} must be {want}, but it is {d}")

    def fill(self, env: Env) -> Dims:
        out: list[int | None] = []
        for kind, payload in self.elements:
            if kind == "star":
                run = env[payload]
                if run is None:
                    return None
                out.extend(run)
            elif kind == "symbol":
                out.append(env[payload])
            else:
                out.append(None if kind == "any" else payload(env))
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
        self._where = [(compile_expression(check)[0], message) for check, message in opdef.where]
        self._counts = [
            compile_expression(a.count)[0] if a.arity == "many" and a.count else None for a in opdef.outputs
        ]
        read = set().union(*[p.names for p in self._inputs + self._outputs if p], *[n for _, (_, n) in self._let])
        for check, _ in opdef.where:
            read |= compile_expression(check)[1]
        attrs = {a.name for a in opdef.attrs} | {t.name for t in opdef.types}
        self._read_attrs = tuple(sorted(read & attrs))
        #: Whether results may be shared between nodes of equal input shapes and attributes.
        self.cacheable = self._fn is None and all(a.arity == "one" for a in opdef.outputs)
        self._cache: dict[Any, list[Dims]] = {}

    def output_counts(self, attrs: Mapping[str, Any]) -> list[int]:
        """Number of tensors of each output argument."""
        return [1 if c is None else int(c(dict(attrs))) for c in self._counts]

    def infer(
        self, attrs: Mapping[str, Any], shapes: Sequence[Sequence[Dims]], known: Callable[[int], Known]
    ) -> list[Dims]:
        """One shape per flattened output.

        Args:
          attrs: every attribute of the node, type variables included.
          shapes: per input argument, the static shapes of its tensors.
          known: known content of flattened input i.

        Raises:
          ShapeError: the shapes do not fit the op.
        """
        if self.cacheable:
            try:
                key: Any = (tuple([tuple(s) for s in shapes]), tuple([attrs[n] for n in self._read_attrs]))
                found = self._cache.get(key)
            except TypeError:
                key, found = None, None
            if found is not None:
                return found
        ctx = ShapeContext(self.opdef, attrs, shapes, known)
        if self._fn is not None:
            return list(resolve(self._fn)(ctx))
        result = self._from_patterns(ctx, attrs, shapes)
        if self.cacheable and key is not None:
            if len(self._cache) > 4096:
                self._cache.clear()
            self._cache[key] = result
        return result

    def bind(self, attrs: Mapping[str, Any], shapes: Sequence[Sequence[Dims]]) -> Env:
        """What the names of patterns and ``let`` stand for, attributes included; None where it is not known.

        Raises:
          ShapeError: the shapes do not fit the op.
        """
        return self._bind(ShapeContext(self.opdef, attrs, shapes, lambda i: None), attrs, shapes)

    def _bind(self, ctx: ShapeContext, attrs: Mapping[str, Any], shapes: Sequence[Sequence[Dims]]) -> Env:
        env: Env = dict(attrs)
        for arg, pattern, found in zip(self.opdef.inputs, self._inputs, shapes, strict=True):
            if pattern is None:
                continue
            for i, dims in enumerate(found):
                env["i"] = i
                pattern.match(dims, env, ctx, arg.name)
            if not found:
                pattern.match(None, env, ctx, arg.name)
        try:
            for name, (evaluate, _) in self._let:
                env[name] = evaluate(env)
        except ShapeError as error:
            raise ctx.fail(error.message) from None
        return env

    def _from_patterns(
        self, ctx: ShapeContext, attrs: Mapping[str, Any], shapes: Sequence[Sequence[Dims]]
    ) -> list[Dims]:
        env = self._bind(ctx, attrs, shapes)
        for check, message in self._where:
            if check(env) is False:
                shown = {k: show(v) if isinstance(v, tuple) else v for k, v in env.items()}
                raise ctx.fail(message.format(**shown))
        result: list[Dims] = []
        for pattern, count in zip(self._outputs, self.output_counts(attrs), strict=True):
            for i in range(count):
                env["i"] = i
                try:
                    result.append(None if pattern is None else pattern.fill(env))
                except ShapeError as error:
                    raise ctx.fail(error.message) from None
        return result


def _pattern(arg: ArgDef) -> _Pattern | None:
    return None if arg.shape is None or arg.shape == "?" else _Pattern(arg.shape)


_rules: dict[int, ShapeRule] = {}


def rule_for(opdef: OpDef) -> ShapeRule:
    """The compiled rule of an op, made at first use."""
    rule = _rules.get(id(opdef))
    if rule is None or rule.opdef is not opdef:
        rule = _rules[id(opdef)] = ShapeRule(opdef)
    return rule
