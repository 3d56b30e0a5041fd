"""Queues, readers, tables, records and accumulators: a line for what each gives, its names, shapes, and classes of errors.

Usage: feeding_program.py (tensorflow | graphdock) FOLDER
"""

from __future__ import annotations

import importlib
import sys

import numpy as np

FOLDER = sys.argv[2]
if sys.argv[1] == "graphdock":
    tf = importlib.import_module("graphdock")
    lookup = tf.contrib.lookup
else:
    tf = importlib.import_module("tensorflow.compat.v1")
    tf.disable_v2_behavior()
    lookup = importlib.import_module("tensorflow.python.ops.lookup_ops")


def plain(value):
    """Values as text that is the same under both."""
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    if hasattr(value, "dense_shape"):
        return [plain(part) for part in (value.indices, value.values, value.dense_shape)]
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


def kind(error):
    """The class of an error that both have; what was given is wrong by whatever class."""
    both = (tf.errors.OutOfRangeError, tf.errors.CancelledError, tf.errors.NotFoundError, tf.errors.DataLossError)
    found = [c.__name__ for c in (*both, tf.errors.FailedPreconditionError) if isinstance(error, c)]
    if not found and isinstance(error, TypeError | ValueError | tf.errors.InvalidArgumentError):
        return "wrong"
    return found[0]


def say(name, make):
    try:
        print(name, plain(make()))
    except Exception as error:  # noqa: BLE001 - its class is what is compared
        print(name, kind(error))


