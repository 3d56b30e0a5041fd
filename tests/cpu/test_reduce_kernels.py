"""Reductions of few columns, each by itself, against NumPy; and what they ask NumPy to loop over."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_cpu.kernels import reduce

OPS = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod, "mean": np.mean}
CASES: list[tuple[tuple[int, ...], list[int]]] = [
    ((3, 700, 4), [0, 1]),
    ((40, 90, 2), [1]),
    ((6, 20, 30, 3), [1, 2]),
    ((6, 20, 30, 3), [-3, -2]),
    ((5, 900, 2, 1), [1]),
    ((900, 3, 5), [0, 2]),
    ((300, 3, 50, 2), [0, 2]),
    ((2000, 8), [0]),
    ((2000, 9), [0]),
]


@pytest.mark.parametrize(("few", "keep"), [(0, False), (8, False), (8, True)], ids=str)
@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
@pytest.mark.parametrize("name", OPS)
@pytest.mark.sampled(2)
def test_reductions_of_few_columns(
    name: str, shape: tuple[int, ...], axes: list[int], few: int, keep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduce, "_FEW_COLUMNS", few)
    monkeypatch.setattr(reduce, "_ROWS", 16)
    monkeypatch.setattr(reduce, "_DOT_TERMS", 0)
    rng = np.random.default_rng(0)
    for kind in (np.float32, np.int32):
        x = (1 + rng.normal(size=shape) / 100 if name == "prod" else rng.normal(size=shape) * 8).astype(kind)
        with tf.Graph().as_default(), tf.Session() as sess:
            found = sess.run(getattr(tf, f"reduce_{name}")(tf.Variable(x).initial_value * 1, axes, keep))
        if name == "mean" and kind is np.int32:
            total = x.sum(tuple(axes), np.int64, keepdims=keep)
            expected: Any = np.trunc(total / (x.size // total.size)).astype(np.int32)
        else:
            expected = OPS[name](x.astype(np.float64 if kind is np.float32 else kind), tuple(axes), keepdims=keep)
            if kind is np.int32:
                expected = expected.astype(np.int32)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_a_gradient_by_few_biases() -> None:
    """What broadcasting made is summed column by column too."""
    x = np.random.default_rng(1).normal(size=(4, 50, 40, 3))
    with tf.Graph().as_default(), tf.Session() as sess:
        bias = tf.Variable(np.zeros(3))
        found = tf.gradients(tf.reduce_sum(tf.square(tf.constant(x) + bias)), bias)[0]
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(sess.run(found), 2 * x.sum((0, 1, 2)), rtol=1e-10, atol=1e-10)


def test_a_maximum_of_few_columns_hides_no_number() -> None:
    x = np.ones((3000, 3), np.float32)
    x[5, 0], x[6, 1], x[7, 2] = np.nan, -np.inf, np.inf
    with tf.Graph().as_default(), tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(tf.reduce_max(tf.constant(x) * 1.0, 0)), [np.nan, 1, np.inf])
