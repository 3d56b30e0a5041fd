"""scikit-learn's handwritten digits as the example programs read them, and the program that trains a network to read them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import graphdock as tf
import numpy as np

from examples.convnet import loss_of
from examples.training import Training, session, train

__all__ = ["Digits", "load", "train_reader"]


class Digits(NamedTuple):
    """Images [N, 8, 8, 1] from 0 to 1, labels [N]; a quarter is held out."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load() -> Digits:
    """The 1797 digits that `graphdock demo` shows, in its order. Raises UnavailableError where scikit-learn is not installed."""
    from graphdock_tf1.demo import load_digits

    data = load_digits()
    return Digits(
        data.train_x.reshape(-1, 8, 8, 1),
        data.train_y.argmax(1).astype(np.int32),
        data.test_x.reshape(-1, 8, 8, 1),
        data.test_y.argmax(1).astype(np.int32),
    )


def train_reader(
    options: argparse.Namespace, inference: Callable[[Any, Any], Any], minimize: Callable[[Any], Any]
) -> Training:
    """Train a network with dropout on the digits, and measure its accuracy on those held out.

    options: of the command line, with ``keep``, the share that dropout keeps in training. inference: images and that share to
    logits. minimize: the loss to the training operation.
    """
    data = load()
    order = np.random.RandomState(options.seed)
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
        labels = tf.placeholder(tf.int32, [None], name="labels")
        keep_prob = tf.placeholder_with_default(1.0, [], name="keep_prob")
        logits = inference(images, keep_prob)
        loss = loss_of(logits, labels)
        accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))
        step = minimize(loss)

        def feed(_: int) -> dict[Any, Any]:
            pick = order.randint(len(data.train_labels), size=options.batch)
            return {images: data.train_images[pick], labels: data.train_labels[pick], keep_prob: options.keep}

        with session(options) as sess:

            def measure() -> dict[str, float]:
                held_out = {images: data.test_images, labels: data.test_labels}
                return {"accuracy on digits held out": float(sess.run(accuracy, held_out))}

            return train(sess, options, step, loss, feed, measure)
