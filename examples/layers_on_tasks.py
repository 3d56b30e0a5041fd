"""A translator of three LSTM layers, each on a task of its own: its variables, its loop of the encoder and its loop of the decoder.

Sutskever, Vinyals and Le, "Sequence to sequence learning with neural networks", 2014, whose layers lie on a device each. A loop
runs on one task, so that there is one loop per layer; what a layer gives travels to the next one as one tensor, and its gradient
back.

    python -m examples.layers_on_tasks --steps 200

All tasks are of this process; a script of each task's own process would say the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import graphdock as tf
import numpy as np

from examples.local_cluster import HOST, local_cluster
from examples.seq2seq import END, sequences

LAYERS, BATCH, LENGTH, VOCABULARY, UNITS, RATE = 3, 32, 5, 12, 32, 0.01


def layers(kind: str, inputs: Any, states: Sequence[Any], placed: bool) -> tuple[Any, list[Any]]:
    """Outputs [batch, time, units] of a stack of LSTMs, and the last state of each. states: the first of each, or None."""
    last = []
    for number, state in enumerate(states):
        with on_task(number, placed), tf.variable_scope(f"{kind}{number}"):
            inputs, after = tf.nn.dynamic_rnn(
                tf.nn.rnn_cell.LSTMCell(UNITS), inputs, initial_state=state, dtype=tf.float32
            )
        last.append(after)
    return inputs, last


def on_task(number: int, placed: bool) -> AbstractContextManager[Any]:
    """The scope of a worker's task, where layers are placed."""
    return tf.device(f"/job:worker/task:{number}") if placed else nullcontext()


def loss_of(source: Any, target: Any, placed: bool) -> Any:
    """Mean cross-entropy of the words of target int32 [batch, length + 1], which the decoder reads one late.

    The table of words lies with the first layer, the words' logits with the last one.
    """
    before = tf.pad(target[:, :-1], [[0, 0], [1, 0]], constant_values=END)
    with on_task(0, placed):
        table = tf.get_variable("words", [VOCABULARY, UNITS], initializer=tf.random_normal_initializer(stddev=0.3))
        read, said = tf.nn.embedding_lookup(table, source), tf.nn.embedding_lookup(table, before)
    _, states = layers("encoder", read, [None] * LAYERS, placed)
    known, _ = layers("decoder", said, states, placed)
    with on_task(LAYERS - 1, placed):
        logits = tf.layers.dense(known, VOCABULARY, name="words_of")
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits))


def train(steps: int, target: str = "") -> tuple[list[float], Any]:
    """Losses of each step, and the explanation of one: on the tasks of a target, or in one process without one."""
    random, found = np.random.RandomState(0), []
    with tf.Graph(host=HOST).as_default():
        tf.set_random_seed(0)
        words = tf.placeholder(tf.int32, [BATCH, LENGTH]), tf.placeholder(tf.int32, [BATCH, LENGTH + 1])
        loss = loss_of(*words, placed=bool(target))
        update = tf.train.AdamOptimizer(RATE).minimize(loss, colocate_gradients_with_ops=True)
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(steps):
                source, _, backwards = sequences(random, BATCH, LENGTH, VOCABULARY)
                feed = dict(zip(words, (source, backwards), strict=True))
                found.append(float(session.run([loss, update], feed)[0]))
            return found, session.explain([loss, update], feed)


def together(steps: int) -> tuple[list[float], Any]:
    """Losses and explanation, as :func:`train` gives them, on a cluster of a task per layer."""
    with local_cluster("layers", 0, LAYERS) as (_, targets):
        return train(steps, targets[0])


def main(arguments: Sequence[str] | None = None) -> int:
    """Train on three tasks and in one process, and say the losses of both and what the tasks send one another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args(arguments)
    found, explanation = together(options.steps)
    print(explanation)
    print("one process", np.round(train(options.steps)[0], 4).tolist())
    print(f"{LAYERS} tasks    ", np.round(found, 4).tolist())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
