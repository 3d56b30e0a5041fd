"""The small graphs that conformance runs: one op over placeholders, constants and variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import as_dtype
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import constant
from graphdock.ops.core import placeholder
from graphdock.variables.variable import Variable

__all__ = ["Program", "build"]


@dataclass
class Program:
    """One op in a graph, and how to feed it.

    Attributes:
      outputs: the op's outputs, flattened.
      inputs: input name -> what it was given: a tensor, a list of them, a Variable, or None.
      feeds: placeholder -> (input name, index in a list or None, whether the array is fed as the op takes it).
      assigns: operations that set the variables from their placeholders.
      variables: those the op writes, in order of its inputs.
    """

    op: Operation
    outputs: list[Tensor]
    inputs: dict[str, Any] = field(default_factory=dict)
    feeds: dict[Tensor, tuple[str, int | None, str]] = field(default_factory=dict)
    assigns: list[Operation] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)

    def feed(self, arrays: Mapping[str, Any]) -> dict[Tensor, Any]:
        """The feed_dict for these arrays."""
        result = {}
        for tensor, (name, index, how) in self.feeds.items():
            array = arrays[name] if index is None else arrays[name][index]
            result[tensor] = _laid_out(array, how)
        return result


def build(
    graph: Graph,
    opdef: OpDef,
    arrays: Mapping[str, Any],
    attrs: Mapping[str, Any],
    how: str = "planned",
    make: Any = None,
    fed: Sequence[str] = (),
) -> Program:
    """Add the op to a graph.

    Args:
      how: ``planned``: whole shapes, host inputs constant. ``fresh``: dims unknown, host inputs fed. ``unranked``: not
        even ranks known. ``strided``: as planned, with every device input a strided view. ``computed``: as planned, with
        every numeric device input made by an op and every output read by one, so that buffers are the plan's own and may
        be taken over. ``constant``: every input stands in the graph.
      fed: host inputs that are fed all the same.
      make: called instead of ``apply_op`` with the inputs and attributes; returns the flattened outputs (a decomposition).

    Raises:
      GraphdockError: whatever the op says against it.
    """
    feeds: dict[Tensor, tuple[str, int | None, str]] = {}
    given: dict[str, Any] = {}
    assigns: list[Operation] = []
    written: list[Variable] = []
    with graph.as_default(), graph.name_scope(how):
        for arg in opdef.inputs:
            if arg.name not in arrays:
                continue
            value = arrays[arg.name]
            if value is None:
                given[arg.name] = None
            elif arg.dtype == "resource":
                variable = Variable(np.zeros(value.shape, value.dtype), name=arg.name)
                source = placeholder(value.dtype, value.shape)
                feeds[source] = (arg.name, None, "as is")
                assigns.append(apply_op("AssignVariableOp", resource=variable.handle, value=source))
                given[arg.name] = variable
                if arg.mutates:
                    written.append(variable)
            elif arg.arity == "many":
                given[arg.name] = [_input(feeds, arg, arg.name, i, v, how, fed) for i, v in enumerate(value)]
            else:
                given[arg.name] = _input(feeds, arg, arg.name, None, value, how, fed)
        passed: dict[str, Any] = {n: v.handle if isinstance(v, Variable) else v for n, v in given.items()}
        if make is not None:
            absent: dict[str, Any] = {a.name: None for a in opdef.inputs if a.arity == "optional"}
            outputs = list(make(**absent | passed, **attrs))
            op = outputs[0].op
        else:
            made = apply_op(opdef.name, **passed, **attrs)
            while isinstance(made, (list, tuple)):
                made = next(part for part in made if not isinstance(part, (list, tuple)) or part)
            op = made if isinstance(made, Operation) else made.op
            outputs = [_through(t) if how == "computed" else t for t in op.outputs]
    return Program(op, outputs, given, feeds, assigns, written)


def _input(
    feeds: dict[Any, Any], arg: Any, name: str, index: int | None, array: Any, how: str, fed: Sequence[str]
) -> Tensor:
    dtype = as_dtype(array.dtype)
    steers = arg.memory == "host" and name not in fed and how in ("planned", "strided", "computed")
    if steers or how == "constant":
        return constant(array, dtype)
    if how == "unranked":
        dims: Any = None
    elif how == "fresh":
        dims = [None] * array.ndim
    else:
        dims = array.shape
    if how not in ("strided", "computed") or (how == "strided" and array.ndim == 0) or arg.memory == "host":
        tensor = placeholder(dtype, dims)
        feeds[tensor] = (name, index, "as is")
        return tensor
    if how == "computed":
        tensor = placeholder(dtype, dims)
        feeds[tensor] = (name, index, "as is")
        return _through(tensor)
    if array.ndim == 1:
        tensor = placeholder(dtype, (2 * array.shape[0],))
        feeds[tensor] = (name, index, "gaps")
        ends: Sequence[Any] = [constant(np.array([v], np.int32)) for v in (0, 2 * array.shape[0], 2)]
        return _one(apply_op("StridedSlice", x=tensor, begin=ends[0], end=ends[1], strides=ends[2]))
    tensor = placeholder(dtype, array.shape[::-1])
    feeds[tensor] = (name, index, "turned")
    return _one(apply_op("Transpose", x=tensor, perm=constant(np.arange(array.ndim, dtype=np.int32)[::-1])))


def _through(tensor: Tensor) -> Tensor:
    """A copy made by an op, where AddN takes the dtype."""
    return _one(apply_op("AddN", inputs=[tensor])) if tensor.dtype.is_integer or tensor.dtype.is_floating else tensor


def _one(made: Any) -> Tensor:
    assert isinstance(made, Tensor)
    return made


def _laid_out(array: np.ndarray[Any, Any], how: str) -> np.ndarray[Any, Any]:
    if how == "turned":
        return np.ascontiguousarray(array.T)
    if how == "gaps":
        wide = np.full((2 * array.shape[0],), b"" if array.dtype.hasobject else 0, array.dtype)
        wide[::2] = array
        return wide
    return np.array(array, order="C", copy=True)
