"""Vectorized maps: a map before a batch computes whole batches at once where each element's result is the same.

It is where the function only computes element by element: broadcasting, casts, reshapes of known shapes, one-hot vectors. Nothing
in it may fail for single elements, draw, or touch a resource.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from math import prod
from typing import Any

from graphdock import ops as _ops

from graphdock_data.dataset.elements import dims_of
from graphdock_data.dataset.stages.functional import Map
from graphdock_data.dataset.stages.order import Repeat, Shard, Shuffle, Skip, Take
from graphdock_data.dataset.stages.stage import Dims, Function, Stage

__all__ = ["map_after_batch", "vectorized"]

#: Stages that give the elements behind them, whatever these are: a map may as well come after them.
_CHOOSING = (Repeat, Shard, Shuffle, Skip, Take)
#: Ops that compute element by element, beside those of the trait ``elementwise``.
_ALIASES = frozenset({"Identity", "StopGradient"})
#: Elementwise ops that do not broadcast, or fail for some integers.
_APART = frozenset({"Pow", "Select"})


def map_after_batch(stage: Stage) -> tuple[Stage, Function] | None:
    """The stage without its map, and the map's function of whole batches; None where the map stays before the batch."""
    passed: list[Stage] = []
    while isinstance(stage, _CHOOSING):
        passed.append(stage)
        stage = stage.source
    if type(stage) is not Map:
        return None
    function = vectorized(stage.function, stage.source.shapes)
    if function is None:
        return None
    made = stage.source
    for each in reversed(passed):
        made = dataclasses.replace(each, source=made, types=made.types, shapes=made.shapes)  # type: ignore[call-arg]
    return made, function


def vectorized(function: Function, shapes: Sequence[Dims]) -> Function | None:
    """The function of elements as one of batches of them; None where it may compute something else.

    Args:
      shapes: of an element's components.
    """
    body = function.body
    if (
        function.handles
        or function.inner is not None
        or body.targets
        or any(dims is None or None in dims for dims in shapes)
    ):
        return None
    made = _ops.BodyGraph(body.name, body.outer)
    became: dict[Any, Any] = {}
    with made.as_default():
        for tensor, dims in zip(body.parameters, shapes, strict=True):
            became[tensor] = made.add_parameter(tensor.op.name, tensor.dtype, (None, *(dims or ())))
        for outer, inner in body.captures.items():
            became[inner] = made.capture(outer)
        batched = set(body.parameters)
        for op in body.get_operations():
            if op.verb == "feed":
                continue
            copy = _copied(op, made, became, batched)
            if copy is None:
                return None
            became.update(zip(op.outputs, copy, strict=True))
    if not batched.issuperset(body.outputs) or not _needed(body):
        return None
    made.outputs = [became[t] for t in body.outputs]
    return Function(made, function.captures)


def _needed(body: Any) -> bool:
    """Return whether the function reads every component: none is to be put in batches for nothing."""
    read = {t for op in body.get_operations() for t in op.inputs}
    return read.union(body.outputs).issuperset(body.parameters)


def _copied(op: Any, graph: Any, became: dict[Any, Any], batched: set[Any]) -> Sequence[Any] | None:
    """The outputs of an operation over whole batches; None where there is no such operation."""
    if op.bodies or op.control_inputs or op._input_lengths is not None:
        return None
    inputs = [became[t] for t in op.inputs]
    along = [t for t in op.inputs if t in batched]
    if along:
        replaced = _inputs(op, along, inputs)
        if replaced is None:
            return None
        inputs = replaced
        batched.update(op.outputs)
    elif op.op_def.effects or "pure" not in op.op_def.traits and op.verb != "constant":
        return None
    made: Sequence[Any] = graph.add_op(op.op_def, inputs, op.node_attrs, op.name.rpartition("/")[2]).outputs
    return made


def _inputs(op: Any, along: Sequence[Any], inputs: list[Any]) -> list[Any] | None:
    """The inputs by which the operation computes whole batches, of which ``along`` have the batch's axis; None: it can't."""
    first, out = op.inputs[0], dims_of(op.outputs[0].shape)
    dims = [dims_of(t.shape) for t in op.inputs]
    if out is None or None in out or any(d is None or None in d for d in dims):
        return None
    if op.type == "Reshape" and along == [first] and prod(out):
        return [inputs[0], _ops.constant([-1, *out], inputs[1].dtype)]
    if op.type == "OneHot" and along == [first] and op.node_attrs["axis"] == -1:
        return inputs
    safe = op.type not in _APART or op.type == "Pow" and op.outputs[0].dtype.is_floating
    if op.type in _ALIASES or safe and "elementwise" in op.op_def.traits:
        rank = len(out)
        alike = all(len(d) == rank if t in along else len(d) <= rank for t, d in zip(op.inputs, dims, strict=True))
        return inputs if alike else None
    return None
