"""Small programs whose steps are planned, recorded and replayed. Each makes its nodes in the default graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import graphdock as tf
import numpy as np

__all__ = ["LOOPS", "PROGRAMS", "Step", "decided_by_the_gpu"]


class Step(NamedTuple):
    """What is run: ``train``, and ``loss``, whose values are compared; ``feed(random)`` makes the feeds of one step."""

    train: Any
    loss: Any
    feed: Callable[[np.random.Generator], dict[Any, Any]]


def _classes(random: np.random.Generator, rows: int, classes: int = 10) -> np.ndarray:
    return np.eye(classes, dtype=np.float32)[random.integers(0, classes, rows)]


def softmax_regression() -> Step:
    """The seeds' first program."""
    x, y_ = tf.placeholder(tf.float32, [10, 784]), tf.placeholder(tf.float32, [10, 10])
    w, b = tf.Variable(tf.zeros([784, 10])), tf.Variable(tf.zeros([10]))
    y = tf.nn.softmax(tf.matmul(x, w) + b)
    loss = -tf.reduce_sum(y_ * tf.log(y))
    train = tf.train.AdagradOptimizer(0.01).minimize(loss)
    return Step(train, loss, lambda r: {x: r.random((10, 784), np.float32), y_: _classes(r, 10)})


