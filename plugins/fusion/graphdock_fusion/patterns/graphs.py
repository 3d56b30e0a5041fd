"""The functions of patterns as graphs: what is looked for, and what stands for it, each with the gradients that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import numpy as np
from graphdock.contracts.ir import PlanGraph, Value
from graphdock.contracts.opdef import OpDef
from graphdock.contracts.pattern import Found, Operand
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import GraphdockError, PluginError
from graphdock.gradients.backprop import gradients
from graphdock.graph.graph import Graph
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor
from graphdock.ops.core import placeholder
from graphdock.passes.simplify import attr_key
from graphdock.planning.translate import translate
from graphdock.plugin.host import Host
from graphdock.plugin.registry import RegisteredPattern
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

    Any thread may ask. Graphs are made under the host's lock, and nothing changes them afterwards.

    Args:
      simplify: runs the session's passes over a graph.
      settings: all of the session's settings that ``simplify`` depends on.
    """

    def __init__(self, host: Host, simplify: Callable[[PlanGraph], object], settings: Hashable) -> None:
        self._host = host
        self._simplify = simplify
        self._settings = settings

    def op(self, name: str) -> OpDef:
        """The op of a type."""
        return self._host.ops.get(name)

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
        key = self._settings, asked.full_name, function, operands, at
        made: PatternGraph | str | None = self._host.pattern_graphs.get(key)
        if made is None:
            with self._host.pattern_graphs_lock:
                traced = self._host.pattern_graphs
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
        try:
            with Graph(self._host).as_default():
                fed: dict[str, tuple[Tensor, Dims]] = {}
                given: dict[str, Any] = {}
                for name, operand in asked.pattern.inputs.items():
                    dtype = dtype_of(operand, found)
                    shape = found.shapes.get(name, operand.shape)
                    if operand.drawn and stands:
                        dtype, shape = as_dtype("uint64"), (STREAM_WORDS,)
                    if name in found.constants:
                        array = found.constants[name]
                        given[name] = array if stands else convert_to_tensor(array, dtype)
                        continue
                    unknown = 0 if shape is None else max(min(wide, len(shape) - 1), 0)
                    tensor = placeholder(dtype, shape and (None,) * unknown + shape[unknown:])
                    fed[name] = tensor, shape
                    given[name] = tensor
                values = _values(asked, _called(asked, function, {**given, **found.attrs}))
                slopes: dict[str, Any] = {}
                feeds = list(fed.values())
                coming: list[Tensor] = []
                if wanted:
                    shapes = self._dims(values, feeds)
                    sources = [fed[n][0] for n in wanted]
                    if not ones:
                        coming = [placeholder(values[i].dtype, values[i]._dims) for i in arrives]
                        feeds += [(tensor, shapes[i]) for tensor, i in zip(coming, arrives, strict=True)]
                    given_slopes = coming or [_ones(values[i].dtype, shapes[i]) for i in arrives]
                    found_slopes = gradients([values[i] for i in arrives], sources, given_slopes)
                    slopes = dict(zip(wanted, found_slopes, strict=True))
                slopes = {n: s for n, s in slopes.items() if isinstance(s, Tensor)}
                graph = translate([*values, *slopes.values()], [], feeds)
                _check_pure(graph)
        except GraphdockError as error:
            return f"it could not be built: {error.message}"
        self._simplify(graph)
        return PatternGraph(
            graph,
            dict(zip(fed, graph.inputs, strict=False)),
            tuple(graph.outputs[: len(values)]),
            dict(zip(arrives if coming else (), graph.inputs[len(fed) :], strict=True)),
            dict(zip(slopes, graph.outputs[len(values) :], strict=True)),
        )

    @staticmethod
    def _dims(values: Sequence[Tensor], feeds: list[tuple[Tensor, Dims]]) -> list[Dims]:
        return [v.shape for v in translate(values, [], feeds).outputs]


def _ones(dtype: DType, shape: Dims) -> Tensor:
    """A constant of a shape that is known."""
    return convert_to_tensor(np.ones([d or 0 for d in shape or ()], dtype.np), dtype)


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


def _values(asked: RegisteredPattern, made: Any) -> list[Tensor]:
    """What a function of a pattern returned: one tensor, or several."""
    values = list(made) if isinstance(made, tuple | list) else [made]
    if not values or not all(isinstance(v, Tensor) for v in values):
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


def constant_of(value: Value) -> np.ndarray[Any, Any]:
    """The array of a constant of a plan."""
    assert value.node is not None
    array: np.ndarray[Any, Any] = value.node.attrs["value"]
    return array
