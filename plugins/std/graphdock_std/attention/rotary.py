"""Rotary position embedding in other ops: for devices without a kernel of it, and for gradients of its angles."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops


def _parts(x: Any, count: Any, pairs: bool) -> tuple[Any, Any]:
    """Return what is turned together, of ``count`` angles."""
    if pairs:
        return x[..., 0 : 2 * count : 2], x[..., 1 : 2 * count : 2]
    return x[..., :count], x[..., count : 2 * count]


def _wide(*tensors: Any) -> list[Any]:
    """All of them in one dtype that loses nothing of any, float32 at least."""
    both = any(t.dtype is _tf.float64 for t in tensors)
    return [_ops.cast(t, _tf.float64 if both else _tf.float32) for t in tensors]


def turn(x: Any, cos: Any, sin: Any, pairs: bool, back: bool) -> Any:
    """Return what Rotary gives."""
    count = _tf.shape(cos)[-1]
    wide, c, s = _wide(x, _tf.expand_dims(cos, 1), _tf.expand_dims(-sin if back else sin, 1))
    a, b = _parts(wide, count, pairs)
    first, second = a * c - b * s, b * c + a * s
    if pairs:
        turned = _tf.reshape(_tf.stack([first, second], -1), _tf.concat([_tf.shape(a)[:-1], [2 * count]], 0))
    else:
        turned = _tf.concat([first, second], -1)
    return _ops.cast(_tf.concat([turned, wide[..., 2 * count :]], -1), x.dtype)


def rotary_gradient(op: Any, grad: Any) -> list[Any]:
    """By x it is turned back; by cos and sin it is summed over what has their position."""
    x, cos, sin = op.inputs
    pairs, back = op.get_attr("pairs"), op.get_attr("back")
    to_x = _ops.apply_op("Rotary", x=grad, cos=cos, sin=sin, pairs=pairs, back=not back)
    count = _tf.shape(cos)[-1]
    rows, slopes, _ = _wide(x, grad, cos)
    (a, b), (p, q) = _parts(rows, count, pairs), _parts(slopes, count, pairs)
    axes = _tf.concat([_tf.range(_tf.rank(x) - 3), [_tf.rank(x) - 2]], 0)
    to_cos, to_sin = _tf.reduce_sum(p * a + q * b, axes), _tf.reduce_sum(q * a - p * b, axes)
    return [to_x, _ops.cast(to_cos, cos.dtype), _ops.cast(-to_sin if back else to_sin, sin.dtype)]
