"""Checks of a node's actual shapes, where the plan could only assume that they fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphdock.contracts.ir import PlanNode
from graphdock.errors import ShapeError
from graphdock.shape import Dims, compatible, merge, show

__all__ = ["Infer", "OutputCheck", "RuleCheck", "ShapeOf", "host_shape", "predicate_check"]

#: Shape of a buffer, from the buffer.
ShapeOf = Callable[[Any], tuple[int, ...]]
#: Shapes of a node's outputs, from those of its inputs and the elements of some of them (input -> host array), by its shape rule.
Infer = Callable[[PlanNode, Sequence[Dims], Mapping[int, Any]], Sequence[Dims]]


class RuleCheck:
    """Runs a node's shape rule over the actual shapes, as planning for those shapes would have. One per instance.

    Shapes that were accepted in the last step are accepted at once.

    Args:
      reads: per argument of a call, the input that it is, how to get its shape, and whether its elements count.
      infer: runs the rule; a placed graph's.
    """

    def __init__(self, node: PlanNode, reads: Sequence[tuple[int, ShapeOf, bool]], infer: Infer) -> None:
        self._node = node
        self._infer = infer
        self._reads = tuple(reads)
        self._last: Any = None

    def __call__(self, *buffers: Any) -> None:
        """Raise ShapeError unless the rule accepts the shapes and infers what the plan says of the outputs."""
        key = tuple(
            [
                (shape_of(b), b.tobytes()) if elements else shape_of(b)
                for (_, shape_of, elements), b in zip(self._reads, buffers, strict=True)
            ]
        )
        if key != self._last:
            self._check(buffers)
            self._last = key

    def refusal(self, buffers: Sequence[Any]) -> ShapeError | None:
        """The error that a call with these buffers raises; None for none."""
        try:
            self(*buffers)
        except ShapeError as error:
            return error.with_traceback(None)
        return None

    def _check(self, buffers: Sequence[Any]) -> None:
        node = self._node
        shapes: list[Any] = [v.shape for v in node.inputs]
        elements: dict[int, Any] = {}
        for (index, shape_of, counts), buffer in zip(self._reads, buffers, strict=True):
            shapes[index] = tuple(shape_of(buffer))
            if counts:
                elements[index] = buffer
        inferred = self._infer(node, shapes, elements)
        for value, dims in zip(node.outputs, inferred, strict=True):
            merge(value.shape, dims)


class OutputCheck:
    """Compares the actual shape of one output with what was promised for it."""

    def __init__(self, node: PlanNode, output: int, shape_of: ShapeOf) -> None:
        self._promised = node.outputs[output].shape
        self._shape_of = shape_of

    def __call__(self, buffer: Any) -> None:
        """Raise ShapeError unless they are compatible."""
        got = tuple(self._shape_of(buffer))
        if not compatible(self._promised, got):
            raise ShapeError(
                "the result has another shape than was promised by set_shape",
                expected=show(self._promised),
                got=show(got),
            )


def predicate_check(array: Any) -> None:
    """Raise ShapeError unless what steers a branch or a loop is a scalar."""
    if np.shape(array) != ():
        raise ShapeError(
            "what steers a cond or a while_loop must be a scalar", expected="[]", got=show(np.shape(array))
        )


def host_shape(array: Any) -> tuple[int, ...]:
    """Shape of a host array."""
    return np.shape(array)
