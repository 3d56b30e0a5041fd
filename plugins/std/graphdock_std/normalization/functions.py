"""Public functions of normalisation that are more than one op: statistics of tensors, and what is divided by them.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import is_tensor, static_shape


def _keep(keepdims: bool | None, keep_dims: bool | None) -> bool:
    """``keepdims``, which has an older name."""
    if keepdims is not None and keep_dims is not None:
        raise InvalidArgumentError("keepdims and keep_dims are one argument under two names", got="both")
    return bool(keep_dims if keepdims is None else keepdims)


def fused_batch_norm(
    x: TensorLike,
    scale: TensorLike,
    offset: TensorLike,
    mean: TensorLike | None = None,
    variance: TensorLike | None = None,
    epsilon: float = 0.001,
    data_format: Literal["NHWC", "NCHW", "NDHWC", "NCDHW"] = "NHWC",
    is_training: bool = True,
    name: str | None = None,
) -> tuple[_ops.Tensor, _ops.Tensor, _ops.Tensor]:
    """Batch normalisation (Ioffe and Szegedy, 2015) in one op: ``(x - mean) / sqrt(variance + epsilon) * scale + offset``.

    Args:
      x: images, a floating tensor of rank 4 (or 5, in the formats with D).
      scale, offset: a number per channel, float32 (float64 for a float64 ``x``).
      mean, variance: the statistics to use where ``is_training`` is False; else not read.
      epsilon: added to the variance; at least 1.001e-5 is used.
      data_format: where the channels are.
      is_training: whether the statistics are those of ``x``.

    Returns:
      ``(y, batch_mean, batch_variance)``: y like ``x``; the statistics, the variance as the unbiased estimate, in training, and
      else those given.

    Raises:
      InvalidArgumentError: mean or variance is missing, though ``is_training`` is False.
      ShapeError: the rank is not that of the format, or the channels do not agree.
    """
    if not is_training and (mean is None or variance is None):
        raise InvalidArgumentError("fused_batch_norm needs mean and variance where is_training is False")
    x = _ops.convert_to_tensor(x)
    wide = dtypes.float64 if x.dtype == dtypes.float64 else dtypes.float32
    scale, offset, mean, variance = (
        v if is_tensor(v) else _ops.convert_to_tensor([] if v is None else v, wide)
        for v in (scale, offset, mean, variance)
    )
    made = _ops.apply_op(
        "FusedBatchNorm",
        x=x,
        scale=scale,
        offset=offset,
        mean=mean,
        variance=variance,
        epsilon=max(float(epsilon), 1.001e-5),
        data_format=data_format,
        is_training=bool(is_training),
        name=name,
    )
    return made.y, made.batch_mean, made.batch_variance


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None,
    scale: TensorLike | None,
    variance_epsilon: TensorLike,
    name: str | None = None,
) -> _ops.Tensor:
    """``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``, with statistics that broadcast against ``x``.

    Args:
      x: floating tensor of any rank.
      mean, variance: vectors of the last dim of ``x``, or anything of its rank that broadcasts, as ``moments`` with ``keep_dims``
        gives it.
      offset, scale: None for none.
      variance_epsilon: added to the variance.

    Returns:
      A tensor of the dtype of ``x``.
    """
    with _tf.name_scope(name or "batchnorm"):
        x, variance = _ops.convert_to_tensor(x), _ops.convert_to_tensor(variance)
        inverse = _tf.rsqrt(variance + variance_epsilon)
        if scale is not None:
            inverse *= scale
        mean = _ops.convert_to_tensor(mean)
        rest = -mean * inverse if offset is None else offset - mean * inverse
        return x * _ops.cast(inverse, x.dtype) + _ops.cast(rest, x.dtype)


def batch_norm_with_global_normalization(
    t: TensorLike | None = None,
    m: TensorLike | None = None,
    v: TensorLike | None = None,
    beta: TensorLike | None = None,
    gamma: TensorLike | None = None,
    variance_epsilon: TensorLike | None = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
    mean: TensorLike | None = None,
    variance: TensorLike | None = None,
) -> _ops.Tensor:
    """:func:`batch_normalization` under older names: ``t`` (``input``), ``m`` (``mean``), ``v`` (``variance``); ``beta`` is the
    offset, ``gamma`` the scale, which is used where ``scale_after_normalization`` is true.
    """
    chosen = []
    for new, old, what in ((input, t, "input and t"), (mean, m, "mean and m"), (variance, v, "variance and v")):
        if (new is None) == (old is None):
            raise InvalidArgumentError(f"{what} are one argument under two names; give one of them")
        chosen.append(old if new is None else new)
    scale = gamma if scale_after_normalization else None
    return batch_normalization(*chosen, beta, scale, variance_epsilon, name)


def _axes(axes: Any) -> list[int]:
    return [int(axes)] if isinstance(axes, int) else [int(a) for a in axes]


def sufficient_statistics(
    x: TensorLike,
    axes: Sequence[int],
    shift: TensorLike | None = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[_ops.Tensor, _ops.Tensor, _ops.Tensor, _ops.Tensor | None]:
    """Return what mean and variance over axes can be computed from, and added up from parts: see :func:`normalize_moments`.

    Args:
      x: floating tensor.
      axes: Python ints.
      shift: a value near the mean, which keeps the sums small; None for none.
      keepdims: keep reduced dims as 1; ``keep_dims`` is its older name.

    Returns:
      ``(count, mean_ss, variance_ss, shift)``: a scalar of the dtype of ``x``, the sum of the elements less ``shift``, the sum of
      the squares of those, and ``shift`` as a tensor or None.
    """
    keep, axes = _keep(keepdims, keep_dims), sorted(set(_axes(axes)))
    with _tf.name_scope(name or "sufficient_statistics"):
        x = _ops.convert_to_tensor(x)
        dims = static_shape(x)
        if dims is not None and None not in [dims[a] for a in axes]:
            count = _ops.constant(math.prod(dims[a] for a in axes), x.dtype)  # type: ignore[misc]
        else:
            sizes = _tf.gather(_ops.shape(x), [a if a >= 0 else _tf.rank(x) + a for a in axes])
            count = _ops.cast(_tf.reduce_prod(sizes), x.dtype)
        sums: Any = x
        squares: Any = _tf.square(x) if shift is None else None
        if shift is not None:
            shift = _ops.convert_to_tensor(shift, x.dtype)
            sums, squares = x - shift, _tf.squared_difference(x, shift)
        mean_ss = _tf.reduce_sum(sums, axes, keepdims=keep, name="mean_ss")
        return count, mean_ss, _tf.reduce_sum(squares, axes, keepdims=keep, name="var_ss"), shift


def normalize_moments(
    counts: TensorLike,
    mean_ss: TensorLike,
    variance_ss: TensorLike,
    shift: TensorLike | None,
    name: str | None = None,
) -> tuple[_ops.Tensor, _ops.Tensor]:
    """``(mean, variance)`` from what :func:`sufficient_statistics` gives, or from sums of it.

    The variance is the mean of squares less the square of the mean: it loses digits where the shift is far from the mean.
    """
    with _tf.name_scope(name or "normalize"):
        divisor = _tf.reciprocal(_ops.convert_to_tensor(counts), name="divisor")
        mean = _tf.multiply(mean_ss, divisor, name="mean" if shift is None else "shifted_mean")
        variance = _tf.subtract(variance_ss * divisor, _tf.square(mean), name="variance")
        return (mean if shift is None else _tf.add(mean, shift, name="mean")), variance


def weighted_moments(
    x: TensorLike,
    axes: TensorLike,
    frequency_weights: TensorLike,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[_ops.Tensor, _ops.Tensor]:
    """Mean and variance over axes where each element counts as often as its weight says.

    Args:
      x: floating tensor; float16 and bfloat16 are computed in float32.
      axes: axes to reduce.
      frequency_weights: weights that broadcast against ``x``; where they add up to 0 both results are 0.
      keepdims: keep reduced dims as 1; ``keep_dims`` is its older name.
    """
    keep = _keep(keepdims, keep_dims)
    with _tf.name_scope(name or "weighted_moments"):
        x = _ops.convert_to_tensor(x)
        wide = _ops.cast(x, x.dtype.accumulator)
        weights = _ops.convert_to_tensor(frequency_weights)
        weights = _ops.cast(weights, wide.dtype)
        total = _tf.reduce_sum(weights + _ops.zeros_like(wide), axes, keepdims=True)
        mean = _tf.div_no_nan(_tf.reduce_sum(weights * wide, axes, keepdims=True), total)
        squares = _tf.reduce_sum(weights * _tf.squared_difference(wide, mean), axes, keepdims=True)
        results = (mean, _tf.div_no_nan(squares, total))
        if not keep:
            dropped = axes if isinstance(axes, Sequence) else [axes]
            results = _tf.squeeze(results[0], dropped), _tf.squeeze(results[1], dropped)
        return _ops.cast(results[0], x.dtype), _ops.cast(results[1], x.dtype)
