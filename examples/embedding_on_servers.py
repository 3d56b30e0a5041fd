"""A table of words in shards on servers, and a softmax over a few words that are drawn: rows travel, never a table.

Jean, Cho, Memisevic and Bengio, "On using very large target vocabulary for neural machine translation", 2015. The words, the
weights and the biases of the softmax are partitioned variables, whose shards ``tf.train.replica_device_setter`` deals out to the
servers. A step asks each server for the rows that it needs, and sends it the gradients of those. It learns which word follows
another.

    python -m examples.embedding_on_servers --servers 4

All tasks are of this process; a script of each task's own process would say the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import graphdock as tf
import numpy as np

from examples.local_cluster import HOST, local_cluster

WORDS, WIDTH, SAMPLED, BATCH, RATE = 2000, 16, 32, 64, 1.0


def loss_of(before: Any, after: Any, shards: int) -> Any:
    """Mean cross-entropy of words int64 [batch] that follow others, among themselves and some that are drawn."""
    partitioner = tf.fixed_size_partitioner(shards)
    normal, zeros = tf.random_normal_initializer(stddev=0.3), tf.zeros_initializer()
    table = tf.get_variable("words", [WORDS, WIDTH], initializer=normal, partitioner=partitioner)
    weights = tf.get_variable("softmax/weights", [WORDS, WIDTH], initializer=normal, partitioner=partitioner)
    biases = tf.get_variable("softmax/biases", [WORDS], initializer=zeros, partitioner=partitioner)
    known = tf.nn.embedding_lookup(table, before, partition_strategy="div")
    labels = tf.expand_dims(after, 1)
    return tf.reduce_mean(
        tf.nn.sampled_softmax_loss(weights, biases, labels, known, SAMPLED, WORDS, partition_strategy="div")
    )


def train(steps: int, shards: int, target: str = "", cluster: Any = None) -> tuple[list[float], Any]:
    """Losses of each step, and the explanation of one: on a cluster's target, or in one process without one."""
    random, found = np.random.RandomState(0), []
    device = tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:0") if cluster else None
    with tf.Graph(host=HOST).as_default(), tf.device(device):
        tf.set_random_seed(0)
        before, after = (tf.placeholder(tf.int64, [BATCH]) for _ in range(2))
        loss = loss_of(before, after, shards)
        update = tf.train.AdagradOptimizer(RATE).minimize(loss)
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(steps):
                words = np.minimum(random.zipf(1.3, BATCH), WORDS) - 1
                feed = {before: words, after: (words * 7 + 3) % WORDS}
                found.append(float(session.run([loss, update], feed)[0]))
            return found, session.explain([loss, update], feed)


def together(steps: int, servers: int) -> tuple[list[float], Any]:
    """Losses and explanation, as :func:`train` gives them, on a worker and servers, each with a shard of each table."""
    with local_cluster("embedding", servers, 1) as (cluster, targets):
        return train(steps, servers, targets[0], cluster)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train over servers and in one process, and say the losses of both and what the tasks send one another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args(arguments)
    found, explanation = together(options.steps, options.servers)
    print(explanation)
    print("one process", np.round(train(options.steps, options.servers)[0], 4).tolist())
    print(f"{options.servers} servers  ", np.round(found, 4).tolist())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
