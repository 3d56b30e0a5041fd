"""The functions of patterns as graphs: what is looked for, and what stands for it, each with the gradients that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import numpy as np
from graphdock.contracts import Found, Operand, PlanContext, PlanGraph, RegisteredPattern, Tracing, Value
from graphdock.contracts.attributes import attr_key
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
      arriving: position among the values -> its gradient, an input of the graph too; empty where there are no slopes.
      slopes: name of an input -> its gradient, of those that were asked for and are there.
      large: whether it holds constants of many bytes.
    """

    graph: PlanGraph
    inputs: Mapping[str, Value]
    values: tuple[Value, ...]
    arriving: Mapping[int, Value]
    slopes: Mapping[str, Value]
    large: bool = False


class PatternGraphs:
    """Traces the functions of patterns. Each is traced once per dtype and shapes, for all sessions of a host with equal settings.

    Graphs are made under the host's lock, and nothing changes them afterwards.
    """

    def __init__(self, context: PlanContext) -> None:
        self._context = context

    def sought(
        self, asked: RegisteredPattern, dtype: str, attrs: Mapping[str, Any] = MappingProxyType({})
    ) -> PatternGraph | str:
        """What is looked for, of shapes that the pattern leaves open; or why it can't be built. ``attrs``: as of :class:`Found`."""
        return self._of(asked, asked.pattern.pattern, Found(dtype, {}, {}, "", attrs), 0, (), ())

    def sought_at(
        self, asked: RegisteredPattern, found: Found, wide: int, arrives: tuple[int, ...] = (0,), ones: bool = False
    ) -> PatternGraph | str:
        """The same and all of its gradients, of the shapes that were found.

        Args:
          wide: how many dims, of :data:`WIDTHS`, were unknown when the gradients were built; the last one never.
          arrives: positions of the values that have gradients; of none, no gradients are built.
          ones: whether what arrives is 1 everywhere, as at a sum; it is no input then, and ``arriving`` is empty.
        """
        wanted = tuple(_smooth(asked, found)) if arrives else ()
        return self._of(asked, asked.pattern.pattern, found, wide, wanted, arrives, ones)

    def standing(
        self,
        asked: RegisteredPattern,
        found: Found,
        wanted: tuple[str, ...],
        arrives: tuple[int, ...] = (0,),
        ones: bool = False,
    ) -> PatternGraph | str:
        """What stands for it, and its gradients by the inputs that ``wanted`` names."""
        return self._of(asked, asked.pattern.replacement, found, 0, wanted, arrives, ones)

    def _of(
        self,
        asked: RegisteredPattern,
        function: Callable[..., Any],
        found: Found,
        wide: int,
        wanted: tuple[str, ...],
        arrives: tuple[int, ...],
        ones: bool = False,
    ) -> PatternGraph | str:
        constants = tuple([(n, a.shape, sha256(a.tobytes()).digest()) for n, a in found.constants.items()])
        large = sum(a.nbytes for a in found.constants.values()) > _LARGE
        operands = tuple(asked.pattern.inputs.items())
        attrs = tuple([(n, attr_key(v)) for n, v in found.attrs.items()])
        at = found.dtype, tuple(found.shapes.items()), constants, attrs, wide, wanted, arrives, ones
        key = self._context.settings, asked.full_name, function, operands, at
        made: PatternGraph | str | None = self._context.shared.get(key)
        if made is None:
            with self._context.lock:
                traced = self._context.shared
                made = traced.get(key)
                if made is None:
                    made = self._trace(asked, function, found, wide, wanted, arrives, ones)
                    if not isinstance(made, str):
                        if len(traced) >= _KEPT:
                            traced.clear()
                        elif large and len(held := [k for k, g in traced.items() if g.large]) >= _KEPT_LARGE:
                            del traced[held[0]]
                        traced[key] = made = replace(made, large=large)
        return made

    def _trace(
        self,
        asked: RegisteredPattern,
        function: Callable[..., Any],
        found: Found,
        wide: int,
        wanted: tuple[str, ...],
        arrives: tuple[int, ...],
        ones: bool = False,
    ) -> PatternGraph | str:
        stands = function is asked.pattern.replacement
        fed: list[str] = []
        values: list[Any] = []
        slopes: dict[str, Any] = {}
        coming: list[Any] = []

        def build(tracing: Tracing) -> list[Any]:
            tensors: dict[str, Any] = {}
            given: dict[str, Any] = {}
            for name, operand in asked.pattern.inputs.items():
                dtype = dtype_of(operand, found)
                shape = found.shapes.get(name, operand.shape)
                if operand.drawn and stands:
                    dtype, shape = as_dtype("uint64"), (STREAM_WORDS,)
                if name in found.constants:
                    array = found.constants[name]
                    given[name] = array if stands else tracing.constant(array, dtype)
                    continue
                unknown = 0 if shape is None else max(min(wide, len(shape) - 1), 0)
                given[name] = tensors[name] = tracing.input(dtype, shape and (None,) * unknown + shape[unknown:], shape)
                fed.append(name)
            values.extend(_values(asked, _called(asked, function, {**given, **found.attrs}), tracing))
            if wanted:
                shapes = tracing.shapes(values)
                if not ones:
                    coming.extend([tracing.like(values[i], shapes[i]) for i in arrives])
                arriving = coming or [_ones(tracing, values[i].dtype, shapes[i]) for i in arrives]
                made = tracing.gradients([values[i] for i in arrives], [tensors[n] for n in wanted], arriving)
                slopes.update({n: s for n, s in zip(wanted, made, strict=True) if tracing.is_tensor(s)})
            return [*values, *slopes.values()]

        try:
            graph = self._context.trace(build)
            _check_pure(graph)
        except GraphdockError as error:
            return f"it could not be built: {error.message}"
        self._context.simplify(graph)
        return PatternGraph(
            graph,
            dict(zip(fed, graph.inputs, strict=False)),
            tuple(graph.outputs[: len(values)]),
            dict(zip(arrives if coming else (), graph.inputs[len(fed) :], strict=True)),
            dict(zip(slopes, graph.outputs[len(values) :], strict=True)),
        )


