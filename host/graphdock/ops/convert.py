"""Turning Python values, arrays and variables into tensors."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from graphdock.arguments import check_type, utf8
from graphdock.dtypes import DType, as_dtype, float32, int32, int64, string
from graphdock.errors import (
    ArgumentTypeError,
    DTypeError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    ShapeError,
    format_error,
)
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.tensor import Tensor
from graphdock.shape import as_dims
from graphdock.tensor_shape import TensorShape
from graphdock.typing import DTypeLike, ShapeLike, TensorLike

__all__ = ["constant", "convert_to_tensor", "make_array", "register_tensor_conversion_function"]

Conversion = Callable[[Any, "DType | None", "str | None"], Tensor]
_conversions: list[tuple[type | tuple[type, ...], Conversion]] = []


def register_tensor_conversion_function(kind: type | tuple[type, ...], function: Conversion) -> None:
    """Let ``function(value, dtype, name) -> Tensor`` convert values of ``kind``; later registrations come first.

    Raises:
      ArgumentTypeError: ``kind`` is no class and no tuple of classes, or ``function`` cannot be called.
    """
    for one in kind if isinstance(kind, tuple) else (kind,):
        check_type(one, type, "register_tensor_conversion_function: kind", "a class or a tuple of them")
    if not callable(function):
        raise ArgumentTypeError(
            "register_tensor_conversion_function: function is of the wrong type", got=repr(function)
        )
    _conversions.insert(0, (kind, function))


def convert_to_tensor(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    preferred_dtype: DTypeLike | None = None,
) -> Tensor:
    """A tensor for a Tensor, a Variable, an array or anything NumPy can read.

    Args:
      dtype: required dtype; there is no promotion between tensors.
      preferred_dtype: used for Python values when it can hold them.

    Raises:
      DTypeError: a tensor of another dtype. InvalidArgumentError: the value has no array form.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor):
        if wanted is not None and value.dtype is not wanted:
            raise DTypeError(
                f"tensor {value.name} has the wrong dtype",
                op=value.op.name,
                site=value.op.site,
                expected=wanted.name,
                got=value.dtype.name,
                hint=f"use tf.cast(..., tf.{wanted.name})",
            )
        return value
    for kind, function in _conversions:
        if isinstance(value, kind):
            tensor = function(value, wanted, name)
            return convert_to_tensor(tensor, wanted)
    if isinstance(value, (list, tuple)):
        first = _first_tensor(value)
        if first is not None:
            return _packed(value, wanted or first.dtype, name)
    if wanted is None and preferred_dtype is not None:
        try:
            return constant(value, as_dtype(preferred_dtype), name=name or "Const")
        except InvalidArgumentError:
            wanted = None
    return constant(value, wanted, name=name or "Const")


def _of_shape(value: TensorShape, dtype: DType | None, name: str | None) -> Tensor:
    """A shape as an integer vector: int32, or int64 where a dim needs it or it is asked for."""
    if not value.is_fully_defined():
        raise InvalidArgumentError(f"Cannot convert a partially known TensorShape to a Tensor: {value}")
    if dtype not in (None, int32, int64):
        raise DTypeError("a shape becomes a tensor of integers", expected="int32 or int64", got=str(dtype))
    dims = value.as_list()
    large = any(d is not None and d > int32.max for d in dims)
    found = dtype or (int64 if large else int32)
    return constant(np.array(dims, np.int64), found, name=name or "shape_as_tensor")


register_tensor_conversion_function(TensorShape, _of_shape)


def is_convertible(value: Any) -> bool:
    """Return whether it is a tensor, or of a kind whose conversion is registered, as a Variable's is."""
    return isinstance(value, Tensor) or any(isinstance(value, kind) for kind, _ in _conversions)


def _first_tensor(value: Any) -> Any:
    """The first tensor, or what becomes one by itself, in a nested list; None when there is none."""
    waiting = [iter(value)]
    while waiting:
        for v in waiting[-1]:
            if is_convertible(v):
                return v if hasattr(v, "dtype") else convert_to_tensor(v)
            if isinstance(v, (list, tuple)):
                waiting.append(iter(v))
                break
        else:
            waiting.pop()
    return None


