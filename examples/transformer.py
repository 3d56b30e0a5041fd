"""A transformer encoder that fills in the tokens which are missing of palindromes.

Vaswani and others, "Attention is all you need", 2017, with the learned positions, the error-function units and the masked tokens
of Devlin and others, "BERT", 2018. The second half of a sequence is the first half read backwards; 15 in 100 tokens are
masked, never both of a pair, and the loss asks for these alone.

    python -m examples.transformer --layers 2 --width 64
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np

from examples.attention import attention, dense, embedding, gelu, norm
from examples.training import Training, command_line, session, train


def encode(tokens: Any, vocabulary: int, width: int, heads: int, layers: int) -> Any:
    """[batch, length, width] of tokens [batch, length]."""
    x = norm(embedding(tokens, vocabulary, width)[0], "norm")
    for number in range(layers):
        with tf.variable_scope(f"layer{number}"):
            x = norm(x + attention(x, heads, "attention"), "norm1")
            x = norm(x + dense(gelu(dense(x, 4 * width, "up")), width, "down"), "norm2")
    return x


def loss_of(x: Any, targets: Any, weights: Any, vocabulary: int) -> Any:
    """Mean cross-entropy of the tokens at the positions of which the weight is not zero."""
    logits = dense(x, vocabulary, "logits")
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    return tf.reduce_sum(each * weights) / tf.reduce_sum(weights)


def sequences(random: np.random.RandomState, batch: int, length: int, vocabulary: int) -> tuple[np.ndarray, ...]:
    """Tokens with gaps, whole tokens, and 1 where there is a gap; token 0 is the gap."""
    left = random.randint(1, vocabulary, size=(batch, length // 2))
    whole = np.concatenate([left, left[:, ::-1]], 1).astype(np.int32)
    place = random.uniform(size=left.shape)
    gaps = np.concatenate([place < 0.15, place[:, ::-1] > 0.85], 1)
    gaps[:, 0] = True  # each sequence has one
    gaps[:, -1] = False  # whose pair is seen
    return np.where(gaps, 0, whole).astype(np.int32), whole, gaps.astype(np.float32)


def main(arguments: list[str] | None = None) -> Training:
    """Train, and count how many missing tokens of new sequences are found."""
    options = command_line(
        __doc__,
        arguments,
        steps=300,
        batch=32,
        length=(32, "tokens in a sequence"),
        vocabulary=(64, "tokens that there are"),
        width=(64, "of the activations"),
        heads=(4, "of each attention"),
        layers=(2, "of the encoder"),
        rate=(0.002, "learning rate"),
    )
    random = np.random.RandomState(options.seed)
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        shape = [options.batch, options.length]
        tokens, targets = (tf.placeholder(tf.int32, shape, name=name) for name in ("tokens", "targets"))
        weights = tf.placeholder(tf.float32, shape, name="weights")
        x = encode(tokens, options.vocabulary, options.width, options.heads, options.layers)
        with tf.variable_scope("head", reuse=tf.AUTO_REUSE):
            loss = loss_of(x, targets, weights, options.vocabulary)
            found = tf.cast(tf.argmax(dense(x, options.vocabulary, "logits"), 2), tf.int32)
        right = tf.reduce_sum(tf.cast(tf.equal(found, targets), tf.float32) * weights) / tf.reduce_sum(weights)
        step = tf.train.AdamOptimizer(options.rate).minimize(loss)

        def feed(_: int) -> dict[Any, Any]:
            drawn = sequences(random, options.batch, options.length, options.vocabulary)
            return dict(zip((tokens, targets, weights), drawn, strict=True))

        with session(options) as sess:
            return train(
                sess, options, step, loss, feed, lambda: {"missing tokens found": float(sess.run(right, feed(0)))}
            )


if __name__ == "__main__":
    main()