def _ones(tracing: Tracing, dtype: DType, shape: Dims) -> Any:
    """A constant of a shape that is known."""
    return tracing.constant(np.ones([d or 0 for d in shape or ()], dtype.np), dtype)


def _called(asked: RegisteredPattern, function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """What a function of a pattern returns. Where it raises an error of its own, a note names the pattern."""
    try:
        return function(**given)
    except Exception as error:
        error.add_note(
            f"raised by a function of the pattern {asked.full_name} (of {asked.package}), given {', '.join(given)}"
        )
        raise


def _check_pure(graph: PlanGraph) -> None:
    """PluginError where a function does more than compute: what it does would be done at other times than in the program."""
    for node in graph.nodes:
        if not (node.opdef.verb.silent or "pure" in node.opdef.traits):
            raise PluginError(f"{node.op} does more than compute: {_IMPURE}")


def _values(asked: RegisteredPattern, made: Any, tracing: Tracing) -> list[Any]:
    """What a function of a pattern returned: one tensor, or several."""
    values = list(made) if isinstance(made, tuple | list) else [made]
    if not values or not all(map(tracing.is_tensor, values)):
        raise PluginError(f"{asked.full_name} returns no tensor", got=repr(made))
    return values


def dtype_of(operand: Operand, found: Found) -> DType:
    """Of an input, where a pattern was found."""
    name = operand.dtype or found.dtype
    return as_dtype(found.attrs.get(name, name))


def _smooth(asked: RegisteredPattern, found: Found) -> list[str]:
    """The inputs by which there may be gradients."""
    operands = asked.pattern.inputs.items()
    return [n for n, o in operands if not (o.drawn or n in found.constants) and dtype_of(o, found).is_differentiable]
