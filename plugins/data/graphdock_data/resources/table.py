"""A lookup table: values by key. Steps lock it: they read it together, or one changes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from graphdock.contracts import ResourceKind, ResourceRequest, dtypes, errors
from graphdock_storage.checkpoint.files import explained
from graphdock_storage.stores import opened

__all__ = ["LINE_NUMBER", "TABLE", "WHOLE_LINE", "Table"]

#: In the place of a column of a text file.
LINE_NUMBER, WHOLE_LINE = -1, -2
#: Keys that a message shows.
_SHOWN = 5


class Table:
    """Rows of a key and a value.

    Args:
      mutable: its rows may change; else it is initialised once, and not read before.
      value_shape: of a value. reserved: key -> what it is called that no row may have.
      key_shape: of a key: a scalar, or a vector, which rows have as a tuple.
    """

    def __init__(
        self,
        name: str,
        key: dtypes.DType,
        value: dtypes.DType,
        mutable: bool,
        value_shape: tuple[int, ...],
        reserved: dict[Any, str] | None = None,
        key_shape: tuple[int, ...] = (),
    ) -> None:
        self.name, self.key, self.value, self.mutable, self.value_shape = name, key, value, mutable, value_shape
        self.rows: dict[Any, Any] = {}
        self.reserved = reserved or {}
        self.key_shape = key_shape
        self.initialized = mutable

    def _check(self, keys: Any, values: Any = None) -> None:
        for what, given, mine in (("keys", keys, self.key), ("values", values, self.value)):
            if given is not None and dtypes.as_dtype(given.dtype) is not mine:
                raise errors.DTypeError(
                    f"the table {self.name!r} has {what} of another dtype",
                    expected=mine.name,
                    got=dtypes.as_dtype(given.dtype).name,
                )
        if self.key_shape and keys.shape[1:] != self.key_shape:
            raise errors.ShapeError(
                f"Expected keys of shape {[None, *self.key_shape]} for the table {self.name!r}",
                got=str(list(keys.shape)),
            )
        if values is not None and values.shape != (*self._outer(keys), *self.value_shape):
            raise errors.ShapeError(
                f"Expected shape {list((*self._outer(keys), *self.value_shape))} for values of the table {self.name!r}",
                got=str(list(values.shape)),
            )

    def _outer(self, keys: Any) -> tuple[int, ...]:
        """Shape of an array of as many as there are keys."""
        shape: tuple[int, ...] = keys.shape[:-1] if self.key_shape else keys.shape
        return shape

    def _flat(self, keys: Any) -> list[Any]:
        return [*map(tuple, keys.tolist())] if self.key_shape else keys.ravel().tolist()

    def _allowed(self, flat: list[Any]) -> list[Any]:
        """Keys, of which none is reserved."""
        if self.reserved and not self.reserved.keys().isdisjoint(flat):
            key = next(k for k in flat if k in self.reserved)
            raise errors.InvalidArgumentError(
                f"Using the {self.reserved[key]} as a table key is not allowed: {self.name!r}", got=repr(key)
            )
        return flat

    def _ready(self) -> None:
        if not self.initialized:
            raise errors.FailedPreconditionError(
                f"Table not initialized: {self.name!r}", hint="run tf.tables_initializer() first"
            )

    def find(self, keys: Any, default: Any) -> Any:
        """The values of keys, ``[*keys, *value]``; ``default`` is a value, or one for each key, of those that are not there.

        Raises:
          FailedPreconditionError: it is not initialised. InvalidArgumentError: a key is reserved.
        """
        self._ready()
        self._check(keys)
        shape = (*self._outer(keys), *self.value_shape)
        if default.shape not in (shape, self.value_shape):
            raise errors.ShapeError(
                f"the default value of the table {self.name!r} is of another shape",
                expected=f"{list(self.value_shape)} or {list(shape)}",
                got=str(list(default.shape)),
            )
        out = np.empty(shape, self.value.np)
        get, flat = self.rows.get, self._allowed(self._flat(keys))
        if not self.value_shape:
            each = default.ravel().tolist() * (len(flat) if default.shape != shape else 1) if flat else []
            out.reshape(-1)[:] = list(map(get, flat, each))
            return out
        rows = out.reshape(len(flat), *self.value_shape)
        rows[:] = default.reshape(-1, *self.value_shape)
        for i, key in enumerate(flat):
            if (value := get(key)) is not None:
                rows[i] = value
        return out

    def _listed(self, keys: Any, values: Any) -> Iterator[tuple[Any, Any]]:
        """Rows of arrays; a value of a shape is an array of its own."""
        flat = self._flat(keys)
        if not self.value_shape:
            return zip(flat, values.ravel().tolist(), strict=True)
        return zip(flat, values.reshape(len(flat), *self.value_shape).copy(), strict=True)

    def insert(self, keys: Any, values: Any) -> None:
        """Put rows in, in the place of those with the same keys.

        Raises:
          FailedPreconditionError: its rows may not change.
        """
        self._may_change("insert into")
        self._check(keys, values)
        self._allowed(self._flat(keys))
        self.rows.update(self._listed(keys, values))

    def remove(self, keys: Any) -> None:
        """Take rows out; keys that are not there count for nothing."""
        self._may_change("remove from")
        self._check(keys)
        for key in self._allowed(self._flat(keys)):
            self.rows.pop(key, None)

    def _may_change(self, doing: str) -> None:
        if not self.mutable:
            raise errors.UnimplementedError(f"can't {doing} the table {self.name!r}, which is initialised once")

    def load(self, keys: Any, values: Any) -> None:
        """Have these rows and no others, but for reserved keys; a table that is initialised once has them already, or none.

        Raises:
          FailedPreconditionError: it has others, or a key has two values. InvalidArgumentError: no rows for one that is
            initialised once.
        """
        self._check(keys, values)
        if not self.mutable and not keys.size:
            raise errors.InvalidArgumentError(
                f"keys and values cannot be empty tensors: those of the table {self.name!r}"
            )
        self._take(self._listed(keys, values))

    def load_text(self, path: bytes, key: int, value: int, size: int, delimiter: bytes, offset: int) -> None:
        """Have the rows of a text file.

        Args:
          key, value: columns, or LINE_NUMBER or WHOLE_LINE. size: lines to read; -1 for all of them.

        Raises:
          InvalidArgumentError: a line lacks a column, or a field is no number: names file and line; or there are
            fewer lines than ``size``.
          NotFoundError: there is no such file.
        """
        shown = os.fsdecode(path)
        columns = (_column(key, self.key, delimiter, offset), _column(value, self.value, delimiter, offset))

        def rows() -> Iterator[tuple[Any, Any]]:
            number = -1
            try:
                with opened(path) as file:
                    for number, line in enumerate(file):
                        if number == size:
                            return
                        if not line.strip(b"\r\n"):
                            raise errors.InvalidArgumentError(
                                f"Invalid content in {shown!r}: empty line found at position {number}"
                            )
                        try:
                            yield columns[0](line.rstrip(b"\r\n"), number), columns[1](line.rstrip(b"\r\n"), number)
                        except ValueError as error:
                            if isinstance(error, errors.GraphdockError):
                                raise
                            raise errors.InvalidArgumentError(f"line {number} of {shown!r}: {error}") from error
                    count = number + 1
            except OSError as error:
                raise explained(error, "cannot read the vocabulary", shown) from error
            if size >= 0 and count < size:
                raise errors.InvalidArgumentError(f"Invalid vocab_size in {shown!r}: expected {size} but got {count}")

        self._take(rows())

    def _take(self, rows: Iterator[tuple[Any, Any]]) -> None:
        found: dict[Any, Any] = {}
        for key, value in rows:
            if key in self.reserved:  # an empty row of TensorFlow's checkpoints
                continue
            first = found.setdefault(key, value)
            if first is not value and not self.mutable and not np.array_equal(first, value):
                raise errors.FailedPreconditionError(
                    f"HashTable has different value for same key. Key {key!r} has {first!r} and trying to add value {value!r}"
                )
            found[key] = value
        if not self.mutable and self.initialized and found.keys() != self.rows.keys():
            raise errors.FailedPreconditionError(f"Table already initialized: {self.name!r} has other rows")
        self.rows, self.initialized = found, True

    def export(self) -> tuple[Any, Any]:
        """All keys, and their values."""
        self._ready()
        keys = np.empty((len(self.rows), *self.key_shape), self.key.np)
        values = np.empty((len(self.rows), *self.value_shape), self.value.np)
        if self.rows:
            keys[:] = list(self.rows)
            values[:] = list(self.rows.values())
        return keys, values


def _column(index: int, dtype: dtypes.DType, delimiter: bytes, offset: int) -> Callable[[bytes, int], Any]:
    """A function of a line and its number that gives a key or a value; its ValueError says what is wrong."""
    if index == LINE_NUMBER:
        return lambda line, number: number + offset
    convert: Callable[[bytes], Any] = bytes if dtype.name == "string" else float if dtype.is_floating else int

    def of(text: bytes) -> Any:
        try:
            return convert(text)
        except ValueError:
            raise ValueError(f"{text.decode('utf-8', 'replace')!r} is no {dtype.name}") from None

    if index == WHOLE_LINE:
        return lambda line, number: of(line)

    def field(line: bytes, number: int) -> Any:
        parts = line.split(delimiter)
        if index >= len(parts):
            raise ValueError(f"Invalid number of columns: expected {index + 1} or more, got {len(parts)}")
        return of(parts[index])

    return field


def _create(request: ResourceRequest) -> Table:
    attrs = request.attrs
    key, shape = attrs["key_dtype"], tuple(attrs["value_shape"] or ())
    given = [k if isinstance(k, bytes) else k.encode() for k in attrs.get("reserved", ())]
    elements = given if key.name == "string" else [int(k) for k in given]
    key_shape = tuple(attrs.get("key_shape") or ())
    size = key_shape[0] if key_shape else 1
    keys = [tuple(elements[i : i + size]) for i in range(0, len(elements), size)] if key_shape else elements
    reserved = dict(zip(keys, ("empty_key", "deleted_key"), strict=False))
    return Table(request.name, key, attrs["value_dtype"], attrs["mutable"], shape, reserved, key_shape)


TABLE = ResourceKind("data.Table", _create, close=lambda table, request: table.rows.clear())
