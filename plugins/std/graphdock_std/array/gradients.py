"""Gradient functions of the array ops that are more than a formula.

Each takes the operation and the gradients of its outputs (None for an output whose gradient is not needed), and returns
the gradient of the input that the spec names; for a list input, a list. Where shapes and axes are known statically, the
shapes of what is built are known too.
"""

from __future__ import annotations

from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import dtypes
from graphdock import ops as _ops

from graphdock_std.array import functions as _array
from graphdock_std.array import indexing as _indexing
from graphdock_std.grad_support import static_shape

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _value(tensor: Any) -> Any:
    """The array that a tensor always is, or None."""
    return tensor.op.get_attr("value") if tensor.op.type == "Const" else None


def _static(tensor: Any) -> Any:
    """The static shape when it is fully known, else None."""
    dims = static_shape(tensor)
    return None if dims is None or None in dims else dims


def _reshape(x: Any, shape: Any) -> Any:
    return _ops.apply_op("Reshape", x=x, shape=shape)


def _given(op: Any, grads: Any) -> list[Any]:
    """Gradients of all outputs, zeros where there is none."""
    return [_ops.zeros_like(o) if g is None else g for o, g in zip(op.outputs, grads, strict=True)]


def _inverse(perm: Any) -> Any:
    value = _value(perm)
    if value is not None:
        return np.argsort(value).astype(value.dtype)
    return _ops.apply_op("InvertPermutation", x=perm)


def transpose(op: Any, grad: Any) -> Any:
    return _ops.apply_op("Transpose", x=grad, perm=_inverse(op.inputs[1]))


def concat(op: Any, grad: Any) -> list[Any]:
    """The pieces of the gradient, cut at the sizes of the values."""
    *values, axis = op.inputs
    if len(values) == 1:
        return [grad]
    at = _value(axis)
    shapes = [static_shape(v) for v in values]
    if at is not None and all(s is not None and s[int(at)] is not None for s in shapes):
        sizes: Any = np.array([s[int(at)] for s in shapes], np.int32)  # type: ignore[index]
    else:
        rank = next((len(s) for s in shapes if s is not None), None)
        index = _ops.cast(axis, dtypes.int32)
        total = _array.rank(values[0]) if rank is None else rank
        index = _ops.apply_op("FloorMod", x=index, y=total)
        sizes = _array.stack([_indexing.gather(_ops.shape(v), index) for v in values])
    parts = _ops.apply_op("SplitV", value=grad, size_splits=sizes, axis=axis, num_split=len(values))
    for part, shape in zip(parts, shapes, strict=True):
        if shape is not None:
            part.set_shape(shape)
    return list(parts)


def split(op: Any, *grads: Any) -> Any:
    return _array.concat(_given(op, grads), op.inputs[0])


def split_v(op: Any, *grads: Any) -> Any:
    return _array.concat(_given(op, grads), op.inputs[2])


def pack(op: Any, grad: Any) -> list[Any]:
    return _array.unstack(grad, len(op.inputs), op.get_attr("axis"))


def unpack(op: Any, *grads: Any) -> Any:
    if not op.outputs:
        return _ops.zeros_like(op.inputs[0])
    return _array.stack(_given(op, grads), op.get_attr("axis"))


def slice_(op: Any, grad: Any) -> Any:
    """The gradient inside of a margin of zeros."""
    x, begin, _ = op.inputs
    shape, first, cut = _static(x), _value(begin), _static(op.outputs[0])
    if shape is not None and first is not None and cut is not None:
        paddings: Any = np.array(
            [(b, n - b - c) for n, b, c in zip(shape, first.tolist(), cut, strict=True)], np.int32
        ).reshape(-1, 2)
    else:
        begin = _ops.cast(begin, dtypes.int32)
        paddings = _array.stack([begin, _ops.shape(x) - begin - _ops.shape(op.outputs[0])], 1)
    padded = _array.pad(grad, paddings)
    padded.set_shape(x.shape)
    return padded


def strided_slice(op: Any, grad: Any) -> Any:
    x, begin, end, strides = op.inputs
    masks = {m: op.get_attr(m) for m in _MASKS}
    shape = _ops.shape(x, out_type=begin.dtype)
    return _ops.apply_op("StridedSliceGrad", shape=shape, begin=begin, end=end, strides=strides, dy=grad, **masks)


def strided_slice_grad(op: Any, grad: Any) -> Any:
    _, begin, end, strides, _ = op.inputs
    masks = {m: op.get_attr(m) for m in _MASKS}
    return _ops.apply_op("StridedSlice", x=grad, begin=begin, end=end, strides=strides, **masks)


