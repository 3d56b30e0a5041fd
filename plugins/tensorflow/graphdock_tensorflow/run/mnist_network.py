"""``tensorflow.examples.tutorials.mnist.mnist``: the tutorials' network of two hidden layers."""

from __future__ import annotations

import math
from typing import Any

import graphdock as tf

__all__ = ["IMAGE_PIXELS", "IMAGE_SIZE", "NUM_CLASSES", "evaluation", "inference", "loss", "training"]

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Any:
    """Logits ``[N, 10]`` of images ``[N, 784]``."""
    value, before = images, IMAGE_PIXELS
    for name, units in (("hidden1", hidden1_units), ("hidden2", hidden2_units), ("softmax_linear", NUM_CLASSES)):
        with tf.name_scope(name):
            first = tf.truncated_normal([before, units], stddev=1.0 / math.sqrt(float(before)))
            weights = tf.Variable(first, name="weights")
            biases = tf.Variable(tf.zeros([units]), name="biases")
            value = tf.matmul(value, weights) + biases
            value, before = (value if name == "softmax_linear" else tf.nn.relu(value)), units
    return value


def loss(logits: Any, labels: Any) -> Any:
    """Mean cross-entropy of logits ``[N, 10]`` and labels ``[N]``."""
    return tf.losses.sparse_softmax_cross_entropy(labels=tf.to_int64(labels), logits=logits)


def training(loss: Any, learning_rate: float) -> Any:
    """A step of gradient descent, which counts ``global_step``; the loss is a summary."""
    tf.summary.scalar("loss", loss)
    step = tf.Variable(0, name="global_step", trainable=False)
    return tf.train.GradientDescentOptimizer(learning_rate).minimize(loss, global_step=step)


def evaluation(logits: Any, labels: Any) -> Any:
    """Return how many of a batch are right, int32."""
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
