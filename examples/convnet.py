"""The layers of the four networks of convnet-benchmarks, and the program that trains each of them on noise.

Layouts are NHWC, filters [height, width, inputs, outputs]. ``narrow`` divides all widths: a network of the same depth that a test
can afford.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np

from examples.training import Training, command_line, session, train

__all__ = ["affine", "classified", "conv", "loss_of", "main", "max_pool"]


def conv(x: Any, size: int, outputs: int, name: str, stride: int = 1, padding: str = "SAME") -> Any:
    """Convolution with windows of size by size, bias and rectifier."""
    with tf.variable_scope(name):
        shape = [size, size, int(x.shape[3]), outputs]
        weights = tf.get_variable("weights", shape, initializer=tf.variance_scaling_initializer(2.0))
        biases = tf.get_variable("biases", [outputs], initializer=tf.zeros_initializer())
        y = tf.nn.conv2d(x, weights, [1, stride, stride, 1], padding)
        return tf.nn.relu(tf.nn.bias_add(y, biases))


def max_pool(x: Any, size: int, stride: int, padding: str = "VALID") -> Any:
    """Maxima of windows of size by size."""
    return tf.nn.max_pool(x, [1, size, size, 1], [1, stride, stride, 1], padding)


def affine(x: Any, outputs: int, name: str, relu: bool = True) -> Any:
    """A fully connected layer over all that an example has."""
    inputs = int(np.prod([int(size) for size in x.shape[1:]]))
    with tf.variable_scope(name):
        spread = tf.variance_scaling_initializer(
            2.0 if relu else 0.01
        )  # first logits near zero: the loss begins at log(classes)
        weights = tf.get_variable("weights", [inputs, outputs], x.dtype, spread)
        biases = tf.get_variable("biases", [outputs], x.dtype, tf.zeros_initializer())
        y = tf.nn.bias_add(tf.matmul(tf.reshape(x, [-1, inputs]), weights), biases)
        return tf.nn.relu(y) if relu else y


def classified(x: Any, hidden: tuple[int, int], classes: int) -> Any:
    """Logits by three fully connected layers, which AlexNet brought in and its successors kept."""
    x = affine(x, hidden[0], "fc6")
    x = affine(x, hidden[1], "fc7")
    return affine(x, classes, "fc8", relu=False)


def loss_of(logits: Any, labels: Any) -> Any:
    """Mean cross-entropy of logits [N, classes] and labels [N]."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def main(
    doc: str | None, inference: Callable[..., Any], size: int, batch: int, arguments: list[str] | None
) -> Training:
    """Train a network on one batch of noise, size by size, which it comes to know by heart.

    inference: (images, classes, narrow) to logits.
    """
    options = command_line(
        doc,
        arguments,
        steps=20,
        batch=batch,
        classes=(1000, "labels"),
        narrow=(1, "divides the widths of all layers"),
        rate=(0.0003, "learning rate"),
        momentum=(0.9, "of the optimizer"),
    )
    random = np.random.RandomState(options.seed)
    noise = random.normal(size=(options.batch, size, size, 3)).astype(np.float32)
    targets = random.randint(options.classes, size=options.batch).astype(np.int32)
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        images = tf.placeholder(tf.float32, [options.batch, size, size, 3], name="images")
        labels = tf.placeholder(tf.int32, [options.batch], name="labels")
        loss = loss_of(inference(images, options.classes, options.narrow), labels)
        step = tf.train.MomentumOptimizer(options.rate, options.momentum).minimize(loss)
        with session(options) as sess:
            return train(sess, options, step, loss, lambda _: {images: noise, labels: targets})
