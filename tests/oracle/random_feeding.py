"""Random programs of queues and datasets, one text for TensorFlow and graphdock: a seed says which, ``answer`` runs it.

Nothing here waits: what a queue is asked follows from its size, which both tell. Orders that are random are compared sorted.
"""

from __future__ import annotations

import random

import numpy as np

STATUSES = "OutOfRangeError CancelledError InvalidArgumentError FailedPreconditionError ResourceExhaustedError".split()
#: Most elements that are taken of a dataset, and errors after which no more is asked for.
ELEMENTS, ERRORS = 60, 2


def answer(tf, seed):
    """Answer of the program of a seed: a list of results, as plain values, and of names of errors."""
    draw = random.Random(seed)
    with tf.Graph().as_default():
        return (queue if seed % 2 else dataset)(tf, draw)


def status(tf, error):
    return next((n for n in STATUSES if isinstance(error, getattr(tf.errors, n))), type(error).__name__)


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    array = np.asarray(value)
    return (
        str(array.dtype) if array.size == 0 else array.dtype.kind.replace("S", "O"),
        list(array.shape),
        array.tolist(),
    )


# -- queues -----------------------------------------------------------------------------------------------------------------


def queue(tf, draw):
    kind = draw.choice(["fifo", "fifo", "padding", "shuffle", "priority"])
    capacity, least = draw.choice([3, 5, 8]), 0
    kinds = [draw.choice([tf.float32, tf.int64, tf.string, tf.bool]) for _ in range(draw.choice([1, 2, 2]))]
    shapes = [draw.choice([[], [2], [1, 2]]) for _ in kinds]
    if kind == "padding":
        shapes = [draw.choice([[None], [None, 2], []]) for _ in kinds]
    known = shapes if kind in ("padding", "priority") or draw.random() < 0.8 else None
    names = [f"c{i}" for i in range(len(kinds))] if draw.random() < 0.3 and kind != "priority" else None
    if kind == "fifo":
        made = tf.FIFOQueue(capacity, kinds, known, names)
    elif kind == "padding":
        made = tf.PaddingFIFOQueue(capacity, kinds, known, names)
    elif kind == "shuffle":
        least = draw.choice([0, 1])
        made = tf.RandomShuffleQueue(capacity, least, kinds, known, names, seed=1)
    else:
        made = tf.PriorityQueue(capacity, kinds, known)
        kinds, shapes = [tf.int64, *kinds], [[], *shapes]
    found, priorities = [], list(range(100))
    draw.shuffle(priorities)

    def component(i, batch):
        dims = [*batch, *(draw.randrange(1, 3) if n is None else n for n in shapes[i])]
        if kind == "priority" and i == 0:
            values = [priorities.pop() for _ in range(int(np.prod(dims)))]
        else:
            values = [draw.randrange(50) for _ in range(int(np.prod(dims)))]
        if kinds[i] is tf.string:
            return np.array([str(v) for v in values], object).reshape(dims)
        return np.array(values).reshape(dims).astype(kinds[i].as_numpy_dtype)

    def element(*batch):
        if draw.random() < 0.06:
            batch = (*batch, 7)  # of another shape
        parts = [component(i, batch) for i in range(len(kinds))]
        fed = [tf.placeholder(k, None) for k in kinds]
        given = dict(zip(fed, parts, strict=True))
        return dict(zip(names, fed, strict=True)) if names else fed, given

    with tf.Session() as session:
        size, closed = made.size(), made.is_closed()
        for _ in range(draw.randrange(8, 20)):
            here, over = int(session.run(size)), bool(session.run(closed))
            room = 99 if over else capacity - here
            free = 99 if over else here - least
            asked = draw.choice(
                "enqueue enqueue enqueue_many enqueue_many dequeue dequeue_many up_to size close".split()
            )
            count = draw.randrange(kind == "padding", 4)  # TensorFlow crashes on elements of nothing there
            given = {}
            try:
                if asked == "enqueue" and room >= 1:
                    fed, given = element()
                    fetch = made.enqueue(fed)
                elif asked == "enqueue_many" and room >= count:
                    fed, given = element(count)
                    fetch = made.enqueue_many(fed)
                elif asked == "dequeue" and free >= 1:
                    fetch = made.dequeue()
                elif asked == "dequeue_many" and free >= count:
                    fetch = made.dequeue_many(count)
                elif asked == "up_to" and free >= count and not (kind == "priority" and here < count):
                    # of a closed priority queue TensorFlow gives an error and drops what is left
                    fetch = made.dequeue_up_to(count)
                elif asked == "close" and draw.random() < 0.4:
                    fetch = made.close(cancel_pending_enqueues=draw.random() < 0.5)
                else:
                    fetch = size
                result = session.run(fetch, given)
                if kind == "shuffle" and asked in ("dequeue", "dequeue_many", "up_to") and fetch is not size:
                    result = None  # another order than TensorFlow's
                found.append((asked, None if result is None else plain(result)))
            except Exception as error:  # noqa: BLE001 - its class is the answer
                found.append((asked, status(tf, error)))
    return found


# -- datasets ---------------------------------------------------------------------------------------------------------------


