"""Function attributes of kernels, as Python functions of arrays: planned when they are called, each call a step of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdock.contracts.runtime.resources import ResourceClosed
from graphdock.contracts.step import StepServices
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.graph.body import BodyGraph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.locks import new_lock
from graphdock.planning.plan import Plan
from graphdock.shape import Dims, compatible, show

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
        self._dtypes = [t.dtype.np for t in self.arguments]
        self._outputs = tuple(body.outputs)
        self._lock = new_lock()
        self._plans: dict[tuple[Dims, ...] | None, Plan] = {}

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        return self._run(self._planner.setting.services, arrays)

    def anew(self) -> Callable[..., tuple[Any, ...]]:
        """The same function, whose ops with seeds draw from their beginning, whoever else calls it."""
        setting = self._planner.setting
        services = replace(setting.services, ordinal=setting.ordinals.anew())
        return lambda *arrays: self._run(services, arrays)

    def _run(self, services: StepServices, arrays: Sequence[Any]) -> tuple[Any, ...]:
        if len(arrays) != len(self._dtypes):
            raise InvalidArgumentError(
                f"the function {self._body.name} takes {len(self.arguments)} arrays", got=str(len(arrays))
            )
        given: list[Any] = []
        for array, dtype in zip(arrays, self._dtypes, strict=True):
            if type(array) is not np.ndarray or array.dtype is not dtype or not array.flags.c_contiguous:
                array = self._fitting(array, len(given))
            given.append(array)
        shapes = tuple([a.shape for a in given])
        while True:
            plan = self._plans.get(shapes) or self._plan(shapes)
            step = plan.lease()
            step.services = services
            try:
                if step.used:
                    step.reset()
                results = plan.run(step, given)
                return tuple(
                    [r if type(r) is np.ndarray else _array(r, t) for r, t in zip(results, self._outputs, strict=True)]
                )
            except ResourceClosed:
                self._plans.clear()
            finally:
                plan.give_back(step)

    def _fitting(self, array: Any, which: int) -> Any:
        """An argument as a contiguous array of its dtype."""
        tensor = self.arguments[which]
        array = np.asarray(array)
        if array.dtype != tensor.dtype.np:
            raise DTypeError(
                f"the function {self._body.name} got the wrong dtype for {tensor.name}",
                expected=tensor.dtype.name,
                got=str(array.dtype),
            )
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)

    def _plan(self, shapes: tuple[Dims, ...]) -> Plan:
        """The plan for arguments of these shapes, made now if there is none."""
        for tensor, shape in zip(self.arguments, shapes, strict=True):
            if not compatible(tensor._dims, shape):
                raise ShapeError(
                    f"the function {self._body.name} got the wrong shape for {tensor.name}",
                    expected=show(tensor._dims),
                    got=show(shape),
                    hint="the function's set_shape says more than is so",
                )
        found = self._plans.get(None)
        if found is not None:
            return found
        with self._lock:
            key: tuple[Dims, ...] | None = shapes if len(self._plans) < SHAPES else None
            plan = self._plans.get(key)
            if plan is None:
                dims = shapes if key is not None else tuple([t._dims for t in self.arguments])
                feeds = list(zip(self.arguments, dims, strict=True))
                plan = self._planner.plan(self._body.outputs, self._body.targets, feeds, handles=self._handles)
                self._plans[key] = plan
            return plan


def _array(result: Any, tensor: Tensor) -> Any:
    """An array of a result of rank 0."""
    return np.asarray(result, tensor.dtype.np)
