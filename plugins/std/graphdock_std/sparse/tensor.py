"""SparseTensor, its value, its placeholder, and what takes either kind of tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import graphdock as _tf
import numpy as np
from graphdock import dtypes, errors
from graphdock import ops as _ops
from graphdock.typing import DTypeLike, TensorLike

from graphdock_std.grad_support import is_tensor, static_shape


class SparseTensorValue(NamedTuple):
    """The arrays of a SparseTensor, as a session returns and is fed them."""

    indices: Any
    values: Any
    dense_shape: Any

    def _shape_tensor(self) -> _ops.Tensor:
        """The dense shape, int64, as ``tf.shape`` casts it."""
        return _ops.constant(self.dense_shape, dtypes.int64)


class _Parts(NamedTuple):
    """The tensors of a SparseTensor."""

    indices: Any
    values: Any
    dense_shape: Any

    def _joined(self) -> SparseTensor:
        return SparseTensor(*self)

    def _invariants(self, shape: Any) -> _Parts:
        """Of the shape of the dense_shape, which is the rank."""
        rank = _tf.TensorShape(shape).with_rank(1)[0].value
        return _Parts([None, rank], [None], [rank])


class SparseTensor:
    """A tensor that is zero everywhere but at a few places.

    Args:
      indices: int64 ``[n, rank]``, the place of each element. Functions that need an order need it row by row, from the first axis
        on; :func:`tf.sparse.reorder` makes it.
      values: ``[n]``, the elements, of any dtype.
      dense_shape: int64 ``[rank]``, the shape of the whole tensor.

    It is no Tensor: where one is expected, :func:`tf.sparse.to_dense` makes it. A session fetches it as a
    :class:`tf.SparseTensorValue` and is fed one, or a tuple of the three arrays. Gradients flow through ``values``.

    Raises:
      ShapeError: ranks that do not fit one another.
    """

    __slots__ = ("_dense_shape", "_indices", "_static", "_values")

    def __init__(self, indices: TensorLike, values: TensorLike, dense_shape: TensorLike) -> None:
        self._static: _tf.TensorShape | None = None
        with _ops.name_scope("SparseTensor"):
            self._indices = _ops.convert_to_tensor(_places(indices), dtypes.int64, "indices")
            self._values = _ops.convert_to_tensor(values, name="values")
            self._dense_shape = _ops.convert_to_tensor(dense_shape, dtypes.int64, "dense_shape")
        for tensor, name, rank in (
            (self._indices, "indices", 2),
            (self._values, "values", 1),
            (self._dense_shape, "dense_shape", 1),
        ):
            dims = static_shape(tensor)
            if dims is not None and len(dims) != rank:
                raise errors.ShapeError(
                    f"the {name} of a SparseTensor have shape {tensor.shape}", expected=f"rank {rank}"
                )
        places, count, shape = (static_shape(t) for t in (self._indices, self._values, self._dense_shape))
        if places and count and None not in (places[0], count[0]) and places[0] != count[0]:
            raise errors.ShapeError(f"a SparseTensor of {places[0]} indices and {count[0]} values")
        if places and shape and None not in (places[1], shape[0]) and places[1] != shape[0]:
            raise errors.ShapeError(
                f"a SparseTensor whose indices have {places[1]} numbers and whose dense_shape has {shape[0]}"
            )

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """The SparseTensor of a SparseTensorValue; a SparseTensor as it is."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        if not isinstance(sparse_tensor_value, SparseTensorValue):
            raise errors.DTypeError("neither a SparseTensor nor a SparseTensorValue", got=repr(sparse_tensor_value))
        return cls(*sparse_tensor_value)

    @property
    def indices(self) -> _ops.Tensor:
        return self._indices

    @property
    def values(self) -> _ops.Tensor:
        return self._values

    @property
    def dense_shape(self) -> _ops.Tensor:
        return self._dense_shape

    @property
    def dtype(self) -> dtypes.DType:
        return self._values.dtype

    @property
    def op(self) -> _ops.Operation:
        return self._values.op

    @property
    def graph(self) -> _ops.Graph:
        return self._values.graph

    @property
    def name(self) -> str:
        return self._values.name

    @property
    def shape(self) -> _tf.TensorShape:
        """The static shape of the whole tensor."""
        if self._static is not None:
            return self._static
        known = self.graph._known(self._dense_shape)
        if isinstance(known, tuple):
            return _tf.TensorShape([d if isinstance(d, int) and d >= 0 else None for d in known])
        rank = self._rank()
        return _tf.TensorShape(None if rank is None else [None] * rank)

    def get_shape(self) -> _tf.TensorShape:
        """The static shape, under its older name."""
        return self.shape

    def _rank(self) -> int | None:
        places, shape = static_shape(self._indices), static_shape(self._dense_shape)
        return shape[0] if shape is not None and shape[0] is not None else None if places is None else places[1]

    def _with_values(self, function: Callable[[_ops.Tensor], _ops.Tensor]) -> SparseTensor:
        """With ``function`` of its values at the same places."""
        return self._with_elements(self._indices, function(self._values))

    def _with_elements(self, indices: _ops.Tensor, values: _ops.Tensor) -> SparseTensor:
        """Other elements in the same shape."""
        made = SparseTensor(indices, values, self._dense_shape)
        made._static = self._static
        return made

    def _zeros(self, dtype: Any, name: str) -> _ops.Tensor:
        """The tensor that ``tf.zeros_like`` makes of it."""
        return _tf.zeros(self._dense_shape, dtype or self.dtype, name)

    #: What ops that keep 0 make of it.
    _with_stored = _with_values

    def consumers(self) -> list[_ops.Operation]:
        """The operations that take one of its three tensors."""
        found = [op for t in (self._indices, self._values, self._dense_shape) for op in t.consumers()]
        return list(dict.fromkeys(found))

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """Its value in a session, by default the current one."""
        session = session or _tf.get_default_session()
        if session is None:
            raise errors.InvalidArgumentError("eval needs a session", hint="pass session=, or open one with `with`")
        return session.run(self, feed_dict)  # type: ignore[no-any-return]

    def _mapped(self, function: Callable[[_ops.Tensor], _ops.Tensor]) -> SparseTensor:
        """The same tensor after ``function`` of each of its three."""
        made = SparseTensor(function(self._indices), function(self._values), function(self._dense_shape))
        made._static = self.shape
        return made

    def _split(self) -> _Parts:
        """Its tensors, for loops and conds."""
        return _Parts(self._indices, self._values, self._dense_shape)

    def _as_fetches(self) -> tuple[list[_ops.Tensor], Callable[[list[Any]], SparseTensorValue]]:
        """Return what a session fetches in its place, and what it makes of that."""
        return [self._indices, self._values, self._dense_shape], lambda found: SparseTensorValue(*found)

    def _as_feeds(self, value: Any) -> dict[_ops.Tensor, Any]:
        """Return what a session feeds in its place: a SparseTensorValue, or a tuple of its three arrays."""
        if not isinstance(value, (tuple, list)) or len(value) != 3:
            raise errors.InvalidArgumentError(
                f"SparseTensor {self.name} is fed a {type(value).__name__}",
                expected="a tf.SparseTensorValue, or (indices, values, dense_shape)",
            )
        indices, values, shape = value
        return {self._indices: _places(indices, np.size(shape)), self._values: values, self._dense_shape: shape}

    def _shape_tensor(self) -> _ops.Tensor:
        """The dense shape, int64, as ``tf.shape`` casts it."""
        return self._dense_shape

    def __mul__(self, other: TensorLike) -> SparseTensor:
        """The elements times those of a dense tensor that broadcasts to this shape."""
        from graphdock_std.sparse.dense import times

        return times(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: TensorLike) -> SparseTensor:
        """The elements divided by those of a dense tensor that broadcasts to this shape."""
        from graphdock_std.sparse.dense import divided

        return divided(self, other)

    __div__ = __truediv__

    def __repr__(self) -> str:
        return (
            f"<tf.SparseTensor indices={self._indices.name} values={self._values.name} "
            f"dense_shape={self._dense_shape.name}>"
        )


