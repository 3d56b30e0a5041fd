"""``tensordot``: the product of two tensors summed over pairs of their axes, as one matrix product."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape


def tensordot(a: TensorLike, b: TensorLike, axes: Any, name: str | None = None) -> _ops.Tensor:
    """Contract axes of a with axes of b, as one matrix product.

    Args:
      axes: a number n (the last n of a with the first n of b), or a pair: axes of a, axes of b; also as an int32 tensor
        ``[2, n]``.

    Raises:
      ShapeError, InvalidArgumentError: the axes do not fit; at unknown rank when the step runs.
    """
    with _ops.name_scope(name, "Tensordot") as scope:
        a = _ops.convert_to_tensor(a)
        b = _ops.convert_to_tensor(b, a.dtype)
        shape_a, shape_b = static_shape(a), static_shape(b)
        if shape_a is None or shape_b is None or isinstance(axes, _tf.Tensor | _tf.Variable):
            return _tensordot_of_any_rank(a, b, axes, scope)
        if isinstance(axes, int):
            of_a, of_b = list(range(len(shape_a) - axes, len(shape_a))), list(range(axes))
        else:
            of_a, of_b = ([v] if isinstance(v, int) else list(v) for v in axes)
        if len(of_a) != len(of_b):
            raise InvalidArgumentError(
                "tensordot contracts pairs of axes", expected=f"{len(of_a)} axes of b", got=str(len(of_b))
            )
        of_a, of_b = [i % len(shape_a) for i in of_a], [i % len(shape_b) for i in of_b]
        free_a = [i for i in range(len(shape_a)) if i not in of_a]
        free_b = [i for i in range(len(shape_b)) if i not in of_b]
        left = _as_matrix(a, free_a, of_a)
        right = _as_matrix(b, of_b, free_b)
        product = _tf.matmul(left, right)
        dims = [shape_a[i] for i in free_a] + [shape_b[i] for i in free_b]
        if dims.count(None) <= 1:
            return _tf.reshape(product, [-1 if d is None else d for d in dims], name=scope)
        pieces = [_tf.gather(_ops.shape(t), free) for t, free in ((a, free_a), (b, free_b))]
        return _tf.reshape(product, _tf.concat(pieces, 0), name=scope)


def _tensordot_of_any_rank(a: Any, b: Any, axes: Any, name: str) -> Any:
    """As :func:`tensordot`, where the step finds the axes that are left."""
    if isinstance(axes, int):
        of_a, of_b = _tf.range(_tf.rank(a) - axes, _tf.rank(a)), _tf.range(axes)
    else:
        pairs = _tf.unstack(axes, 2) if isinstance(axes, _tf.Tensor | _tf.Variable) else axes
        pairs = [[v] if isinstance(v, int) else v for v in pairs]
        of_a, of_b = (
            _tf.floormod(_ops.convert_to_tensor(v, "int32"), _tf.rank(x)) for v, x in zip(pairs, (a, b), strict=True)
        )
    free_a, free_b = (_tf.setdiff1d(_tf.range(_tf.rank(x)), of)[0] for x, of in ((a, of_a), (b, of_b)))
    sizes_a, sizes_b = _tf.gather(_ops.shape(a), free_a), _tf.gather(_ops.shape(b), free_b)
    inner = _tf.reduce_prod(_tf.gather(_ops.shape(b), of_b))
    left = _tf.reshape(_tf.transpose(a, _tf.concat([free_a, of_a], 0)), _tf.stack([_tf.reduce_prod(sizes_a), inner]))
    right = _tf.reshape(_tf.transpose(b, _tf.concat([of_b, free_b], 0)), _tf.stack([inner, _tf.reduce_prod(sizes_b)]))
    return _tf.reshape(_tf.matmul(left, right), _tf.concat([sizes_a, sizes_b], 0), name=name)


def _as_matrix(x: Any, rows: list[int], columns: list[int]) -> Any:
    """``x`` with its axes in this order, the first group and the second each flattened."""
    shape = static_shape(x)
    assert shape is not None
    order = rows + columns
    if order != list(range(len(order))):
        x = _tf.transpose(x, order)
    sizes = [_product([shape[i] for i in group]) for group in (rows, columns)]
    if sizes.count(None) <= 1:
        return _tf.reshape(x, [-1 if s is None else s for s in sizes])
    dims = _ops.shape(x)
    height = _tf.reduce_prod(dims[: len(rows)])
    width = _tf.reduce_prod(dims[len(rows) :])
    return _tf.reshape(x, [height, width])


def _product(dims: list[int | None]) -> int | None:
    n = 1
    for d in dims:
        if d is None:
            return None
        n *= d
    return n
