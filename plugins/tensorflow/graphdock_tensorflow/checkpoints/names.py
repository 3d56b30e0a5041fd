"""Common parts of TensorFlow's two formats of checkpoints: its numbers of dtypes, its shapes and slices, and the keys of slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdock.dtypes import DType, as_dtype
from graphdock.errors import DataLossError, GraphdockError
from graphdock_storage.checkpoint.slices import Slice, check_parts, check_shape
from graphdock_storage.tensor_messages import DTYPES

__all__ = ["dims_of", "dtype_of", "key_of_slice", "slice_of", "slices_of"]

#: Bytes of a name that would end it, or stand for no character -> what stands for them.
_ESCAPED = {0: b"\x00\xff", 255: b"\xff\x00"}
#: What is added to the number of a dtype for a reference to it.
_REFERENCE = 100


def dtype_of(number: int) -> DType | None:
    """The dtype of TensorFlow's number; None for one that graphdock does not have."""
    name = DTYPES.get(number - _REFERENCE if number > _REFERENCE else number)
    return None if name in (None, "resource", "variant") else as_dtype(name)


def dims_of(shape: Any, what: str) -> tuple[int, ...]:
    """The dims of a TensorShapeProto.

    Raises:
      DataLossError: there is no such shape; ``what`` names the tensor.
    """
    dims = tuple(int(d.size) for d in shape.dim)
    try:
        check_shape(dims)
    except GraphdockError as error:
        raise DataLossError(f"{what} has no such shape: {error.message}", got=str(list(dims)[:20])) from error
    return dims


def slice_of(message: Any, shape: Sequence[int], what: str) -> Slice:
    """The slice that a TensorSliceProto is of a tensor of that shape; an extent without a length is the whole axis.

    Raises:
      DataLossError: there is no such slice.
    """
    extents = message.extent
    if len(extents) != len(shape):
        raise DataLossError(f"{what} has a slice of another rank")
    spelled = ":".join(f"{e.start},{e.length}" if e.HasField("length") else "-" for e in extents)
    try:
        return Slice.parse(spelled, shape)
    except GraphdockError as error:
        raise DataLossError(f"{what}: {error.message}") from error


def slices_of(messages: Sequence[Any], shape: Sequence[int], what: str) -> list[Slice]:
    """The slices that TensorSliceProtos are of a tensor of that shape.

    Raises:
      DataLossError: one is none, or is there twice, or they are more than the tensor.
    """
    found = [slice_of(message, shape, what) for message in messages]
    try:
        check_parts(found, shape)
    except GraphdockError as error:
        raise DataLossError(f"{what} is damaged: {error.message}") from error
    return found


def key_of_slice(name: str, message: Any) -> bytes:
    """The key under which a table has a slice: a zero, the name, the rank, and start and length of each axis, in order-keeping code
    (``ordered_code.cc`` of TensorFlow).
    """
    text = b"".join(_ESCAPED.get(b) or bytes([b]) for b in name.encode("utf-8", "surrogateescape"))
    out = _number(0) + text + b"\x00\x01"
    out += _number(len(message.extent))
    for extent in message.extent:
        out += _signed(extent.start) + _signed(extent.length if extent.HasField("length") else -1)
    return out


def _number(value: int) -> bytes:
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _signed(value: int) -> bytes:
    """Seven bits a byte; as many leading ones as there are bytes, which are flipped for a negative number with the rest."""
    size = ((value if value >= 0 else ~value).bit_length()) // 7 + 1
    mask = ((1 << size) - 1) << (7 * size)
    return ((value & ((1 << 8 * size) - 1)) ^ mask).to_bytes(size, "big")