def digits_with_dropout() -> Step:
    """A convolution, a pool, two dense layers with dropout between them, Adam."""
    images, labels = tf.placeholder(tf.float32, [4, 8, 8, 1]), tf.placeholder(tf.float32, [4, 10])
    random = np.random.default_rng(0)

    def weights(*shape: int) -> Any:
        return tf.Variable((random.standard_normal(shape) * 0.1).astype(np.float32))

    layer = tf.nn.relu(tf.nn.conv2d(images, weights(3, 3, 1, 4), [1, 1, 1, 1], "SAME") + weights(4))
    layer = tf.nn.max_pool(layer, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    layer = tf.nn.relu(tf.matmul(tf.reshape(layer, [4, 64]), weights(64, 16)) + weights(16))
    layer = tf.nn.dropout(layer, 0.5, seed=7)
    logits = tf.matmul(layer, weights(16, 10)) + weights(10)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    return Step(train, loss, lambda r: {images: r.random((4, 8, 8, 1), np.float32), labels: _classes(r, 4)})


def lstm() -> Step:
    """A language model of one LSTM layer, four steps unrolled."""
    batch, steps, vocabulary, units = 3, 4, 11, 8
    tokens, targets = tf.placeholder(tf.int32, [batch, steps]), tf.placeholder(tf.int32, [batch, steps])
    random = np.random.default_rng(1)

    def weights(*shape: int) -> Any:
        return tf.Variable((random.standard_normal(shape) * 0.2).astype(np.float32))

    table, kernel, bias = weights(vocabulary, units), weights(2 * units, 4 * units), weights(4 * units)
    out_w, out_b = weights(units, vocabulary), weights(vocabulary)
    embedded = tf.nn.embedding_lookup(table, tokens)
    c = h = tf.zeros([batch, units])
    losses = []
    for t in range(steps):
        gates = tf.matmul(tf.concat([embedded[:, t], h], 1), kernel) + bias
        i, j, f, o = tf.split(gates, 4, 1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
        h = tf.sigmoid(o) * tf.tanh(c)
        logits = tf.matmul(h, out_w) + out_b
        losses.append(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets[:, t], logits=logits))
    loss = tf.reduce_mean(tf.stack(losses))
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
    train = optimizer.apply_gradients(zip(clipped, variables, strict=True))

    def feed(r: np.random.Generator) -> dict[Any, Any]:
        return {t: r.integers(0, vocabulary, (batch, steps), np.int32) for t in (tokens, targets)}

    return Step(train, loss, feed)


def transformer() -> Step:
    """One layer of a decoder: causal attention of two heads, layer norms, GELU."""
    batch, steps, width, heads = 2, 6, 16, 2
    x, y = tf.placeholder(tf.float32, [batch, steps, width]), tf.placeholder(tf.float32, [batch, steps, width])
    random = np.random.default_rng(2)

    def dense(inputs: Any, units: int) -> Any:
        before = int(inputs.shape[-1])
        w = tf.Variable((random.standard_normal((before, units)) * 0.2).astype(np.float32))
        flat = tf.matmul(tf.reshape(inputs, [-1, before]), w) + tf.Variable(tf.zeros([units]))
        return tf.reshape(flat, [batch, steps, units])

    def norm(inputs: Any) -> Any:
        mean, variance = tf.nn.moments(inputs, [-1], keep_dims=True)
        scale, shift = tf.Variable(tf.ones([width])), tf.Variable(tf.zeros([width]))
        return (inputs - mean) * tf.rsqrt(variance + 1e-5) * scale + shift

    def split(inputs: Any) -> Any:
        return tf.transpose(tf.reshape(inputs, [batch, steps, heads, width // heads]), [0, 2, 1, 3])

    q, k, v = (split(p) for p in tf.split(dense(norm(x), 3 * width), 3, -1))
    scores = tf.matmul(q, k, transpose_b=True) / np.float32(np.sqrt(width // heads))
    mask = np.triu(np.full((steps, steps), -1e9, np.float32), 1)
    mixed = tf.matmul(tf.nn.softmax(scores + mask), v)
    x1 = x + dense(tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [batch, steps, width]), width)
    hidden = dense(norm(x1), 4 * width)
    hidden = 0.5 * hidden * (1.0 + tf.erf(hidden / np.float32(np.sqrt(2.0))))
    out = norm(x1 + dense(hidden, width))
    loss = tf.reduce_mean(tf.squared_difference(out, y))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    return Step(train, loss, lambda r: {p: r.standard_normal((batch, steps, width), np.float32) for p in (x, y)})


def lstm_over_known_rows() -> Step:
    """As :func:`lstm_over_rows`, of batches that are all as long."""
    return lstm_over_rows(4)


def lstm_over_rows(steps: int | None = None) -> Step:
    """A language model of one LSTM layer, by a loop over the rows of its input, as long as each batch is."""
    batch, vocabulary, units = 3, 11, 8
    tokens, targets = (tf.placeholder(tf.int32, [batch, steps]) for _ in range(2))
    with tf.variable_scope("net", initializer=tf.random_uniform_initializer(-0.2, 0.2, seed=4)):
        table, out_w = tf.get_variable("table", [vocabulary, units]), tf.get_variable("out", [units, vocabulary])
        cell = tf.nn.rnn_cell.LSTMCell(units)
        outputs, _ = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(table, tokens), dtype=tf.float32)
    logits = tf.matmul(tf.reshape(outputs, [-1, units]), out_w)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(targets, [-1]), logits=logits)
    loss = tf.reduce_mean(losses)
    train = tf.train.AdamOptimizer(0.01).minimize(loss)

    def feed(r: np.random.Generator) -> dict[Any, Any]:
        rows = steps or int(r.integers(1, 6))
        return {t: r.integers(0, vocabulary, (batch, rows), np.int32) for t in (tokens, targets)}

    return Step(train, loss, feed)


def decided_by_the_gpu() -> Step:
    """A branch with a loop in it and dropout beside it, another branch, and the way back of that."""
    x = tf.placeholder(tf.float32, [3])
    w = tf.Variable(np.array([0.5, -0.25, 2.0], np.float32))
    wide = tf.cond(
        tf.reduce_sum(x) > 0,
        lambda: tf.while_loop(lambda y: tf.reduce_max(y) < 50, lambda y: y * 2 + 1, [tf.abs(x)]),
        lambda: tf.nn.dropout(x, 0.5, seed=4),
    )
    loss = tf.reduce_sum(tf.cond(tf.reduce_sum(x * w) > 1, lambda: tf.square(w * wide), lambda: tf.sin(w)))
    train = tf.train.GradientDescentOptimizer(1e-4).minimize(loss)
    return Step(train, loss, lambda r: {x: (r.standard_normal(3) * 5).astype(np.float32)})


#: Programs whose steps are one recording.
PROGRAMS: dict[str, Callable[[], Step]] = {
    "softmax_regression": softmax_regression,
    "digits_with_dropout": digits_with_dropout,
    "lstm": lstm,
    "lstm_over_known_rows": lstm_over_known_rows,
    "transformer": transformer,
}
#: Programs with loops that the host runs, of what it gives the GPU.
LOOPS: dict[str, Callable[[], Step]] = {"lstm_over_rows": lstm_over_rows}