def shapes(value):
    """Static shapes and names of what is fetched."""
    if isinstance(value, dict):
        return {key: shapes(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [shapes(part) for part in value]
    dims = value.shape.as_list() if value.shape.ndims is not None else None
    return [value.name if hasattr(value, "op") and not hasattr(value, "dense_shape") else "", dims]


def queues(run):
    q = tf.FIFOQueue(3, [tf.int32, tf.float32], shapes=[[], [2]], names=["a", "b"], name="q")
    fill = q.enqueue_many({"a": [1, 2, 3], "b": [[1, 2], [3, 4], [5, 6]]})
    takes = [q.dequeue(), q.dequeue_many(2), q.dequeue_up_to(2)]
    say("static", lambda: shapes(takes))
    run(fill)
    one, many, some = takes
    steps = [one, many, fill, q.size(), q.close(), fill, many, some, one, many, some, q.close(), q.close(True)]
    for i, operation in enumerate([*steps, q.is_closed()]):
        say(f"queue {i}", lambda operation=operation: run(operation))
    free = tf.FIFOQueue(3, tf.string)
    say("no shapes", lambda: run(free.dequeue_many(1)))
    say("shape", lambda: tf.FIFOQueue(3, tf.int32, shapes=(2,)).shapes[0].as_list())
    say("mismatch", lambda: tf.FIFOQueue(3, tf.int32, shapes=(2,)).enqueue([[1, 2, 3]]))
    say("type", lambda: free.enqueue(tf.constant(1)) and None)
    pad = tf.PaddingFIFOQueue(5, [tf.int32, tf.string], shapes=[[None], [None, 1]])
    run([pad.enqueue(([1, 2], [["a"]]))])
    run([pad.enqueue(([3], [["b"], ["c"]]))])
    say("padded", lambda: run(pad.dequeue_many(2)))
    say("partial", lambda: tf.PaddingFIFOQueue(5, [tf.int32], [None]) and None)
    priority = tf.PriorityQueue(5, [tf.string], shapes=[[]])
    run(priority.enqueue_many(([3, 1, 2], ["c", "a", "b"])))
    say("priority", lambda: run(priority.dequeue_many(3)))
    shuffled = tf.RandomShuffleQueue(9, 2, tf.int32, shapes=[[]])
    run(shuffled.enqueue_many([list(range(8))]))
    run(shuffled.close())
    say("shuffled", lambda: sorted(run(shuffled.dequeue_many(8)).tolist()))


def readers(run):
    with open(f"{FOLDER}/lines", "wb") as file:
        file.write(b"head\none\r\ntwo\n\nlast")
    with tf.python_io.TFRecordWriter(f"{FOLDER}/records") as writer:
        for record in (b"one", b"", b"three"):
            writer.write(record)

    def read(reader, name, count):
        queue = tf.FIFOQueue(9, tf.string, shapes=[[]])
        run(queue.enqueue_many([[f"{FOLDER}/{name}"]]))
        run(queue.close())
        made = reader.read(queue)
        found = [[part.rpartition(b"/")[2] for part in run(list(made))] for _ in range(count)]
        counts = run([reader.num_records_produced(), reader.num_work_units_completed()])
        say("end", lambda: run(list(made)))
        return found, counts, run(reader.num_work_units_completed())

    say("lines", lambda: read(tf.TextLineReader(skip_header_lines=1), "lines", 4))
    say("whole", lambda: read(tf.WholeFileReader(), "lines", 1))
    say("records", lambda: read(tf.TFRecordReader(), "records", 3))
    say("fixed", lambda: read(tf.FixedLengthRecordReader(3, 2, 1), "lines", 5))
    say("hop", lambda: read(tf.FixedLengthRecordReader(3, 2, 1, hop_bytes=2), "lines", 7))
    say("identity", lambda: read(tf.IdentityReader(), "name", 1))
    say("missing", lambda: read(tf.TextLineReader(), "missing", 1))


def tables(run):
    table = lookup.HashTable(lookup.KeyValueTensorInitializer(["a", "b"], [1.5, 2.5], tf.string, tf.float32), -1.0)
    found = table.lookup(tf.constant(["b", "z"]))
    say("static", lambda: [shapes(found), table.name])
    say("not yet", lambda: run(found))
    run(table.initializer)
    say("found", lambda: run([found, table.size()]))
    twice = lookup.HashTable(lookup.KeyValueTensorInitializer(["a", "a"], [1, 2], tf.string, tf.int64), -1)
    say("twice", lambda: run(twice.initializer))
    ids = lookup.index_table_from_tensor(["x", "y"], num_oov_buckets=5)
    run(ids.initializer)
    say("ids", lambda: run([ids.lookup(tf.constant(["y", "q", "r", "s"])), ids.size()]))
    words = lookup.index_to_string_table_from_tensor(["x", "y"])
    run(words.initializer)
    say("words", lambda: run(words.lookup(tf.constant([1, 7], tf.int64))))
    for size in (None, 2, 9):
        vocabulary = lookup.index_table_from_file(f"{FOLDER}/lines", vocab_size=size)
        say(f"file {size}", lambda vocabulary=vocabulary: run(vocabulary.initializer))
        say(f"line {size}", lambda vocabulary=vocabulary: run(vocabulary.lookup(tf.constant(["two", "head"]))))
    rows = lookup.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
    run(rows.insert(tf.constant([1, 2], tf.int64), [[1.0, 2.0], [3.0, 4.0]]))
    say("rows", lambda: run([rows.lookup(tf.constant([2, 5], tf.int64)), rows.size()]))
    say("keys", lambda: table.lookup(tf.constant([1])) and None)


def records(run):
    def feature(**kinds):
        return tf.train.Feature(**{f"{k}_list": getattr(tf.train, n)(value=v) for k, (n, v) in kinds.items()})

    def example(**features):
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    one = example(x=feature(float=("FloatList", [1, 2])), n=feature(int64=("Int64List", [7, 8, 9])))
    two = example(x=feature(float=("FloatList", [3, 4])), t=feature(bytes=("BytesList", [b"a"])), n=feature())
    wanted = {
        "x": tf.FixedLenFeature([2], tf.float32),
        "n": tf.VarLenFeature(tf.int64),
        "t": tf.FixedLenFeature([], tf.string, "none"),
        "s": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True),
    }
    parsed = tf.parse_example(tf.constant([one, two]), wanted)
    say("static", lambda: {key: shapes(parsed[key])[1] for key in sorted(parsed)})
    say("parsed", lambda: run(parsed))
    say("single", lambda: run(tf.parse_single_example(tf.constant(one), wanted)))
    for name, other in (
        ("missing", {"y": tf.FixedLenFeature([], tf.int64)}),
        ("dtype", {"x": tf.FixedLenFeature([2], tf.int64)}),
        ("length", {"x": tf.FixedLenFeature([3], tf.float32)}),
        ("sparse", {"v": tf.SparseFeature("n", "w", tf.int64, 10)}),
    ):
        say(name, lambda other=other: run(tf.parse_example(tf.constant([one, two]), other)))
    say("bytes", lambda: run(tf.parse_example(tf.constant(["\xff"]), wanted)))
    say("tensor", lambda: run(tf.parse_tensor(tf.serialize_tensor(tf.constant([[1, 2]])), tf.int32)))
    say("tensor bytes", lambda: run(tf.serialize_tensor(tf.constant([[1, 2]]))))
    say("wrong tensor", lambda: run(tf.parse_tensor(tf.serialize_tensor(tf.constant([1])), tf.float32)))


def accumulators(run):
    acc = tf.ConditionalAccumulator(tf.float32, shape=[2])
    for values, step in (([1, 2], 0), ([3, 6], 0)):
        run(acc.apply_grad(tf.constant(values, tf.float32), local_step=step))
    say("mean", lambda: run([acc.num_accumulated(), acc.take_grad(1)]))
    run(acc.apply_grad([9.0, 9.0], local_step=0))
    say("stale", lambda: run(acc.num_accumulated()))
    sparse = tf.SparseConditionalAccumulator(tf.float32, shape=[5, 2])
    run(sparse.apply_grad([0, 2], [[1.0, 1.0], [2.0, 2.0]], [5, 2]))
    run(sparse.apply_grad([2], [[4.0, 4.0]], [5, 2]))
    say("rows", lambda: list(run(sparse.take_grad(1))))
    say("none", lambda: run(acc.take_grad(0)))


def pipelines(run):
    queue = tf.train.string_input_producer(["a", "b", "c"], num_epochs=2, shuffle=False)
    batch = tf.train.batch([queue.dequeue()], 4, allow_smaller_final_batch=True)
    rows = tf.train.slice_input_producer([np.arange(3), ["x", "y", "z"]], num_epochs=1, shuffle=False)
    say("names", lambda: [queue.name, shapes(batch), [shapes(r)[1] for r in rows]])
    say("summaries", lambda: [s.op.name for s in tf.get_collection(tf.GraphKeys.SUMMARIES)])
    run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    threads = tf.train.start_queue_runners(run.__self__)
    for i in range(3):
        say(f"batch {i}", lambda: run(batch))
    for i in range(4):
        say(f"row {i}", lambda: run(rows))
    for thread in threads:
        thread.join()


for part in (queues, readers, tables, records, accumulators, pipelines):
    with tf.Graph().as_default(), tf.Session() as session:
        print("--", part.__name__)
        part(session.run)
