"""Steps over images, and derivatives of what is linear in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as tf
import numpy as np

__all__ = ["adjoint", "run"]


def run(build: Callable[..., Any], *arrays: Any) -> Any:
    """What ``build`` makes of placeholders of these arrays."""
    arrays = tuple(np.asarray(a) for a in arrays)
    with tf.Graph().as_default():
        feeds = [tf.placeholder(a.dtype, a.shape) for a in arrays]
        fetch = build(*feeds)
        with tf.Session() as session:
            return session.run(fetch, dict(zip(feeds, arrays, strict=True)))


def adjoint(build: Callable[[Any], Any], shape: Sequence[int], dtype: Any = np.float32) -> float:
    """How far ``<w, A v>`` is from ``<A' w, v>`` where ``build`` is linear A and its gradient A'; and A from that of A'."""
    rng = np.random.default_rng(3)
    v = rng.normal(size=shape).astype(dtype)
    with tf.Graph().as_default():
        x = tf.placeholder(dtype, shape)
        y = build(x)
        w = tf.constant(rng.normal(size=y.shape.as_list()).astype(y.dtype.np))
        (back,) = tf.gradients(y, x, w)
        u = tf.placeholder(back.dtype, back.shape)
        (again,) = tf.gradients(back, w, u)
        with tf.Session() as session:
            made, weights, spread, second = session.run([y, w, back, again], {x: v, u: v})
    wide = np.float64
    first = abs(np.vdot(weights.astype(wide), made.astype(wide)) - np.vdot(spread.astype(wide), v.astype(wide)))
    return float(max(first, np.abs(second.astype(wide) - made.astype(wide)).max()))