def _places(indices: Any, rank: int | None = None) -> Any:
    """Indices as given; an empty list or array as the index tuples of no element."""
    if isinstance(indices, (list, tuple)) and not indices:
        return np.zeros((0, 1 if rank is None else rank), np.int64)
    if isinstance(indices, np.ndarray) and not indices.size:
        return indices.astype(np.int64)
    return indices


def as_sparse(value: Any, name: str = "sp_input") -> SparseTensor:
    """A SparseTensor, also of a SparseTensorValue. Raises DTypeError for anything else."""
    if isinstance(value, (SparseTensor, SparseTensorValue)):
        return SparseTensor.from_value(value)
    raise errors.DTypeError(f"{name} must be a SparseTensor", got=f"a {type(value).__name__}")


def convert_to_tensor_or_sparse_tensor(
    value: Any, dtype: DTypeLike | None = None, name: str | None = None
) -> _ops.Tensor | SparseTensor:
    """A SparseTensor of a SparseTensor or a SparseTensorValue, of anything else a Tensor.

    Raises:
      DTypeError: a sparse one of another dtype than ``dtype``.
    """
    if isinstance(value, (SparseTensor, SparseTensorValue)):
        found = SparseTensor.from_value(value)
        if dtype is not None and found.dtype is not dtypes.as_dtype(dtype):
            raise errors.DTypeError(
                "the SparseTensor is of another dtype", expected=dtypes.as_dtype(dtype).name, got=found.dtype.name
            )
        return found
    return _ops.convert_to_tensor(value, dtype, name)


def sparse_placeholder(dtype: DTypeLike, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A SparseTensor that is always fed: a SparseTensorValue, or a tuple ``(indices, values, dense_shape)``.

    Args:
      shape: the shape, None for dims that are not known; without it the rank is not known either.
    """
    prefix = "" if name is None else f"{name}/"
    static = None if shape is None or is_tensor(shape) else _tf.TensorShape(shape)
    rank: int | None = None
    if is_tensor(shape):
        dense = _ops.cast(_ops.convert_to_tensor(shape), dtypes.int64)
        dims = static_shape(dense)
        rank = None if dims is None else dims[0]
    elif static is not None and static.is_fully_defined():
        rank, dense = static.rank, _ops.constant(np.array(static.as_list(), np.int64), name=f"{prefix}shape")
    else:
        rank = None if static is None else static.rank
        dense = _tf.placeholder(dtypes.int64, [rank], name=f"{prefix}shape")
    made = SparseTensor(
        _tf.placeholder(dtypes.int64, [None, rank], name=f"{prefix}indices"),
        _tf.placeholder(dtype, [None], name=f"{prefix}values"),
        dense,
    )
    made._static = static
    return made


def _refuse(value: SparseTensor, dtype: Any, name: str | None) -> Any:
    raise errors.DTypeError(
        f"the SparseTensor {value.name} is no Tensor",
        hint="tf.sparse.to_dense makes it one; tf.sparse has functions of its own",
    )


_ops.register_tensor_conversion_function(SparseTensor, _refuse)
