"""Attribute values as plain data and back: ``{"int": 3}``, ``{"list(type)": ["float32"]}``, ``{"tensor": {...}}``."""

from __future__ import annotations

import base64
import binascii
import math
import reprlib
from typing import Any

import numpy as np
from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import InvalidArgumentError
from graphdock.shape import as_dims

__all__ = ["attr_type", "decode", "encode", "encode_tensor", "expect", "shown"]

#: Tensors with more elements are written as base64 of their little-endian bytes.
_LISTED = 256
_SHORT = reprlib.Repr()
_SHORT.maxstring, _SHORT.maxother, _SHORT.maxlevel = 77, 77, 3
_KINDS = {
    list: "a list",
    dict: "an object",
    str: "a string",
    int: "an integer",
    bool: "true or false",
    float: "a number",
}


def expect(value: Any, kind: type, where: str) -> Any:
    """``value``, which must be of the JSON type ``kind``. Raises InvalidArgumentError that names the place."""
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise InvalidArgumentError(f"GraphDef: {where} is too large for a number", got=shown(value)) from None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidArgumentError(f"GraphDef: {where} is wrong", expected=_KINDS[kind], got=shown(value))
    return value


def shown(value: Any) -> str:
    """A value of the file for a message: a part of it where it is long or deep."""
    return _SHORT.repr(value) if not isinstance(value, int) else _number(value)


def _number(value: int) -> str:
    return repr(value) if value.bit_length() <= 64 else f"a number of {value.bit_length()} bits"


def attr_type(opdef: OpDef, name: str) -> str | None:
    """The declared type of an attribute or type variable; None when the op has none of that name."""
    attr = opdef.attr(name)
    if attr is not None:
        return attr.type
    var = next((t for t in opdef.types if t.name == name), None)
    return None if var is None else ("list(type)" if var.is_list else "type")


# -- writing ----------------------------------------------------------------------------------------------------------


def encode(kind: str, value: Any, arrays: bool = False) -> dict[str, Any]:
    """The attribute value with its type; ``func`` values are the caller's. With ``arrays`` a tensor stays an array."""
    if kind.startswith("list("):
        one = kind[5:-1]
        return {kind: [_encode_one(one, v, arrays) for v in value]}
    return {kind: _encode_one(kind, value, arrays)}


def _encode_one(kind: str, value: Any, arrays: bool = False) -> Any:
    if kind == "tensor" and arrays:
        return value
    if kind == "type":
        return value.name
    if kind == "shape":
        return None if value is None else list(value)
    if kind == "tensor":
        return encode_tensor(value)
    if kind == "float":
        return _encode_float(float(value))
    return value


def _encode_float(value: float) -> Any:
    return value if math.isfinite(value) else repr(value)