def source(tf, draw):
    """A dataset of int64 scalars."""
    length = draw.choice([0, 1, 4, 7, 12])
    form = draw.randrange(3)
    if form == 0:
        return tf.data.Dataset.range(draw.randrange(3), length, draw.choice([1, 1, 2]))
    values = np.array([draw.randrange(-5, 20) for _ in range(length)], np.int64)
    if form == 1:
        return tf.data.Dataset.from_tensor_slices(values)
    return tf.data.Dataset.from_tensor_slices((values, values[::-1])).map(lambda a, b: a * 3 - b)


def of_scalars(tf, draw, d):
    """A stage over scalars, and the rank of what it gives; -1 where lengths differ."""
    number = draw.randrange(1, 4)
    other = source(tf, draw)
    stage = draw.randrange(13)
    if stage == 0:
        return d.map(lambda x: x * number + 1, num_parallel_calls=draw.choice([None, 2])), 0
    if stage == 1:
        return d.filter(lambda x: tf.not_equal(x % (number + 1), 0)), 0
    if stage == 2:
        return d.map(lambda x: tf.fill([tf.cast(x % 4, tf.int32)], x)), -1
    if stage == 3:
        return d.map(lambda x: tf.stack([x, x + number])), 1
    if stage == 4:
        return d.flat_map(lambda x: tf.data.Dataset.range(x % 4)), 0
    if stage == 5:
        cycle, block = draw.randrange(1, 4), draw.randrange(1, 3)
        return d.interleave(lambda x: tf.data.Dataset.range(x, x + x % 4), cycle, block), 0
    if stage == 6:
        return tf.data.Dataset.zip((d, other)).map(lambda a, b: a - b), 0
    if stage == 7:
        return d.concatenate(other), 0
    if stage == 8:
        return tf.data.Dataset.zip({"a": d, "b": tf.data.Dataset.range(number * 2)}).map(lambda e: e["a"] + e["b"]), 0
    if stage == 9:
        return d.apply(tf.data.experimental.scan(np.int64(number), lambda s, x: (s + x, s * x))), 0
    if stage == 10:
        window = tf.data.experimental.group_by_window(lambda x: x % 2, lambda k, e: e.batch(number), window_size=number)
        return d.apply(window), -1
    if stage == 11:
        return d.apply(tf.data.experimental.enumerate_dataset(number)).map(lambda i, x: i * 10 + x), 0
    return d.map(lambda x: tf.debugging.check_numerics(10.0 / tf.cast(x, tf.float32), "zero")).map(
        lambda x: tf.cast(x, tf.int64)
    ), 0


def of_vectors(tf, draw, d):
    """A stage over vectors that gives scalars or vectors."""
    stage = draw.randrange(5)
    if stage == 0:
        return d.map(lambda x: tf.reduce_sum(x)), 0
    if stage == 1:
        return d.filter(lambda x: tf.size(x) > 1), None
    if stage == 2:
        return d.flat_map(tf.data.Dataset.from_tensor_slices), 0
    if stage == 3:
        return d.apply(tf.data.experimental.unbatch()), 0
    return d.map(lambda x: x[::-1] * 2), None


def of_any(tf, draw, d):
    number = draw.randrange(4)
    stage = draw.randrange(7)
    if stage == 0:
        return d.take(draw.choice([number, -1]))
    if stage == 1:
        return d.skip(number)
    if stage == 2:
        return d.repeat(number)
    if stage == 3:
        return d.shard(number + 1, draw.randrange(number + 1))
    if stage == 4:
        return d.prefetch(number)
    if stage == 5:
        return d.cache()
    return d.repeat().take(number * 3) if draw.random() < 0.5 else d.shuffle(1)


def dataset(tf, draw):
    d, rank = source(tf, draw), 0
    for _ in range(draw.randrange(1, 7)):
        if draw.random() < 0.35:
            d = of_any(tf, draw, d)
        elif rank == 0 and draw.random() < 0.3:
            d, rank = d.batch(draw.randrange(1, 5), drop_remainder=draw.random() < 0.3), 1
        elif rank == 0:
            d, rank = of_scalars(tf, draw, d)
        else:
            d, then = of_vectors(tf, draw, d)
            rank = rank if then is None else then
    if rank and draw.random() < 0.5:
        count, rest = draw.randrange(1, 4), draw.random() < 0.3
        if draw.random() < 0.6:
            d = d.padded_batch(count, [draw.choice([None, None, 6])], padding_values=np.int64(-1), drop_remainder=rest)
        else:
            d = d.batch(count, drop_remainder=rest)
    shape = tf.data.get_output_shapes(d)
    found = [(tf.data.get_output_types(d).name, None if shape.ndims is None else shape.as_list())]
    iterator = tf.data.make_initializable_iterator(d)
    value, errors = iterator.get_next(), 0
    with tf.Session() as session:
        session.run(iterator.initializer)
        while len(found) < ELEMENTS:
            try:
                found.append(plain(session.run(value)))
            except tf.errors.OutOfRangeError:
                found.append("end")
                break
            except Exception as error:  # noqa: BLE001 - its class is the answer
                found.append(status(tf, error))
                errors += 1
                if errors > ERRORS:
                    break
    return found
