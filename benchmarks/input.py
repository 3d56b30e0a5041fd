"""Inputs of steps, beside TensorFlow: queues, datasets, records, Examples; a step that they feed beside one that is fed.

Datasets are read in batches, and times are per element. The step is a softmax regression of a batch of 32.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import graphdock, graphdock_session, session_builders
from benchmarks.program import Bar, Case, Program

BATCH, ROWS, WIDTH = 32, 1024, 20
#: Elements in the queue of a step before each burst: more than a burst takes.
FILLED = 8000


def _rows() -> tuple[Any, Any]:
    import numpy as np

    random = np.random.RandomState(3)
    return random.normal(size=(ROWS, WIDTH)).astype("float32"), np.arange(ROWS, dtype="int64") % 3


def queue_session(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """An element goes into a queue in one step and comes out in another."""
    import numpy as np

    queue = tf.FIFOQueue(10, tf.float32, [[WIDTH]])
    x = tf.placeholder(tf.float32, [WIDTH])
    put, take = queue.enqueue(x), queue.dequeue()
    session, feed = open_session(), {x: np.arange(WIDTH, dtype="float32")}

    def call() -> Any:
        session.run(put, feed)
        return session.run(take)

    return Case(call, lambda: [call()])


def _step(tf: ModuleType, x: Any, y: Any) -> tuple[Any, Any]:
    """A training step, and its loss."""
    w, b = tf.Variable(tf.zeros([WIDTH, 3])), tf.Variable(tf.zeros([3]))
    logits = tf.matmul(x, w) + b
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss), loss


def _ready(tf: ModuleType, open_session: Callable[[], Any]) -> Any:
    session = open_session()
    session.run(tf.global_variables_initializer())
    return session


def step_by_feed(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    rows, labels = _rows()
    x, y = tf.placeholder(tf.float32, [BATCH, WIDTH]), tf.placeholder(tf.int64, [BATCH])
    train, loss = _step(tf, x, y)
    session, feed = _ready(tf, open_session), {x: rows[:BATCH], y: labels[:BATCH]}
    return Case(lambda: session.run(train, feed), lambda: [session.run([train, loss], feed)[1]])


def step_by_queue(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    rows, labels = _rows()
    queue = tf.FIFOQueue(FILLED + 64, [tf.float32, tf.int64], [[BATCH, WIDTH], [BATCH]])
    count = tf.placeholder(tf.int32, [])
    many = [tf.tile(tf.constant(part[None, :BATCH]), [count] + [1] * part.ndim) for part in (rows, labels)]
    put, size = queue.enqueue_many(many), queue.size()
    x, y = queue.dequeue()
    train, loss = _step(tf, x, y)
    session = _ready(tf, open_session)

    def fill() -> None:
        session.run(put, {count: FILLED - session.run(size)})

    fill()
    return Case(lambda: session.run(train), lambda: [session.run([train, loss])[1]], before=fill)


def step_by_iterator(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    rows, labels = _rows()
    dataset = tf.data.Dataset.from_tensors((rows[:BATCH], labels[:BATCH])).repeat()
    x, y = _iterator(tf, dataset).get_next()
    train, loss = _step(tf, x, y)
    session = _ready(tf, open_session)
    return Case(lambda: session.run(train), lambda: [session.run([train, loss])[1]])


def _iterator(tf: ModuleType, dataset: Any) -> Any:
    return tf.data.make_one_shot_iterator(dataset)


def _batches(tf: ModuleType, open_session: Callable[[], Any], dataset: Any, size: int = BATCH) -> Case:
    """A dataset of endless batches; what is compared are the sums of one epoch."""
    import numpy as np

    element = _iterator(tf, dataset).get_next()
    session = open_session()

    def values() -> list[Any]:
        found = [session.run(element) for _ in range(ROWS // size)]
        columns = list(zip(*found, strict=True)) if isinstance(found[0], tuple) else [found]
        return [np.sum([float(np.sum(part)) for part in column]) for column in columns]

    return Case(lambda: session.run(element), values, per_call=size)


def map_batch(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    dataset = tf.data.Dataset.from_tensor_slices(_rows()).map(lambda x, y: (x * 2.0 - 1.0, y))
    return _batches(tf, open_session, dataset.repeat().batch(BATCH))


def map_batch_torch() -> Case:
    import torch

    rows, labels = _rows()
    xs, ys = torch.from_numpy(rows), torch.from_numpy(labels)

    class Rows(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, at: int) -> Any:
            return xs[at] * 2.0 - 1.0, ys[at]

    def endless() -> Iterator[Any]:
        while True:
            yield from torch.utils.data.DataLoader(Rows(), batch_size=BATCH)

    batches = endless()

    def values() -> list[Any]:
        found = [next(batches) for _ in range(ROWS // BATCH)]
        return [sum(float(part.sum()) for part in column) for column in zip(*found, strict=True)]

    next(batches)
    batches = endless()
    return Case(lambda: next(batches), values, per_call=BATCH)


def shuffle_batch(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    dataset = tf.data.Dataset.from_tensor_slices(_rows()).shuffle(ROWS, seed=3).repeat().batch(BATCH).prefetch(1)
    return _batches(tf, open_session, dataset)


def generator(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    rows, labels = _rows()

    def pairs() -> Iterator[Any]:
        yield from zip(rows, labels.tolist(), strict=True)

    dataset = tf.data.Dataset.from_generator(pairs, (tf.float32, tf.int64), ([WIDTH], []))
    return _batches(tf, open_session, dataset.repeat().batch(BATCH))


def _example(tf: ModuleType, x: Any, y: int) -> bytes:
    feature = {
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=x.tolist())),
        "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[y])),
        "tags": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"one", b"two"][: y % 3])),
    }
    made: bytes = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    return made


def records(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """Records of 1 kB of a TFRecord file, in batches of their lengths."""
    path = os.path.join(tempfile.mkdtemp(), "rows.tfrecords")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(ROWS):
            writer.write(bytes([i % 251]) * 1024)
    dataset = tf.data.TFRecordDataset(path).repeat().batch(BATCH)
    element = _iterator(tf, dataset).get_next()
    session = open_session()
    return Case(lambda: session.run(element), lambda: [len(session.run(element))], per_call=BATCH)


def parse_example(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """A batch of 100 Examples, with 20 floats, an integer and up to two strings each."""
    import numpy as np

    rows, labels = _rows()
    features = {
        "x": tf.io.FixedLenFeature([WIDTH], tf.float32),
        "y": tf.io.FixedLenFeature([], tf.int64),
        "tags": tf.io.VarLenFeature(tf.string),
    }
    serialized = tf.placeholder(tf.string, [None])
    parsed = tf.io.parse_example(serialized, features)
    session = open_session()
    batch = np.array([_example(tf, x, int(y)) for x, y in zip(rows[:100], labels[:100], strict=True)], object)

    def call() -> Any:
        return session.run(parsed, {serialized: batch})

    def values() -> list[Any]:
        found = call()
        return [found["x"], found["y"], found["tags"].indices]

    return Case(call, values, per_call=100)


def beside_a_pipeline(tf: ModuleType, open_session: Callable[[], Any], ahead: int = 0) -> Case:
    """A step of a product of 512 by 512, fed by a map that takes as long."""
    import numpy as np

    random = np.random.RandomState(3)
    rows = random.normal(size=(8, 512, 512)).astype("float32")
    wide = tf.constant(random.normal(size=(512, 512)).astype("float32") / 512)
    dataset = tf.data.Dataset.from_tensor_slices(rows).repeat().map(lambda x: tf.tanh(tf.matmul(x, wide)))
    x = _iterator(tf, dataset.prefetch(ahead) if ahead else dataset).get_next()
    w = tf.Variable(tf.zeros([512, 512]))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - x))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session = _ready(tf, open_session)
    return Case(lambda: session.run(train), lambda: [session.run([train, loss])[1]])


def _own(text: Callable[..., Case], *args: object) -> Callable[[], Case]:
    """A builder of graphdock alone."""

    def build() -> Case:
        tf = graphdock()
        tf.reset_default_graph()
        return text(tf, graphdock_session(), *args)

    return build


def _bar(ratio: float, peer: str = "tensorflow", **more: Any) -> Bar:
    return Bar("C5", (peer,), ratio, **more)


PROGRAMS = (
    Program(
        "queue",
        f"enqueue and dequeue of one element [{WIDTH}] float32, in two steps",
        session_builders(queue_session),
        (_bar(0.1),),
        reference="tensorflow",
    ),
    Program(
        "step",
        "a training step whose batch of 32 comes by feed_dict, from a queue, from an iterator",
        {
            "graphdock": _own(step_by_feed),
            "graphdock/queue": _own(step_by_queue),
            "graphdock/iterator": _own(step_by_iterator),
            "tensorflow": session_builders(step_by_feed)["tensorflow"],
            "tensorflow/queue": session_builders(step_by_queue)["tensorflow"],
            "tensorflow/iterator": session_builders(step_by_iterator)["tensorflow"],
        },
        (
            _bar(1.1, "graphdock", subject="graphdock/queue", allowance=15e-6, note="from a queue"),
            _bar(1.1, "graphdock", subject="graphdock/iterator", allowance=15e-6, note="from an iterator"),
        ),
        reference="tensorflow",
    ),
    Program(
        "map_batch",
        f"per element: slices, a map of two nodes, batches of {BATCH}",
        {**session_builders(map_batch), "torch": map_batch_torch},
        (_bar(0.3), _bar(1.1, "torch", note="its DataLoader")),
        unit="element",
        reference="tensorflow",
        rtol=1e-3,
        atol=1e-1,
    ),
    Program(
        "shuffle_batch",
        f"per element: slices shuffled, in batches of {BATCH}, prefetched",
        session_builders(shuffle_batch),
        (_bar(0.6),),
        unit="element",
        reference="tensorflow",
        check_calls=ROWS // BATCH,
        rtol=1e-3,
        atol=1e-1,
    ),
    Program(
        "generator",
        f"per element: a Python generator of pairs, in batches of {BATCH}",
        session_builders(generator),
        (_bar(0.05),),
        unit="element",
        reference="tensorflow",
        rtol=1e-3,
        atol=1e-1,
    ),
    Program(
        "records",
        "per record: 1 kB of a TFRecord file",
        session_builders(records),
        (_bar(2.0),),
        unit="record",
        reference="tensorflow",
    ),
    Program(
        "parse_example",
        "per Example: 20 floats, an integer, up to two strings, in batches of 100",
        session_builders(parse_example),
        (_bar(1.5),),
        unit="example",
        reference="tensorflow",
    ),
    Program(
        "prefetch",
        "a step of a product of 512 beside a pipeline that makes the next input, and the two one after the other",
        {"graphdock": _own(beside_a_pipeline, 2), "graphdock/in_turn": _own(beside_a_pipeline)},
        (_bar(1.1, "graphdock/in_turn", note="the step plus the input"),),
        reference="graphdock/in_turn",
        rtol=1e-3,
    ),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("input", PROGRAMS))
