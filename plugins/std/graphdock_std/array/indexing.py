"""Public functions that index: ``x[...]``, gather, strided_slice, where, one_hot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock import dtypes, errors
from graphdock import ops as _ops
from graphdock.typing import DTypeLike, TensorLike

from graphdock_std.grad_support import is_tensor, static_shape


def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: TensorLike | None = None,
    batch_dims: int = 0,
) -> _ops.Tensor:
    """Slices of ``params`` along an axis, one per index; an index outside of it is an error in the step.

    Args:
      params: a tensor of rank 1 or more.
      indices: int32 or int64, of any shape.
      validate_indices: taken for TensorFlow's sake; indices are always checked.
      axis: the axis, by default ``batch_dims``.
      batch_dims: the number of leading dims that both share: each slice of ``indices`` chooses from its own slice of ``params``.

    Returns:
      A tensor of shape ``params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]``.
    """
    if not batch_dims:
        return _ops.apply_op("Gather", params=params, indices=indices, axis=0 if axis is None else axis, name=name)  # type: ignore[no-any-return]
    with _ops.name_scope(name or "GatherV2"):
        x, at = _ops.convert_to_tensor(params), _ops.convert_to_tensor(indices, preferred_dtype=dtypes.int32)
        dims, index_dims = static_shape(x), static_shape(at)
        if index_dims is None or (dims is None and axis is not None):
            raise errors.InvalidArgumentError(
                "gather with batch_dims needs tensors of known rank", hint="use set_shape"
            )
        lead = batch_dims + len(index_dims) if batch_dims < 0 else batch_dims
        along = lead if axis is None or dims is None else _constant_axis(axis, len(dims))
        if not 0 <= lead <= min(len(index_dims), along):
            raise errors.InvalidArgumentError(
                f"batch_dims is {batch_dims} for indices of rank {len(index_dims)} and axis {along}",
                expected="at most either",
            )
        if along != lead and dims is not None:
            x = _ops.apply_op(
                "Transpose", x=x, perm=[*range(lead), along, *(i for i in range(lead, len(dims)) if i != along)]
            )
        found = _ops.apply_op("GatherNd", params=x, indices=batch_tuples(at, lead))
        if dims is not None:
            both = zip(dims[:lead], index_dims[:lead], strict=True)
            found.set_shape([*(i if p is None else p for p, i in both), *found.shape.as_list()[lead:]])
        if along == lead or dims is None:
            return found  # type: ignore[no-any-return]
        extra = len(index_dims) - lead
        middle = range(lead + extra, extra + along)
        rest = range(extra + along, extra + len(dims) - 1)
        return _ops.apply_op("Transpose", x=found, perm=[*range(lead), *middle, *range(lead, lead + extra), *rest])  # type: ignore[no-any-return]


def _constant_axis(axis: Any, rank: int) -> int:
    value = axis
    if is_tensor(axis):
        tensor = _ops.convert_to_tensor(axis)
        value = tensor.op.get_attr("value") if tensor.op.type == "Const" else None
    if value is None:
        raise errors.InvalidArgumentError("gather with batch_dims needs an axis that is a Python integer")
    if not -rank <= int(value) < rank:
        raise errors.ShapeError(f"axis {int(value)} is out of bounds for rank {rank}")
    return int(value) % rank


def batch_gather(params: TensorLike, indices: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``gather`` whose batch dims are all dims of ``indices`` but the last."""
    with _ops.name_scope(name or "BatchGather"):
        at = _ops.convert_to_tensor(indices, preferred_dtype=dtypes.int32)
        dims = static_shape(at)
        if dims is None:
            raise errors.InvalidArgumentError("batch_gather needs indices of known rank", hint="use set_shape")
        return gather(params, at, batch_dims=len(dims) - 1)


def gather_nd(params: TensorLike, indices: TensorLike, name: str | None = None, batch_dims: int = 0) -> _ops.Tensor:
    """Slices of ``params``, each chosen by an index tuple along the last axis of ``indices``.

    Args:
      params: any tensor.
      indices: int32 or int64; an index out of range is an error in the step.
      batch_dims: the number of leading dims that both share.

    Returns:
      A tensor of shape ``indices.shape[:-1] + params.shape[batch_dims + indices.shape[-1]:]``.
    """
    if not batch_dims:
        return _ops.apply_op("GatherNd", params=params, indices=indices, name=name)  # type: ignore[no-any-return]
    with _ops.name_scope(name or "GatherNd"):
        at = _ops.convert_to_tensor(indices, preferred_dtype=dtypes.int32)
        return _ops.apply_op("GatherNd", params=params, indices=batch_tuples(at, batch_dims, True))  # type: ignore[no-any-return]


