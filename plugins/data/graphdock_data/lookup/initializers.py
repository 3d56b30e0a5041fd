"""Initializers of lookup tables: rows from tensors, or from text files."""

from __future__ import annotations

import itertools
import os
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.typing import DTypeLike, TensorLike


class TextFileIndex:
    """What stands in the place of a column: the whole line, or its number."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TableInitializerBase:
    """Base of what gives rows to a table."""

    def __init__(self, key_dtype: DTypeLike, value_dtype: DTypeLike) -> None:
        self._key_dtype = _tf.as_dtype(key_dtype)
        self._value_dtype = _tf.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> Any:
        return self._key_dtype

    @property
    def value_dtype(self) -> Any:
        return self._value_dtype

    def initialize(self, table: Any) -> Any:
        """An operation that gives a table its rows."""
        raise NotImplementedError

    def _check(self, table: Any) -> None:
        for what, mine, theirs in (
            ("key", self._key_dtype, table.key_dtype),
            ("value", self._value_dtype, table.value_dtype),
        ):
            if mine is not theirs:
                raise DTypeError(f"Invalid {what} dtype of a table", expected=theirs.name, got=mine.name)


def _joined(operation: Any) -> Any:
    """An operation, now among those of ``tf.tables_initializer()``."""
    _tf.add_to_collection(_tf.GraphKeys.TABLE_INITIALIZERS, operation)
    return operation


class KeyValueTensorInitializer(TableInitializerBase):
    """Rows from two tensors.

    Args:
      keys, values: vectors of one length, above 0. key_dtype, value_dtype: where they are no tensors. name: of the scope of the
        operation.

    Raises:
      InvalidArgumentError: they are known to be of another rank, or of two lengths.
    """

    def __init__(
        self,
        keys: TensorLike,
        values: TensorLike,
        key_dtype: DTypeLike | None = None,
        value_dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        with _ops.name_scope(name or "key_value_init") as scope:
            self._keys = _ops.convert_to_tensor(keys, key_dtype, name="keys")
            self._values = _ops.convert_to_tensor(values, value_dtype, name="values")
        self._scope = scope
        shapes = [_tf.TensorShape([None]), self._keys.shape, self._values.shape]
        if not all(a.is_compatible_with(b) for a, b in itertools.combinations(shapes, 2)):
            raise InvalidArgumentError(
                "keys and values of a table must be vectors of one length",
                got=f"{self._keys.shape} and {self._values.shape}",
            )
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table: Any) -> Any:
        """An operation that gives a table its rows; it joins those of ``tf.tables_initializer()``."""
        self._check(table)
        with _ops.name_scope(self._scope):
            return _joined(
                _ops.apply_op(
                    "LookupTableImportV2", table_handle=table.resource_handle, keys=self._keys, values=self._values
                )
            )


class TextFileInitializer(TableInitializerBase):
    """Rows from the lines of a text file.

    Args:
      filename: a path, or a scalar string tensor.
      key_index, value_index: columns, or one of :class:`TextFileIndex`.
      vocab_size: lines to read; all by default. delimiter: between columns. name: of the scope of the operation.

    Raises:
      InvalidArgumentError: no file name, or indices or dtypes that don't fit.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: DTypeLike,
        key_index: int,
        value_dtype: DTypeLike,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        if not isinstance(filename, _tf.Tensor) and not filename:
            raise InvalidArgumentError("Filename required")
        super().__init__(key_dtype, value_dtype)
        for what, index, dtype in (("key", key_index, self.key_dtype), ("value", value_index, self.value_dtype)):
            if index < TextFileIndex.WHOLE_LINE:
                raise InvalidArgumentError(f"Invalid {what} index {index}.")
            if index == TextFileIndex.LINE_NUMBER and dtype is not _tf.int64:
                raise InvalidArgumentError(f"Signature mismatch. {what}s must be dtype int64, got {dtype.name}.")
            if index == TextFileIndex.WHOLE_LINE and not dtype.is_integer and dtype is not _tf.string:
                raise InvalidArgumentError(f"Signature mismatch. {what}s must be integer or string, got {dtype.name}.")
        if vocab_size is not None and vocab_size <= 0:
            raise InvalidArgumentError(f"Invalid vocab_size {vocab_size}.")
        self._filename = filename if isinstance(filename, _tf.Tensor) else os.fspath(filename)
        self._columns = (key_index, value_index)
        self._vocab_size, self._delimiter, self._name = vocab_size, delimiter, name

    def initialize(self, table: Any) -> Any:
        """An operation that gives a table its rows; it joins those of ``tf.tables_initializer()``."""
        self._check(table)
        key, value = self._columns
        with _ops.name_scope(self._name or "text_file_init"):
            filename = _ops.convert_to_tensor(self._filename, _tf.string, name="asset_filepath")
            if filename.op.type == "Const":
                _tf.add_to_collection(_tf.GraphKeys.ASSET_FILEPATHS, filename)
            return _joined(
                _ops.apply_op(
                    "InitializeTableFromTextFileV2",
                    table_handle=table.resource_handle,
                    filename=filename,
                    key_index=key,
                    value_index=value,
                    vocab_size=-1 if self._vocab_size is None else self._vocab_size,
                    delimiter=self._delimiter,
                )
            )


class TextFileStringTableInitializer(TextFileInitializer):
    """Rows of strings by their line numbers; as :class:`TextFileInitializer`."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_string_table_init",
    ) -> None:
        super().__init__(
            filename, _tf.int64, key_column_index, _tf.string, value_column_index, vocab_size, delimiter, name
        )


class TextFileIdTableInitializer(TextFileInitializer):
    """Rows of line numbers by their text; as :class:`TextFileInitializer`."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_id_table_init",
        key_dtype: DTypeLike = "string",
    ) -> None:
        super().__init__(
            filename, key_dtype, key_column_index, _tf.int64, value_column_index, vocab_size, delimiter, name
        )
