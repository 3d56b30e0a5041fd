"""Programs that must give the same results on any device, and on any mixture of devices.

Each function builds a graph and returns a function ``run(session) -> list of arrays``. ``on(i)`` is the device scope of stage
``i``; on one device it does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np

On = Callable[[int], Any]
Run = Callable[[Any], list[np.ndarray]]

X = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, 3, 6)


def forward(on: On) -> Run:
    x = tf.placeholder(tf.float32, [None, 4])
    with on(0):
        h = tf.nn.relu(tf.matmul(x, tf.constant(np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5))))
    with on(1):
        p = tf.nn.softmax(h)
        t = tf.transpose(p)
    with on(2):
        parts = tf.split(t, 5)
        joined = tf.concat([parts[3], parts[0]], 0)
        top = tf.argmax(p, 1)
    with on(3):
        total = tf.reduce_sum(joined, 1) + tf.cast(top[:2], tf.float32)
        back = tf.reshape(h[:, 1:4:2], [-1])
    return lambda s: s.run([p, joined, top, total, back], {x: X})


def data_dependent_shapes(on: On) -> Run:
    """Shapes that only the step knows, and strided buffers of such shapes, cross from stage to stage."""
    x = tf.placeholder(tf.float32, [None, None])
    with on(0):
        places = tf.where(x > 0.0)
        kept = tf.gather_nd(x, places)
    with on(1):
        turned = tf.transpose(tf.reshape(kept, [1, -1])) * 2.0
        rows = tf.gather(x, tf.cast(places[:, 0], tf.int32))
    with on(2):
        out = tf.matmul(tf.transpose(rows), tf.tile(turned, [1, 2]))
    return lambda s: [a for batch in (X, X[:3]) for a in s.run([places, kept, turned, rows, out], {x: batch})]


def _train(on: On, optimizer: Any) -> Run:
    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [None])
    rng = np.random.default_rng(2)
    with on(0):
        w1 = tf.Variable(rng.standard_normal((4, 8)).astype(np.float32) * 0.5)
        b1 = tf.Variable(np.zeros(8, np.float32))
        h = tf.tanh(tf.matmul(x, w1) + b1)
    with on(1):
        w2 = tf.Variable(rng.standard_normal((8, 3)).astype(np.float32) * 0.5)
        b2 = tf.Variable(np.zeros(3, np.float32))
        logits = tf.matmul(h, w2) + b2
    with on(2):
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    step = optimizer.minimize(loss)

    def run(s: Any) -> list[np.ndarray]:
        s.run(tf.global_variables_initializer())
        losses = [s.run([loss, step], {x: X, y: Y})[0] for _ in range(5)]
        s.run(step, {x: X[:2], y: Y[:2]})  # nothing is fetched: the update is still under way when the step returns
        return [np.array(losses), *s.run([w1, b1, w2, b2])]

    return run


def train_with_gradient_descent(on: On) -> Run:
    return _train(on, tf.train.GradientDescentOptimizer(0.3))


def train_with_adam(on: On) -> Run:
    return _train(on, tf.train.AdamOptimizer(0.05))


def train_with_momentum(on: On) -> Run:
    return _train(on, tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True))


def sparse_updates(on: On) -> Run:
    with on(0):
        table = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3))
    ids = tf.placeholder(tf.int32, [None])
    with on(1):
        loss = tf.reduce_sum(tf.square(tf.gather(table, ids)))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    def run(s: Any) -> list[np.ndarray]:
        s.run(tf.global_variables_initializer())
        for batch in ([0, 2, 2], [1], [3, 0]):
            s.run(step, {ids: batch})
        return [s.run(table)]

    return run


def counters(on: On) -> Run:
    """Reads and writes of one variable in an order that control dependencies set."""
    with on(0):
        v = tf.Variable(np.zeros(3, np.float32))
        before = v + 0.0
        with tf.control_dependencies([before]):
            up = tf.assign_add(v, np.ones(3, np.float32))
        with tf.control_dependencies([up]):
            after = tf.identity(v.read_value()) * 2.0

    def run(s: Any) -> list[np.ndarray]:
        s.run(tf.global_variables_initializer())
        return [a for _ in range(3) for a in s.run([before, after])] + [s.run(v)]

    return run


def cond(on: On) -> Run:
    x = tf.placeholder(tf.float32, [4])
    with on(0):
        v = tf.Variable(np.zeros(4, np.float32))
    with on(1):
        total = tf.reduce_sum(x)

        def positive() -> Any:
            with tf.control_dependencies([tf.assign_add(v, x)]):
                return tf.sqrt(tf.abs(x)) + total

        def negative() -> Any:
            return tf.cond(tf.reduce_max(x) > 0.5, lambda: x * 3.0, lambda: -x)

        y = tf.cond(total > 0.0, positive, negative)
        z = y * 2.0
        (grad,) = tf.gradients(z, [x])

    def run(s: Any) -> list[np.ndarray]:
        s.run(tf.global_variables_initializer())
        feeds = [[1, 2, 3, 4], [-1, -2, -3, 1], [-1, -2, -3, -4], [0.5, 0.5, 1, 1]]
        return [a for f in feeds for a in s.run([z, grad], {x: f})] + [s.run(v)]

    return run


def while_loop(on: On) -> Run:
    """A wholly numeric loop: its variables lie on the device, its counter is a Python number, captures are moved before it."""
    x = tf.placeholder(tf.float32, [3, 3])
    with on(0):
        scale = tf.constant(np.eye(3, dtype=np.float32) * 0.5)
    with on(1):
        _, a, b = tf.while_loop(
            lambda i, a, b: i < 7,
            lambda i, a, b: (i + 1, tf.matmul(a, scale) + b, a),
            [tf.constant(0), x, tf.zeros_like(x)],
        )
        (grad,) = tf.gradients(tf.reduce_sum(a), [x])
    batch = X[:3, :3].copy()
    return lambda s: s.run([a, b, grad], {x: batch})


def while_until(on: On) -> Run:
    """The condition depends on a tensor of the device; inner loops and conds stand in the body."""
    x = tf.placeholder(tf.float32, [4])
    with on(0):

        def body(i: Any, a: Any) -> Any:
            _, inner = tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b * 1.1), [tf.constant(0), a])
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: inner + 1.0, lambda: inner * 1.5)

        i, a = tf.while_loop(lambda i, a: tf.reduce_sum(a) < 100.0, body, [tf.constant(0), x])
    return lambda s: [v for f in ([1, 2, 3, 4], [50, 50, 50, 50], [0, 0, 0, 1]) for v in s.run([i, a], {x: f})]


def random_numbers(on: On) -> Run:
    with on(0):
        u = tf.random_uniform([5], seed=3)
        n = tf.random_normal([2, 3], seed=4)
    with on(1):
        d = tf.nn.dropout(tf.ones([8]), 0.5, seed=5)
        i = tf.while_loop(
            lambda k, a: k < 3, lambda k, a: (k + 1, a + tf.random_uniform([2], seed=6)), [0, tf.zeros([2])]
        )[1]
    return lambda s: [a for _ in range(2) for a in s.run([u, n, d, i])]


ALL = (
    forward,
    data_dependent_shapes,
    train_with_gradient_descent,
    train_with_adam,
    train_with_momentum,
    sparse_updates,
    counters,
    cond,
    while_loop,
    while_until,
    random_numbers,
)
