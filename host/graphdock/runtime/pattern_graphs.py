"""The functions of patterns as graphs: what is looked for, and what stands for it, each with the gradients that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdock.contracts.ir import PlanGraph, Value
from graphdock.contracts.pattern import Found, Operand
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import GraphdockError, PluginError
from graphdock.gradients.backprop import gradients
from graphdock.graph.graph import Graph
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor
from graphdock.ops.core import placeholder
from graphdock.plugin.host import Host
from graphdock.plugin.registry import RegisteredPattern
from graphdock.runtime.translate import translate
from graphdock.shape import Dims

__all__ = ["WIDTHS", "PatternGraph", "PatternGraphs"]

#: How many leading dims people leave open: none, a batch, or all but the last. Gradients are built in other ways accordingly.
WIDTHS = (0, 1, 8)
#: Graphs that a host keeps.
_KEPT = 1024


@dataclass(frozen=True, slots=True)
class PatternGraph:
    """A function of a pattern, as a plan graph. Whoever puts it into a plan copies it.

    Attributes:
      inputs: name -> input of the graph. ``value``: what the function returns.
      arriving: the gradient of its value, an input of the graph too; None where there are no slopes.
      slopes: name of an input -> its gradient, of those that were asked for and are there.
    """

    graph: PlanGraph
    inputs: Mapping[str, Value]
    value: Value
    arriving: Value | None
    slopes: Mapping[str, Value]


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

    def sought(self, asked: RegisteredPattern, dtype: str) -> PatternGraph | str:
        """What is looked for, of shapes that the pattern leaves open; or why it can't be built."""
        return self._of(asked, asked.pattern.pattern, Found(dtype, {}, {}, ""), 0, ())

    def sought_at(self, asked: RegisteredPattern, found: Found, wide: int) -> PatternGraph | str:
        """The same and all of its gradients, of the shapes that were found.

        Args:
          wide: how many dims, of :data:`WIDTHS`, were unknown when the gradients were built; the last one never.
        """
        return self._of(asked, asked.pattern.pattern, found, wide, tuple(_smooth(asked, found)))

    def standing(self, asked: RegisteredPattern, found: Found, wanted: tuple[str, ...]) -> PatternGraph | str:
        """What stands for it, and its gradients by the inputs that ``wanted`` names."""
        return self._of(asked, asked.pattern.replacement, found, 0, wanted)

    def _of(
        self, asked: RegisteredPattern, function: Callable[..., Any], found: Found, wide: int, wanted: tuple[str, ...]
    ) -> PatternGraph | str:
        constants = tuple([(n, a.tobytes()) for n, a in found.constants.items()])
        operands = tuple(asked.pattern.inputs.items())
        at = found.dtype, tuple(found.shapes.items()), constants, wide, wanted
        key = self._settings, asked.full_name, function, operands, at
        made: PatternGraph | str | None = self._host.pattern_graphs.get(key)
        if made is None:
            with self._host.pattern_graphs_lock:
                traced = self._host.pattern_graphs
                made = traced.get(key)
                if made is None:
                    made = self._trace(asked, function, found, wide, wanted)
                    if not isinstance(made, str):
                        if len(traced) >= _KEPT:
                            traced.clear()
                        traced[key] = made
        return made

    def _trace(
        self, asked: RegisteredPattern, function: Callable[..., Any], found: Found, wide: int, wanted: tuple[str, ...]
    ) -> PatternGraph | str:
        stands = function is asked.pattern.replacement
        try:
            with Graph(self._host).as_default():
                fed: dict[str, tuple[Tensor, Dims]] = {}
                given: dict[str, Any] = {}
                for name, operand in asked.pattern.inputs.items():
                    dtype = dtype_of(operand, found)
                    shape = found.shapes.get(name, operand.shape)
                    if name in found.constants:
                        array = found.constants[name]
                        given[name] = array if stands else convert_to_tensor(array, dtype)
                        continue
                    unknown = 0 if shape is None else max(min(wide, len(shape) - 1), 0)
                    tensor = placeholder(dtype, shape and (None,) * unknown + shape[unknown:])
                    fed[name] = tensor, shape
                    given[name] = tensor
                value = function(**given)
                if not isinstance(value, Tensor):
                    raise PluginError(f"{asked.full_name} returns no tensor", got=repr(value))
                slopes: dict[str, Any] = {}
                feeds = list(fed.values())
                if wanted:
                    dims = self._dims(value, feeds)
                    arriving = placeholder(value.dtype, value._dims)
                    feeds.append((arriving, dims))
                    slopes = dict(zip(wanted, gradients(value, [fed[n][0] for n in wanted], arriving), strict=True))
                slopes = {n: s for n, s in slopes.items() if isinstance(s, Tensor)}
                graph = translate([value, *slopes.values()], [], feeds)
        except GraphdockError as error:
            return f"it could not be built: {error.message}"
        self._simplify(graph)
        return PatternGraph(
            graph,
            dict(zip(fed, graph.inputs, strict=False)),
            graph.outputs[0],
            graph.inputs[-1] if wanted else None,
            dict(zip(slopes, graph.outputs[1:], strict=True)),
        )

    @staticmethod
    def _dims(value: Tensor, feeds: list[tuple[Tensor, Dims]]) -> Dims:
        return translate([value], [], feeds).outputs[0].shape


def dtype_of(operand: Operand, found: Found) -> DType:
    """Of an input, where a pattern was found."""
    return as_dtype(operand.dtype or found.dtype)


def _smooth(asked: RegisteredPattern, found: Found) -> list[str]:
    """The inputs by which there may be gradients."""
    operands = asked.pattern.inputs.items()
    return [n for n, o in operands if n not in found.constants and dtype_of(o, found).is_differentiable]


def constant_of(value: Value) -> np.ndarray[Any, Any]:
    """The array of a constant of a plan."""
    assert value.node is not None
    array: np.ndarray[Any, Any] = value.node.attrs["value"]
    return array
