"""Arrays as bytes of a data file, and back.

Numbers lie as they do in memory. Strings are their lengths, as 64-bit integers, and then all their bytes. Nothing here copies
an array that is contiguous.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from graphdock.dtypes import DType, string
from graphdock.errors import DataLossError, DTypeError

__all__ = ["as_strings", "bytes_of", "check_strings", "chunks_of", "size_of", "strings_of"]

_LENGTH = np.dtype("<u8")
#: Strings that are joined before they are written.
_JOINED = 4096


def size_of(array: Any, dtype: DType) -> int:
    """The number of bytes of an array in a file."""
    if dtype is string:
        return int(array.size) * _LENGTH.itemsize + sum(map(len, array.flat))
    return int(array.size) * dtype.size


def check_strings(array: Any, name: str) -> None:
    """Refuse an array of strings that holds anything else.

    Raises:
      DTypeError: it does; names the tensor.
    """
    for item in array.flat:
        if not isinstance(item, bytes):
            raise DTypeError(f"the tensor {name!r} holds what is no string", expected="bytes", got=repr(type(item)))


def chunks_of(array: Any, dtype: DType) -> Iterator[memoryview]:
    """The bytes of an array, piece by piece. A piece of a contiguous array of numbers is a view of it."""
    if dtype is string:
        items = list(array.flat)
        yield memoryview(np.fromiter(map(len, items), _LENGTH, len(items)).tobytes())
        for i in range(0, len(items), _JOINED):
            yield memoryview(b"".join(items[i : i + _JOINED]))
        return
    yield memoryview(bytes_of(np.ascontiguousarray(array)))


def bytes_of(array: Any) -> Any:
    """A contiguous array of numbers as a vector of its bytes, in the same memory."""
    return array.reshape(-1).view(np.uint8)


def strings_of(data: memoryview, count: int, what: str) -> Any:
    """The vector of ``count`` strings that these bytes hold.

    Raises:
      DataLossError: they hold no such vector; ``what`` names the tensor.
    """
    head = count * _LENGTH.itemsize
    lengths: list[int] = np.frombuffer(data[:head], _LENGTH).tolist() if head <= len(data) else []
    if len(lengths) != count or sum(lengths) != len(data) - head:
        raise DataLossError(f"{what} does not hold {count} strings: their lengths are damaged")
    return as_strings(data[head:], lengths)


def as_strings(data: memoryview, lengths: Sequence[int] | Iterable[int]) -> Any:
    """A vector of strings that lie behind each other."""
    ends = list(itertools.accumulate(lengths, initial=0))
    out = np.empty(len(ends) - 1, object)
    for i, (start, end) in enumerate(itertools.pairwise(ends)):
        out[i] = bytes(data[start:end])
    return out
