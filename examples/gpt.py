"""A small transformer decoder that learns to write like this project's documentation, letter by letter.

Radford and others, "Language models are unsupervised multitask learners" (GPT-2), 2019: norms before the layers, causal
attention, a table of letters that reads and writes. The text is `docs/*.md`.

    python -m examples.gpt --steps 2000 --layers 4
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np

from examples.attention import attention, dense, embedding, gelu_tanh, norm
from examples.training import Training, command_line, session, train

DOCS = Path(__file__).parents[1] / "docs"


def decode(letters: Any, vocabulary: int, width: int, heads: int, layers: int) -> Any:
    """Logits [batch, length, vocabulary] of the letter after each of letters [batch, length]."""
    batch, length = (int(size) for size in letters.shape)
    x, table = embedding(letters, vocabulary, width)
    for number in range(layers):
        with tf.variable_scope(f"layer{number}"):
            x = x + attention(norm(x, "norm1"), heads, "attention", causal=True)
            x = x + dense(gelu_tanh(dense(norm(x, "norm2"), 4 * width, "up")), width, "down")
    rows = tf.reshape(norm(x, "norm"), [-1, width])
    return tf.reshape(tf.matmul(rows, table, transpose_b=True), [batch, length, vocabulary])


def loss_of(logits: Any, targets: Any) -> Any:
    """Mean cross-entropy of each next letter."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))


def read() -> tuple[np.ndarray, str]:
    """The documentation as numbers of letters, and the letters."""
    text = "".join(page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md")))
    alphabet = "".join(sorted(set(text)))
    number = {letter: index for index, letter in enumerate(alphabet)}
    return np.array([number[letter] for letter in text], np.int32), alphabet


def main(arguments: list[str] | None = None) -> Training:
    """Train on windows of the text, then write some letters more."""
    options = command_line(
        __doc__,
        arguments,
        steps=500,
        batch=16,
        length=(64, "letters that the network sees"),
        width=(64, "of the activations"),
        heads=(4, "of each attention"),
        layers=(2, "of the decoder"),
        rate=(0.002, "learning rate"),
        write=(200, "letters to write after training"),
    )
    text, alphabet = read()
    random = np.random.RandomState(options.seed)
    sizes = (len(alphabet), options.width, options.heads, options.layers)
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        window = tf.placeholder(tf.int32, [options.batch, options.length + 1], name="window")
        last = tf.placeholder(tf.int32, [1, options.length], name="last")
        with tf.variable_scope("gpt", reuse=tf.AUTO_REUSE):
            loss = loss_of(decode(window[:, :-1], *sizes), window[:, 1:])
            drawn = tf.multinomial(decode(last, *sizes)[:, -1], 1, seed=options.seed)
        step = tf.train.AdamOptimizer(options.rate).minimize(loss)

        def feed(_: int) -> dict[Any, Any]:
            starts = random.randint(len(text) - options.length, size=options.batch)
            return {window: text[starts[:, None] + np.arange(options.length + 1)]}

        with session(options) as sess:

            def measure() -> dict[str, float]:
                written = list(text[: options.length])
                for _ in range(options.write):
                    written.append(int(sess.run(drawn, {last: [written[-options.length :]]})[0, 0]))
                print("".join(alphabet[letter] for letter in written[options.length :]))
                return {"loss on other windows": float(sess.run(loss, feed(0)))}

            return train(sess, options, step, loss, feed, measure)


if __name__ == "__main__":
    main()
