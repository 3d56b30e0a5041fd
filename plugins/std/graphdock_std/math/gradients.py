"""Gradient functions that are more than a formula: of powers and reductions.

TensorFlow's convention: the operation and the gradient of its output; returns the gradient of the input that the spec
names, or one per input where it names several.
"""

from __future__ import annotations

import math
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_std.grad_support import conjugate, static_shape, sum_to


def pow_grad(op: Any, grad: Any) -> tuple[Any, Any]:
    """``d x**y``: y x**(y-1) and x**y ln x.

    For a scalar constant y the first is as short as one would write it by hand. Else it is 0 where x and y are 0; the second
    is 0 where x is not positive, where it has no real value. Where no gradient arrives there is none, also where the
    derivative overflows.
    """
    x, y = op.inputs
    z = op.outputs[0]
    exponent = _constant(y)
    absent = _tf.equal(grad, 0)
    if exponent is None:
        reduced = _tf.select(_tf.logical_and(_tf.equal(x, 0), _tf.equal(y, 0)), 1, y - 1)
        to_x = _tf.select(absent, 0, grad * _tf.conj(y * _tf.pow(x, reduced)))
    elif exponent == 0:
        to_x = _ops.zeros_like(grad)
    elif exponent == 1:
        to_x = grad
    elif exponent == 2:
        to_x = grad * (2 * _tf.conj(x))
    else:
        to_x = grad * _tf.conj(exponent * _tf.pow(x, exponent - 1))
    unreal = _tf.equal(x, 0) if x.dtype.is_complex else x <= 0
    to_y = _tf.select(_tf.logical_or(unreal, absent), 0, grad * _tf.conj(z * _tf.log(_tf.select(unreal, 1, x))))
    return sum_to(to_x, x, y), sum_to(to_y, y, x)


def sum_grad(op: Any, grad: Any) -> Any:
    """Every element of x gets the gradient of the sum it went into."""
    return _spread(grad, op)


def mean_grad(op: Any, grad: Any) -> Any:
    """As for a sum, divided by the number of elements; the division is done before the gradient is spread."""
    count = _count(op)
    return _spread(grad / (count if isinstance(count, int) else _ops.cast(count, grad.dtype)), op)


def extremum_grad(op: Any, grad: Any) -> Any:
    """Equal extrema share the gradient, as in TensorFlow."""
    x, axis = op.inputs
    best = _kept(op.outputs[0], op)
    chosen = _ops.cast(_tf.equal(x, best), grad.dtype)
    number = _ops.apply_op("Sum", x=chosen, axis=axis, keep_dims=True)
    return chosen * (_kept(grad, op) / number)


def prod_grad(op: Any, grad: Any) -> Any:
    """The product of the other elements, right also where elements are zero: with one zero only that element has a
    gradient.
    """
    x, axis = op.inputs
    zero = _tf.equal(x, 0)
    ones = _tf.select(zero, 1, x)
    others = _ops.apply_op("Prod", x=ones, axis=axis, keep_dims=True) / ones
    zeros = _ops.cast(zero, grad.dtype)
    rest = _ops.apply_op("Sum", x=zeros, axis=axis, keep_dims=True) - zeros
    return _kept(grad, op) * _tf.conj(_tf.select(_tf.equal(rest, 0), others, 0))


def _constant(tensor: Any) -> float | int | None:
    """The number that a scalar constant holds."""
    if tensor.op.type != "Const":
        return None
    value = tensor.op.get_attr("value")
    return value.item() if value.size == 1 and value.ndim == 0 else None


def _spread(grad: Any, op: Any) -> Any:
    """``grad`` broadcast to the shape of x."""
    return _tf.broadcast_to(_kept(grad, op, scalar_is_enough=True), _ops.shape(op.inputs[0]))


