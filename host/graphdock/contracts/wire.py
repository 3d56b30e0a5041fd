"""Messages as frames: one of JSON, and one per array. Nothing in a message is code, and nothing of it is run.

pack({"step": 3, "feeds": [array]}) == [b'{"step":3,"feeds":[{"$array":0,"dtype":"float32","shape":[2]}]}', <8 bytes>]
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np

from graphdock.dtypes import as_dtype
from graphdock.errors import DataLossError, InvalidArgumentError

__all__ = ["pack", "unpack"]

_ARRAY = "$array"
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_string = json.encoder.encode_basestring_ascii
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # of the standard library since ever
#: Types of what travels as it is, each with what writes it.
_PLAIN: dict[type, Callable[[Any], str]] = {
    str: _string,
    int: repr,
    float: lambda v: repr(v) if isfinite(v) else _encode(v),
    bool: {False: "false", True: "true"}.__getitem__,
    type(None): {None: "null"}.__getitem__,
}
#: Bytes up to which a frame is a copy of its array.
_SMALL = 65_535


def pack(value: Any) -> list[Any]:
    """Frames of plain data and arrays. The frames of arrays are views of them, where they lie in one piece.

    Raises:
      InvalidArgumentError: a dict has the key that stands for an array; a value is of no kind that travels.
    """
    frames: list[Any] = [b""]
    try:
        frames[0] = _text(value, frames).encode()
    except TypeError as error:
        raise InvalidArgumentError(f"a message can't hold this: {error}") from None
    return frames


def _text(value: Any, frames: list[Any]) -> str:
    """JSON of a value, whose arrays become frames."""
    kind = type(value)
    write = _PLAIN.get(kind)
    if write is not None:
        return write(value)
    if kind is dict:
        if _ARRAY in value:
            raise InvalidArgumentError(f"a message can't hold a dict with the key {_ARRAY!r}")
        return "{" + ",".join([f"{_string(k)}:{_text(v, frames)}" for k, v in value.items()]) + "}"
    if kind is list or kind is tuple:
        return "[" + ",".join([_text(v, frames) for v in value]) + "]"
    if isinstance(value, (np.ndarray, np.generic)):
        return _array(value, frames)
    if isinstance(value, bytes):  # a fetched scalar of strings
        return _array(np.array(value, object), frames)
    return _encode(value)


def _array(array: Any, frames: list[Any]) -> str:
    dtype, number = array.dtype, len(frames) - 1
    shape = ",".join(map(str, array.shape))
    if dtype.kind in "OSU":
        items = [v if isinstance(v, bytes) else str(v).encode() for v in np.asarray(array).ravel().tolist()]
        frames.append(b"".join(items))
        lengths = ",".join([str(len(v)) for v in items])
        return f'{{"{_ARRAY}":{number},"shape":[{shape}],"lengths":[{lengths}],"dtype":"string"}}'
    small = array.nbytes <= _SMALL
    frames.append(array.tobytes() if small else np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return f'{{"{_ARRAY}":{number},"shape":[{shape}],"dtype":"{_name(dtype)}"}}'


@functools.cache
def _name(dtype: np.dtype[Any]) -> str:
    return as_dtype(dtype).name


@functools.cache
def _dtype(name: str) -> np.dtype[Any]:
    found: np.dtype[Any] = as_dtype(name).np
    return found


def unpack(frames: Sequence[Any]) -> Any:
    """The value that was packed. Arrays are the caller's own: views of large frames that can be written, else copies.

    Raises:
      DataLossError: the frames are damaged: no JSON, or arrays of other sizes.
    """
    try:
        text = str(frames[0], "utf-8")
        value, end = _scan(text, 0)
        if end != len(text):
            raise ValueError("more behind its end")
        return _read(value, frames[1:]) if _ARRAY in text else value
    except (ValueError, KeyError, IndexError, TypeError, RecursionError, StopIteration, OverflowError) as error:
        raise DataLossError(f"a message is damaged: {type(error).__name__}: {error}") from None


def _read(value: Any, frames: Sequence[Any]) -> Any:
    kind = type(value)
    if kind is dict:
        if _ARRAY not in value:
            return {k: v if type(v) in _PLAIN else _read(v, frames) for k, v in value.items()}
        return _read_array(value, frames[value[_ARRAY]])
    if kind is list:
        return [v if type(v) in _PLAIN else _read(v, frames) for v in value]
    return value


def _read_array(said: dict[str, Any], frame: Any) -> Any:
    shape = tuple(said["shape"])
    if said["dtype"] != "string":
        array = np.frombuffer(frame, _dtype(said["dtype"])).reshape(shape)
        return array if array.nbytes > _SMALL and array.flags.behaved else array.copy()
    data, at, items = bytes(frame), 0, []
    for length in said["lengths"]:
        if length < 0 or at + length > len(data):
            raise ValueError("strings of other lengths")
        items.append(data[at : at + length])
        at += length
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(shape)
