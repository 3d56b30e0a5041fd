"""Users and things as rows of tables that are cut into shards, learned from ratings.

Each table is a partitioned variable, whose shards a lookup finds by ``--strategy``: ``div`` deals out ranges of ids, as a
checkpoint of the whole table has them, ``mod`` deals them out in turn. Updates are sparse: a step touches the rows that it read.

    python -m examples.sharded_embedding --shards 4 --strategy mod
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np

from examples.training import Training, command_line, session, train


def table(name: str, rows: int, width: int, shards: int) -> Any:
    """A variable [rows, width] in shards along its rows."""
    return tf.get_variable(
        name,
        [rows, width],
        initializer=tf.random_normal_initializer(stddev=0.3),
        partitioner=tf.fixed_size_partitioner(shards),
    )


def inference(users: Any, things: Any, sizes: tuple[int, int], width: int, shards: int, strategy: str) -> Any:
    """Ratings [N] of ids users [N] and things [N]: the product of their vectors, and a bias of each."""
    found = []
    for name, ids, rows in zip(("users", "things"), (users, things), sizes, strict=True):
        found.append(tf.nn.embedding_lookup(table(name, rows, width + 1, shards), ids, partition_strategy=strategy))
    u, t = found
    return tf.reduce_sum(u[:, :width] * t[:, :width], 1) + u[:, width] + t[:, width]


def loss_of(ratings: Any, given: Any) -> Any:
    """Mean squared error."""
    return tf.reduce_mean(tf.square(ratings - given))


def main(arguments: list[str] | None = None) -> Training:
    """Train on ratings that vectors of width 4 explain but for noise; measure the error on new pairs."""
    options = command_line(
        __doc__,
        arguments,
        steps=4000,
        batch=256,
        users=(1000, "rows of the first table"),
        things=(500, "rows of the second table"),
        width=(8, "of a vector"),
        shards=(4, "of each table"),
        strategy=("div", "how ids are dealt out to shards: div or mod"),
        rate=(2.0, "learning rate"),
    )
    random = np.random.RandomState(options.seed)
    true_users, true_things = (random.normal(size=(rows, 4)) * 0.7 for rows in (options.users, options.things))
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        users, things = (tf.placeholder(tf.int32, [options.batch], name=name) for name in ("user", "thing"))
        given = tf.placeholder(tf.float32, [options.batch], name="given")
        sizes = (options.users, options.things)
        ratings = inference(users, things, sizes, options.width, options.shards, options.strategy)
        loss = loss_of(ratings, given)
        step = tf.train.AdagradOptimizer(options.rate).minimize(loss)

        def feed(_: int) -> dict[Any, Any]:
            pairs = [random.randint(rows, size=options.batch).astype(np.int32) for rows in sizes]
            exact = (true_users[pairs[0]] * true_things[pairs[1]]).sum(1)
            return {users: pairs[0], things: pairs[1], given: exact + random.normal(size=options.batch) * 0.1}

        with session(options) as sess:
            return train(
                sess, options, step, loss, feed, lambda: {"error on new ratings": float(sess.run(loss, feed(0))) ** 0.5}
            )


if __name__ == "__main__":
    main()