def batch_tuples(indices: _ops.Tensor, lead: int, tuples: bool = False) -> _ops.Tensor:
    """Index tuples that begin with the place in the first ``lead`` axes of ``indices``, which are a batch.

    Args:
      tuples: each vector along the last axis of ``indices`` is an index tuple already; otherwise each element is an index.

    Raises:
      InvalidArgumentError: the rank of ``indices`` is not known, or too small.
    """
    dims = static_shape(indices)
    if dims is None or len(dims) < lead + tuples:
        raise errors.InvalidArgumentError(
            f"indices of a batch over {lead} axes need a known rank of {lead + tuples} or more", got=str(indices.shape)
        )
    inner = len(dims) - tuples
    shape = _ops.shape(indices, out_type=indices.dtype)
    columns = []
    for axis in range(lead):
        numbers = _ops.apply_op("Range", start=0, limit=shape[axis], delta=1, Tidx=indices.dtype)
        column = _ops.apply_op("Reshape", x=numbers, shape=[-1 if i == axis else 1 for i in range(inner)])
        whole = _ops.apply_op("BroadcastTo", x=column, shape=shape[:inner])
        columns.append(_ops.apply_op("ExpandDims", x=whole, axis=-1))
    last = indices if tuples else _ops.apply_op("ExpandDims", x=indices, axis=-1)
    return _ops.apply_op("Concat", values=[*columns, last], axis=-1) if columns else last  # type: ignore[no-any-return]


def strided_slice(
    input_: TensorLike,
    begin: TensorLike,
    end: TensorLike,
    strides: TensorLike | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    name: str | None = None,
) -> _ops.Tensor:
    """``input_[begin:end:strides]`` along its first axes; ``x[...]`` is the readable form. Strides are 1 by default."""
    begin = _ops.convert_to_tensor(begin, preferred_dtype=dtypes.int32)
    if strides is None:
        dims = static_shape(begin)
        strides = (
            _ops.constant(np.ones(dims, begin.dtype.np))
            if dims is not None and None not in dims
            else _ops.ones_like(begin)
        )
    return _ops.apply_op(
        "StridedSlice",
        x=input_,
        begin=begin,
        end=end,
        strides=strides,
        begin_mask=begin_mask,
        end_mask=end_mask,
        ellipsis_mask=ellipsis_mask,
        new_axis_mask=new_axis_mask,
        shrink_axis_mask=shrink_axis_mask,
        name=name,
    )


def getitem(tensor: Any, key: Any, name: str | None = None) -> Any:
    """``tensor[key]``, NumPy's basic indexing.

    A key holds integers, slices with any step, ``...``, None (``tf.newaxis``) and scalar integer tensors.

    Raises:
      InvalidArgumentError: lists, arrays and masks as indices; the message names the function that does it.
    """
    bounds: list[tuple[Any, Any, Any]] = []
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    for i, item in enumerate(key if isinstance(key, tuple) else (key,)):
        bit = 1 << i
        if item is Ellipsis:
            masks["ellipsis_mask"] |= bit
            bounds.append((0, 0, 1))
        elif item is None:
            masks["new_axis_mask"] |= bit
            bounds.append((0, 0, 1))
        elif isinstance(item, slice):
            masks["begin_mask"] |= bit if item.start is None else 0
            masks["end_mask"] |= bit if item.stop is None else 0
            parts = (item.start, item.stop, item.step)
            bounds.append(
                tuple(default if p is None else _index(p) for p, default in zip(parts, (0, 0, 1), strict=True))
            )  # type: ignore[arg-type]
        else:
            masks["shrink_axis_mask"] |= bit
            at = _index(item)
            bounds.append((at, at if is_tensor(at) else at + 1, 1))
    with _ops.name_scope(name or "strided_slice") as scope:
        begin, end, strides = _bounds(bounds)
        return _ops.apply_op("StridedSlice", x=tensor, begin=begin, end=end, strides=strides, name=scope, **masks)


def _index(item: Any) -> Any:
    """One index: a Python int, or a scalar integer tensor."""
    if isinstance(item, (bool, np.bool_)):
        raise errors.ArgumentTypeError("a bool is not an index", hint="use tf.where and tf.gather_nd for masks")
    if isinstance(item, (int, np.integer)):
        if not -(2**63) <= item < 2**63 - 1:
            raise errors.OutOfRangeError(f"the index {item} does not fit into int64")
        return int(item)
    if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
        return int(item)
    if isinstance(item, (list, np.ndarray)):
        raise errors.InvalidArgumentError(
            f"a {type(item).__name__} is not an index of a tensor", hint="use tf.gather or tf.gather_nd"
        )
    if not is_tensor(item):
        raise errors.ArgumentTypeError(
            f"{item!r} is not an index", expected="an integer, a slice, ..., None or a scalar tensor"
        )
    tensor = _ops.convert_to_tensor(item)
    if not tensor.dtype.is_integer:
        raise errors.DTypeError(
            f"tensor {tensor.name} is not an index", expected="an integer dtype", got=tensor.dtype.name
        )
    dims = static_shape(tensor)
    if dims is not None and dims != ():
        raise errors.InvalidArgumentError(
            f"tensor {tensor.name} of shape {tensor.shape} is not an index", hint="use tf.gather or tf.gather_nd"
        )
    return tensor


