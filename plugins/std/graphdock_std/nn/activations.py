"""Activations that are more than one op.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.typing import TensorLike


def crelu(features: TensorLike, name: str | None = None, axis: int = -1) -> _ops.Tensor:
    """The positive parts of the features and of their negatives (Shang and others, 2016), joined along ``axis``.

    Args:
      features: tensor of rank 1 or more; its size along ``axis`` is doubled.
    """
    with _tf.name_scope(name or "CRelu"):
        features = _ops.convert_to_tensor(features)
        return _tf.nn.relu(_tf.concat([features, -features], axis))


def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> _ops.Tensor:
    """The features, and ``alpha`` times those that are negative (Maas and others, 2013).

    Args:
      features: floating tensor; integers are made float32.
      alpha: slope of the negative part, a number.
    """
    features = _ops.convert_to_tensor(features)
    if features.dtype.is_integer:
        features = _ops.cast(features, _tf.float32)
    return _ops.apply_op("LeakyRelu", features=features, alpha=alpha, name=name)


def swish(features: TensorLike) -> _ops.Tensor:
    """``features * sigmoid(features)`` (Ramachandran and others, 2017)."""
    with _tf.name_scope("swish"):
        features = _ops.convert_to_tensor(features)
        return features * _tf.sigmoid(features)


def log_sigmoid(x: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Logarithm of the logistic function, as ``-softplus(-x)``: finite wherever x is."""
    with _tf.name_scope(name or "LogSigmoid") as scope:
        return _tf.negative(_tf.nn.softplus(-_ops.convert_to_tensor(x)), name=scope)


def zero_fraction(value: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The share of elements that are zero, a float32 scalar; NaN for no elements."""
    with _tf.name_scope(name or "zero_fraction"):
        value = _ops.convert_to_tensor(value)
        zeros = _tf.reduce_sum(_ops.cast(_tf.equal(value, _ops.zeros_like(value)), _tf.int64))
        size = _ops.cast(_tf.size(value, out_type=_tf.int64), _tf.float32)
        return _tf.truediv(_ops.cast(zeros, _tf.float32), size, name="fraction")