def _kept(value: Any, op: Any, scalar_is_enough: bool = False) -> Any:
    """``value``, of the output's shape, with the reduced dims as 1, so that it broadcasts against x."""
    if op.get_attr("keep_dims"):
        return value
    x, axis = op.inputs
    shape, out = static_shape(x), static_shape(op.outputs[0])
    if scalar_is_enough and out == ():
        return value
    axes = _constant_axes(axis)
    if shape is None or axes is None:
        flags = _ops.apply_op("Any", x=_tf.equal(x, x), axis=axis, keep_dims=True)
        return _tf.reshape(value, _ops.shape(flags))
    reduced = sorted(a % len(shape) for a in axes)
    if reduced == list(range(len(reduced))):
        return value  # leading axes: broadcasting adds them by itself
    kept = [1 if i in reduced else -1 if d is None else d for i, d in enumerate(shape)]
    if len(reduced) > 1 and kept.count(-1) <= 1:
        return _tf.reshape(value, kept)
    for at in reduced:
        value = _tf.expand_dims(value, at)
    return value


def _constant_axes(axis: Any) -> list[int] | None:
    if axis.op.type != "Const":
        return None
    return [int(a) for a in axis.op.get_attr("value").reshape(-1)]


def _count(op: Any) -> Any:
    """Elements of x per element of the mean: an int where it is known, else a tensor."""
    x, axis = op.inputs
    shape, out, axes = static_shape(x), static_shape(op.outputs[0]), _constant_axes(axis)
    if shape is not None and axes is not None and None not in (dims := [shape[a] for a in axes]):
        return math.prod(dims)
    if out == ():
        return _tf.size(x)
    return _tf.floordiv(_tf.size(x), _tf.maximum(_tf.size(op.outputs[0]), 1))


def cumprod(op: Any, grad: Any) -> Any:
    """Sums of the products times the gradient over the element; at the first zero of a line by the products without it.

    From a second zero of a line on no product depends on the element.
    """
    x, axis = op.inputs
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
    one = _ops.constant(1, x.dtype)
    zero = _tf.equal(x, _ops.constant(0, x.dtype))
    before = _tf.cumsum(_ops.cast(zero, "int32"), axis, exclusive=True, reverse=reverse)
    first = _tf.logical_and(zero, _tf.equal(before, 0))

    def total(products: Any) -> Any:
        return _tf.cumsum(conjugate(products) * grad, axis, exclusive=exclusive, reverse=not reverse)

    plain = total(op.outputs[0]) / conjugate(_tf.select(zero, one, x))
    without = total(_tf.cumprod(_tf.select(first, one, x), axis, exclusive, reverse))
    return _tf.select(first, without, _tf.select(zero, _ops.zeros_like(x), plain))


def sum_of_products_a(op: Any, grad: Any) -> list[Any]:
    """Of each left matrix as of one product."""
    return [_of_product(op, grad, i, 0) for i in range(op.get_attr("N"))]


def sum_of_products_b(op: Any, grad: Any) -> list[Any]:
    """Of each right matrix as of one product."""
    return [_of_product(op, grad, i, 1) for i in range(op.get_attr("N"))]


def _of_product(op: Any, grad: Any, index: int, side: int) -> Any:
    """The gradient by a matrix of the product ``index``: the left one for side 0."""
    a, b = op.inputs[index], op.inputs[op.get_attr("N") + index]
    ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    if side == 0:
        made = _tf.matmul(_tf.conj(b), grad, tb, True) if ta else _tf.matmul(grad, _tf.conj(b), False, not tb)
        return sum_to(made, a, b, exact=2)
    made = _tf.matmul(grad, _tf.conj(a), True, ta) if tb else _tf.matmul(_tf.conj(a), grad, not ta)
    return sum_to(made, b, a, exact=2)


def stacked_products(op: Any, *stacks: Any) -> Any:
    """The sum of products of two matrices each, stacked, as one product of the stacks laid end to end along the dim summed over."""
    if any(static_shape(t) is None or len(static_shape(t) or ()) != 2 for t in op.inputs):
        return False
    if not stacks:
        return True
    turned = (op.get_attr("transpose_a"), not op.get_attr("transpose_b"))
    widths = static_shape(op.outputs[0])  # of no matrix at all the stack does not say it
    left, right = (_end_to_end(x, ready, width) for x, ready, width in zip(stacks, turned, widths or (), strict=True))
    return _tf.matmul(left, right, True)


def _end_to_end(stack: Any, ready: bool, width: int | None) -> Any:
    """Matrices one below the other, each transposed unless it is ready."""
    x = stack if ready else _tf.transpose(stack, [0, 2, 1])
    rows = -1 if width else _tf.reduce_prod(_tf.shape(x)[:2])  # nothing says how many rows without elements are
    return _tf.reshape(x, [rows, width])
