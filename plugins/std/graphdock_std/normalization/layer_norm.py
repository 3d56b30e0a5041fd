"""Public functions of layer and instance normalisation; TensorFlow 1.15's core has neither."""

from __future__ import annotations

from typing import Any, Literal

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape


def _floating(x: TensorLike, what: str) -> Any:
    x = _ops.convert_to_tensor(x)
    if not x.dtype.is_floating:
        raise DTypeError(f"x of {what} is not floating", expected="a floating dtype", got=x.dtype.name)
    return x


def layer_norm(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    begin_norm_axis: int = -1,
    epsilon: float = 1e-12,
    name: str | None = None,
) -> _ops.Tensor:
    """Layer normalisation (Ba, Kiros and Hinton, 2016): ``(x - mean) / sqrt(variance + epsilon) * gamma + beta``.

    Mean and variance are those of each row, which the dims from ``begin_norm_axis`` on make up, computed in float32 at least.

    Args:
      x: floating tensor of rank 1 or more.
      gamma, beta: of the shape of ``x`` from ``begin_norm_axis`` on; None for none.
      begin_norm_axis: the first dim of a row; negative ones count from the end.
      epsilon: added to the variance.

    Returns:
      A tensor like ``x``.

    Raises:
      DTypeError: ``x`` is not floating.
      ShapeError: ``begin_norm_axis`` is no axis of ``x``, or gamma or beta has another shape than a row.
    """
    with _tf.name_scope(name or "layer_norm") as scope:
        x = _floating(x, "layer_norm")
        wide = x.dtype.accumulator
        row: Any = None
        if gamma is None or beta is None:
            row = _row_shape(x, begin_norm_axis)
        gamma = _tf.ones(row, wide) if gamma is None else _ops.cast(gamma, wide)
        beta = _tf.zeros(row, wide) if beta is None else _ops.cast(beta, wide)
        return _ops.apply_op(
            "LayerNorm", x=x, gamma=gamma, beta=beta, begin_norm_axis=begin_norm_axis, epsilon=epsilon, name=scope
        ).y


def _row_shape(x: Any, begin: int) -> Any:
    """The shape of x from an axis on: a list where it is known, else a tensor. An axis that there is not is left to the op."""
    dims = static_shape(x)
    if dims is not None and None not in dims[begin:]:
        return list(dims[begin:])
    return _tf.shape(x)[begin:]


def instance_norm(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    epsilon: float = 1e-6,
    data_format: Literal["NHWC", "NCHW"] = "NHWC",
    name: str | None = None,
) -> _ops.Tensor:
    """Instance normalisation (Ulyanov, Vedaldi and Lempitsky, 2016): every channel of every sample by its own statistics.

    Args:
      x: floating tensor ``[batch, ..., channels]``, or ``[batch, channels, ...]`` in the format NCHW, of rank 3 or more.
      gamma, beta: a factor and a summand per channel; None for none.
      epsilon: added to the variance.
      data_format: NHWC for channels last, NCHW for channels in dim 1, whatever the number of spatial dims.

    Returns:
      A tensor like ``x``. Statistics are computed in float32 at least.

    Raises:
      DTypeError: ``x`` is not floating.
      ShapeError: the rank is unknown or below 3, or gamma or beta is no vector of the channels.
      InvalidArgumentError: another data_format.
    """
    if data_format not in ("NHWC", "NCHW"):
        raise InvalidArgumentError("no such data_format", expected="NHWC or NCHW", got=repr(data_format))
    with _tf.name_scope(name or "instance_norm") as scope:
        x = _floating(x, "instance_norm")
        dims = static_shape(x)
        if dims is None or len(dims) < 3:
            got = "an unknown rank" if dims is None else f"rank {len(dims)}"
            raise ShapeError("x of instance_norm has no spatial dims", expected="rank 3 or more", got=got)
        first = data_format == "NCHW"
        axes = list(range(2, len(dims)) if first else range(1, len(dims) - 1))
        wide = _ops.cast(x, x.dtype.accumulator)
        mean, variance = _tf.nn.moments(wide, axes, keep_dims=True)
        factor = _tf.rsqrt(variance + epsilon)
        if gamma is not None:
            factor *= _per_channel("gamma", gamma, wide, first)
        y = (wide - mean) * factor
        if beta is not None:
            y += _per_channel("beta", beta, wide, first)
        return _tf.identity(_ops.cast(y, x.dtype), name=scope)


def _per_channel(what: str, value: TensorLike, x: Any, first: bool) -> Any:
    """A vector of the channels as what broadcasts against x."""
    vector = _ops.cast(value, x.dtype)
    channels = static_shape(x)[1 if first else -1]  # type: ignore[index]
    dims = static_shape(vector)
    if dims is not None and (len(dims) != 1 or (None not in (dims[0], channels) and dims[0] != channels)):
        raise ShapeError(
            f"{what} is no vector of the channels",
            expected=f"[{'?' if channels is None else channels}]",
            got=str(list(dims)),
        )
    if not first:
        return vector
    return _tf.reshape(vector, [1, -1, *[1] * (len(static_shape(x)) - 2)])  # type: ignore[arg-type]
