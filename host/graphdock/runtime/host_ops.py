"""Ops that the host runs itself, on NumPy arrays: PyFunc, Assert, Print; and small helpers of generated steps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanNode
from graphdock.dtypes import DType
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.shape import compatible, show

__all__ = ["build_host_op", "fetch_any", "pull", "push", "wrap"]


def build_host_op(node: PlanNode) -> Callable[..., Any]:
    """What a step calls for a PyFunc, Assert or Print node: takes its inputs, returns its outputs (a tuple when several)."""
    return _BUILDERS[node.op](node)


def _py_func(node: PlanNode) -> Callable[..., Any]:
    function, outputs = node.attrs["token"], list(node.outputs)
    name = getattr(function, "__name__", repr(function))

    def call(*args: Any) -> Any:
        result = function(*[a.copy() if a.ndim else a[()] for a in args])
        results = list(result) if isinstance(result, (list, tuple)) else [result] if outputs else []
        if len(results) != len(outputs):
            raise InvalidArgumentError(
                f"the Python function {name!r} returned {len(results)} values", expected=f"{len(outputs)} (Tout)"
            )
        arrays = []
        for value, given in zip(outputs, results, strict=True):
            array = np.asarray(given)
            if value.dtype.kind != "S" and not np.can_cast(array.dtype, value.dtype.np, "same_kind"):
                raise InvalidArgumentError(
                    f"the Python function {name!r} returned the wrong dtype",
                    expected=value.dtype.name,
                    got=str(array.dtype),
                )
            array = np.array(array, value.dtype.np, order="C")
            if not compatible(value.shape, array.shape):
                raise ShapeError(
                    f"the Python function {name!r} returned the wrong shape",
                    expected=show(value.shape),
                    got=show(array.shape),
                )
            arrays.append(array)
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    return call


def _assert(node: PlanNode) -> Callable[..., Any]:
    summarize = node.attrs["summarize"]

    def call(condition: Any, *data: Any) -> None:
        if not condition:
            shown = " ".join(_summary(d, summarize) for d in data)
            raise InvalidArgumentError(f"assertion failed: {shown}", op=node.origin, site=node.site)

    return call


def _print(node: PlanNode) -> Callable[..., Any]:
    message, summarize = node.attrs["message"], node.attrs["summarize"]

    def call(value: Any, *data: Any) -> Any:
        print(message + "".join(_summary(d, summarize) for d in data), file=sys.stderr)
        return value.copy()

    return call


def _summary(array: Any, count: int) -> str:
    flat = array.ravel()
    shown = " ".join(v.decode(errors="replace") if isinstance(v, bytes) else str(v) for v in flat[: max(count, 1)])
    return f"[{shown}{'...' if flat.size > count else ''}]"


_BUILDERS: dict[str, Callable[[PlanNode], Callable[..., Any]]] = {
    "PyFunc": _py_func,
    "Assert": _assert,
    "Print": _print,
}


def pull(device: Device, buffer: Any, dtype: DType) -> Any:
    """A device buffer of a shape that only the step knows, as a new host array."""
    out = np.empty(device.shape_of(buffer), dtype.np)
    device.to_host(buffer, out)
    return out


def push(device: Device, array: Any, dtype: DType) -> Any:
    """A host array of a shape that only the step knows, as a new device buffer."""
    buffer = device.empty(dtype, array.shape)
    device.from_host(np.ascontiguousarray(array), buffer)
    return buffer


def fetch_any(array: Any) -> Any:
    """A fetched value of unknown rank: a scalar of its own, or a copy."""
    return array[()] if array.ndim == 0 else array.copy()


def wrap(value: int, bits: int) -> int:
    """Two's complement wrap-around of a Python int."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half
