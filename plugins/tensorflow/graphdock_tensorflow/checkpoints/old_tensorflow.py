"""TensorFlow's checkpoints of format V1: tables that hold the values too, one or several files (``tensor_slice_reader.cc``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.dtypes import DType, string
from graphdock.errors import DataLossError, GraphdockError
from graphdock.messages import from_bytes
from graphdock_storage.checkpoint.layout import Stored
from graphdock_storage.checkpoint.reading import Checkpoint, OpenFiles, checked, damaged
from graphdock_storage.checkpoint.slices import Slice, check_parts

from graphdock_tensorflow.checkpoints.names import dims_of, dtype_of, key_of_slice, slice_of
from graphdock_tensorflow.checkpoints.table import Table

__all__ = ["OldCheckpoint"]

#: Dtype -> the field of its values, and what NumPy takes them for.
_FIELDS = {
    "float32": ("float_val", "float32"),
    "float64": ("double_val", "float64"),
    "int32": ("int_val", "int32"),
    "int16": ("int_val", "int32"),
    "int8": ("int_val", "int32"),
    "uint8": ("int_val", "int32"),
    "uint16": ("int_val", "int32"),
    "int64": ("int64_val", "int64"),
    "bool": ("bool_val", "bool"),
    "complex64": ("scomplex_val", "float32"),
    "complex128": ("dcomplex_val", "float64"),
    "float16": ("half_val", "int32"),
    "bfloat16": ("half_val", "int32"),
    "uint32": ("uint32_val", "uint32"),
    "uint64": ("uint64_val", "uint64"),
}


@dataclass(frozen=True, slots=True)
class _Part:
    """A slice, the table that has it, and the TensorSliceProto that makes its key there."""

    slice: Slice
    table: int
    message: Any


class OldCheckpoint(Checkpoint):
    """A checkpoint that TensorFlow's Saver wrote before version 0.12, or with ``write_version=V1``.

    Args:
      paths: its files.

    Raises:
      DataLossError: it is damaged, or no checkpoint. UnavailableError: the library protobuf is not installed.
    """

    format = "tensorflow v1"

    def __init__(self, prefix: str, paths: Sequence[str]) -> None:
        super().__init__(prefix, {})
        self._files = OpenFiles(paths)
        try:
            self._tables = [Table(self._files.fd(i), path) for i, path in enumerate(paths)]
            found: dict[str, tuple[DType, tuple[int, ...], list[_Part]]] = {}
            for number, table in enumerate(self._tables):
                meta = from_bytes("SavedTensorSlices", table.get(b"") or b"", f"the file {paths[number]!r}").meta
                for entry in meta.tensor:
                    self._add(number, entry, found)
            self.tensors = {name: self._stored(name, *facts) for name, facts in found.items()}
        except BaseException:  # Ctrl-C too leaves no file open; it goes on
            self.close()
            raise

    def _add(self, number: int, entry: Any, found: dict[str, tuple[DType, tuple[int, ...], list[_Part]]]) -> None:
        what = f"the tensor {entry.name!r} of the checkpoint {self.prefix!r}"
        shape, dtype = dims_of(entry.shape, what), dtype_of(entry.type)
        if dtype is None:
            self.unread[entry.name] = f"TensorFlow's DataType {entry.type}"
            return
        known, dims, parts = found.setdefault(entry.name, (dtype, shape, []))
        if (known, dims) != (dtype, shape):
            raise DataLossError(f"{what} is another one in each file")
        parts += [_Part(slice_of(m, shape, what), number, m) for m in entry.slice]

    def _stored(self, name: str, dtype: DType, shape: tuple[int, ...], parts: list[_Part]) -> Stored:
        """The entry of a tensor, its parts in the order of the tables, so that each block is read once."""
        try:
            check_parts([p.slice for p in parts], shape)
        except GraphdockError as error:
            raise DataLossError(
                f"the tensor {name!r} of the checkpoint {self.prefix!r} is damaged: {error.message}"
            ) from error
        return Stored(dtype, shape, tuple(sorted(parts, key=lambda p: (p.table, p.slice.starts))))

    def part(self, name: str, stored: Stored, part: _Part) -> Any:
        try:
            value = self._tables[part.table].get(key_of_slice(name, part.message))
            saved = None if value is None else from_bytes("SavedTensorSlices", value, "it")
        except DataLossError as error:
            raise damaged(self, name, error.message) from error
        if saved is None or saved.data.name != name:
            raise damaged(self, name, "its values are missing")
        array = _values(saved.data.data, stored.dtype)
        if array is None or array.size != math.prod(part.slice.lengths):
            raise damaged(self, name, "it has another number of elements")
        return checked(self, name, array)

    def close(self) -> None:
        self._files.close()


def _values(message: Any, dtype: DType) -> Any:
    """The values of a TensorProto as a vector; None where they are no whole number of elements."""
    if dtype is string:
        out = np.empty(len(message.string_val), object)
        out[:] = list(message.string_val)
        return out
    if message.tensor_content:
        data = message.tensor_content
        return None if len(data) % dtype.size else np.frombuffer(data, dtype.np).copy()
    field, kind = _FIELDS[dtype.name]
    array = np.array(getattr(message, field), kind)
    if field == "half_val":
        return array.astype(np.uint16).view(dtype.np)
    if dtype.is_complex:
        return None if array.size % 2 else array.view(dtype.np)
    return array.astype(dtype.np)
