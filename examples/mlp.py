"""A network of fully connected layers with dropout, trained with Adam on handwritten digits.

python -m examples.mlp --hidden 256 --keep 0.7
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as tf
import numpy as np

from examples import digits
from examples.convnet import affine, loss_of
from examples.training import Training, command_line, session, train


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
        1000,
        64,
        arguments,
        hidden=(128, "units of each of the two hidden layers"),
        rate=(0.002, "learning rate"),
        keep=(0.7, "share of the hidden units that dropout keeps"),
    )
    data = digits.load()
    order = np.random.RandomState(options.seed)
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
        labels = tf.placeholder(tf.int32, [None], name="labels")
        keep_prob = tf.placeholder_with_default(1.0, [], name="keep_prob")
        logits = inference(images, [options.hidden] * 2, 10, keep_prob)
        loss = loss_of(logits, labels)
        accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))
        step = tf.train.AdamOptimizer(options.rate).minimize(loss)

        def feed(_: int) -> dict[Any, Any]:
            pick = order.randint(len(data.train_labels), size=options.batch)
            return {images: data.train_images[pick], labels: data.train_labels[pick], keep_prob: options.keep}

        with session(options) as sess:

            def measure() -> dict[str, float]:
                held_out = {images: data.test_images, labels: data.test_labels}
                return {"accuracy on digits held out": float(sess.run(accuracy, held_out))}

            return train(sess, options, step, loss, feed, measure)


if __name__ == "__main__":
    main()
