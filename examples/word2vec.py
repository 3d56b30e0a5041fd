"""Vectors of words, learned from the words beside them.

Mikolov and others, "Distributed representations of words and phrases", 2013: skip-gram, with noise-contrastive estimation over
wrong words that are drawn by Zipf's law. The text is made: each sentence has a subject, and takes its words from those of the
subject and from some that belong to none. Words of one subject end up beside each other.

    python -m examples.word2vec --subjects 50 --width 128
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import graphdock as tf
import numpy as np

from examples.training import Training, command_line, session, train

#: Words in a sentence, how far a word sees, and what share of words belong to no subject.
SENTENCE, REACH, COMMON = 12, 2, 0.3


@dataclass(frozen=True)
class Text:
    """A text as numbers of words, of which the most frequent is 0.

    sentences: [count, SENTENCE]. names: of the words. subjects: [words], -1 where a word belongs to none.
    """

    sentences: np.ndarray
    names: list[str]
    subjects: np.ndarray


def write(count: int, subjects: int, per_subject: int, random: np.random.RandomState) -> Text:
    """Sentences of words like ``3.17``, the 17th of subject 3, and ``the17``, which belongs to none."""

    def drawn() -> np.ndarray:
        chances = 1.0 / np.arange(2, per_subject + 2)
        return random.choice(per_subject, p=chances / chances.sum(), size=(count, SENTENCE))

    subject = np.where(random.uniform(size=(count, SENTENCE)) < COMMON, -1, random.randint(subjects, size=(count, 1)))
    keys = (subject + 1) * per_subject + drawn()
    order = [key for key, _ in Counter(keys.ravel().tolist()).most_common()]
    number_of = np.zeros((subjects + 1) * per_subject, np.int32)
    number_of[order] = np.arange(len(order))
    belongs, which = np.array(order) // per_subject - 1, np.array(order) % per_subject
    names = [f"the{w}" if s < 0 else f"{s}.{w}" for s, w in zip(belongs, which, strict=True)]
    return Text(number_of[keys], names, belongs)


def pairs(text: Text, batch: int, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Words [batch], and for each one of its neighbours [batch, 1]."""
    sentence = random.randint(len(text.sentences), size=batch)
    place = random.randint(REACH, SENTENCE - REACH, size=batch)
    away = random.randint(1, REACH + 1, size=batch) * random.choice([-1, 1], size=batch)
    return text.sentences[sentence, place], text.sentences[sentence, place + away][:, None]


def vectors(vocabulary: int, width: int) -> Any:
    """The table [vocabulary, width] that is learned."""
    return tf.get_variable("vectors", [vocabulary, width], initializer=tf.random_uniform_initializer(-1.0, 1.0))


def loss_of(table: Any, words: Any, neighbours: Any, vocabulary: int, sampled: int, sampled_values: Any = None) -> Any:
    """Mean loss of telling neighbours [batch, 1] of words [batch] from words that are drawn, or given as sampled_values."""
    width = int(table.shape[1])
    small = tf.truncated_normal_initializer(stddev=width**-0.5)
    w = tf.get_variable("nce/w", [vocabulary, width], initializer=small)
    b = tf.get_variable("nce/b", [vocabulary], initializer=tf.zeros_initializer())
    if sampled_values is None:
        true = tf.cast(neighbours, tf.int64)
        sampled_values = tf.nn.log_uniform_candidate_sampler(true, 1, sampled, True, vocabulary)
    seen = tf.nn.embedding_lookup(table, words)
    return tf.reduce_mean(tf.nn.nce_loss(w, b, neighbours, seen, sampled, vocabulary, sampled_values=sampled_values))


def nearest(table: Any, words: Any, count: int) -> Any:
    """The ``count`` words [N, count] nearest to words [N] but for themselves, by the cosine of the angle between."""
    unit = tf.nn.l2_normalize(table, 1)
    likeness = tf.matmul(tf.nn.embedding_lookup(unit, words), unit, transpose_b=True)
    return tf.nn.top_k(likeness, count + 1)[1][:, 1:]


def main(arguments: list[str] | None = None) -> Training:
    """Train, then ask how many of the words nearest to a word are of its subject."""
    options = command_line(
        __doc__,
        arguments,
        steps=6000,
        batch=128,
        subjects=(20, "that sentences have"),
        words=(25, "of each subject"),
        width=(64, "of a vector"),
        sampled=(32, "words that the loss draws"),
        rate=(1.0, "learning rate"),
        text=(20000, "sentences"),
        near=(5, "neighbours to look at"),
    )
    random = np.random.RandomState(options.seed)
    text = write(options.text, options.subjects, options.words, random)
    vocabulary = len(text.names)
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        words = tf.placeholder(tf.int32, [options.batch], name="words")
        neighbours = tf.placeholder(tf.int32, [options.batch, 1], name="neighbours")
        table = vectors(vocabulary, options.width)
        loss = loss_of(table, words, neighbours, vocabulary, options.sampled)
        step = tf.train.GradientDescentOptimizer(options.rate).minimize(loss)
        near = nearest(table, tf.range(vocabulary), options.near)

        def feed(_: int) -> dict[Any, Any]:
            return dict(zip((words, neighbours), pairs(text, options.batch, random), strict=True))

        with session(options) as sess:

            def measure() -> dict[str, float]:
                found, of_subject = sess.run(near), text.subjects >= 0
                for word in np.flatnonzero(of_subject)[:4]:
                    print(f"{text.names[word]:>6} is near {', '.join(text.names[other] for other in found[word])}")
                alike = text.subjects[found] == text.subjects[:, None]
                return {"share of near words that are of the word's subject": float(alike[of_subject].mean())}

            return train(sess, options, step, loss, feed, measure)


if __name__ == "__main__":
    main()
