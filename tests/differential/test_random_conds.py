"""Gradients of gradients through random conds: in debug mode, with queues and without passes, and as differences say."""

from __future__ import annotations

import itertools

import graphdock as tf
import numpy as np
import pytest
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import Host
from graphdock_testing import queued

pytestmark = pytest.mark.modes  # every program runs in debug mode, too
OFF = dict.fromkeys(simplifications(), False)
VARIANTS = [
    {"debug": True},
    {"debug": True, "passes": OFF},
    {"shape_policy": "generic"},
    {"shape_policy": "generic", "debug": True},
    {"backends": ("queued", "cpu")},
    {"backends": ("queued", "cpu"), "debug": True},
]


def slope(f, x, way, step=1e-5):
    return (f(x + step * way) - f(x - step * way)) / (2 * step)


def check(random_conds, seed):
    chain = random_conds.Chain(seed)
    rng = np.random.default_rng(seed)
    x0, way = rng.uniform(-1, 1, 3), rng.normal(size=3)
    host = Host()
    queued.install(host, seed=seed)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float64, [None] if seed % 3 else [3])
        given = [tf.placeholder(tf.bool, []) for _ in range(chain.predicates)]
        loss = chain.tensor(x, given)
        fetches = [loss]
        for _ in range(2):
            (found,) = tf.gradients(tf.reduce_sum(tf.sin(fetches[-1])), x)
            fetches.append(tf.zeros_like(x) if found is None else found)
        order = [int(i) for i in rng.permutation(3)][: 1 + seed % 3]
        sessions = [tf.Session(graph=graph)] + [
            tf.Session(graph=graph, config=tf.SessionConfig(**v), **({"host": host} if "backends" in v else {}))
            for v in VARIANTS
        ]
        for values in list(itertools.product([True, False], repeat=chain.predicates))[:4]:
            feed = {x: x0, **dict(zip(given, values, strict=True))}
            plain = sessions[0].run(fetches, feed)
            np.testing.assert_allclose(plain[0], chain.numpy(x0, values), rtol=1e-10)
            np.testing.assert_allclose(
                plain[1] @ way, slope(lambda a, p=values: np.sin(chain.numpy(a, p)), x0, way), rtol=1e-5, atol=1e-6
            )

            def first(a, feed=feed):
                return np.sin(sessions[0].run(fetches[1], {**feed, x: a})).sum()

            np.testing.assert_allclose(plain[2] @ way, slope(first, x0, way), rtol=1e-4, atol=1e-5)
            for sess, fields in zip(sessions[1:], VARIANTS, strict=True):
                for i, got in zip(order, sess.run([fetches[i] for i in order], feed), strict=True):
                    np.testing.assert_allclose(
                        got, plain[i], rtol=1e-9, atol=1e-9, err_msg=f"{fields}, {i}, seed {seed}"
                    )
    for sess in sessions:
        sess.close()
    host.close()


@pytest.mark.parametrize("start", range(0, 400, 4))
@pytest.mark.sampled(400)
@pytest.mark.exhaustive
def test_gradients_of_gradients_of_conds(random_conds, start):
    for seed in range(start, start + 4):
        check(random_conds, seed)
