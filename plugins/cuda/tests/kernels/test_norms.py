"""Norms of many tensors: squares summed in few launches, and products by one number in one."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.plugin.host import Host
from graphdock_cuda.driver.api import Toolkit
from graphdock_cuda.kernels import norms
from graphdock_cuda.testing.install import install

CONFIG = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")


def launches(cuda: Toolkit, session: tf.Session, fetches: object, feed: object) -> tuple[object, int]:
    """What a step gives, and how many kernels one like it launches once it is recorded."""
    for _ in range(3):
        found = session.run(fetches, feed)
    cuda.driver.log.reset()
    session.run(fetches, feed)
    return found, cuda.driver.log.table()["kernels"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_squares_of_tensors_of_any_sizes(cuda: Toolkit, monkeypatch: pytest.MonkeyPatch, dtype: type) -> None:
    """More tensors than a launch takes, one of several blocks, some empty, some that begin anywhere."""
    monkeypatch.setattr(norms, "_SQUARED", 5)
    host, rng = Host(), np.random.default_rng(3)
    install(host, cuda)
    sizes = [7, 0, 2 * norms._PART + 3, 1, 16, 5, 0, 33]
    given = [(0.1 * rng.standard_normal(n + 1)).astype(dtype) for n in sizes]
    with tf.Graph(host=host).as_default():
        feeds = [tf.placeholder(dtype, x.shape) for x in given]
        total = ops.apply_op("L2LossSum", t=[x[1:] for x in feeds])
        nothing = ops.apply_op("L2LossSum", t=[feeds[1][1:]])
        with tf.Session(config=CONFIG, host=host) as session:
            feed = dict(zip(feeds, given, strict=True))
            assert session.explain(total, feed).kernels()["cuda.l2_loss_sum"] == 1
            found, empty = session.run([total, nothing], feed)
    wanted = sum(np.sum(x[1:].astype(np.float64) ** 2) for x in given) / 2
    np.testing.assert_allclose(found, wanted, rtol=2e-6 if dtype is np.float32 else 1e-3)
    assert empty == 0


@pytest.mark.parametrize("sum_of", [3, 9])
def test_clipping_launches_as_much_for_many_gradients_as_for_few(cuda: Toolkit, sum_of: int) -> None:
    host, rng = Host(), np.random.default_rng(3)
    install(host, cuda)
    given = [rng.standard_normal((i + 1, 5)).astype(np.float32) for i in range(sum_of)]
    with tf.Graph(host=host).as_default():
        held = [tf.Variable(x) for x in given]
        kept = [tf.Variable(np.zeros_like(x)) for x in given]
        clipped, norm = tf.clip_by_global_norm([tf.square(v) for v in held], 2.0)
        step = tf.group(*[k.assign(c) for k, c in zip(kept, clipped, strict=True)])
        with tf.Session(config=CONFIG, host=host) as session:
            session.run(tf.global_variables_initializer())
            (found, _), count = launches(cuda, session, [norm, step], {})
            values = session.run(kept)
    wanted = np.sqrt(sum(np.sum(x.astype(np.float64) ** 4) for x in given))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    for value, x in zip(values, given, strict=True):
        np.testing.assert_allclose(value, x**2 * 2.0 / max(wanted, 2.0), rtol=1e-5)
    squares, others = sum_of, 2 + 6  # of the scale: twice, root, maximum, quotient, difference, sum
    assert count == squares + others + 1


def test_products_by_other_numbers_and_of_other_tensors_stay_apart(cuda: Toolkit) -> None:
    """One that reads what another one makes is not beside it."""
    host = Host()
    install(host, cuda)
    with tf.Graph(host=host).as_default():
        x, y = tf.Variable(np.arange(6, dtype=np.float32)), tf.Variable(np.float32(2.0))
        z = tf.Variable(np.float32(3.0))
        once = x * y
        made = [tf.Variable(np.zeros(6, np.float32)) for _ in range(3)]
        parts = [once * y, tf.exp(x) * z, x * (y * z)]
        step = tf.group(*[m.assign(p) for m, p in zip(made, parts, strict=True)])
        with tf.Session(config=CONFIG, host=host) as session:
            session.run(tf.global_variables_initializer())
            session.run(step)
            found = session.run(made)
    values = np.arange(6, dtype=np.float64)
    for got, want in zip(found, (values * 4, np.exp(values) * 3, values * 6), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