def _packed(value: Any, dtype: DType, name: str | None) -> Tensor:
    """A nested list of tensors and numbers as one tensor, whose dtype the first tensor decides."""
    from graphdock.ops.apply import apply_op

    with get_default_graph().name_scope(name or "packed") as scope:
        items = [convert_to_tensor(v, dtype, str(i)) for i, v in enumerate(value)]
        packed = apply_op("Pack", values=items, axis=0, name=scope)
    assert isinstance(packed, Tensor)
    return packed


def make_array(value: Any, dtype: DType | None) -> tuple[np.ndarray[Any, Any], DType]:
    """A contiguous array of the dtype (Python ints are int32, floats float32), range-checked.

    Raises:
      DTypeError: the values are of another kind. OutOfRangeError: an integer does not fit. InvalidArgumentError: ragged.
      ResourceExhaustedError: there is no memory for it.
    """
    try:
        return _make_array(value, dtype)
    except MemoryError as error:
        raise _no_memory(error) from error


def _no_memory(error: MemoryError) -> ResourceExhaustedError:
    return ResourceExhaustedError(f"there is no memory for a constant: {error}")


def check_room(array: np.ndarray[Any, Any], dtype: DType) -> None:
    """Refuse an array that is larger than memory before its elements are looked at: ``np.broadcast_to`` makes such of one element.

    Raises:
      MemoryError: there is no memory for as many elements of the dtype.
    """
    if 0 in array.strides:
        np.empty(array.shape, dtype.np)


def _make_array(value: Any, dtype: DType | None) -> tuple[np.ndarray[Any, Any], DType]:
    if dtype is not None and dtype.kind in "RV":
        raise DTypeError(
            f"{_short(value)} cannot become a {dtype.name}", expected="a dtype with elements", got=dtype.name
        )
    if hasattr(type(value), "__dlpack__") and not isinstance(value, (np.ndarray, np.generic)):
        from graphdock.ops.dlpack import from_dlpack

        value = from_dlpack(value)
    try:
        array = np.asarray(value)
        if array.dtype.kind in "SU" and not isinstance(value, (np.ndarray, np.generic)):
            array = np.asarray(value, object)  # NumPy's own text loses zeros at the end, and makes text of numbers
    except Exception as error:  # noqa: BLE001 - whatever the value's own __array__ raises
        raise InvalidArgumentError(f"cannot make a tensor of {_short(value)}: {format_error(error)}") from error
    check_room(array, dtype or float32)
    if dtype is string and array.size == 0 and not isinstance(value, (np.ndarray, np.generic)):
        array = array.astype(object)
    if array.dtype.kind == "O" and dtype in (None, string) and set(map(type, array.ravel().tolist())) == {bytes}:
        return array.copy(), string
    if array.dtype.kind in "USO":
        values = [os.fspath(v) if isinstance(v, os.PathLike) else v for v in array.ravel().tolist()]
        text = [isinstance(v, (str, bytes)) for v in values]
        if any(text) and not all(text):
            raise DTypeError(f"{_short(value)} is neither all text nor without any", expected="elements of one kind")
        if array.dtype.kind == "O" and not all(text):
            raise DTypeError(f"cannot make a tensor of {_short(value)} (a {type(value).__name__})")
        if dtype not in (None, string):
            raise DTypeError("text cannot become a number", expected=str(dtype), got="string")
        out = np.empty(len(values), object)
        out[:] = [utf8(v, "a text") if isinstance(v, str) else bytes(v) for v in values]
        return out.reshape(array.shape), string
    from_python = not isinstance(value, (np.ndarray, np.generic))
    if from_python and array.dtype.kind == "f" and (dtype is None or dtype.is_integer) and _all_integers(value):
        raise OutOfRangeError(
            f"{_short(value)} does not fit into one integer dtype", expected="a range of int64 or uint64"
        )
    if dtype is None:
        found = as_dtype(array.dtype)
        if from_python and found.name == "float64":
            found = float32
        elif from_python and found.name == "int64":
            small = array.size == 0 or (array.min() >= -(2**31) and array.max() < 2**31)
            found = int32 if small else int64
        dtype = found
    array = narrowed(array)
    source = as_dtype(array.dtype)
    if source is not dtype:
        if dtype is string:
            raise DTypeError("a number cannot become text", expected="string", got=source.name)
        empty = array.size == 0 and from_python
        if not empty and not from_python and keeps_all(array, dtype):
            source = dtype
        if not empty and _rank(source) > _rank(dtype) and not (from_python and source.is_integer and dtype.is_floating):
            by_itself = float32 if from_python and source.is_floating else source
            raise DTypeError(
                f"{_short(value)} cannot be {dtype.name}",
                expected=dtype.name,
                got=by_itself.name,
                hint=f"use tf.cast(..., tf.{by_itself.name}) on what it is combined with" if from_python else None,
            )
        if not empty and (dtype.is_bool or (source.is_bool and not from_python)):
            raise DTypeError(f"{_short(value)} cannot be {dtype.name}", expected=dtype.name, got=source.name)
        if dtype.is_integer and array.size and (int(array.min()) < dtype.min or int(array.max()) > dtype.max):
            raise OutOfRangeError(
                f"{_short(value)} does not fit into {dtype.name}", expected=f"{dtype.min} to {dtype.max}"
            )
        with np.errstate(all="ignore"):  # as in a step: what overflows is infinite
            array = array.astype(dtype.np)
    return np.ascontiguousarray(array).reshape(array.shape), dtype


