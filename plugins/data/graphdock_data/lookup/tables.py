"""Lookup tables: those that are initialised once, those whose rows change, and those that hash what they don't have."""

from __future__ import annotations

from typing import Any, NamedTuple

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError, DTypeError, InvalidArgumentError
from graphdock.typing import DTypeLike, TensorLike

from graphdock_data.lookup.initializers import TableInitializerBase


def _of_dtype(keys: Any, dtype: Any) -> tuple[Any, Any]:
    """Keys, or a SparseTensor of them, as they are and as a Tensor."""
    found = keys if isinstance(keys, _tf.Tensor | _tf.SparseTensor) else _ops.convert_to_tensor(keys)
    if found.dtype is not dtype:
        raise DTypeError(f"Signature mismatch. Keys must be dtype {dtype.name}", got=found.dtype.name)
    return found, found.values if isinstance(found, _tf.SparseTensor) else found


def _like(keys: Any, values: Any) -> Any:
    """Values in the form of the keys."""
    if isinstance(keys, _tf.SparseTensor):
        return _tf.SparseTensor(keys.indices, values, keys.dense_shape)
    return values


class LookupInterface:
    """Base of tables: dtypes of keys and values, and what they are asked."""

    def __init__(self, key_dtype: DTypeLike, value_dtype: DTypeLike) -> None:
        self._key_dtype = _tf.as_dtype(key_dtype)
        self._value_dtype = _tf.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> Any:
        return self._key_dtype

    @property
    def value_dtype(self) -> Any:
        return self._value_dtype

    @property
    def name(self) -> str | None:
        raise NotImplementedError

    def size(self, name: str | None = None) -> Any:
        """The number of rows, a scalar int64."""
        raise NotImplementedError

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys, a Tensor or SparseTensor."""
        raise NotImplementedError


class _Table(LookupInterface):
    """A table that is a resource."""

    _default_value: Any
    _resource_handle: Any
    _key_shape: tuple[int, ...] = ()

    @property
    def resource_handle(self) -> Any:
        """The tensor that names the table."""
        return self._resource_handle

    @property
    def name(self) -> str:
        return str(self._resource_handle.op.name).rpartition("/")[2]

    def _scope(self, name: str | None, what: str) -> Any:
        return _ops.name_scope(name or f"{self.name}_{what}")

    def size(self, name: str | None = None) -> _ops.Tensor:
        """The number of rows, a scalar int64."""
        with self._scope(name, "Size"):
            return _ops.apply_op("LookupTableSizeV2", table_handle=self._resource_handle)

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """All keys, and their values, in the order in which they came."""
        with self._scope(name, "Export"):
            keys, values = _ops.apply_op(
                "LookupTableExportV2",
                table_handle=self._resource_handle,
                Tkeys=self._key_dtype,
                Tvalues=self._value_dtype,
            )
        keys.set_shape([None, *self._key_shape])
        values.set_shape(_tf.TensorShape([None]).concatenate(self._default_value.shape))
        return keys, values

    def _find(self, keys: Any, default: Any) -> Any:
        found = _ops.apply_op("LookupTableFindV2", table_handle=self._resource_handle, keys=keys, default_value=default)
        outer = keys.shape
        if self._key_shape:
            outer = keys.shape.with_rank_at_least(1)[:-1]
        found.set_shape(outer.concatenate(self._default_value.shape))
        return found


class InitializableLookupTableBase(_Table):
    """A table that is initialised once.

    Args:
      default_value: of keys that are not there. initializer: what gives it rows.
    """

    def __init__(self, default_value: Any, initializer: TableInitializerBase) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self._default_value = _ops.convert_to_tensor(default_value, self._value_dtype)
        self._default_value.shape.merge_with([])
        self._init: Any = None

    @property
    def default_value(self) -> Any:
        """What keys have that are not there."""
        return self._default_value

    @property
    def initializer(self) -> Any:
        """The operation that gives it rows; ``tf.tables_initializer()`` runs it too."""
        return self._init

    init = initializer

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys, a Tensor or SparseTensor.

        Raises:
          DTypeError: keys are of another dtype. In the step FailedPreconditionError: it was not initialised.
        """
        given, tensor = _of_dtype(keys, self._key_dtype)
        with self._scope(name, "Lookup"):
            return _like(given, self._find(tensor, self._default_value))


