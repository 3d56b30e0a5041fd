"""A network of fully connected layers with dropout, trained with Adam on handwritten digits.

python -m examples.mlp --hidden 256 --keep 0.7
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as tf

from examples import digits
from examples.convnet import affine
from examples.training import Training, command_line


def inference(x: Any, hidden: Sequence[int], classes: int, keep_prob: Any = None) -> Any:
    """Logits [N, classes] of x [N, ...]; a layer of rectifiers for each width in ``hidden``, dropout where it is asked for."""
    for number, width in enumerate(hidden, 1):
        x = affine(x, width, f"hidden{number}")
        if keep_prob is not None:
            x = tf.nn.dropout(x, keep_prob=keep_prob)
    return affine(x, classes, "logits", relu=False)


def main(arguments: list[str] | None = None) -> Training:
    """Train, and measure the accuracy on the digits held out."""
    options = command_line(
        __doc__,
        arguments,
        hidden=(128, "units of each of the two hidden layers"),
        rate=(0.002, "learning rate"),
        keep=(0.7, "share of the hidden units that dropout keeps"),
    )

    def network(images: Any, keep_prob: Any) -> Any:
        return inference(images, [options.hidden] * 2, 10, keep_prob)

    return digits.train_reader(options, network, tf.train.AdamOptimizer(options.rate).minimize)


if __name__ == "__main__":
    main()
