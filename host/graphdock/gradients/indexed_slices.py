"""IndexedSlices: rows of a large tensor, and where they belong; the gradient of a gather."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from graphdock.dtypes import DType
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor, register_tensor_conversion_function
from graphdock.shape import as_dims
from graphdock.tensor_shape import TensorShape
from graphdock.typing import TensorLike

__all__ = ["IndexedSlices", "IndexedSlicesValue", "concatenated", "dense"]


class IndexedSlicesValue(NamedTuple):
    """The arrays of an IndexedSlices, as a session returns and is fed them."""

    values: Any
    indices: Any
    dense_shape: Any = None


class _Parts(NamedTuple):
    """The tensors of IndexedSlices whose dense_shape is known."""

    values: Tensor
    indices: Tensor
    dense_shape: Tensor

    def _joined(self) -> IndexedSlices:
        return IndexedSlices(*self)

    def _invariants(self, shape: Any) -> _Parts:
        dims = as_dims(shape)
        rank = None if dims is None else len(dims)
        return _Parts(dims, (dims[0] if dims else None,), (rank,))  # type: ignore[arg-type]


class _Rows(NamedTuple):
    """The tensors of IndexedSlices whose dense_shape nobody knows."""

    values: Tensor
    indices: Tensor

    def _joined(self) -> IndexedSlices:
        return IndexedSlices(*self)

    def _invariants(self, shape: Any) -> _Rows:
        dims = as_dims(shape)
        return _Rows(dims, (dims[0] if dims else None,))  # type: ignore[arg-type]


class IndexedSlices:
    """The tensor whose row ``indices[i]`` is the sum of all ``values[i]`` that name it; all other rows are zero.

    Args:
      values: shape ``[n, *rest]``.
      indices: int32 or int64, shape ``[n]``; may repeat.
      dense_shape: 1-D integers, the shape of the whole tensor; None when nobody needs to know.

    Where a tensor is expected it converts to the whole tensor, which needs ``dense_shape``.
    """

    __slots__ = ("_dense_shape", "_indices", "_values")

    def __init__(self, values: TensorLike, indices: TensorLike, dense_shape: TensorLike | None = None) -> None:
        self._values = convert_to_tensor(values)
        self._indices = convert_to_tensor(indices)
        self._dense_shape = None if dense_shape is None else convert_to_tensor(dense_shape)
        if not self._indices.dtype.is_integer:
            raise DTypeError("the indices of IndexedSlices must be integers", got=self._indices.dtype.name)

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def indices(self) -> Tensor:
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        return self._dense_shape

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def op(self) -> Operation:
        return self._values.op

    @property
    def graph(self) -> Graph:
        return self._values.graph

    @property
    def name(self) -> str:
        return self._values.name

    @property
    def device(self) -> str:
        return self._values.device

    @property
    def shape(self) -> TensorShape:
        """The static shape of the whole tensor."""
        if self._dense_shape is None:
            dims = self._values._dims
            return TensorShape(None if dims is None else (None, *dims[1:]))
        known = self._dense_shape.graph._known(self._dense_shape)
        return TensorShape(known if isinstance(known, tuple) else None)

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def _with_values(self, function: Callable[[Tensor], Tensor]) -> IndexedSlices:
        """The same rows with ``function`` of the values."""
        return IndexedSlices(function(self._values), self._indices, self._dense_shape)

    def _mapped(self, function: Callable[[Tensor], Tensor]) -> IndexedSlices:
        """The same rows after ``function`` of each of its tensors but the shape."""
        return IndexedSlices(function(self._values), function(self._indices), self._dense_shape)

    def _as_fetches(self) -> tuple[list[Tensor], Callable[[list[Any]], IndexedSlicesValue]]:
        """Return what a session fetches in its place, and what it makes of that."""
        parts = [self._values, self._indices, *([] if self._dense_shape is None else [self._dense_shape])]
        return parts, lambda found: IndexedSlicesValue(*found)

    def _as_feeds(self, value: Any) -> dict[Tensor, Any]:
        """Return what a session feeds in its place: an IndexedSlicesValue, or a tuple of its parts."""
        parts = [self._values, self._indices, *([] if self._dense_shape is None else [self._dense_shape])]
        return dict(zip(parts, value, strict=False))

    def _split(self) -> _Parts | _Rows:
        """Its tensors, for loops (:mod:`graphdock.control_flow.composites`)."""
        if self._dense_shape is None:
            return _Rows(self._values, self._indices)
        return _Parts(self._values, self._indices, self._dense_shape)

    @property
    def _parts(self) -> tuple[Tensor, Tensor, Tensor | None]:
        return self._values, self._indices, self._dense_shape

    def __repr__(self) -> str:
        return f"<tf.IndexedSlices indices={self._indices.name} values={self._values.name}>"


def dense(slices: IndexedSlices, name: str | None = None) -> Tensor:
    """The whole tensor. Raises InvalidArgumentError without a ``dense_shape``."""
    import graphdock as tf

    if slices.dense_shape is None:
        raise InvalidArgumentError(
            f"IndexedSlices {slices.name} cannot become a tensor: its dense_shape is not known", op=slices.op.name
        )
    rows = tf.gather(slices.dense_shape, 0)
    result: Tensor = tf.unsorted_segment_sum(slices.values, slices.indices, rows, name=name)
    return result


def concatenated(parts: list[IndexedSlices]) -> IndexedSlices:
    """The sum of several: their rows one after the other."""
    import graphdock as tf

    shape = next((p.dense_shape for p in parts if p.dense_shape is not None), None)
    wide = next((p.indices.dtype for p in parts if p.indices.dtype.name == "int64"), parts[0].indices.dtype)
    indices = [tf.cast(p.indices, wide) for p in parts]
    return IndexedSlices(tf.concat([p.values for p in parts], 0), tf.concat(indices, 0), shape)


def _to_tensor(value: IndexedSlices, dtype: DType | None, name: str | None) -> Tensor:
    if dtype is not None and dtype is not value.dtype:
        raise DTypeError("IndexedSlices of the wrong dtype", expected=dtype.name, got=value.dtype.name)
    return dense(value, name)


register_tensor_conversion_function(IndexedSlices, _to_tensor)
