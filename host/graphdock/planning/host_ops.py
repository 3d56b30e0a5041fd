"""Functions of the host's own ops (``host_fn`` of their specs), on NumPy arrays and resources.

Each function takes the plan's node and returns what a step calls with the node's inputs: it returns the output, a tuple of several,
or None.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdock.arguments import utf8
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.opdef import resolve
from graphdock.contracts.step import callers_errors
from graphdock.errors import (
    GraphdockError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    ShapeError,
    UnimplementedError,
    UnknownError,
    also,
)
from graphdock.shape import compatible, show

__all__ = [
    "assert_",
    "build_host_op",
    "destroy",
    "is_initialized",
    "print_",
    "py_func",
]


def build_host_op(node: PlanNode) -> Callable[..., Any]:
    """Function that a step calls for a node whose op has the verb ``host``."""
    assert node.opdef.host_fn is not None
    made: Callable[..., Any] = resolve(node.opdef.host_fn)(node)
    return made


def py_func(node: PlanNode) -> Callable[..., Any]:
    function, outputs = node.attrs["token"], list(node.outputs)
    name = getattr(function, "__name__", repr(function))

    def call(*args: Any) -> Any:
        with callers_errors():
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
            return also(kind(message), error)
    return also(UnknownError(message), error)


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
    """Return whether the variable holds a value."""
    return lambda variable: np.asarray(variable.initialized)


def destroy(node: PlanNode) -> Callable[..., Any]:
    """Forget the variable's value."""
    return lambda variable: variable.destroy()
