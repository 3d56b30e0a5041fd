"""An encoder and a decoder with attention that learn to say a sequence backwards.

Luong, Pham and Manning, "Effective approaches to attention-based neural machine translation", 2015: the decoder attends to what
the encoder made of each word. In training it reads the right words, in use its own. Sequences differ in length.

    python -m examples.seq2seq --length 10 --units 64
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np

from examples.training import Training, command_line, session, train

#: The word that a sequence ends with, that the decoder begins with, and that stands past the end.
END = 0


class Translator:
    """Variables of one network, which decodes in training and in use.

    source: int32 [batch, length]. lengths: int32 [batch]. vocabulary: the words, END among them. units: of the cells.
    """

    def __init__(self, source: Any, lengths: Any, vocabulary: int, units: int) -> None:
        self.table = tf.get_variable(
            "words", [vocabulary, units], initializer=tf.random_normal_initializer(stddev=units**-0.5)
        )
        self.batch = tf.shape(source)[0]
        inputs = tf.nn.embedding_lookup(self.table, source)
        with tf.variable_scope("encoder"):
            memory, self.last = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(units), inputs, lengths, dtype=tf.float32)
        attention = tf.contrib.seq2seq.LuongAttention(units, memory, memory_sequence_length=lengths)
        self.cell = tf.contrib.seq2seq.AttentionWrapper(
            tf.nn.rnn_cell.GRUCell(units), attention, attention_layer_size=units
        )
        self.layer = tf.layers.Dense(vocabulary, name="words_of")

    def decode(self, helper: Any, longest: Any = None) -> Any:
        """Return what the decoder says where a helper tells it what to read, for ``longest`` steps at most."""
        state = self.cell.zero_state(self.batch, tf.float32).clone(cell_state=self.last)
        decoder = tf.contrib.seq2seq.BasicDecoder(self.cell, helper, state, self.layer)
        with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE) as scope:
            outputs, _, _ = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=longest, scope=scope)
        return outputs

    def loss_of(self, target: Any, lengths: Any) -> Any:
        """Mean cross-entropy of the words of target [batch, length + 1], whose ends count too."""
        start = tf.fill([self.batch, 1], END)
        inputs = tf.nn.embedding_lookup(self.table, tf.concat([start, target[:, :-1]], 1))
        logits = self.decode(tf.contrib.seq2seq.TrainingHelper(inputs, lengths)).rnn_output
        said = target[:, : tf.shape(logits)[1]]
        weights = tf.sequence_mask(lengths, tf.shape(logits)[1], dtype=tf.float32)
        return tf.contrib.seq2seq.sequence_loss(logits, said, weights)

    def say(self, longest: int) -> Any:
        """The words [batch, steps] that the decoder thinks likeliest, reading its own."""
        start = tf.fill([self.batch], END)
        return self.decode(tf.contrib.seq2seq.GreedyEmbeddingHelper(self.table, start, END), longest).sample_id


def sequences(random: np.random.RandomState, batch: int, length: int, vocabulary: int) -> tuple[np.ndarray, ...]:
    """Words, the numbers of words, and the words backwards with an end; past the end there is END."""
    lengths = random.randint(1, length + 1, size=batch).astype(np.int32)
    words = random.randint(1, vocabulary, size=(batch, length))
    place = np.arange(length + 1)
    source = np.where(place[:-1] < lengths[:, None], words, END)
    backwards = np.maximum(lengths[:, None] - 1 - place, 0)
    target = np.where(place < lengths[:, None], np.take_along_axis(source, backwards, 1), END)
    return source.astype(np.int32), lengths, target.astype(np.int32)


def main(arguments: list[str] | None = None) -> Training:
    """Train, and count how many new sequences are said backwards without a fault."""
    options = command_line(
        __doc__,
        arguments,
        length=(8, "words in a sequence, at most"),
        vocabulary=(20, "words that there are"),
        units=(64, "of each cell"),
        rate=(0.005, "learning rate"),
    )
    random = np.random.RandomState(options.seed)
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        source = tf.placeholder(tf.int32, [None, options.length], name="source")
        lengths = tf.placeholder(tf.int32, [None], name="lengths")
        target = tf.placeholder(tf.int32, [None, options.length + 1], name="target")
        network = Translator(source, lengths, options.vocabulary, options.units)
        loss = network.loss_of(target, lengths + 1)
        said = network.say(options.length + 1)
        optimizer = tf.train.AdamOptimizer(options.rate)
        gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
        clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
        step = optimizer.apply_gradients(zip(clipped, variables, strict=True))

        def feed(_: int, batch: int = options.batch) -> dict[Any, Any]:
            drawn = sequences(random, batch, options.length, options.vocabulary)
            return dict(zip((source, lengths, target), drawn, strict=True))

        with session(options) as sess:

            def measure() -> dict[str, float]:
                new = feed(0, 500)
                found = sess.run(said, new)
                whole = np.pad(found, [(0, 0), (0, options.length + 1 - found.shape[1])], constant_values=END)
                return {"new sequences said without a fault": float(np.mean((whole == new[target]).all(1)))}

            return train(sess, options, step, loss, feed, measure)


if __name__ == "__main__":
    main()
