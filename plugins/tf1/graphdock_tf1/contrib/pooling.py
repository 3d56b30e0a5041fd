"""Pools of contrib, and the layers without variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ShapeError
from graphdock.typing import TensorLike
from graphdock_std.grad_support import is_tensor

from graphdock_tf1.contrib.arg_scope import add_arg_scope
from graphdock_tf1.contrib.support import channels_word, collect_named_outputs
from graphdock_tf1.layers.functional import numbers
from graphdock_tf1.layers.reshaping import Dropout, Flatten
from graphdock_tf1.signatures import like


def _pooled(
    pool: Any,
    dims: int,
    default: str,
    inputs: Any,
    kernel_size: Any,
    stride: Any,
    padding: str,
    data_format: str,
    outputs_collections: Any,
    scope: Any,
) -> Any:
    with _tf.name_scope(scope or default) as sc:
        first = channels_word(data_format) == "channels_first"
        window, steps = numbers(kernel_size, dims, "kernel_size"), numbers(stride, dims, "stride")
        sizes = [[1, 1, *v] if first else [1, *v, 1] for v in (window, steps)]
        outputs = pool(inputs, *sizes, padding.upper(), data_format=data_format)
        return collect_named_outputs(outputs_collections, sc.rstrip("/"), outputs)


@add_arg_scope
def max_pool2d(
    inputs: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> _tf.Tensor:
    """The largest of each window of images.

    Args:
      inputs: floating tensor of rank 4.
      kernel_size, stride: one number, or one per spatial dim.
      padding: ``"VALID"`` or ``"SAME"``.
      data_format: ``"NHWC"`` or ``"NCHW"``.
      outputs_collections: collections of the output.
      scope: name scope; default ``MaxPool2D``.
    """
    return _pooled(_tf.nn.max_pool, 2, "MaxPool2D", **locals())  # type: ignore[no-any-return]


@add_arg_scope
@like(max_pool2d)
def avg_pool2d(**given: Any) -> _tf.Tensor:
    """The mean of each window of images; arguments as of ``max_pool2d``."""
    return _pooled(_tf.nn.avg_pool, 2, "AvgPool2D", **given)  # type: ignore[no-any-return]


@add_arg_scope
@like(max_pool2d, data_format="NDHWC")
def max_pool3d(**given: Any) -> _tf.Tensor:
    """The largest of each window of volumes; arguments as of ``max_pool2d``."""
    return _pooled(_tf.nn.max_pool3d, 3, "MaxPool3D", **given)  # type: ignore[no-any-return]


@add_arg_scope
@like(max_pool2d, data_format="NDHWC")
def avg_pool3d(**given: Any) -> _tf.Tensor:
    """The mean of each window of volumes; arguments as of ``max_pool2d``."""
    return _pooled(_tf.nn.avg_pool3d, 3, "AvgPool3D", **given)  # type: ignore[no-any-return]


@add_arg_scope
def dropout(
    inputs: TensorLike,
    keep_prob: TensorLike = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: int | None = None,
) -> _tf.Tensor:
    """Set elements to zero at random and scale the rest, while training; ``keep_prob`` is the probability of one to stay."""
    with _tf.variable_scope(scope, "Dropout", [inputs]) as sc:
        rate = 1.0 - keep_prob if is_tensor(keep_prob) else 1.0 - float(keep_prob)  # type: ignore[arg-type, operator]
        layer = Dropout(rate, noise_shape, seed, name=sc.name, _scope=sc)
        return collect_named_outputs(outputs_collections, sc.name, layer(inputs, training=is_training))  # type: ignore[no-any-return]


@add_arg_scope
def flatten(inputs: TensorLike, outputs_collections: Any = None, scope: str | None = None) -> _tf.Tensor:
    """A row per element of the batch, in the scope ``Flatten``."""
    with _tf.name_scope(scope or "Flatten") as sc:
        return collect_named_outputs(outputs_collections, sc.rstrip("/"), Flatten()(inputs))  # type: ignore[no-any-return]


@add_arg_scope
def softmax(logits: TensorLike, scope: Any = None) -> _tf.Tensor:
    """Softmax over the last dim, in the scope ``softmax``.

    Raises:
      ShapeError: the logits have no rank of 2 or more, or a last dim that is not known.
    """
    logits = _ops.convert_to_tensor(logits)
    if logits.shape.with_rank_at_least(2)[-1].value is None:
        raise ShapeError("softmax needs to know the last dim of its logits", got=str(logits.shape))
    with _tf.variable_scope(scope, "softmax", [logits]):
        return _tf.nn.softmax(logits)


@add_arg_scope
def unit_norm(inputs: TensorLike, dim: int, epsilon: float = 1e-7, scope: Any = None) -> _tf.Tensor:
    """Inputs by their norm along ``dim``, in the scope ``UnitNorm``.

    Raises:
      ShapeError: the rank of the inputs is not known, or has no dim of that number.
    """
    inputs = _ops.convert_to_tensor(inputs)
    if inputs.shape.rank is None or not 0 <= dim < inputs.shape.rank:
        raise ShapeError(f"unit_norm along dim {dim} needs inputs that have it", got=str(inputs.shape))
    with _tf.variable_scope(scope, "UnitNorm", [inputs]):
        lengths = _tf.sqrt(epsilon + _tf.reduce_sum(_tf.square(inputs), dim, keepdims=True))
        return _tf.divide(inputs, lengths)
