"""Messages as frames: one of JSON, and one per array. Nothing in a message is code, and nothing of it is run.

pack({"step": 3, "feeds": [array]}) == [b'{"step":3,"feeds":[{"$array":0,"dtype":"float32","shape":[2]}]}', <8 bytes>]
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphdock.dtypes import as_dtype
from graphdock.errors import DataLossError, InvalidArgumentError

__all__ = ["pack", "unpack"]

_ARRAY = "$array"
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_decode = json.JSONDecoder().decode
#: Types of what travels as it is.
_PLAIN = frozenset({str, int, float, bool, type(None)})
#: Bytes up to which a frame is a copy of its array.
_SMALL = 65_535


def pack(value: Any) -> list[Any]:
    """Frames of plain data and arrays. The frames of arrays are views of them, where they lie in one piece.

    Raises:
      InvalidArgumentError: a dict has the key that stands for an array; a value is of no kind that travels.
    """
    frames: list[Any] = []
    try:
        header = _encode(_plain(value, frames))
    except TypeError as error:
        raise InvalidArgumentError(f"a message can't hold this: {error}") from None
    return [header.encode(), *frames]


def _plain(value: Any, frames: list[Any]) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        if _ARRAY in value:
            raise InvalidArgumentError(f"a message can't hold a dict with the key {_ARRAY!r}")
        return {k: v if type(v) in _PLAIN else _plain(v, frames) for k, v in value.items()}
    if kind is list or kind is tuple:
        return [_plain(v, frames) for v in value]
    if isinstance(value, (np.ndarray, np.generic, bytes)):  # bytes: a fetched scalar of strings
        return _array(np.array(value, object) if isinstance(value, bytes) else np.asarray(value), frames)
    return value


def _array(array: Any, frames: list[Any]) -> dict[str, Any]:
    said: dict[str, Any] = {_ARRAY: len(frames), "shape": list(array.shape)}
    if array.dtype.kind in "OSU":
        items = [v if isinstance(v, bytes) else str(v).encode() for v in array.ravel().tolist()]
        frames.append(b"".join(items))
        return {**said, "dtype": "string", "lengths": [len(v) for v in items]}
    small = array.nbytes <= _SMALL
    frames.append(array.tobytes() if small else np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    said["dtype"] = _name(array.dtype)
    return said


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
        return _read(_decode(str(frames[0], "utf-8")), frames[1:])
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise DataLossError(f"a message is damaged: {type(error).__name__}: {error}") from None


def _read(value: Any, frames: Sequence[Any]) -> Any:
    if isinstance(value, dict):
        if _ARRAY not in value:
            return {k: v if type(v) in _PLAIN else _read(v, frames) for k, v in value.items()}
        return _read_array(value, frames[value[_ARRAY]])
    if isinstance(value, list):
        return [_read(v, frames) for v in value]
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
