"""Functions of elements, traced once into graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError, GraphdockError, InvalidArgumentError

from graphdock_data.dataset.elements import dims_of, flatten, pack, refuse_windows, spread, windows_at
from graphdock_data.dataset.stages.stage import Function, Pipeline, Stage

if TYPE_CHECKING:
    from graphdock_data.dataset.dataset import Dataset

__all__ = ["Traced", "components_of", "trace", "trace_dataset", "trace_key"]


class Traced:
    """A function, and what it returns.

    Attributes:
      function: for stages. structure: of its result. types, shapes: of its components.
      result: as the function returned it.
    """

    def __init__(self, function: Function, structure: Any, tensors: list[Any], result: Any) -> None:
        self.function, self.structure, self.result = function, structure, result
        self.types = tuple([t.dtype for t in tensors])
        self.shapes = tuple([dims_of(t.shape) for t in tensors])


def components_of(value: Any, what: str) -> tuple[Any, list[Any]]:
    """The structure of what a user gave, and its components as tensors of the default graph.

    Raises:
      TypeError: a component can't become a tensor.
    """
    for part in flatten(value):
        if part is None or isinstance(part, _ops.Operation):
            raise ArgumentTypeError(f"Unsupported return value from function passed to {what}: {value!r}.")
    return spread(value)


def _called(what: str, function: Callable[..., Any], dataset: Dataset, more: tuple[Any, ...] = ()) -> tuple[Any, Any]:
    """The body of a function of a dataset's elements, and what the function returned."""
    if not callable(function):
        raise ArgumentTypeError(f"{what}: the function is of the wrong type", got=repr(function))
    stage = dataset._stage
    body = _ops.BodyGraph(what.rpartition(".")[2].strip("()"), _ops.get_default_graph())
    with body.as_default():
        windows = dict(windows_at(dataset._structure))
        placed = [
            None if i in windows else body.add_parameter(f"arg{i}", kind, dims)
            for i, (kind, dims) in enumerate(zip(stage.types, stage.shapes, strict=True))
        ]
        args = pack(dataset._structure, placed, lambda leaf, *components: leaf.tensor(*components))
        result = function(*more, *args) if type(args) is tuple else function(*more, args)
    return body, tuple(result) if isinstance(result, list) else result


def trace(what: str, function: Callable[..., Any], dataset: Dataset) -> Traced:
    """A function of a dataset's elements that returns an element.

    Args:
      what: for messages: ``"Dataset.map()"``.
    """
    refuse_windows(dataset._structure, what)
    body, result = _called(what, function, dataset)
    with body.as_default():
        try:
            structure, tensors = components_of(result, what)
        except GraphdockError as error:
            error.message = f"{what}: {error.message}"
            error.args = (error.message,)
            raise
        body.outputs = [body.capture(t) for t in tensors]
    return Traced(_function(body), structure, body.outputs, result)


def trace_key(what: str, function: Callable[..., Any], dataset: Dataset) -> Function:
    """A function of a dataset's elements that returns a scalar int64.

    Raises:
      ValueError: it returns something else.
    """
    traced = trace(what, function, dataset)
    if traced.types != (_tf.int64,) or traced.shapes[0] not in ((), None):
        raise InvalidArgumentError(
            f"{what}: the function must return a single tf.int64 tensor.", got=str(traced.result)
        )
    return traced.function


def trace_dataset(what: str, function: Callable[..., Any], dataset: Dataset) -> Traced:
    """A function of a dataset's elements that returns a dataset.

    Raises:
      TypeError: it returns something else.
    """
    body, result = _called(what, function, dataset)
    if not isinstance(getattr(result, "_stage", None), Stage):
        raise ArgumentTypeError(f"{what}: the function must return a `Dataset` object", got=repr(result))
    return returned(body, result, windows_at(dataset._structure))


def returned(body: Any, result: Dataset, windows: tuple[tuple[int, Stage], ...] = ()) -> Traced:
    """The function of a body that returned a dataset."""
    inner = Pipeline.of(result._stage)
    with body.as_default():
        body.outputs = [body.capture(t) for t in inner.tensors]
    for function in inner.functions:
        for outer in function.body.captures:
            if outer.dtype.name == "resource":
                body.capture(outer)
    made = Traced(_function(body, inner, windows), result._structure, [], result)
    made.types, made.shapes = result._stage.types, result._stage.shapes
    return made


def _function(body: Any, inner: Pipeline | None = None, windows: tuple[tuple[int, Stage], ...] = ()) -> Function:
    body.targets = [op for op in body.get_operations() if _acts(op)]
    captured = tuple([t for t in body.captures if t.dtype.name != "resource"])
    handles = len(captured) < len(body.captures) or any(op.op_def.accesses for op in body.get_operations())
    return Function(body, captured, handles, inner, windows)


def _acts(op: Any) -> bool:
    """Return whether an operation does something beside its outputs, so that a call runs it even where no output needs it."""
    return op.op_def.is_active or any(_acts(inner) for body in op.bodies for inner in body.running())
