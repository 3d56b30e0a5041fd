"""Limits on the size of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ShapeError
from graphdock.typing import TensorLike


def _values(item: Any) -> Any:
    return item.values if isinstance(item, _tf.IndexedSlices) else _ops.convert_to_tensor(item)


def _like(item: Any, values: Any) -> Any:
    """``values`` in place of those of ``item``, whose rows stay where they are."""
    return _tf.IndexedSlices(values, item.indices, item.dense_shape) if isinstance(item, _tf.IndexedSlices) else values


def clip_by_norm(t: TensorLike, clip_norm: TensorLike, axes: TensorLike | None = None, name: str | None = None) -> Any:
    """``t``, made shorter where its Euclidean norm is above ``clip_norm``.

    Args:
      t: floating tensor or IndexedSlices.
      clip_norm: positive number or tensor that broadcasts to ``t``.
      axes: axes over which to take the norm; default: all.

    Raises:
      ShapeError: ``clip_norm`` would broadcast ``t`` up.
    """
    with _tf.name_scope(name or "clip_by_norm") as scope:
        values = _values(t)
        limit = _ops.convert_to_tensor(clip_norm, values.dtype)
        squares = _tf.reduce_sum(values * values, axes, keepdims=True)
        # the root's gradient at zero is infinite: where there is nothing to clip the norm is taken of ones
        positive = squares > 0
        norm = _tf.sqrt(_tf.where(positive, squares, _ops.ones_like(squares)))
        norm = _tf.where(positive, norm, squares)
        scaled = values * limit
        if not scaled.shape.is_compatible_with(values.shape):
            raise ShapeError(
                "clip_by_norm: clip_norm would broadcast t up", expected=str(values.shape), got=str(scaled.shape)
            )
        return _like(t, _tf.truediv(scaled, _tf.maximum(norm, limit), name=scope))


def clip_by_average_norm(t: TensorLike, clip_norm: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``t``, made shorter where its Euclidean norm per element, the norm over the number of elements, is above ``clip_norm``.

    Args:
      t: floating tensor.
      clip_norm: positive number or scalar tensor.
    """
    with _tf.name_scope(name or "clip_by_average_norm") as scope:
        values = _ops.convert_to_tensor(t)
        limit = _ops.convert_to_tensor(clip_norm, values.dtype)
        count = _ops.cast(_tf.size(values), values.dtype)
        inverse = _tf.rsqrt(_tf.reduce_sum(values * values))
        return _tf.multiply(values * limit, _tf.minimum(inverse * count, 1.0 / limit), name=scope)


def global_norm(t_list: Sequence[Any], name: str | None = None) -> _ops.Tensor:
    """Root of the sum of the squares of all elements of all tensors; entries that are None are left out.

    Raises:
      InvalidArgumentError: there is no tensor.
    """
    present = [t for t in t_list if t is not None]
    if not present:
        return _ops.constant(0.0, name="global_norm")
    with _tf.name_scope(name or "global_norm"):
        halves = [_tf.nn.l2_loss(_values(t)) for t in present]
        return _tf.sqrt((halves[0] if len(halves) == 1 else _ops.add_n(halves)) * 2.0, name="global_norm")


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: TensorLike, use_norm: TensorLike | None = None, name: str | None = None
) -> tuple[list[Any], _ops.Tensor]:
    """All tensors scaled by one factor, so that their :func:`global_norm` is at most ``clip_norm``.

    Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", 2012.

    Args:
      t_list: floating tensors or IndexedSlices; entries may be None.
      clip_norm: positive number or scalar tensor.
      use_norm: the global norm, if it is known.

    Returns:
      ``(clipped, norm)``: a list as long as ``t_list``, None where it has None, and the norm before. Where the norm is
      infinite or NaN, so are the results: a step that went wrong does not hide.
    """
    t_list = list(t_list)
    norm = global_norm(t_list) if use_norm is None else use_norm
    with _tf.name_scope(name or "clip_by_global_norm"):
        norm = _ops.convert_to_tensor(norm)
        limit = _ops.convert_to_tensor(clip_norm, norm.dtype)
        scale = limit / _tf.maximum(norm, limit) + (norm - norm)
        clipped = []
        for item in t_list:
            if item is None:
                clipped.append(None)
                continue
            values = _values(item)
            factor = scale if values.dtype is norm.dtype else _ops.cast(scale, values.dtype)
            clipped.append(_like(item, values * factor))
        return clipped, norm
