"""Histories within loops that are one region: what they hold, which their readers say, and rows of tensors that are histories."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from graphdock.contracts import LoopRows, PlanGraph, PlanNode, Value
from graphdock.contracts.bodies import captures, elements
from graphdock.dtypes import DType
from graphdock.shape import concrete

from graphdock_fusion.regions.forms import form_of
from graphdock_fusion.regions.typed import NotInRegion, no_buffer

__all__ = ["Held", "held_by", "held_within", "joined_of", "rows_of"]


@dataclass(frozen=True, slots=True)
class Held:
    """The tensors in a history, and ``depth``, how many times it is a sequence. Of dtype variant it counts and holds nothing."""

    dtype: DType
    shape: tuple[int, ...]
    depth: int


def held_by(history: Value, element: Value, body: PlanGraph) -> Held:
    """Contents of a history, of which a body is given an element.

    Raises:
      NotInRegion: its elements are of a shape that is not known, or nothing that reads it says of which.
    """
    return _best(history, list(_deeper(element, body)))


def held_within(history: Value, loop: PlanNode) -> Held:
    """Contents of a history that a loop captures.

    Raises:
      NotInRegion: its elements are of a shape that is not known, or nothing that reads it says of which.
    """
    return _best(history, list(_captured(history, loop)))


def _best(history: Value, said: list[Held]) -> Held:
    if not said:
        raise NotInRegion(f"what reads {history.name}, a history, does not say what it holds")
    return next((held for held in said if held.dtype.kind != "V"), said[0])


def _is_read(value: Value, level: PlanGraph) -> bool:
    """Return whether a level reads a value, or returns it."""
    return value in level.outputs or any(value in n.inputs for n in level.nodes)


def _said(history: Value, level: PlanGraph) -> Iterator[Held]:
    for node in level.nodes:
        if history not in node.inputs:
            continue
        if _stacks(node):
            (tensor,) = node.outputs
            yield Held(tensor.dtype, _known(tensor)[1:], 1)
        elif node.verb == "alias":
            yield from _said(node.outputs[0], level)
        elif node.verb == "loop":
            for outer, element in elements(node):
                if outer is history:
                    yield from _deeper(element, node.bodies[1])
            yield from _captured(history, node)


def _captured(history: Value, loop: PlanNode) -> Iterator[Held]:
    for _, outer, inside in captures(loop):
        if outer is history:
            for body, inner in zip(loop.bodies, inside, strict=True):
                yield from _said(inner, body)


def _deeper(element: Value, body: PlanGraph) -> Iterator[Held]:
    """Contents of a history by an element of it that a body is given."""
    if element.dtype.kind != "V":
        yield Held(element.dtype, _known(element), 1)
    elif not _is_read(element, body):
        yield Held(element.dtype, (0,), 1)
    else:
        for held in _said(element, body):
            yield Held(held.dtype, held.shape, held.depth + 1)


def _known(value: Value) -> tuple[int, ...]:
    shape = concrete(value.shape)
    if shape is None or value.dtype.name in ("string", "resource") or 0 in shape:
        raise NotInRegion(f"{value.name} {no_buffer(value.dtype, shape)}")
    return tuple(shape)


def rows_of(node: PlanNode) -> LoopRows | None:
    """The step of a node that makes a history of the rows of a tensor, or the reverse; None for another one.

    Raises:
      NotInRegion: how many rows there are, or their shape, is not known.
    """
    unstacks = "unstacks" in node.opdef.traits
    if not unstacks and not _stacks(node):
        return None
    tensor = node.inputs[0] if unstacks else node.outputs[0]
    shape = concrete(tensor.shape)
    if shape is None or not shape or math.prod(shape) == 0 or tensor.dtype.name in ("string", "variant", "resource"):
        raise NotInRegion(
            f"{node.origin} ({node.op}) in it has {tensor.dtype} rows of a number or shape that is not known"
        )
    if unstacks:
        count = node.constant(1)
        if count is None or int(count) != shape[0]:
            raise NotInRegion(f"{node.origin} ({node.op}) in it takes as many rows as is computed")
    return LoopRows(shape[0], bool(node.attrs["reverse"]))


def _stacks(node: PlanNode) -> bool:
    """Return whether a node puts the elements of a history together as the rows of a tensor."""
    return node.opdef.rows is not None and "unstacks" not in node.opdef.traits


def joined_of(value: Value) -> tuple[Value, tuple[int, ...], list[PlanNode]] | None:
    """The history whose elements, end to end, are a tensor of a number of rows that is not known: with the shape of a row, and the
    nodes that make the tensor. None for any other value.

    The way back of a loop keeps such tensors: factors of a product, over all iterations of a loop within.
    """
    shape, chain = value.shape, list[PlanNode]()
    if value.dtype.kind == "V" or not shape or shape[0] is not None or None in shape[1:]:
        return None
    rows = tuple([d or 0 for d in shape[1:]])
    while (node := value.node) is not None:
        chain.append(node)
        if _stacks(node):
            dims = node.constant(1)
            free = dims is not None and int(dims[0]) == -1 and not node.attrs["reverse"]
            return (node.inputs[0], rows, chain) if free else None
        form = form_of(node.opdef)
        if node.op == "Pad":
            by = node.constant(1)
            if by is None or by.any():
                return None
        elif form is None or not form.reshapes or node.inputs[0].shape is None:
            return None
        value = node.inputs[0]
    return None
