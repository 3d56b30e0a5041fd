"""Sparse tensors in another order or shape, and parts of them."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import dtypes, errors
from graphdock import ops as _ops
from graphdock.typing import DTypeLike, TensorLike

from graphdock_std.grad_support import static_shape
from graphdock_std.sparse.tensor import SparseTensor, SparseTensorValue, as_sparse

Sparse = SparseTensor | SparseTensorValue


def sparse_reorder(sp_input: Sparse, name: str | None = None) -> SparseTensor:
    """The elements in row-major order; those of one place stay in their order."""
    sp = as_sparse(sp_input)
    indices, values = _ops.apply_op(
        "SparseReorder", input_indices=sp.indices, input_values=sp.values, input_shape=sp.dense_shape, name=name
    )
    return sp._with_elements(indices, values)


def sparse_reshape(sp_input: Sparse, shape: TensorLike, name: str | None = None) -> SparseTensor:
    """The same elements under another shape, of which one dim may be -1."""
    sp = as_sparse(sp_input)
    wanted = _ops.cast(_ops.convert_to_tensor(shape, preferred_dtype=dtypes.int64), dtypes.int64)
    indices, found = _ops.apply_op(
        "SparseReshape", input_indices=sp.indices, input_shape=sp.dense_shape, new_shape=wanted, name=name
    )
    return SparseTensor(indices, sp.values, found)


def sparse_transpose(sp_input: Sparse, perm: TensorLike | None = None, name: str | None = None) -> SparseTensor:
    """The axes in another order, by default reversed; in row-major order.

    Raises:
      ShapeError, InvalidArgumentError in the step: ``perm`` does not name each axis once.
    """
    with _ops.name_scope(name or "SparseTranspose"):
        sp = as_sparse(sp_input)
        rank, size = sp._rank(), _tf.size(sp.dense_shape)
        if perm is None:
            perm = np.arange(rank)[::-1].astype(np.int32) if rank is not None else size - 1 - _tf.range(size)
        order = _ops.convert_to_tensor(perm)
        axes = order.graph._known(order)
        known = isinstance(axes, tuple) and all(isinstance(a, int) for a in axes)
        if rank is not None and known and set(axes) != {*range(rank)} or known and len(axes) != len(set(axes)):
            raise errors.ShapeError(f"perm {list(axes)} does not name each axis of rank {rank} once")
        if rank is None or not known:
            whole = _tf.Assert(_tf.equal(_tf.size(order), size), ["perm does not name each axis once:", order])
            with _ops.control_dependencies([whole]):
                order = _tf.invert_permutation(_tf.invert_permutation(order))  # refuses what is no permutation
        turned = SparseTensor(_tf.gather(sp.indices, order, axis=1), sp.values, _tf.gather(sp.dense_shape, order))
        dims = sp.shape.as_list() if sp.shape.rank is not None else None
        if dims is not None and known:
            turned._static = _tf.TensorShape([dims[a] for a in axes])
        return sparse_reorder(turned)


def sparse_expand_dims(sp_input: Sparse, axis: int | None = None, name: str | None = None) -> SparseTensor:
    """A dim of 1 put in at an axis, by default the last; a negative one counts from the end of the result."""
    with _ops.name_scope(name or "expand_dims"):
        sp = as_sparse(sp_input)
        at = -1 if axis is None else axis
        rank = sp._rank()
        if rank is None:
            raise errors.InvalidArgumentError("sparse expand_dims needs a known rank", hint="use tf.sparse.reshape")
        if not -rank - 1 <= at <= rank:
            raise errors.ShapeError(f"axis {at} is out of bounds for a result of rank {rank + 1}")
        at %= rank + 1
        blank = _ops.zeros_like(sp.indices[:, :1])
        made = SparseTensor(
            _tf.concat([sp.indices[:, :at], blank, sp.indices[:, at:]], 1),
            sp.values,
            _tf.concat([sp.dense_shape[:at], np.ones(1, np.int64), sp.dense_shape[at:]], 0),
        )
        dims = sp.shape.as_list()
        made._static = _tf.TensorShape([*dims[:at], 1, *dims[at:]])
        return made


def sparse_eye(
    num_rows: int, num_columns: int | None = None, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """The identity matrix, sparse."""
    with _ops.name_scope(name or "eye"):
        columns = num_rows if num_columns is None else num_columns
        count = min(num_rows, columns)
        places = np.repeat(np.arange(count, dtype=np.int64)[:, None], 2, 1)
        return SparseTensor(places, _tf.ones([count], dtype), np.array([num_rows, columns], np.int64))


def sparse_retain(sp_input: Sparse, to_retain: TensorLike) -> SparseTensor:
    """The elements for which the bool vector ``to_retain`` is true."""
    sp = as_sparse(sp_input)
    keep = _ops.convert_to_tensor(to_retain, dtypes.bool_)
    if not keep.shape.is_compatible_with(sp.values.shape):
        raise errors.ShapeError(f"to_retain has shape {keep.shape}", expected=str(sp.values.shape))
    at = _tf.squeeze(_tf.where(keep), [1])
    return sp._with_elements(_tf.gather(sp.indices, at), _tf.gather(sp.values, at))


def sparse_slice(sp_input: Sparse, start: TensorLike, size: TensorLike, name: str | None = None) -> SparseTensor:
    """A box of a sparse tensor.

    Args:
      start: the first place of each axis.
      size: the size along each; what reaches beyond the shape is cut off.
    """
    with _ops.name_scope(name or "SparseSlice"):
        sp = as_sparse(sp_input)
        first = _ops.cast(_ops.convert_to_tensor(start, preferred_dtype=dtypes.int64), dtypes.int64)
        wanted = _ops.cast(_ops.convert_to_tensor(size, preferred_dtype=dtypes.int64), dtypes.int64)
        rank = static_shape(first)
        # as many numbers as there are axes, or an error
        first, wanted = (_tf.reshape(v, _tf.shape(sp.dense_shape)) for v in (first, wanted))
        length = _tf.maximum(_tf.minimum(wanted, sp.dense_shape - first), 0)
        inside = _tf.logical_and(_tf.greater_equal(sp.indices, first), _tf.less(sp.indices, first + length))
        found = sparse_retain(sp, _tf.reduce_all(inside, [1]))
        places = found.indices - first
        places.set_shape([None, rank[0] if rank else None])
        return SparseTensor(places, found.values, length)


def sparse_split(
    keyword_required: Any = None,
    sp_input: Sparse | None = None,
    num_split: int | None = None,
    axis: int | None = None,
    name: str | None = None,
    split_dim: int | None = None,
) -> list[SparseTensor]:
    """A sparse tensor cut along an axis into ``num_split`` parts; the first ones are one longer where it does not divide evenly.

    Arguments are given by keyword, as TensorFlow 1 wants it. ``split_dim`` is the old name of ``axis``.

    Raises:
      InvalidArgumentError: ``num_split`` is not between 1 and the size of the axis; in the step where only that knows it.
    """
    along = split_dim if axis is None else axis
    if keyword_required is not None or sp_input is None or num_split is None or along is None:
        raise errors.InvalidArgumentError("sparse_split needs sp_input=, num_split= and axis=, by keyword")
    if num_split < 1:
        raise errors.InvalidArgumentError("sparse_split: num_split must be at least 1", got=str(num_split))
    sp = as_sparse(sp_input)
    size = sp.shape[along] if sp.shape.rank is not None and -sp.shape.rank <= along < sp.shape.rank else None
    if size is not None and num_split > size:
        raise errors.InvalidArgumentError(
            f"sparse_split: num_split is {num_split}, but axis {along} has {size} elements"
        )
    with _ops.name_scope(name or "SparseSplit"):
        rank = _tf.size(sp.dense_shape)
        unit = _tf.one_hot(_tf.floormod(_ops.constant(along), rank), rank, dtype=dtypes.int64)
        whole = sp.dense_shape[along]
        if size is None:
            enough = _tf.Assert(
                _tf.less_equal(_ops.constant(num_split, dtypes.int64), whole),
                ["sparse_split: more parts than elements along the axis:", num_split, whole],
            )
            with _ops.control_dependencies([enough]):
                whole = _ops.identity(whole)
        short, longer = whole // num_split, whole % num_split
        parts = []
        for i in range(num_split):
            start = i * short + _tf.minimum(_ops.constant(i, dtypes.int64), longer)
            length = short + _ops.cast(_tf.less(_ops.constant(i, dtypes.int64), longer), dtypes.int64)
            parts.append(sparse_slice(sp, start * unit, sp.dense_shape * (1 - unit) + length * unit))
        return parts


def sparse_fill_empty_rows(
    sp_input: Sparse, default_value: TensorLike, name: str | None = None
) -> tuple[SparseTensor, _ops.Tensor]:
    """A default element at the beginning of each row that has none.

    Returns:
      The filled SparseTensor, and a bool vector that says which rows were empty.
    """
    sp = as_sparse(sp_input)
    default = _ops.convert_to_tensor(default_value, sp.dtype)
    found = _ops.apply_op(
        "SparseFillEmptyRows",
        indices=sp.indices,
        values=sp.values,
        dense_shape=sp.dense_shape,
        default_value=default,
        name=name,
    )
    if sp.shape.rank is not None:
        found[2].set_shape([sp.shape[0]])
    return sp._with_elements(found[0], found[1]), found[2]


def sparse_reset_shape(sp_input: Sparse, new_shape: TensorLike | None = None) -> SparseTensor:
    """The same elements in a larger shape, or by default in the smallest that holds them.

    Raises:
      InvalidArgumentError, ShapeError: a new shape of another rank, or smaller than the present one.
    """
    sp = as_sparse(sp_input)
    if new_shape is None:
        last = _tf.concat([sp.indices, -_ops.ones_like(_tf.expand_dims(sp.dense_shape, 0))], 0)
        return SparseTensor(sp.indices, sp.values, _tf.reduce_max(last, [0]) + 1)
    wanted = _ops.cast(_ops.convert_to_tensor(new_shape, preferred_dtype=dtypes.int64), dtypes.int64)
    rank = sp._rank()
    if rank is not None and not wanted.shape.is_compatible_with([rank]):
        raise errors.ShapeError(f"new_shape has shape {wanted.shape}", expected=f"[{rank}]")
    known, present = wanted.graph._known(wanted), sp.shape
    pairs = zip(known, present, strict=True) if isinstance(known, tuple) and present.rank == len(known) else ()
    if any(isinstance(d, int) and d < (p.value or 0) for d, p in pairs):
        raise errors.ShapeError("new_shape is smaller than the shape", expected=f"at least {present}", got=known)
    large = _tf.Assert(
        _tf.reduce_all(_tf.greater_equal(wanted, sp.dense_shape)),
        ["new_shape is smaller than the shape:", wanted, sp.dense_shape],
    )
    with _ops.control_dependencies([large]):
        return SparseTensor(sp.indices, sp.values, _ops.identity(wanted))


def sparse_mask(a: Any, mask_indices: TensorLike, name: str | None = None) -> _tf.IndexedSlices:
    """The rows of an IndexedSlices that ``mask_indices`` does not name."""
    if not isinstance(a, _tf.IndexedSlices):
        raise errors.DTypeError("sparse_mask takes IndexedSlices", got=f"a {type(a).__name__}")
    with _ops.name_scope(name or "sparse_mask"):
        left, at = _tf.setdiff1d(a.indices, _ops.convert_to_tensor(mask_indices, a.indices.dtype))
        return _tf.IndexedSlices(_tf.gather(a.values, at), left, a.dense_shape)