def encode_tensor(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """A tensor as plain data of JSON."""
    dtype = as_dtype(array.dtype)
    head: dict[str, Any] = {"dtype": dtype.name, "shape": list(array.shape)}
    if dtype.kind == "S":
        return {**head, "data": [_encode_bytes(v) for v in array.ravel()]}
    if array.size > _LISTED or dtype.is_complex:
        raw = np.ascontiguousarray(array)
        if raw.dtype.byteorder == ">":
            raw = raw.astype(raw.dtype.newbyteorder("<"))
        return {**head, "base64": base64.b64encode(raw.tobytes()).decode()}
    if dtype.is_floating:
        # str() gives the shortest digits that come back as the same number of this width
        return {**head, "data": [_encode_float(float(str(v))) for v in array.ravel()]}
    return {**head, "data": array.ravel().tolist()}


def _encode_bytes(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


# -- reading ----------------------------------------------------------------------------------------------------------


def decode(kind: str, value: Any, where: str) -> Any:
    """Return what ``encode`` was given; ``kind`` is the type the op declares.

    Raises:
      InvalidArgumentError: the data is of another type, or is no such value; the message begins with ``where``.
    """
    expect(value, dict, where)
    if list(value) != [kind]:
        raise InvalidArgumentError(
            f"GraphDef: {where} is wrong", expected=f"an object with the key {kind!r}", got=shown(value)
        )
    inner = value[kind]
    if kind.startswith("list("):
        one = kind[5:-1]
        return tuple(_decode_one(one, v, f"{where}[{i}]") for i, v in enumerate(expect(inner, list, where)))
    return _decode_one(kind, inner, where)


def _decode_one(kind: str, value: Any, where: str) -> Any:
    try:
        if kind == "type":
            return as_dtype(expect(value, str, where))
        if kind == "shape":
            if value is None:
                return None
            return as_dims([d if d is None else expect(d, int, where) for d in expect(value, list, where)])
        if kind == "tensor":
            if isinstance(value, np.ndarray):  # of a reader that had it
                return value
            return _decode_tensor(expect(value, dict, where), where)
    except InvalidArgumentError as error:
        if error.message.startswith("GraphDef: "):
            raise
        raise InvalidArgumentError(f"GraphDef: {where}: {error.message}", hint=error.hint) from None
    if kind == "float":
        return _decode_float(value, where)
    return expect(value, {"int": int, "bool": bool, "string": str}.get(kind, dict), where)


def _decode_float(value: Any, where: str) -> float:
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    return float(expect(value, float, where))


def _decode_tensor(value: dict[str, Any], where: str) -> np.ndarray[Any, Any]:
    dtype: DType = as_dtype(expect(value.get("dtype"), str, f"{where}.dtype"))
    shape = [expect(d, int, f"{where}.shape") for d in expect(value.get("shape"), list, f"{where}.shape")]
    if any(d < 0 for d in shape):
        raise InvalidArgumentError(f"GraphDef: {where}.shape has a negative dim", got=shown(shape))
    as_dims(shape)
    count = math.prod(shape)
    if ("data" in value) is ("base64" in value):
        raise InvalidArgumentError(f"GraphDef: {where} needs either 'data' or 'base64'")
    if dtype.kind in "RV":
        raise InvalidArgumentError(f"GraphDef: {where} is a tensor of {dtype.name}s, which cannot be stored")
    if "base64" in value:
        if dtype.kind == "S":
            raise InvalidArgumentError(f"GraphDef: {where}: strings are stored in 'data'")
        raw = _decode_base64(value["base64"], f"{where}.base64")
        if len(raw) != count * dtype.size:
            raise InvalidArgumentError(
                f"GraphDef: {where}.base64 has a wrong length",
                expected=f"{shown(count * dtype.size)} bytes",
                got=str(len(raw)),
            )
        array = np.frombuffer(raw, dtype.np)
        if dtype.is_bool and array.view(np.uint8).max(initial=0) > 1:
            raise InvalidArgumentError(f"GraphDef: {where}.base64 holds a byte that is neither true nor false")
        return _shaped(array, shape, where)
    data = expect(value["data"], list, f"{where}.data")
    if len(data) != count:
        raise InvalidArgumentError(
            f"GraphDef: {where}.data does not fill its shape", expected=f"{shown(count)} elements", got=str(len(data))
        )
    return _shaped(_from_list(data, dtype, where), shape, where)


def _shaped(array: np.ndarray[Any, Any], shape: list[int], where: str) -> np.ndarray[Any, Any]:
    try:
        return array.reshape(shape)
    except ValueError as error:  # NumPy's own limits: of rank, of the bytes of an array whose dims that are 0 were 1
        raise InvalidArgumentError(f"GraphDef: {where}.shape is of no array: {error}", got=shown(shape)) from None


def _from_list(data: list[Any], dtype: DType, where: str) -> np.ndarray[Any, Any]:
    if dtype.kind == "S":
        out = np.empty(len(data), object)
        for i, v in enumerate(data):
            at = f"{where}.data[{i}]"
            if isinstance(v, dict):
                out[i] = _decode_base64(v.get("base64"), at)
            else:
                out[i] = expect(v, str, at).encode(errors="surrogatepass")
        return out
    if dtype.is_complex:
        raise InvalidArgumentError(f"GraphDef: {where}: complex numbers are stored in 'base64'")
    if dtype.is_floating:
        values = np.array([_decode_float(v, f"{where}.data[{i}]") for i, v in enumerate(data)], np.float64)
        with np.errstate(all="ignore"):
            return values.astype(dtype.np)
    kind = bool if dtype.is_bool else int
    numbers = [expect(v, kind, f"{where}.data[{i}]") for i, v in enumerate(data)]
    if dtype.is_integer and any(not dtype.min <= v <= dtype.max for v in numbers):
        raise InvalidArgumentError(f"GraphDef: {where}.data holds a number that does not fit into {dtype.name}")
    return np.array(numbers, dtype.np)


def _decode_base64(value: Any, where: str) -> bytes:
    try:
        return base64.b64decode(expect(value, str, where), validate=True)
    except (binascii.Error, ValueError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(f"GraphDef: {where} is not base64: {error}") from None
