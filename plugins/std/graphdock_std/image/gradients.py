"""Gradients of image ops whose derivative is that of a composition: what an op does is written of differentiable ops once more.

They can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf


def _through(op: Any, grad: Any, function: Callable[..., Any]) -> Any:
    """The gradients of ``function`` of the op's inputs."""
    if grad is None:
        return [None] * len(op.inputs)
    return tf.gradients(function(*op.inputs), list(op.inputs), grad, stop_gradients=list(op.inputs))


def _hue_saturation_value(images: Any) -> tuple[Any, Any, Any]:
    r, g, b = tf.unstack(images, num=3, axis=-1)
    value = tf.maximum(tf.maximum(r, g), b)
    chroma = value - tf.minimum(tf.minimum(r, g), b)
    ones = tf.ones_like(value)
    coloured, lit = chroma > 0, value > 0
    sixth = 1 / (6 * tf.where(coloured, chroma, ones))
    hue = tf.where(
        tf.equal(r, value),
        (g - b) * sixth,
        tf.where(tf.equal(g, value), (b - r) * sixth + 1 / 3, (r - g) * sixth + 2 / 3),
    )
    hue = tf.where(coloured, hue + tf.cast(hue < 0, hue.dtype), tf.zeros_like(hue))
    saturation = tf.where(lit, chroma / tf.where(lit, value, ones), tf.zeros_like(value))
    return hue, saturation, value


def _pixels(hue: Any, saturation: Any, value: Any) -> Any:
    h = hue * 6
    bright = tf.abs(h - 3) - 1, 2 - tf.abs(h - 2), 2 - tf.abs(h - 4)
    return tf.stack([(1 - saturation * (1 - tf.clip_by_value(k, 0, 1))) * value for k in bright], axis=-1)


def rgb_to_hsv(op: Any, grad: Any) -> Any:
    (made,) = _through(op, grad, lambda images: tf.stack(_hue_saturation_value(images), axis=-1))
    return made


def hsv_to_rgb(op: Any, grad: Any) -> Any:
    (made,) = _through(op, grad, lambda images: _pixels(*tf.unstack(images, num=3, axis=-1)))
    return made


def adjust_hue(op: Any, grad: Any) -> Any:
    def turned(images: Any, delta: Any) -> Any:
        hue, saturation, value = _hue_saturation_value(images)
        hue = hue + tf.cast(delta, hue.dtype)
        return _pixels(hue - tf.stop_gradient(tf.floor(hue)), saturation, value)

    return _through(op, grad, turned)


def adjust_saturation(op: Any, grad: Any) -> Any:
    def scaled(images: Any, scale: Any) -> Any:
        hue, saturation, value = _hue_saturation_value(images)
        return _pixels(hue, tf.clip_by_value(saturation * tf.cast(scale, saturation.dtype), 0, 1), value)

    return _through(op, grad, scaled)
