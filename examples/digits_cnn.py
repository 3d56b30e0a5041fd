"""A convolutional network that reads 98 of 100 handwritten digits it has not seen.

Two convolutions, a pool, a hidden layer with dropout, trained with Adam at a rate that decays, on scikit-learn's digits.

    python -m examples.digits_cnn
"""

from __future__ import annotations

import sys
from typing import Any

import graphdock as tf

from examples import digits
from examples.convnet import affine, conv, max_pool
from examples.training import Training, command_line

#: What the network has to reach on digits held out.
GOAL = 0.98


def inference(images: Any, keep_prob: Any = None, width: int = 32) -> Any:
    """Logits [N, 10] of images [N, 8, 8, 1]; dropout where it is asked for."""
    x = conv(images, 3, width, "conv1")
    x = conv(x, 3, 2 * width, "conv2")
    x = max_pool(x, 2, 2)
    x = affine(x, 4 * width, "hidden")
    if keep_prob is not None:
        x = tf.nn.dropout(x, keep_prob=keep_prob)
    return affine(x, 10, "logits", relu=False)


def main(arguments: list[str] | None = None) -> Training:
    """Train, and measure the accuracy on the digits held out."""
    options = command_line(
        __doc__,
        arguments,
        steps=800,
        width=(32, "channels of the first convolution"),
        rate=(0.004, "learning rate of the first step"),
        keep=(0.5, "share of the hidden units that dropout keeps"),
    )

    def network(images: Any, keep_prob: Any) -> Any:
        return inference(images, keep_prob, options.width)

    def minimize(loss: Any) -> Any:
        global_step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(options.rate, global_step, 200, 0.5)
        return tf.train.AdamOptimizer(rate).minimize(loss, global_step=global_step)

    return digits.train_reader(options, network, minimize)


if __name__ == "__main__":
    (reached,) = main().results.values()
    sys.exit(reached < GOAL)
