"""The functions of patterns as graphs: the pattern and its replacement, each with the gradients that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import numpy as np
from graphdock.contracts import Found, Operand, PlanContext, PlanGraph, RegisteredPattern, Tracing, Value
from graphdock.contracts.ir import attr_key
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import GraphdockError, PluginError
from graphdock.shape import Dims

__all__ = ["STREAM_WORDS", "WIDTHS", "PatternGraph", "PatternGraphs"]

#: How many leading dims people leave open: none, a batch, or all but the last. Gradients are built in other ways accordingly.
WIDTHS = (0, 1, 8)
#: Words of a stream: key, key2, outer, iteration, ordinal.
STREAM_WORDS = 5
#: Graphs that a host keeps, and those of them with constants of many bytes.
_KEPT, _KEPT_LARGE = 1024, 16
_LARGE = 1 << 20
_IMPURE = "let it enter as an input, random numbers as Operand(..., drawn=..., stream=...)"


@dataclass(frozen=True, slots=True)
class PatternGraph:
    """A function of a pattern, as a plan graph. Whoever puts it into a plan copies it.

    Attributes:
      inputs: name -> input of the graph. ``values``: what the function returns.
      cotangents: position among the values -> its gradient, an input of the graph too; empty where there are no gradients.
      gradients: name of an input -> its gradient, of those that were asked for and are there.
      large: whether it holds constants of many bytes.
    """

    graph: PlanGraph
    inputs: Mapping[str, Value]
    values: tuple[Value, ...]
    cotangents: Mapping[int, Value]
    gradients: Mapping[str, Value]
    large: bool = False


@dataclass(frozen=True, slots=True)
class _Traced:
    """Traced graph: one of a pattern's functions at a place, and its gradients by the inputs ``wanted``."""

    registered: RegisteredPattern
    function: Callable[..., Any]
    found: Found
    wide: int = 0
    wanted: tuple[str, ...] = ()
    cotangents: tuple[int, ...] = ()
    unit_cotangent: bool = False

    def key(self) -> tuple[Any, ...]:
        found = self.found
        constants = tuple([(n, a.shape, sha256(a.tobytes()).digest()) for n, a in found.constants.items()])
        attrs = tuple([(n, attr_key(v)) for n, v in found.attrs.items()])
        at = found.dtype, tuple(found.shapes.items()), constants, attrs
        operands = tuple(self.registered.pattern.inputs.items())
        asked = self.wide, self.wanted, self.cotangents, self.unit_cotangent
        return self.registered.full_name, self.function, operands, at, asked


