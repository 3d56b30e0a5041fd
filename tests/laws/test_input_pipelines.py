"""Pipelines of files, readers and queues that end in random ways: no thread stays, and what drains is whole."""

from __future__ import annotations

import random
import threading

import graphdock as tf
import numpy as np
import pytest

FILES, RECORDS = 4, 50


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    for i in range(FILES):
        with tf.python_io.TFRecordWriter(str(folder / str(i))) as writer:
            for j in range(RECORDS):
                writer.write(b"%d" % (i * RECORDS + j))
    return [str(folder / str(i)) for i in range(FILES)]


def batches(rng, record):
    number = tf.string_to_number(record, tf.int64)
    kind = rng.randrange(3)
    if kind == 0:
        return tf.train.batch([number], rng.choice([1, 7]), 3, capacity=20, allow_smaller_final_batch=True)
    if kind == 1:
        return tf.train.shuffle_batch([number], 5, 30, 10, num_threads=3, allow_smaller_final_batch=True)
    return tf.train.batch_join([[number], [number + 0]], 4, allow_smaller_final_batch=True)


def taken(session, batch, how, rng):
    """What steps take until there is no more, or some of it; in some rounds with deadlines."""
    found = []
    for _ in range(1 << 20 if how == "drain" else rng.randrange(30)):
        late = how == "deadline" and rng.random() < 0.3
        try:
            options = tf.RunOptions(timeout_in_ms=rng.choice([1, 5])) if late else None
            found += np.atleast_1d(session.run(batch, options=options)).tolist()
        except tf.errors.DeadlineExceededError:
            assert late
        except tf.errors.OutOfRangeError:
            break
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(8, 200))])
def test_a_pipeline_ends_whatever_ends_it(files, seed):
    rng, before = random.Random(seed), set(threading.enumerate())
    epochs = rng.choice([None, 1, 3])
    how = rng.choice(["stop", "close", "deadline"] + ["drain"] * 2 * (epochs is not None))
    _, record = tf.TFRecordReader().read(tf.train.string_input_producer(files, num_epochs=epochs))
    batch = batches(rng, record)
    session, coord = tf.Session(), tf.train.Coordinator()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    threads = tf.train.start_queue_runners(session, coord)
    found = taken(session, batch, how, rng)
    if how == "drain":
        assert sorted(found) == sorted([*range(FILES * RECORDS)] * epochs)
    if how == "close":
        session.close()
    else:
        coord.request_stop()
    try:
        coord.join(threads)
    except (tf.errors.CancelledError, tf.errors.FailedPreconditionError):
        assert how == "close"
    session.close()
    left = [t.name for t in threading.enumerate() if t not in before and not t.name.startswith("graphdock ")]
    assert not left
