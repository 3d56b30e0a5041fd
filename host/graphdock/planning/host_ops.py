"""What the host's own ops call (``host_fn`` of their specs), on NumPy arrays and resources; and small helpers of generated steps.

Each function takes the plan's node and returns what a step calls with the node's inputs: it returns the output, a tuple of several,
or None.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from graphdock.arguments import utf8
from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.queue import Queue, QueuedDevice
from graphdock.dtypes import DType
from graphdock.errors import (
    GraphdockError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    ShapeError,
    UnimplementedError,
    UnknownError,
)
from graphdock.opdef.resolve import resolve
from graphdock.shape import compatible, show

__all__ = [
    "CALLERS_ERRORS",
    "assert_",
    "build_host_op",
    "destroy",
    "fetch_any",
    "is_initialized",
    "print_",
    "pull",
    "push",
    "py_func",
    "same_lengths",
    "wrap",
]


def build_host_op(node: PlanNode) -> Callable[..., Any]:
    """What a step calls for a node whose op has the verb ``host``."""
    assert node.opdef.host_fn is not None
    made: Callable[..., Any] = resolve(node.opdef.host_fn)(node)
    return made


#: How NumPy was told to treat floating-point errors by whoever runs a step: so it is while a Python function of that step runs.
CALLERS_ERRORS: ContextVar[Mapping[str, Any] | None] = ContextVar("CALLERS_ERRORS", default=None)


def py_func(node: PlanNode) -> Callable[..., Any]:
    function, outputs = node.attrs["token"], list(node.outputs)
    name = getattr(function, "__name__", repr(function))

    def call(*args: Any) -> Any:
        with np.errstate(**(CALLERS_ERRORS.get() or {})):
            try:
                result = function(*[a.copy() if a.ndim else a[()] for a in args])
            except GraphdockError:
                raise
            except Exception as error:
                raise _of_function(error, name) from error
        results = list(result) if isinstance(result, (list, tuple)) else [result] if outputs else []
        if len(results) != len(outputs):
            raise InvalidArgumentError(
                f"the Python function {name!r} returned {len(results)} values", expected=f"{len(outputs)} (Tout)"
            )
        arrays = []
        for value, given in zip(outputs, results, strict=True):
            array = _text_as_bytes(given)
            if array.dtype != value.dtype.np:
                raise InvalidArgumentError(
                    f"the Python function {name!r} returned the wrong dtype",
                    expected=value.dtype.name,
                    got=str(array.dtype),
                )
            array = np.array(array, order="C", copy=True)
            if not compatible(value.shape, array.shape):
                raise ShapeError(
                    f"the Python function {name!r} returned the wrong shape",
                    expected=show(value.shape),
                    got=show(array.shape),
                )
            arrays.append(array)
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    return call


#: Class of what a Python function of a step raises -> the error of the step, as TensorFlow maps them.
_RAISED: tuple[tuple[type[Exception], type[GraphdockError]], ...] = (
    (StopIteration, OutOfRangeError),
    (MemoryError, ResourceExhaustedError),
    (NotImplementedError, UnimplementedError),
    (ValueError, InvalidArgumentError),
    (TypeError, InvalidArgumentError),
)


def _of_function(error: Exception, name: str) -> GraphdockError:
    message = f"the Python function {name!r} raised {type(error).__name__}: {error}"
    for raised, kind in _RAISED:
        if isinstance(error, raised):
            return kind(message)
    return UnknownError(message)


def _text_as_bytes(value: Any) -> np.ndarray[Any, Any]:
    """An array of what a function returned: of text the objects that a string tensor holds, in UTF-8."""
    array = np.asarray(value)
    if array.dtype.kind in "SU" and not isinstance(value, np.ndarray):
        array = np.asarray(value, object)  # NumPy's own text loses zeros at the end
    if array.dtype.kind not in "USO":
        return array
    out = np.empty(array.shape, object)
    for i, item in enumerate(array.flat):
        out.flat[i] = (
            utf8(item, "a text") if isinstance(item, str) else bytes(item) if isinstance(item, np.bytes_) else item
        )
    return out


def assert_(node: PlanNode) -> Callable[..., Any]:
    summarize = node.attrs["summarize"]

    def call(condition: Any, *data: Any) -> None:
        if not condition:
            shown = " ".join(_summary(d, summarize) for d in data)
            raise InvalidArgumentError(f"assertion failed: {shown}", op=node.origin, site=node.site)

    return call


def print_(node: PlanNode) -> Callable[..., Any]:
    message, summarize, left = node.attrs["message"], node.attrs["summarize"], node.attrs["first_n"]

    def call(value: Any, *data: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            print(message + "".join(_summary(d, summarize) for d in data), file=sys.stderr)
        return value.copy()

    return call


def _summary(array: Any, count: int) -> str:
    flat = array.ravel()
    shown = " ".join(v.decode(errors="replace") if isinstance(v, bytes) else str(v) for v in flat[: max(count, 1)])
    return f"[{shown}{'...' if flat.size > count else ''}]"


def is_initialized(node: PlanNode) -> Callable[..., Any]:
    """Whether the variable holds a value."""
    return lambda variable: np.asarray(variable.initialized)


def destroy(node: PlanNode) -> Callable[..., Any]:
    """Forget the variable's value."""
    return lambda variable: variable.destroy()


def pull(worker: Device | Queue, buffer: Any, dtype: DType) -> Any:
    """A device buffer of a shape that only the step knows, as a new host array. Waits for the queue."""
    if isinstance(worker, Queue):
        slot = _slot(worker.device, dtype, worker.device.shape_of(buffer))
        worker.to_host(buffer, slot)
        worker.synchronize()
        return slot.copy()
    out = np.empty(worker.shape_of(buffer), dtype.np)
    worker.to_host(buffer, out)
    return out


def push(worker: Device | Queue, array: Any, dtype: DType) -> Any:
    """A host array of a shape that only the step knows, as a new device buffer. Waits for the queue, which reads it late."""
    buffer = worker.empty(dtype, array.shape)
    if isinstance(worker, Queue):
        slot = _slot(worker.device, dtype, array.shape)
        slot[...] = array
        worker.from_host(slot, buffer)
        worker.synchronize()
    else:
        worker.from_host(np.ascontiguousarray(array), buffer)
    return buffer


def _slot(device: QueuedDevice, dtype: DType, shape: Sequence[int]) -> Any:
    """Staging memory for one array."""
    count = math.prod(shape)
    return device.staging(max(count * dtype.size, 1))[: count * dtype.size].view(dtype.np).reshape(shape)


def fetch_any(array: Any) -> Any:
    """A fetched value of unknown rank: a scalar of its own, or a copy."""
    return array[()] if array.ndim == 0 else array.copy()


def same_lengths(*histories: list[Any]) -> None:
    """Raise unless a loop's histories are of one length (debug mode)."""
    lengths = [len(h) for h in histories]
    if min(lengths) != max(lengths):
        raise InvalidArgumentError("a loop reads histories of different lengths", got=str(lengths))


def wrap(value: int, bits: int) -> int:
    """Two's complement wrap-around of a Python int."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half