class PatternGraphs:
    """Traces the functions of patterns. Each is traced once per dtype and shapes, for all sessions of a host with equal settings.

    Graphs are made under the host's lock, and nothing changes them afterwards.
    """

    def __init__(self, context: PlanContext) -> None:
        self._context = context

    def pattern_graph(
        self, registered: RegisteredPattern, dtype: str, attrs: Mapping[str, Any] = MappingProxyType({})
    ) -> PatternGraph | str:
        """The pattern, of shapes that it leaves open; or why it can't be built. ``attrs``: as of :class:`Found`."""
        return self._of(_Traced(registered, registered.pattern.pattern, Found(dtype, {}, {}, "", attrs)))

    def specialized_pattern(
        self,
        registered: RegisteredPattern,
        found: Found,
        wide: int,
        cotangents: tuple[int, ...] = (0,),
        unit_cotangent: bool = False,
    ) -> PatternGraph | str:
        """The same and all of its gradients, of the shapes that were found.

        Args:
          wide: how many dims, of :data:`WIDTHS`, were unknown when the gradients were built; the last one never.
          cotangents: positions of the values that have gradients; of none, no gradients are built.
          unit_cotangent: whether the gradient of each is 1 everywhere, as at a sum; it is no input then, and the graph has none.
        """
        wanted = tuple(_differentiable(registered, found)) if cotangents else ()
        function = registered.pattern.pattern
        return self._of(_Traced(registered, function, found, wide, wanted, cotangents, unit_cotangent))

    def replacement_graph(
        self,
        registered: RegisteredPattern,
        found: Found,
        wanted: tuple[str, ...],
        cotangents: tuple[int, ...] = (0,),
        unit_cotangent: bool = False,
    ) -> PatternGraph | str:
        """The replacement, and its gradients by the inputs that ``wanted`` names."""
        function = registered.pattern.replacement
        return self._of(_Traced(registered, function, found, 0, wanted, cotangents, unit_cotangent))

    def _of(self, asked: _Traced) -> PatternGraph | str:
        large = sum(a.nbytes for a in asked.found.constants.values()) > _LARGE
        key = self._context.settings, asked.key()
        traced = self._context.shared
        made: PatternGraph | str | None = traced.get(key)
        if made is None:
            with self._context.lock:
                made = traced.get(key)
                if made is None:
                    made = self._trace(asked)
                    if not isinstance(made, str):
                        if len(traced) >= _KEPT:
                            traced.clear()
                        elif large and len(held := [k for k, g in traced.items() if g.large]) >= _KEPT_LARGE:
                            del traced[held[0]]
                        traced[key] = made = replace(made, large=large)
        return made

    def _trace(self, asked: _Traced) -> PatternGraph | str:
        registered, found, cotangents = asked.registered, asked.found, asked.cotangents
        replaces = asked.function is registered.pattern.replacement
        fed: list[str] = []
        values: list[Any] = []
        gradients: dict[str, Any] = {}
        entering: list[Any] = []

        def build(tracing: Tracing) -> list[Any]:
            tensors: dict[str, Any] = {}
            given: dict[str, Any] = {}
            for name, operand in registered.pattern.inputs.items():
                dtype = dtype_of(operand, found)
                shape = found.shapes.get(name, operand.shape)
                if operand.drawn and replaces:
                    dtype, shape = as_dtype("uint64"), (STREAM_WORDS,)
                if name in found.constants:
                    array = found.constants[name]
                    given[name] = array if replaces else tracing.constant(array, dtype)
                    continue
                unknown = 0 if shape is None else max(min(asked.wide, len(shape) - 1), 0)
                given[name] = tensors[name] = tracing.input(dtype, shape and (None,) * unknown + shape[unknown:], shape)
                fed.append(name)
            values.extend(_values(registered, _called(registered, asked.function, {**given, **found.attrs}), tracing))
            if asked.wanted:
                shapes = tracing.shapes(values)
                if not asked.unit_cotangent:
                    entering.extend([tracing.like(values[i], shapes[i]) for i in cotangents])
                given_cotangents = entering or [_ones(tracing, values[i].dtype, shapes[i]) for i in cotangents]
                wanted = [tensors[n] for n in asked.wanted]
                made = tracing.gradients([values[i] for i in cotangents], wanted, given_cotangents)
                gradients.update({n: g for n, g in zip(asked.wanted, made, strict=True) if tracing.is_tensor(g)})
            return [*values, *gradients.values()]

        try:
            graph = self._context.trace(build)
            _check_pure(graph)
        except GraphdockError as error:
            if isinstance(error, PluginError) and error.__cause__ is not None:
                raise  # a function of somebody's raised: no reason, but a fault
            return f"it could not be built: {error.message}"
        self._context.simplify(graph)
        return PatternGraph(
            graph,
            dict(zip(fed, graph.inputs, strict=False)),
            tuple(graph.outputs[: len(values)]),
            dict(zip(cotangents if entering else (), graph.inputs[len(fed) :], strict=True)),
            dict(zip(gradients, graph.outputs[len(values) :], strict=True)),
        )


def _ones(tracing: Tracing, dtype: DType, shape: Dims) -> Any:
    """A constant of a shape that is known."""
    return tracing.constant(np.ones([d or 0 for d in shape or ()], dtype.np), dtype)


def _called(registered: RegisteredPattern, function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Return what a function of a pattern returns.

    Raises:
      GraphdockError: what inference says against it. PluginError: it raises an error of its own; names the pattern.
    """
    try:
        return function(**given)
    except GraphdockError:
        raise
    except Exception as error:
        which = "replacement" if function is registered.pattern.replacement else "pattern"
        raise PluginError(
            f"the {which} of {registered.full_name} (of {registered.package}) raises {type(error).__name__}: {error}",
            got=f"given {', '.join(given)}",
            hint="fusion = false under [session] does without it",
        ) from error


def _check_pure(graph: PlanGraph) -> None:
    """PluginError where a function does more than compute: what it does would be done at other times than in the program."""
    for node in graph.nodes:
        if not (node.opdef.verb.silent or "pure" in node.opdef.traits):
            raise PluginError(f"{node.op} does more than compute: {_IMPURE}")


def _values(registered: RegisteredPattern, made: Any, tracing: Tracing) -> list[Any]:
    """Return what a function of a pattern returned: one tensor, or several."""
    values = list(made) if isinstance(made, tuple | list) else [made]
    if not values or not all(map(tracing.is_tensor, values)):
        raise PluginError(f"{registered.full_name} returns no tensor", got=repr(made))
    return values


def dtype_of(operand: Operand, found: Found) -> DType:
    """Of an input, where a pattern was found."""
    name = operand.dtype or found.dtype
    return as_dtype(found.attrs.get(name, name))


def _differentiable(registered: RegisteredPattern, found: Found) -> list[str]:
    """The inputs by which there may be gradients."""
    operands = registered.pattern.inputs.items()
    return [n for n, o in operands if not (o.drawn or n in found.constants) and dtype_of(o, found).is_differentiable]
