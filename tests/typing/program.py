"""Two layers by hand, trained on noise."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import numpy.typing as npt
from graphdock.typing import TensorLike

Batch = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]


def dense(x: tf.Tensor, units: int, name: str, relu: bool = True) -> tf.Tensor:
    """A layer of its own weights."""
    with tf.variable_scope(name):
        inputs = x.shape.as_list()[-1]
        w = tf.get_variable("w", [inputs, units], tf.float32, initializer=tf.glorot_uniform_initializer(seed=1))
        b = tf.Variable(tf.zeros([units]), name="b")
        y = tf.matmul(x, w) + b
        return tf.nn.relu(y) if relu else y


def penalty(weights: list[tf.Variable], scale: TensorLike) -> tf.Tensor:
    total = tf.constant(0.0)
    for w in weights:
        total = total + scale * tf.reduce_sum(tf.square(w))
    return total


class Model:
    def __init__(self, features: int, classes: int, rate: float = 0.05) -> None:
        self.x = tf.placeholder(tf.float32, [None, features], name="x")
        self.y = tf.placeholder("int64", [None], name="y")
        self.keep = tf.placeholder_with_default(1.0, [])
        hidden = tf.nn.dropout(dense(self.x, 16, "hidden"), keep_prob=self.keep, seed=2)
        self.logits = dense(hidden, classes, "out", relu=False)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.y, logits=self.logits)
        self.loss = tf.reduce_mean(losses, axis=0) + penalty(tf.trainable_variables(), 1e-4)
        self.step = tf.train.create_global_step()
        schedule = tf.train.exponential_decay(rate, self.step, 10, 0.9, staircase=True)
        optimizer = tf.train.AdamOptimizer(schedule, beta1=0.8)
        grads, norm = tf.clip_by_global_norm([g for g, _ in optimizer.compute_gradients(self.loss)], 5.0)
        self.norm: tf.Tensor = norm
        self.train: tf.Operation = optimizer.apply_gradients(
            zip(grads, tf.trainable_variables(), strict=True), self.step
        )
        right = tf.equal(tf.argmax(self.logits, 1), self.y)
        self.accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        self.first, self.rest = tf.split(self.logits[:, :2], 2, axis=1)


def batches(count: int, rng: np.random.Generator) -> list[Batch]:
    return [(rng.normal(size=(8, 4)).astype(np.float32), rng.integers(0, 3, 8)) for _ in range(count)]


def main() -> float:
    rng = np.random.default_rng(0)
    config = tf.SessionConfig(backends=("cpu",), fallback="forbid")
    with tf.Graph().as_default(), tf.Session(config=config) as sess:
        model = Model(4, 3)
        sess.run(tf.global_variables_initializer())
        for x, y in batches(5, rng):
            _, loss = sess.run([model.train, model.loss], {model.x: x, model.y: y, model.keep: 0.9})
        results = sess.run({"loss": model.loss, "accuracy": model.accuracy}, {model.x: x, model.y: y})
        print(f"{results['accuracy']:.2f} after {tf.train.global_step(sess, model.step)} steps")
        return float(loss)


if __name__ == "__main__":
    main()