class StaticHashTable(InitializableLookupTableBase):
    """A table that is initialised once.

    Args:
      initializer: what gives it rows. default_value: of keys that are not there. name: of its operation.
      shared_name: under which sessions of a container share it.

    Raises:
      DTypeError: ``default_value`` is of another dtype.
    """

    def __init__(
        self,
        initializer: TableInitializerBase,
        default_value: Any,
        name: str | None = None,
        shared_name: str | None = None,
    ) -> None:
        super().__init__(default_value, initializer)
        self._resource_handle = _ops.apply_op(
            "HashTableV2",
            shared_name=shared_name or "",
            key_dtype=self._key_dtype,
            value_dtype=self._value_dtype,
            name=name or "hash_table",
        )
        self._init = initializer.initialize(self)


class HashTable(StaticHashTable):
    """A table that is initialised once; as :class:`StaticHashTable`, with its last arguments in the order of ``tf.contrib``."""

    def __init__(
        self,
        initializer: TableInitializerBase,
        default_value: Any,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(initializer, default_value, name, shared_name)


class MutableHashTable(_Table):
    """A table whose rows change.

    Args:
      key_dtype: of keys. value_dtype: of values. default_value: of keys that are not there, a scalar or a vector; a value is of its
        shape. shared_name: under which sessions of a container share it. name: of its operation.
      checkpoint: Savers that save all variables save it too.

    Raises:
      InvalidArgumentError: a default value of another rank.
    """

    def __init__(
        self,
        key_dtype: DTypeLike,
        value_dtype: DTypeLike,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        LookupInterface.__init__(self, key_dtype, value_dtype)
        self._default_value = _ops.convert_to_tensor(default_value, self._value_dtype)
        if (self._default_value.shape.ndims or 0) > 1:
            raise InvalidArgumentError(
                "Default value must be a scalar or a vector", got=f"shape {self._default_value.shape.as_list()}"
            )
        self._make(
            "MutableHashTableOfTensorsV2" if self._default_value.shape.ndims else "MutableHashTableV2",
            shared_name,
            name,
            checkpoint,
        )

    def _make(self, op: str, shared_name: str | None, name: str, checkpoint: bool, **kinds: Any) -> None:
        """The operation of the table, and what savers save."""
        shape = self._default_value.shape.as_list()
        if shape:
            kinds["value_shape"] = shape
        dtypes = {"key_dtype": self._key_dtype, "value_dtype": self._value_dtype}
        self._resource_handle = _ops.apply_op(op, shared_name=shared_name or "", name=name, **dtypes, **kinds)
        if checkpoint:
            _tf.add_to_collection(_tf.GraphKeys.SAVEABLE_OBJECTS, _saveable(self, name))

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys, a Tensor or SparseTensor. Raises DTypeError: keys are of another dtype."""
        given, tensor = _of_dtype(keys, self._key_dtype)
        with self._scope(name, "lookup_table_find"):
            return _like(given, self._find(tensor, self._default_value))

    def insert(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Any:
        """An operation that puts rows in, in the place of those with the same keys."""
        with self._scope(name, "lookup_table_insert"):
            return _ops.apply_op(
                "LookupTableInsertV2",
                table_handle=self._resource_handle,
                keys=_ops.convert_to_tensor(keys, self._key_dtype),
                values=_ops.convert_to_tensor(values, self._value_dtype),
            )

    def remove(self, keys: TensorLike, name: str | None = None) -> Any:
        """An operation that takes rows out; keys that are not there count for nothing."""
        with self._scope(name, "lookup_table_remove"):
            tensor = _of_dtype(keys, self._key_dtype)[1]
            return _ops.apply_op("LookupTableRemoveV2", table_handle=self._resource_handle, keys=tensor)


class DenseHashTable(MutableHashTable):
    """A table whose rows change, and in which two keys have no row: to look them up, insert or remove them is an error of the step.

    Args:
      key_dtype: int32, int64 or string. empty_key: a key, a scalar or a vector, of whose shape all keys are: those of vectors are
        matrices. deleted_key: another one, or None.
      initial_num_buckets: a power of 2, and without effect. The others as of :class:`MutableHashTable`.

    Raises:
      InvalidArgumentError: no such keys or buckets. DTypeError: of other dtypes.
    """

    def __init__(
        self,
        key_dtype: DTypeLike,
        value_dtype: DTypeLike,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any = None,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        shared_name: str | None = None,
    ) -> None:
        dtype = _tf.as_dtype(key_dtype)
        if dtype.name not in ("int32", "int64", "string"):
            raise DTypeError(
                "keys of a dense table are of another dtype", expected="int32, int64 or string", got=dtype.name
            )
        if initial_num_buckets is not None and (
            initial_num_buckets < 1 or initial_num_buckets & (initial_num_buckets - 1)
        ):
            raise InvalidArgumentError("Number of buckets must be a power of 2.", got=str(initial_num_buckets))
        LookupInterface.__init__(self, dtype, value_dtype)
        self._default_value = _ops.convert_to_tensor(default_value, self._value_dtype)
        empty = _reserved("empty_key", empty_key, dtype)
        deleted = None if deleted_key is None else _reserved("deleted_key", deleted_key, dtype)
        if deleted is not None and deleted.shape != empty.shape:
            raise InvalidArgumentError(
                "Empty and deleted keys must have same shape", got=f"{list(empty.shape)} and {list(deleted.shape)}"
            )
        if deleted is not None and (empty == deleted).all():
            raise InvalidArgumentError("Empty and deleted keys cannot be equal", got=repr(empty_key))
        self._key_shape = empty.shape
        both = [*empty.ravel().tolist(), *(() if deleted is None else deleted.ravel().tolist())]
        kinds: dict[str, Any] = {"reserved": [k if isinstance(k, bytes) else str(k).encode() for k in both]}
        if self._key_shape:
            kinds["key_shape"] = list(self._key_shape)
        if initial_num_buckets is not None:
            kinds["initial_num_buckets"] = initial_num_buckets
        self._make("MutableDenseHashTableV2", shared_name, name, checkpoint, **kinds)

    erase = MutableHashTable.remove


def _reserved(what: str, key: Any, dtype: Any) -> Any:
    """A key as an array."""
    tensor = None if key is None else _ops.convert_to_tensor(key, dtype)
    if tensor is None or tensor.op.type != "Const" or tensor.shape.ndims not in (0, 1):
        raise InvalidArgumentError(f"the {what} of a dense table must be a known scalar or vector", got=repr(key))
    return tensor.op.node_attrs["value"]


def _saveable(table: MutableHashTable, name: str) -> Any:
    class Saveable(_tf.train.SaveableObject):
        """A table in checkpoints."""

        def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
            keys, values = restored_tensors
            return _ops.apply_op("LookupTableImportV2", table_handle=table.resource_handle, keys=keys, values=values)

    keys, values = table.export()
    specs = [_tf.train.SaveSpec(keys, "", name + "-keys"), _tf.train.SaveSpec(values, "", name + "-values")]
    return Saveable(table.resource_handle.op, specs, name)


class HasherSpec(NamedTuple):
    """How keys become buckets: ``"fasthash"``, ``"stronghash"`` with two integers as key, or ``"legacy"``."""

    hasher: str
    key: Any


FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """Buckets that nobody can choose without the key, two integers."""

    __slots__ = ()

    def __new__(cls, key: Any) -> StrongHashSpec:
        if len(key) != 2:
            raise InvalidArgumentError(f"`key` must have size 2, received {key}.")
        if not all(isinstance(k, int) for k in key):
            raise ArgumentTypeError(f"Invalid key {key}. Must be unsigned integer values.")
        return super().__new__(cls, "stronghash", key)


class IdTableWithHashBuckets(LookupInterface):
    """A table of ids, and of buckets behind them for what it does not have.

    Args:
      table: of int64 values, or None for buckets alone. num_oov_buckets: how many buckets.
      hasher_spec: how keys become buckets. key_dtype: of keys; default: the table's, or string.

    Raises:
      DTypeError: dtypes that don't fit. InvalidArgumentError: neither table nor buckets.
    """

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: HasherSpec = FastHashSpec,
        name: str | None = None,
        key_dtype: DTypeLike | None = None,
    ) -> None:
        dtype = (_tf.string if table is None else table.key_dtype) if key_dtype is None else _tf.as_dtype(key_dtype)
        if table is not None:
            if table.key_dtype not in (_tf.int64, _tf.string):
                raise DTypeError("Invalid key dtype of a table", expected="int64 or string", got=table.key_dtype.name)
            if table.key_dtype.is_integer != dtype.is_integer:
                raise DTypeError("Invalid key dtype", expected=table.key_dtype.name, got=dtype.name)
            if table.value_dtype is not _tf.int64:
                raise DTypeError("Invalid value dtype", expected="int64", got=table.value_dtype.name)
        elif num_oov_buckets <= 0:
            raise InvalidArgumentError("oov_buckets must be > 0 if no table is supplied.")
        if not dtype.is_integer and dtype is not _tf.string:
            raise DTypeError("Invalid key_dtype", expected="integer or string", got=dtype.name)
        if not isinstance(hasher_spec, HasherSpec):
            raise ArgumentTypeError(f"hasher_spec must be of type HasherSpec, got {hasher_spec}")
        super().__init__(dtype, _tf.int64)
        self._table = table
        self._buckets = num_oov_buckets
        self._hasher = hasher_spec
        self._name = (name or ("hash_bucket" if table is None else table.name)).rstrip("/").rpartition("/")[2]

    @property
    def initializer(self) -> Any:
        """The table's; an operation that does nothing where there is no table."""
        return _tf.no_op() if self._table is None else self._table.initializer

    init = initializer

    @property
    def resource_handle(self) -> Any:
        return None if self._table is None else self._table.resource_handle

    @property
    def name(self) -> str:
        return self._name

    def size(self, name: str | None = None) -> Any:
        """The number of ids, buckets among them."""
        with _ops.name_scope(name or f"{self.name}_Size"):
            rows = _tf.constant(0, _tf.int64) if self._table is None else self._table.size()
            return rows + self._buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The ids of keys, a Tensor or SparseTensor. Raises DTypeError: keys are of another dtype."""
        given, tensor = _of_dtype(keys, self._key_dtype)
        if self._table is not None and self._table.key_dtype is _tf.int64:
            tensor = _tf.cast(tensor, _tf.int64)
        if not self._buckets:
            return _like(given, self._table.lookup(tensor, name=name))
        with _ops.name_scope(name or f"{self.name}_Lookup"):
            text = tensor if tensor.dtype is _tf.string else _tf.as_string(tensor)
            ids = self._bucket(text)
            if self._table is not None:
                found = self._table.lookup(tensor)
                there = _tf.not_equal(found, self._table.default_value)
                ids = _tf.where(there, found, ids + self._table.size())
        return _like(given, ids)

    def _bucket(self, text: Any) -> Any:
        spec, count = self._hasher, self._buckets
        if spec.hasher == "fasthash":
            return _tf.string_to_hash_bucket_fast(text, count, name="hash_bucket")
        if spec.hasher == "legacy":
            return _tf.string_to_hash_bucket(text, count, name="hash_bucket")
        if spec.hasher == "stronghash":
            return _tf.string_to_hash_bucket_strong(text, count, key=spec.key, name="hash_bucket")
        raise InvalidArgumentError(f"Unknown hasher {spec.hasher}")


class StaticVocabularyTable(IdTableWithHashBuckets):
    """A table of ids from an initializer, and of buckets behind them for what it does not have.

    Args:
      initializer: of int64 values, or None. num_oov_buckets: how many buckets, 1 or more.
      lookup_key_dtype: of keys. name: of its operation.

    Raises:
      InvalidArgumentError: no bucket.
    """

    def __init__(
        self,
        initializer: TableInitializerBase | None,
        num_oov_buckets: int,
        lookup_key_dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        if num_oov_buckets <= 0:
            raise InvalidArgumentError("oov_buckets must be > 0.")
        table = None if initializer is None else StaticHashTable(initializer, -1, name=name)
        super().__init__(table, num_oov_buckets, FastHashSpec, name, lookup_key_dtype)
