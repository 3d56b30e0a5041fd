"""Functions of before TensorFlow 1.0 whose arguments stood in another order."""

from __future__ import annotations

from typing import Any

import graphdock as tf

__all__ = [
    "concat",
    "deconv2d",
    "matmul",
    "resize_images",
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
    "split",
    "where",
]


def concat(concat_dim: Any, values: Any, name: str | None = None) -> Any:
    """``tf.concat(values, axis)`` with the axis first."""
    return tf.concat(values, concat_dim, name=name or "concat")


def split(split_dim: Any, num_split: Any, value: Any, name: str | None = None) -> Any:
    """``tf.split(value, num_split, axis)`` with the axis first and the value last."""
    return tf.split(value, num_split, split_dim, name=name or "split")


def where(condition: Any, t: Any, e: Any, name: str | None = None) -> Any:
    """``tf.select``: ``tf.where`` with both branches."""
    return tf.where(condition, t, e, name=name)


def matmul(x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None) -> Any:
    """``tf.batch_matmul``: ``tf.matmul`` of stacks of matrices."""
    return tf.matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


def softmax_cross_entropy_with_logits(logits: Any, labels: Any, dim: int = -1, name: str | None = None) -> Any:
    """Softmax cross-entropy with the logits first."""
    return tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=labels, dim=dim, name=name)


def sparse_softmax_cross_entropy_with_logits(logits: Any, labels: Any, name: str | None = None) -> Any:
    """Softmax cross-entropy with indices of classes, the logits first."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels, name=name)


def sigmoid_cross_entropy_with_logits(logits: Any, targets: Any, name: str | None = None) -> Any:
    """Sigmoid cross-entropy with the logits first, and labels called targets."""
    return tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=targets, name=name)


def resize_images(
    images: Any, new_height: Any, new_width: Any = None, method: int = 0, align_corners: bool = False
) -> Any:
    """``tf.image.resize_images`` with height and width apart; a pair, as of 1.0, is taken too."""
    size = new_height if new_width is None else [new_height, new_width]
    return tf.image.resize_images(images, size, method=method, align_corners=align_corners)


def deconv2d(
    value: Any, filter: Any, output_shape: Any, strides: Any, padding: str = "SAME", name: str | None = None
) -> Any:
    """``tf.nn.conv2d_transpose`` under its first name."""
    return tf.nn.conv2d_transpose(value, filter, output_shape, strides, padding, name=name)