def gather_nd(op: Any, grad: Any) -> Any:
    """IndexedSlices where each index is known to name a row, as TensorFlow has it; else a dense sum over the indices."""
    params, indices = op.inputs
    shape = _ops.cast(_ops.shape(params), indices.dtype)
    dims = static_shape(indices)
    if dims is not None and len(dims) == 2 and dims[1] == 1:
        return _tf.IndexedSlices(grad, _ops.apply_op("Squeeze", x=indices, axis=[1]), shape)
    return _tf.scatter_nd(indices, grad, shape)


def gather(op: Any, grad: Any) -> Any:
    """IndexedSlices along axis 0; else a dense sum over the indices, with the axis moved to the front and back."""
    params, indices, axis = op.inputs
    at, dims, index_dims = _value(axis), static_shape(params), static_shape(indices)
    if at is not None and (int(at) == 0 or (dims is not None and int(at) == -len(dims))):
        shape = _ops.shape(params)
        if index_dims is None or len(index_dims) != 1:
            rest = None if dims is None else dims[1:]
            if rest is not None and None not in rest and 0 not in rest:
                grad = _reshape(grad, [-1, *rest])
            else:
                grad = _reshape(grad, _array.concat([_array.stack([_array.size(indices)]), shape[1:]], 0))
            indices = _reshape(indices, [-1])
        return _tf.IndexedSlices(grad, indices, shape)
    if at is not None and dims is not None and index_dims is not None:
        k, r = int(at) % len(dims), len(index_dims)
        rank = len(dims) - 1 + r
        forward: Any = [*range(k, k + r), *range(k), *range(k + r, rank)]
        back: Any = [*range(1, k + 1), 0, *range(k + 1, len(dims))]
    else:
        axis = _ops.apply_op("FloorMod", x=_ops.cast(axis, dtypes.int32), y=_array.rank(params))
        r, rank = _array.rank(indices), _array.rank(grad)
        forward = _array.concat([_array.range(axis, axis + r), _array.range(0, axis), _array.range(axis + r, rank)], 0)
        back = _array.concat([_array.range(1, axis + 1), [0], _array.range(axis + 1, _array.rank(params))], 0)
    count = _ops.shape(params)[axis if at is None else int(at)]
    if dims is not None and at is not None and dims[int(at)] is not None:
        count = dims[int(at)]
    moved = _ops.apply_op("Transpose", x=grad, perm=forward)
    total = _ops.apply_op("UnsortedSegmentSum", data=moved, segment_ids=indices, num_segments=count)
    result = _ops.apply_op("Transpose", x=total, perm=back)
    result.set_shape(params.shape)
    return result


def unsorted_segment_sum(op: Any, grad: Any) -> Any:
    """Each row of data gets its segment's gradient; rows with a negative id get zeros."""
    data, ids, _ = op.inputs
    value = _value(ids)
    if value is not None and (value.size == 0 or value.min() >= 0):
        return _indexing.gather(grad, ids)
    taken = _indexing.gather(grad, _ops.apply_op("Maximum", x=ids, y=_ops.zeros_like(ids)))
    keep = _ops.apply_op("GreaterEqual", x=ids, y=_ops.zeros_like(ids))
    rows, dims = static_shape(ids), static_shape(data)
    if rows is not None and dims is not None:
        ones = [1] * (len(dims) - len(rows))
        shape: Any = _array.concat([_ops.shape(ids), ones], 0) if ones else _ops.shape(ids)
    else:
        extra = _ops.apply_op("ExpandDims", x=_array.rank(data) - _array.rank(ids), axis=0)
        shape = _array.concat([_ops.shape(ids), _ops.apply_op("Fill", dims=extra, value=1)], 0)
    return _ops.apply_op("Select", condition=_reshape(keep, shape), x=taken, y=_ops.zeros_like(taken))


def tile(op: Any, grad: Any) -> Any:
    """The sum over the copies: the gradient as [multiple, dim, multiple, dim, ...], summed over the multiples."""
    x, multiples = op.inputs
    dims, times = _static(x), _value(multiples)
    if dims is not None and times is not None:
        spread: Any = [v for pair in zip(times.tolist(), dims, strict=True) for v in pair]
        axes: Any = list(range(0, len(spread), 2))
    else:
        shape = _ops.cast(_ops.shape(x), multiples.dtype)
        spread = _reshape(_array.stack([multiples, shape], 1), [-1])
        axes = _array.range(0, _array.size(spread), 2)
    if dims == ():
        return grad
    total = _ops.apply_op("Sum", x=_reshape(grad, spread), axis=axes, keep_dims=False)
    total.set_shape(x.shape)
    return total


def pad_x(op: Any, grad: Any) -> Any:
    """The gradient without its margin; in a mirroring mode the margin is folded back first."""
    x, paddings, _ = op.inputs
    if op.get_attr("mode") != "constant":
        return _ops.apply_op("MirrorPadGrad", dy=grad, paddings=paddings, mode=op.get_attr("mode"))
    return _inner(x, paddings, grad)