def _bounds(items: Sequence[tuple[Any, Any, Any]]) -> list[Any]:
    """begin, end and strides: constants where all is Python integers, else stacks of one dtype."""
    flat = [v for item in items for v in item]
    tensors = [v for v in flat if is_tensor(v)]
    wide = any(t.dtype.size == 8 or t.dtype.name == "uint32" for t in tensors)
    wide = wide or any(not -(2**31) <= v < 2**31 for v in flat if not is_tensor(v))
    dtype = dtypes.int64 if wide else dtypes.int32
    out = []
    for column in zip(*items, strict=True) if items else [(), (), ()]:
        if any(is_tensor(v) for v in column):
            parts = [_ops.cast(v, dtype) if is_tensor(v) else _ops.constant(v, dtype) for v in column]
            out.append(_ops.apply_op("Pack", values=parts, name="stack"))
        else:
            out.append(_ops.constant(np.array(column, dtype.np), name="stack"))
    return out


def where(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> _ops.Tensor:
    """Elements of ``x`` where the condition holds, of ``y`` elsewhere; without both, the indices where it holds.

    Args:
      condition: bool, of the shape of ``x`` and ``y``; a vector chooses whole rows of tensors of rank 2 or more. Without ``x`` and
        ``y`` any dtype: what is not zero holds.
      x, y: tensors of one dtype. Shapes that are known to differ broadcast; a dim that only one of them knows is that of both.
        :func:`tf.where_v2` broadcasts with unknown dims and with a vector as well.

    Returns:
      With ``x`` and ``y``: their shape. Without: int64, ``[number of true elements, rank]``, in row-major order.
    """
    if (x is None) != (y is None):
        raise errors.InvalidArgumentError("where takes both x and y, or neither")
    if x is None:
        return _ops.apply_op("Where", condition=condition, name=name)  # type: ignore[no-any-return]
    mask = _ops.convert_to_tensor(condition, dtypes.bool_)
    first = x if is_tensor(x) or not is_tensor(y) else _ops.convert_to_tensor(x, _ops.convert_to_tensor(y).dtype)
    a = _ops.convert_to_tensor(first)
    b = _ops.convert_to_tensor(y, a.dtype)
    result = _select(mask, a, b, name)
    # unknown dims are those of the other: what broadcasts is known when the graph is built
    if static_shape(a) != () != static_shape(b) and a.shape.is_compatible_with(b.shape):
        result.set_shape(a.shape.merge_with(b.shape))
    return result


def _select(mask: Any, a: Any, b: Any, name: str | None) -> Any:
    """Elements of ``a`` and ``b``, or their rows if the mask is a vector and they are no vectors."""
    dims = static_shape(mask)
    if dims is not None and len(dims) != 1:
        return _ops.apply_op("Select", condition=mask, x=a, y=b, name=name)
    ranks = [None if static_shape(t) is None else len(static_shape(t) or ()) for t in (a, b)]
    if dims is not None and None not in ranks and max(r or 0 for r in ranks) < 2:
        return _ops.apply_op("Select", condition=mask, x=a, y=b, name=name)
    with _ops.name_scope(name or "Select"):
        rows = _ops.apply_op("Reshape", x=mask, shape=_over_rows(mask, a, b, ranks))
        return _ops.apply_op("Select", condition=rows, x=a, y=b)


def _over_rows(mask: Any, a: Any, b: Any, ranks: Sequence[int | None]) -> Any:
    """The shape of a condition with as many dims of 1 behind it, if it is a vector, as make it choose rows of a and b."""
    dims = static_shape(mask)
    if dims is not None and None not in ranks:
        rank = max(r or 0 for r in ranks)
        if dims[0] is not None:
            return [dims[0]] + [1] * (rank - 1)
        return [-1] + [1] * (rank - 1)
    rank = _ops.apply_op("Maximum", x=_ops.apply_op("Rank", input=a), y=_ops.apply_op("Rank", input=b))
    more = _ops.apply_op("Maximum", x=rank - 1, y=0)
    if dims is None:
        more = more * _ops.cast(_ops.apply_op("Equal", x=_ops.apply_op("Rank", input=mask), y=1), dtypes.int32)
    ones = _ops.apply_op("Fill", dims=_ops.apply_op("ExpandDims", x=more, axis=0), value=1)
    return _ops.apply_op("Concat", values=[_ops.shape(mask), ones], axis=0)


def where_v2(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> _ops.Tensor:
    """As :func:`where`, but the three broadcast as NumPy does: a vector chooses columns."""
    if (x is None) != (y is None):
        raise errors.InvalidArgumentError("where takes both x and y, or neither")
    if x is None:
        return _ops.apply_op("Where", condition=condition, name=name)  # type: ignore[no-any-return]
    return _ops.apply_op("Select", condition=condition, x=x, y=y, name=name)  # type: ignore[no-any-return]


def boolean_mask(
    tensor: TensorLike, mask: TensorLike, name: str = "boolean_mask", axis: int | None = None
) -> _ops.Tensor:
    """The slices of ``tensor`` at which a mask is true.

    Args:
      tensor: of rank ``axis + rank(mask)`` or more.
      mask: bool, of known rank K of 1 or more; its shape is that of ``tensor`` from ``axis`` on, for K dims.
      axis: where the mask begins, 0 by default.

    Returns:
      A tensor with one dim, the number of true elements, in place of the K dims.

    Raises:
      InvalidArgumentError: a mask that is a scalar or of unknown rank.
      ShapeError: shapes that do not fit.
    """
    with _ops.name_scope(name or "boolean_mask"):
        x, chosen = _ops.convert_to_tensor(tensor), _ops.convert_to_tensor(mask, dtypes.bool_)
        dims, mask_dims = static_shape(x), static_shape(chosen)
        if mask_dims is None:
            raise errors.InvalidArgumentError("boolean_mask needs a mask of known rank", hint="use set_shape")
        if not mask_dims:
            raise errors.InvalidArgumentError("boolean_mask: the mask is a scalar", expected="rank 1 or more")
        at = 0 if axis is None else int(axis)
        count = len(mask_dims)
        if at < 0:
            if dims is None:
                raise errors.InvalidArgumentError("boolean_mask with a negative axis needs a tensor of known rank")
            at += len(dims)
        if dims is not None:
            found = dims[at : at + count]
            if len(found) != count or any(
                a is not None and b is not None and a != b for a, b in zip(found, mask_dims, strict=True)
            ):
                raise errors.ShapeError(
                    f"boolean_mask: the mask has shape {chosen.shape}",
                    expected=f"that of the tensor, {x.shape}, from axis {at} on",
                )
        if count > 1:
            shape = _ops.shape(x)
            size = _ops.apply_op("Prod", x=shape[at : at + count], axis=[0], keep_dims=True)
            x = _ops.apply_op(
                "Reshape", x=x, shape=_ops.apply_op("Concat", values=[shape[:at], size, shape[at + count :]], axis=0)
            )
            if dims is not None:
                joined = dims[at : at + count]
                whole = None if None in joined else int(np.prod(joined, dtype=np.int64))
                x.set_shape([*dims[:at], whole, *dims[at + count :]])
            chosen = _ops.apply_op("Reshape", x=chosen, shape=[-1])
        places = _ops.apply_op("Squeeze", x=_ops.apply_op("Where", condition=chosen), axis=[1])
        return gather(x, places, axis=at)


def one_hot(
    indices: TensorLike,
    depth: TensorLike,
    on_value: TensorLike | None = None,
    off_value: TensorLike | None = None,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """``on_value`` (1) at the index and ``off_value`` (0) elsewhere along a new axis (the last); float32 by default."""
    found = next((v.dtype for v in (on_value, off_value) if is_tensor(v)), None)
    if dtype is None and found is None:
        given = [_ops.convert_to_tensor(v).dtype for v in (on_value, off_value) if v is not None]
        if len(given) == 2 and given[0] is not given[1]:
            raise errors.DTypeError(
                "one_hot: on_value and off_value differ in dtype", expected=given[0].name, got=given[1].name
            )
        found = given[0] if given else dtypes.float32
    wanted = found if dtype is None else dtypes.as_dtype(dtype)
    if found is not None and wanted is not found:
        raise errors.DTypeError(f"on_value or off_value is {found.name}", expected=wanted.name, got=found.name)  # type: ignore[union-attr]
    values = [
        _ops.convert_to_tensor(default if v is None else v, dtype=wanted)
        for v, default in ((on_value, 1), (off_value, 0))
    ]
    return _ops.apply_op(
        "OneHot",
        indices=indices,
        depth=depth,
        on_value=values[0],
        off_value=values[1],
        axis=-1 if axis is None else axis,
        name=name or "one_hot",
    )
