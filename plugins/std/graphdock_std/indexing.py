"""Public functions that index: ``x[...]``, gather, strided_slice, where, one_hot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock import dtypes, errors
from graphdock import ops as _ops
from graphdock.typing import DTypeLike, TensorLike

from graphdock_std.grad_support import static_shape

__all__ = ["gather", "getitem", "is_tensor", "one_hot", "strided_slice", "where"]


def is_tensor(value: Any) -> bool:
    """A Tensor, or what becomes one by itself (a variable)."""
    return isinstance(getattr(value, "dtype", None), dtypes.DType)


def gather(params: TensorLike, indices: TensorLike, axis: TensorLike = 0, name: str | None = None) -> _ops.Tensor:
    """Slices of ``params`` along an axis, one per index; an index outside of it is an error in the step."""
    return _ops.apply_op("Gather", params=params, indices=indices, axis=axis, name=name)


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
        raise errors.InvalidArgumentError("a bool is not an index", hint="use tf.where and tf.gather_nd for masks")
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
        raise errors.InvalidArgumentError(
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
    """Elements of ``x`` where the condition holds, of ``y`` elsewhere; without both, the indices where it holds."""
    if (x is None) != (y is None):
        raise errors.InvalidArgumentError("where takes both x and y, or neither")
    if x is None:
        return _ops.apply_op("Where", condition=condition, name=name)
    return _ops.apply_op("Select", condition=condition, x=x, y=y, name=name)


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