def _inner(x: Any, paddings: Any, grad: Any) -> Any:
    value = _value(paddings)
    begin: Any = value[:, 0] if value is not None else _ops.cast(paddings, dtypes.int32)[:, 0]
    shape = _ops.shape(x, out_type=dtypes.as_dtype(begin.dtype))
    inner = _ops.apply_op("Slice", x=grad, begin=begin, size=shape)
    inner.set_shape(x.shape)
    return inner


def pad_constant(op: Any, grad: Any) -> Any:
    """The sum over the margin."""
    x, paddings, value = op.inputs
    if op.get_attr("mode") != "constant":
        return _ops.zeros_like(value)
    blank = _array.pad(_ops.zeros_like(x), paddings, constant_values=_ops.ones_like(value))
    return _sum(grad * blank)


def _sum(x: Any) -> Any:
    """The sum of all elements."""
    dims = static_shape(x)
    axes: Any = list(range(len(dims))) if dims is not None else _array.range(0, _array.rank(x))
    return _ops.apply_op("Sum", x=x, axis=np.array(axes, np.int32) if isinstance(axes, list) else axes, keep_dims=False)


def mirror_pad_grad(op: Any, grad: Any) -> Any:
    return _array.pad(grad, op.inputs[1], op.get_attr("mode"))


def range_delta(op: Any, grad: Any) -> Any:
    """Element i is start + i delta."""
    start, _, delta = op.inputs
    return _sum(grad * ((op.outputs[0] - start) / delta))


def _fractions(op: Any) -> Any:
    """0 to 1 in steps of 1 / (num - 1), in the op's dtype."""
    start, _, num = op.inputs
    return _ops.apply_op("LinSpace", start=_ops.zeros_like(start), stop=_ops.ones_like(start), num=num)


def lin_space_start(op: Any, grad: Any) -> Any:
    return _sum(grad * (1 - _fractions(op)))


def lin_space_stop(op: Any, grad: Any) -> Any:
    return _sum(grad * _fractions(op))


def matrix_diag_part(op: Any, grad: Any) -> Any:
    """The gradient on the diagonal of a square matrix, with a margin of zeros where the input is not square."""
    x = op.inputs[0]
    square = _ops.apply_op("MatrixDiag", diagonal=grad)
    dims = static_shape(x)
    if dims is not None and None not in dims[-2:]:
        m, n = dims[-2:]
        if m == n:
            return square
        k = min(m, n)  # type: ignore[type-var]
        paddings: Any = np.array([[0, 0]] * (len(dims) - 2) + [[0, m - k], [0, n - k]], np.int32)  # type: ignore[operator]
    else:
        after = _ops.shape(x) - _ops.shape(square)
        paddings = _array.stack([_ops.zeros_like(after), after], 1)
    padded = _array.pad(square, paddings)
    padded.set_shape(x.shape)
    return padded


def dynamic_partition(op: Any, *grads: Any) -> Any:
    """The slices back in their first order, by partitioning their numbers in the same way."""
    data, partitions = op.inputs
    count = _array.size(partitions)
    numbers = _reshape(_array.range(count), _ops.shape(partitions))
    places = _ops.apply_op(
        "DynamicPartition", data=numbers, partitions=partitions, num_partitions=op.get_attr("num_partitions")
    )
    whole = _ops.apply_op("DynamicStitch", indices=places, data=_given(op, grads))
    result = _reshape(whole, _ops.shape(data))
    result.set_shape(data.shape)
    return result


def dynamic_stitch(op: Any, grad: Any) -> list[Any]:
    """Each slice gets the gradient of its row, if a later one did not take the row over."""
    indices, data = op.arg("indices"), op.arg("data")
    counts = [_array.size(i) for i in indices]
    flat = [_reshape(i, [-1]) for i in indices]
    numbers, start = [], _ops.constant(0, dtypes.int32)
    for n in counts:
        numbers.append(_array.range(start, start + n))
        start = start + n
    owner = _ops.apply_op("DynamicStitch", indices=flat, data=numbers)
    grads = []
    for where, mine, values, shape in zip(flat, numbers, data, indices, strict=True):
        rows = _indexing.gather(grad, where)
        kept = _ops.apply_op("Equal", x=_indexing.gather(owner, where), y=mine)
        rest = _ops.shape(values)[_array.rank(shape) :]
        ones = _ops.apply_op("Fill", dims=_ops.shape(rest), value=1)
        mask = _reshape(kept, _array.concat([_ops.shape(mine), ones], 0))
        found = _ops.apply_op("Select", condition=mask, x=rows, y=_ops.zeros_like(rows))
        found = _reshape(found, _ops.shape(values))
        found.set_shape(values.shape)
        grads.append(found)
    return grads
