"""Public functions of neural networks that are more than one op, or whose signature is not the op's.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape


def half_squares(tensors: Sequence[Any]) -> Any:
    """Half the sum of the squares of all elements of several tensors, not as plans join it again."""
    return _tf.reduce_sum(_tf.stack([_tf.nn.l2_loss(t) for t in tensors]))


def axis_from_end(tensor: Any, axis: Any, dim: Any, what: str) -> int:
    """The axis counted from the end, -1 for the last."""
    if dim is not None and axis is not None:
        raise InvalidArgumentError(f"{what}: axis and dim are one argument under two names", got=f"{axis} and {dim}")
    axis = dim if axis is None else axis
    if axis is None or axis == -1:
        return -1
    dims = static_shape(tensor)
    if dims is None:
        raise InvalidArgumentError(f"{what}: axis {axis} needs logits of a known rank", hint="call set_shape on them")
    if not -len(dims) <= axis < len(dims):
        raise InvalidArgumentError(
            f"{what}: there is no such axis", expected=f"-{len(dims)} to {len(dims) - 1}", got=str(axis)
        )
    return axis % len(dims) - len(dims)


def _swap(tensor: Any, axis: int, name: str | None = None) -> Any:
    """``tensor`` with the axis (counted from the end) and the last one exchanged."""
    rank = len(static_shape(tensor) or ())
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return _tf.transpose(tensor, order, name)


def _along(op: str, logits: Any, axis: Any, name: str | None, dim: Any, what: str) -> Any:
    logits = _ops.convert_to_tensor(logits)
    at = axis_from_end(logits, axis, dim, what)
    if at == -1:
        return _ops.apply_op(op, logits=logits, name=name)
    with _tf.name_scope(name or what) as scope:
        return _swap(_ops.apply_op(op, logits=_swap(logits, at)), at, scope)


def softmax(
    logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> _ops.Tensor:
    """Exponentials along an axis, divided by their sum.

    Args:
      logits: floating tensor of rank 1 or more.
      axis: default: the last. ``dim`` is its older name.

    Returns:
      A tensor of the shape and dtype of ``logits``.
    """
    return _along("Softmax", logits, axis, name, dim, "softmax")


def log_softmax(
    logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> _ops.Tensor:
    """Logarithm of the softmax along an axis; arguments as of :func:`softmax`."""
    return _along("LogSoftmax", logits, axis, name, dim, "log_softmax")


#: Where the channels are: the last dim, or dim 1.
ChannelsFormat = Literal["NHWC", "NWC", "NDHWC", "N...C", "NCHW", "NCW", "NCDHW", "NC..."]


def bias_add(
    value: TensorLike, bias: TensorLike, data_format: ChannelsFormat | None = None, name: str | None = None
) -> _ops.Tensor:
    """Add a vector to the channels of a tensor.

    Args:
      value: tensor of rank 2 or more.
      bias: its channels, of the same dtype.
      data_format: a word that begins with ``NC``: channels are dim 1; one that begins with ``N`` and ends in ``C`` (default):
        the last dim.
    """
    word: str = data_format or "NHWC"
    if not word.startswith("NC") and not (word.startswith("N") and word.endswith("C")):
        raise InvalidArgumentError("bias_add does not know this data_format", expected="N...C or NC...", got=repr(word))
    channels = "NCHW" if word.startswith("NC") else "NHWC"
    return _ops.apply_op("BiasAdd", value=value, bias=bias, data_format=channels, name=name)


def xw_plus_b(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``matmul(x, weights) + biases``."""
    with _tf.name_scope(name or "xw_plus_b") as scope:
        return bias_add(_tf.matmul(x, weights), biases, name=scope)


