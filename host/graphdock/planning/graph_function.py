"""Function attributes of kernels, as Python functions of arrays: planned when they are called, each call a step of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdock.contracts.runtime.resources import ResourceClosed
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.graph.body import BodyGraph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.locks import new_lock
from graphdock.planning.plan import Plan
from graphdock.shape import Dims

if TYPE_CHECKING:
    from graphdock.planning.planner import Planner

__all__ = ["GraphFunction"]

#: Shapes of its arguments after which a plan for any shape is made.
SHAPES = 8


class GraphFunction:
    """A body as a function of arrays: those of its parameters, then those of what it captures, but for handles.

    A handle that it captures names the resource that it names outside, and is no input of the op; a call locks what it touches for
    itself.

    Args:
      body: parameters, captures and outputs.

    Threads: may be called from any, by several at once; never while a planner plans on the same thread.

    Raises:
      InvalidArgumentError, DTypeError, ShapeError: arguments that do not fit. And what a step raises.
    """

    def __init__(self, body: BodyGraph, planner: Planner) -> None:
        self._body = body
        self._planner = planner
        captures = list(body.captures.items())
        self._handles: Mapping[Tensor, Operation] = {
            inner: inner.op._original or outer.op for outer, inner in captures if inner.dtype.kind == "R"
        }
        self.arguments: Sequence[Tensor] = (
            *body.parameters,
            *(inner for _, inner in captures if inner not in self._handles),
        )
        self._lock = new_lock()
        self._plans: dict[tuple[Dims, ...] | None, Plan] = {}

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        given = self._checked(arrays)
        shapes = tuple([a.shape for a in given])
        while True:
            plan = self._plans.get(shapes) or self._plans.get(None) or self._plan(shapes)
            step = plan.lease()
            try:
                if step.used:
                    step.reset()
                results = plan.run(step, given)
                return tuple([np.asarray(r, t.dtype.np) for r, t in zip(results, self._body.outputs, strict=True)])
            except ResourceClosed:
                self._plans.clear()
            finally:
                plan.give_back(step)

    def _checked(self, arrays: Sequence[Any]) -> list[Any]:
        if len(arrays) != len(self.arguments):
            raise InvalidArgumentError(
                f"the function {self._body.name} takes {len(self.arguments)} arrays", got=str(len(arrays))
            )
        given = []
        for tensor, array in zip(self.arguments, arrays, strict=True):
            array = np.asarray(array)
            if array.dtype != tensor.dtype.np:
                raise DTypeError(
                    f"the function {self._body.name} got the wrong dtype for {tensor.name}",
                    expected=tensor.dtype.name,
                    got=str(array.dtype),
                )
            given.append(np.ascontiguousarray(array).reshape(array.shape))
        return given

    def _plan(self, shapes: tuple[Dims, ...]) -> Plan:
        with self._lock:
            key: tuple[Dims, ...] | None = shapes if len(self._plans) < SHAPES else None
            plan = self._plans.get(key)
            if plan is None:
                dims = shapes if key is not None else tuple([t._dims for t in self.arguments])
                feeds = list(zip(self.arguments, dims, strict=True))
                plan = self._planner.plan(self._body.outputs, self._body.targets, feeds, handles=self._handles)
                self._plans[key] = plan
            return plan
