"""Vocabularies: tables from text to ids and back, of lists and of files."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.typing import DTypeLike

from graphdock_data.lookup.initializers import (
    KeyValueTensorInitializer,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileStringTableInitializer,
)
from graphdock_data.lookup.tables import FastHashSpec, HasherSpec, HashTable, IdTableWithHashBuckets


def _with_buckets(table: Any, buckets: int, spec: HasherSpec, dtype: Any) -> Any:
    return IdTableWithHashBuckets(table, buckets, spec, key_dtype=dtype) if buckets else table


def _file(vocabulary_file: Any, vocab_size: int | None) -> None:
    if not isinstance(vocabulary_file, _tf.Tensor) and not vocabulary_file:
        raise InvalidArgumentError("vocabulary_file must be specified and must not be empty.")
    if vocab_size is not None and vocab_size < 1:
        raise InvalidArgumentError(
            f"vocab_size must be greater than 0, got {vocab_size}. vocabulary_file: {vocabulary_file}"
        )


def _keys(buckets: int, dtype: Any) -> Any:
    if buckets < 0:
        raise InvalidArgumentError(f"num_oov_buckets must be greater or equal than 0, got {buckets}.")
    kind = _tf.as_dtype(dtype)
    if not kind.is_integer and kind is not _tf.string:
        raise DTypeError("Only integer and string keys are supported.", got=kind.name)
    return kind


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    key_dtype: DTypeLike = "string",
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """A table from the lines of a file to their numbers.

    Args:
      num_oov_buckets: ids behind them for what the file does not have; without them it has ``default_value``.
      vocab_size: lines to read. hasher_spec: how keys become buckets.

    Raises:
      InvalidArgumentError: no file, or sizes below what they can be. DTypeError: of keys.
    """
    _file(vocabulary_file, vocab_size)
    dtype = _keys(num_oov_buckets, key_dtype)
    with _ops.name_scope(name or "string_to_index"), _ops.name_scope("hash_table"):
        init = TextFileIdTableInitializer(
            vocabulary_file,
            key_column_index,
            value_column_index,
            vocab_size,
            delimiter,
            "table_init",
            _tf.int64 if dtype.is_integer else dtype,
        )
        return _with_buckets(HashTable(init, default_value), num_oov_buckets, hasher_spec, dtype)


def index_table_from_tensor(
    vocabulary_list: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: DTypeLike = "string",
    name: str | None = None,
) -> Any:
    """A table from the elements of a vector to their places; arguments as of :func:`index_table_from_file`."""
    if vocabulary_list is None:
        raise InvalidArgumentError("vocabulary_list must be specified.")
    kind = _keys(num_oov_buckets, dtype)
    with _ops.name_scope(name or "string_to_index"):
        keys = _ops.convert_to_tensor(vocabulary_list)
        if keys.dtype.is_integer != kind.is_integer or not kind.is_integer and keys.dtype is not kind:
            raise InvalidArgumentError("Invalid dtype of a vocabulary", expected=kind.name, got=keys.dtype.name)
        values = _tf.cast(_tf.range(_tf.size(keys)), _tf.int64)
        with _ops.name_scope("hash_table"):
            if keys.dtype.is_integer:
                keys = _tf.cast(keys, _tf.int64)
            init = KeyValueTensorInitializer(keys, values, name="table_init")
            return _with_buckets(HashTable(init, default_value), num_oov_buckets, hasher_spec, kind)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> Any:
    """A table from int64 numbers of lines to the lines of a file; arguments as of :func:`index_table_from_file`."""
    _file(vocabulary_file, vocab_size)
    with _ops.name_scope(name or "index_to_string"):
        init = TextFileStringTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init"
        )
        return HashTable(init, default_value)


def index_to_string_table_from_tensor(vocabulary_list: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """A table from int64 places to the strings of a vector."""
    if vocabulary_list is None:
        raise InvalidArgumentError("vocabulary_list must be specified.")
    with _ops.name_scope(name or "index_to_string"):
        strings = _ops.convert_to_tensor(vocabulary_list, _tf.string)
        keys = _tf.cast(_tf.range(_tf.size(strings)), _tf.int64)
        init = KeyValueTensorInitializer(keys, strings, _tf.int64, _tf.string, name="table_init")
        return HashTable(init, default_value)


def string_to_index(tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None) -> Any:
    """The places of strings in a vector; initialised by ``tf.tables_initializer()``."""
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


def index_to_string(tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """The strings at places of a vector; initialised by ``tf.tables_initializer()``."""
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)