def relu_layer(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``relu(matmul(x, weights) + biases)``."""
    with _tf.name_scope(name or "relu_layer") as scope:
        return _tf.nn.relu(bias_add(_tf.matmul(x, weights), biases), name=scope)


def dropout(
    x: TensorLike,
    keep_prob: TensorLike | None = None,
    noise_shape: TensorLike | None = None,
    seed: int | None = None,
    name: str | None = None,
    rate: TensorLike | None = None,
) -> _ops.Tensor:
    """Set elements to zero at random, and scale the rest so that the expected sum stays.

    Args:
      x: floating tensor.
      keep_prob: probability of each element to stay: a number in (0, 1] or a scalar tensor.
      noise_shape: shape of the draws, which broadcasts to that of ``x``; default: the shape of ``x``.
      seed: see ``tf.set_random_seed``.
      rate: ``1 - keep_prob``; give one of the two.

    Returns:
      A tensor like ``x``; ``x`` itself where nothing is dropped.

    Raises:
      InvalidArgumentError: both or neither of keep_prob and rate, or a number out of range.
    """
    if (keep_prob is None) == (rate is None):
        raise InvalidArgumentError(
            "dropout needs one of keep_prob and rate", got="both" if rate is not None else "none"
        )
    number = rate if keep_prob is None else keep_prob
    with _tf.name_scope(name or "dropout"):
        x = _ops.convert_to_tensor(x)
        if not x.dtype.is_floating:
            raise InvalidArgumentError("dropout scales what it keeps", expected="a floating tensor", got=x.dtype.name)
        if isinstance(number, int | float | np.number):
            dropped = float(number) if keep_prob is None else 1.0 - number
            if not 0.0 <= dropped < 1.0:
                valid = "0 <= rate < 1" if keep_prob is None else "0 < keep_prob <= 1"
                raise InvalidArgumentError("dropout: probability out of range", expected=valid, got=str(number))
            if dropped == 0.0:
                return x
            scale: Any = 1.0 / (1.0 - dropped if keep_prob is None else float(number))
        else:
            given = _ops.convert_to_tensor(number)
            if given.shape.rank:
                raise ShapeError("dropout: a probability is a scalar", got=f"shape {given.shape}")
            if isinstance(number, _tf.Tensor | _tf.Variable) and given.dtype.size > x.dtype.accumulator.size:
                raise DTypeError(
                    "dropout: a probability is no wider than x", expected=x.dtype.name, got=given.dtype.name
                )
            number = _ops.cast(given, x.dtype.accumulator)
            dropped = number if keep_prob is None else 1.0 - number
            staying = 1.0 - dropped if keep_prob is None else number
            scale = _ops.cast(_tf.div_no_nan(_tf.ones_like(staying), staying), x.dtype)  # 0 where nothing is kept
        # float16 and bfloat16 have too few numbers below 1 to compare a small probability with
        draws = _tf.random_uniform(_noise_shape(x, noise_shape), seed=seed, dtype=x.dtype.accumulator)
        kept = x * scale * _ops.cast(draws >= dropped, x.dtype)
        kept.set_shape(x.shape)
        return kept


def _noise_shape(x: Any, noise_shape: Any) -> Any:
    dims = static_shape(x)
    if noise_shape is None:
        return _ops.shape(x) if dims is None or None in dims else dims
    if isinstance(noise_shape, Sequence) and dims is not None and len(noise_shape) == len(dims):
        filled = [d if n is None else n for n, d in zip(noise_shape, dims, strict=True)]
        if None not in filled:
            return filled
        sizes = _ops.shape(x)
        return _tf.stack([sizes[i] if n is None else n for i, n in enumerate(filled)])
    return noise_shape


def moments(
    x: TensorLike,
    axes: TensorLike,
    shift: TensorLike | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[_ops.Tensor, _ops.Tensor]:
    """Mean and variance over axes, as a pair.

    Args:
      x: floating tensor.
      axes: axes to reduce.
      shift: taken for TensorFlow's sake; the mean is subtracted first in any case.
      keepdims: keep reduced dims as 1; ``keep_dims`` is its older name.

    Returns:
      ``(mean, variance)``; float16 and bfloat16 are computed in float32.
    """
    if keepdims is not None and keep_dims is not None:
        raise InvalidArgumentError("moments: keepdims and keep_dims are one argument under two names", got="both")
    keep = bool(keep_dims if keepdims is None else keepdims)
    with _tf.name_scope(name or "moments"):
        x = _ops.convert_to_tensor(x)
        narrow = x.dtype.accumulator is not x.dtype
        wide = _ops.cast(x, x.dtype.accumulator) if narrow else x
        mean = _tf.reduce_mean(wide, axes, keepdims=True, name="mean")
        centred = wide - _ops.stop_gradient(mean)
        variance = _tf.reduce_mean(centred * centred, axes, keepdims=True, name="variance")
        results = [mean, variance]
        if not keep:
            results = [_drop(r, axes) for r in results]
        return tuple(_ops.cast(r, x.dtype) if narrow else r for r in results)


def _drop(tensor: Any, axes: Any) -> Any:
    squeeze: Callable[..., Any] = _tf.squeeze
    if axes is None:
        return _tf.reshape(tensor, [])
    return squeeze(tensor, list(axes) if isinstance(axes, Sequence) else [axes])


def l2_normalize(
    x: TensorLike,
    axis: TensorLike | None = None,
    epsilon: float = 1e-12,
    name: str | None = None,
    dim: TensorLike | None = None,
) -> _ops.Tensor:
    """``x / sqrt(max(sum(x ** 2), epsilon))`` along ``axis`` (default: over all); ``dim`` is its older name."""
    with _tf.name_scope(name or "l2_normalize") as scope:
        x = _ops.convert_to_tensor(x)
        squares = _tf.reduce_sum(x * x, dim if axis is None else axis, keepdims=True)
        return _tf.multiply(x, _tf.rsqrt(_tf.maximum(squares, _ops.constant(epsilon, x.dtype))), name=scope)