def _all_integers(value: Any) -> bool:
    """Return whether a nested list holds Python's own integers only."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(_all_integers(v) for v in value)
    return isinstance(value, int) and not isinstance(value, bool)


def narrowed(array: Any) -> Any:
    """An array of NumPy's extended precision, which no tensor has, in the next that one has; any other as it is."""
    kind = {"g": np.float64, "G": np.complex128}.get(array.dtype.char)
    if kind is None:
        return array
    with np.errstate(over="ignore"):
        return array.astype(kind)


def keeps_all(array: np.ndarray[Any, Any], dtype: DType) -> bool:
    """Return whether an array of numbers means the same in a narrower kind: whole floats as integers, 0 and 1 as bools."""
    if dtype.is_bool:
        return array.dtype.kind in "iuf" and bool(np.isin(array, (0, 1)).all())
    if not dtype.is_integer or array.dtype.kind != "f":
        return False
    return bool(np.isfinite(array).all() and (array == np.trunc(array)).all())


def _rank(dtype: DType) -> int:
    return {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}.get(dtype.kind, 9)


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except RecursionError:
        text = f"a {type(value).__name__} that is nested too deep"
    return text if len(text) <= 60 else text[:57] + "..."


def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """A constant tensor.

    Args:
      value: a number, a nested list, or an array.
      dtype: its dtype; by default int32 for Python ints, float32 for floats, an array's own.
      shape: its shape; a single value fills it, and the last value repeats to fill it, as in TensorFlow 1.
      verify_shape: refuse a value of another shape instead.

    Raises:
      InvalidArgumentError: the value has no array form, more elements than the shape, or the wrong dtype.
    """
    array, found = make_array(value, None if dtype is None else as_dtype(dtype))
    try:
        if shape is None:
            return constant_of(array, found, name)
        filled = _filled(array, shape, verify_shape)
        return constant_of(filled, found, name, own=filled is not array)
    except MemoryError as error:
        raise _no_memory(error) from error


def _filled(array: np.ndarray[Any, Any], shape: ShapeLike, verify_shape: bool) -> np.ndarray[Any, Any]:
    """The array in a shape that its last element fills."""
    dims = as_dims(shape)
    if dims is None or None in dims:
        raise ShapeError(f"the shape of a constant must be known, but it is {shape!r}")
    if verify_shape and array.shape != dims:
        raise ShapeError("constant of the wrong shape", expected=str(list(dims)), got=str(list(array.shape)))
    if array.shape == dims:
        return array
    count = math.prod(d for d in dims if d is not None)
    if array.size > max(count, 1) or (array.size == 0 and count):
        raise ShapeError(f"{array.size} elements do not fill shape {list(dims)}")
    try:
        flat = np.empty(count, array.dtype)
    except ValueError as error:  # more than an array can have
        raise ShapeError(f"there is no array of shape {list(dims)}: {error}") from None
    flat[: array.size] = array.ravel()[:count]
    if count > array.size:
        flat[array.size :] = array.flat[-1]
    return flat.reshape(dims)


def constant_of(
    array: np.ndarray[Any, Any],
    dtype: DType,
    name: str | None = "Const",
    graph: Graph | None = None,
    own: bool = False,
) -> Tensor:
    """A constant over an array that is already right; takes a read-only copy, unless the array is its ``own``."""
    array = array if own else np.array(array, order="C", copy=True)
    array.flags.writeable = False
    graph = graph or get_default_graph()
    return graph.add_op(graph.host.ops.get("Const"), [], {"value": array, "dtype": dtype}, name).outputs[0]
