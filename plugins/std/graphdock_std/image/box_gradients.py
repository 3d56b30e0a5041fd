"""Gradients of crops: by images that may hold integers, and of the gradient by the boxes."""

from __future__ import annotations

from typing import Any

import graphdock as tf
from graphdock import ops


def crop_and_resize_image(op: Any, grad: Any) -> Any:
    """Of the crops, by the images; None where these hold integers."""
    image, boxes, indices, _ = op.inputs
    if grad is None or not image.dtype.is_floating:
        return None
    return ops.apply_op(
        "CropAndResizeGradImage",
        grads=grad,
        boxes=boxes,
        box_ind=indices,
        image_size=ops.shape(image),
        T=image.dtype,
        method=op.get_attr("method"),
    )


def crop_and_resize_grad_boxes(op: Any, grad: Any) -> Any:
    """Of the gradient by the boxes, by what it was made of: it is written of differentiable ops once more."""
    grads, image, boxes, indices = op.inputs
    if grad is None:
        return [None] * 3
    made = _by_boxes(grads, tf.cast(image, tf.float32), boxes, indices)
    inputs = [t for t in (grads, image, boxes) if t.dtype.is_floating]
    slopes = dict(zip(inputs, tf.gradients(made, inputs, grad, stop_gradients=inputs), strict=True))
    return [slopes.get(t) for t in (grads, image, boxes)]


def _by_boxes(grads: Any, image: Any, boxes: Any, indices: Any) -> Any:
    size, wanted = tf.shape(image), tf.shape(grads)
    axes = [_positions(boxes[:, k], boxes[:, k + 2], size[k + 1], wanted[k + 1]) for k in (0, 1)]
    (top, bottom, down, y_part, y_inside), (left, right, along, x_part, x_inside) = axes
    flat = tf.reshape(image, tf.stack([-1, size[3]]))

    def pixels(rows: Any, columns: Any) -> Any:
        first = tf.reshape(indices * size[1], [-1, 1]) + rows
        return tf.gather(flat, tf.expand_dims(first * size[2], 2) + tf.expand_dims(columns, 1))

    corners = pixels(top, left), pixels(top, right), pixels(bottom, left), pixels(bottom, right)
    dy, dx = tf.reshape(y_part, tf.concat([tf.shape(y_part), [1, 1]], 0)), tf.expand_dims(tf.expand_dims(x_part, 1), 3)
    by_y = (1 - dx) * (corners[2] - corners[0]) + dx * (corners[3] - corners[1])
    by_x = (1 - dy) * (corners[1] - corners[0]) + dy * (corners[3] - corners[2])
    inside = tf.cast(tf.logical_and(tf.expand_dims(y_inside, 2), tf.expand_dims(x_inside, 1)), tf.float32)
    height, width = (tf.cast(size[k] - 1, tf.float32) for k in (1, 2))
    along_y = tf.reduce_sum(by_y * grads, 3) * inside * height
    along_x = tf.reduce_sum(by_x * grads, 3) * inside * width
    y_share, x_share = tf.reshape(down, [1, -1, 1]), tf.reshape(along, [1, 1, -1])
    parts = [along_y * (1 - y_share), along_x * (1 - x_share), along_y * y_share, along_x * x_share]
    return tf.stack([tf.reduce_sum(p, [1, 2]) for p in parts], axis=1)


def _positions(start: Any, end: Any, size: Any, wanted: Any) -> tuple[Any, ...]:
    """Per box and pixel of an axis: both neighbours, the share of ``end``, the part of the second neighbour, and whether inside."""
    last = tf.cast(size - 1, tf.float32)
    share = tf.cast(tf.range(0, wanted), tf.float32) / tf.cast(tf.maximum(wanted - 1, 1), tf.float32)
    share = tf.where(tf.fill(tf.shape(share), wanted > 1), share, 0.5 * tf.ones_like(share))
    where = (tf.expand_dims(start, 1) * (1 - share) + tf.expand_dims(end, 1) * share) * last
    low = tf.stop_gradient(tf.floor(where))
    neighbours = [tf.cast(tf.clip_by_value(v, 0.0, last), tf.int32) for v in (low, tf.stop_gradient(tf.ceil(where)))]
    return (*neighbours, share, where - low, tf.logical_and(where >= 0, where <= last))
