"""A language model of two LSTMs of 512, which learns the sentences of a small grammar word by word.

Zaremba, Sutskever and Vinyals, "Recurrent neural network regularization", 2014: dropout between the layers, gradients clipped by
their global norm, a rate that decays, and a state that goes on from batch to batch, so that what the network knows of the text
reaches farther back than the gradient does. ``--loss sampled`` trains on some wrong words that are drawn instead of all.

    python -m examples.lstm_lm --loss sampled
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np

from examples import grammar
from examples.training import Training, command_line, session, train

_UNIFORM = tf.random_uniform_initializer(-0.1, 0.1)


def inference(
    words: Any,
    vocabulary: int,
    units: int,
    layers: int,
    state: Any = None,
    keep_prob: float = 1.0,
    unrolled: bool = False,
) -> tuple[Any, Any]:
    """Return what the network knows after each of words [batch, time], as [batch, time, units], and the state after the last.

    state: to begin with, an LSTMStateTuple per layer; else zeros. unrolled: each step of time has operations of its own.
    """
    table = tf.get_variable("words", [vocabulary, units], initializer=_UNIFORM)
    x = dropout(tf.nn.embedding_lookup(table, words), keep_prob)

    def layer() -> Any:
        cell = tf.nn.rnn_cell.BasicLSTMCell(units)
        return cell if keep_prob == 1.0 else tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=keep_prob)

    cell = tf.nn.rnn_cell.MultiRNNCell([layer() for _ in range(layers)])
    if not unrolled:
        return tf.nn.dynamic_rnn(cell, x, initial_state=state, dtype=x.dtype)
    outputs, state = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), initial_state=state, dtype=x.dtype)
    return tf.stack(outputs, axis=1), state


def dropout(x: Any, keep_prob: float) -> Any:
    """Dropout where there is any."""
    return x if keep_prob == 1.0 else tf.nn.dropout(x, keep_prob=keep_prob)


def loss_of(known: Any, targets: Any, vocabulary: int, sampled: int = 0, sampled_values: Any = None) -> Any:
    """Mean cross-entropy of targets [batch, time], each of which follows what is known in [batch, time, units].

    sampled: how many wrong words are drawn; 0 takes all words of the vocabulary. sampled_values: those that were drawn elsewhere.
    """
    units = int(known.shape[-1])
    w = tf.get_variable("softmax/w", [vocabulary, units], initializer=_UNIFORM)
    b = tf.get_variable("softmax/b", [vocabulary], initializer=tf.zeros_initializer())
    rows = tf.reshape(known, [-1, units])
    if sampled:
        labels = tf.reshape(targets, [-1, 1])
        each = tf.nn.sampled_softmax_loss(w, b, labels, rows, sampled, vocabulary, sampled_values=sampled_values)
    else:
        logits = tf.nn.bias_add(tf.matmul(rows, w, transpose_b=True), b)
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(targets, [-1]), logits=logits)
    return tf.reduce_mean(each)


def remembered(name: str, batch: int, units: int, layers: int) -> tuple[Any, ...]:
    """A state in variables, which outlive the step: an LSTMStateTuple of [batch, units] per layer."""

    def part(of: str) -> Any:
        zeros = tf.zeros_initializer()
        return tf.get_variable(f"{name}/{of}", [batch, units], initializer=zeros, trainable=False)

    return tuple([tf.nn.rnn_cell.LSTMStateTuple(part(f"c{layer}"), part(f"h{layer}")) for layer in range(layers)])


def remember(memory: tuple[Any, ...], state: Any) -> Any:
    """The operation that keeps the state."""
    return tf.group(
        *[kept.assign(new) for old, now in zip(memory, state, strict=True) for kept, new in zip(old, now, strict=True)]
    )


def clipped(optimizer: Any, loss: Any, norm: float, global_step: Any) -> Any:
    """A step by gradients whose global norm is at most ``norm``."""
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), norm)
    return optimizer.apply_gradients(zip(gradients, variables, strict=True), global_step=global_step)


def columns(text: np.ndarray, batch: int) -> np.ndarray:
    """The text cut into ``batch`` long pieces, one per row: a batch of windows of them follows the one before."""
    return text[: len(text) // batch * batch].reshape(batch, -1)


def main(arguments: list[str] | None = None) -> Training:
    """Train, and measure the perplexity of a text that was held out; the grammar's own is the least that there can be."""
    options = command_line(
        __doc__,
        arguments,
        steps=600,
        batch=20,
        loss=("full", "over the vocabulary: full or sampled"),
        sampled=(64, "words that the sampled loss draws"),
        length=(20, "words in a window, through which the gradient goes back"),
        units=(512, "of each layer"),
        layers=(2, "of the network"),
        keep=(1.0, "share of what each layer gives that dropout keeps"),
        rate=(1.0, "learning rate of the first steps; it halves after each third of them"),
        norm=(5.0, "what the global norm of the gradients is clipped to"),
        words=(200, "words of each kind"),
        text=(200000, "words to learn from"),
    )
    text = grammar.write(options.text, options.words, np.random.RandomState(options.seed))
    held_out = max(options.batch * (options.length + 1), len(text.words) // 20)
    sizes = (len(text.vocabulary), options.units, options.layers)
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        window = tf.placeholder(tf.int32, [options.batch, options.length + 1], name="window")
        memories = [remembered(name, options.batch, *sizes[1:]) for name in ("training", "testing")]
        with tf.variable_scope("model"):
            known, state = inference(window[:, :-1], *sizes, state=memories[0], keep_prob=options.keep)
            sampled = options.sampled if options.loss == "sampled" else 0
            loss = loss_of(known, window[:, 1:], sizes[0], sampled)
        with tf.variable_scope("model", reuse=True):
            known, tested = inference(window[:, :-1], *sizes, state=memories[1])
            whole = loss_of(known, window[:, 1:], sizes[0])
        global_step = tf.train.get_or_create_global_step()
        third = max(1, options.steps // 3)
        rate = tf.train.exponential_decay(options.rate, global_step, third, 0.5, staircase=True)
        with tf.control_dependencies(
            [clipped(tf.train.GradientDescentOptimizer(rate), loss, options.norm, global_step)]
        ):
            step = remember(memories[0], state)
        with tf.control_dependencies([whole]):
            test = remember(memories[1], tested)

        def feed(number: int, rows: np.ndarray = columns(text.words[held_out:], options.batch)) -> dict[Any, Any]:
            start = number * options.length % (rows.shape[1] - options.length)
            return {window: rows[:, start : start + options.length + 1]}

        with session(options) as sess:

            def measure() -> dict[str, float]:
                rows = columns(text.words[:held_out], options.batch)
                losses = [sess.run([whole, test], feed(n, rows))[0] for n in range(rows.shape[1] // options.length)]
                return {
                    "perplexity of a text held out": float(np.exp(np.mean(losses))),
                    "perplexity of the grammar": text.best,
                }

            return train(sess, options, step, loss, feed, measure)


if __name__ == "__main__":
    main()
