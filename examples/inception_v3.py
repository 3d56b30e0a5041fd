"""Inception-v3, eleven modules of convolutions that are normalised over the batch, trained with momentum.

Szegedy and others, "Rethinking the Inception architecture for computer vision", 2015: without dropout, the auxiliary classifier and
smoothed labels.

    python -m examples.inception_v3 --batch 8 --steps 10
"""

from __future__ import annotations

from typing import Any

import graphdock as tf

from examples import convnet
from examples.convnet import affine, max_pool
from examples.training import Training

SIZE = 299


def _fives(pooled: int) -> list[str]:
    return ["1x1 64", "1x1 48, 5x5 64", "1x1 64, 3x3 96, 3x3 96", f"mean, 1x1 {pooled}"]


def _sevens(n: int) -> list[str]:
    long = f"1x1 {n}, 7x1 {n}, 1x7 {n}, 7x1 {n}, 1x7 192"
    return ["1x1 192", f"1x1 {n}, 1x7 {n}, 7x1 192", long, "mean, 1x1 192"]


_FORKS = ["1x1 320", "1x1 384, 1x3 384 + 3x1 384", "1x1 448, 3x3 384, 1x3 384 + 3x1 384", "mean, 1x1 192"]

#: Name -> branches: layers one behind the other, the last of which may be two side by side. /2: every second place, no padding.
MODULES = {
    "5b": _fives(32),
    "5c": _fives(64),
    "5d": _fives(64),
    "6a": ["3x3/2 384", "1x1 64, 3x3 96, 3x3/2 96", "max"],
    "6b": _sevens(128),
    "6c": _sevens(160),
    "6d": _sevens(160),
    "6e": _sevens(192),
    "7a": ["1x1 192, 3x3/2 320", "1x1 192, 1x7 192, 7x1 192, 3x3/2 192", "max"],
    "7b": _FORKS,
    "7c": _FORKS,
}


def layer(x: Any, text: str, name: str, narrow: int, padding: str = "SAME") -> Any:
    """A pool, or a convolution that is normalised by its own mean and variance, shifted and rectified."""
    if text == "max":
        return max_pool(x, 3, 2)
    if text == "mean":
        return tf.nn.avg_pool(x, [1, 3, 3, 1], [1, 1, 1, 1], "SAME")
    window, outputs = text.split()
    window, halves, _ = window.partition("/")
    height, width = map(int, window.split("x"))
    with tf.variable_scope(name):
        shape = [height, width, int(x.shape[3]), max(1, int(outputs) // narrow)]
        weights = tf.get_variable("weights", shape, x.dtype, tf.variance_scaling_initializer(2.0))
        beta = tf.get_variable("beta", shape[3:], x.dtype, tf.zeros_initializer())
        stride, padding = (2, "VALID") if halves else (1, padding)
        y = tf.nn.conv2d(x, weights, [1, stride, stride, 1], padding)
        mean, variance = tf.nn.moments(y, [0, 1, 2])
        return tf.nn.relu(tf.nn.batch_normalization(y, mean, variance, beta, None, 1e-3))


def module(x: Any, branches: list[str], name: str, narrow: int) -> Any:
    """Branches side by side, joined along the channels."""
    ends = []
    with tf.variable_scope(name):
        for number, branch in enumerate(branches):
            y, (*texts, last) = x, branch.split(", ")
            for depth, text in enumerate(texts):
                y = layer(y, text, f"branch{number}_{depth}", narrow)
            for side, text in enumerate(last.split(" + ")):
                ends.append(layer(y, text, f"branch{number}_end{side}", narrow))
        return tf.concat(ends, 3)


def inference(images: Any, classes: int = 1000, narrow: int = 1) -> Any:
    """Logits [N, classes] of images [N, 299, 299, 3]."""
    x = layer(images, "3x3/2 32", "conv1", narrow)
    x = layer(x, "3x3 32", "conv2", narrow, "VALID")
    x = max_pool(layer(x, "3x3 64", "conv3", narrow), 3, 2)
    x = layer(x, "1x1 80", "conv4", narrow, "VALID")
    x = max_pool(layer(x, "3x3 192", "conv5", narrow, "VALID"), 3, 2)
    for name, branches in MODULES.items():
        x = module(x, branches, f"mixed_{name}", narrow)
    x = tf.nn.avg_pool(x, [1, 8, 8, 1], [1, 1, 1, 1], "VALID")
    return affine(x, classes, "fc", relu=False)


def main(arguments: list[str] | None = None) -> Training:
    return convnet.main(__doc__, inference, SIZE, 8, arguments)


if __name__ == "__main__":
    main()
