"""Datasets as functions of ``tf``, so that TensorFlow can be asked what they give: ``python programs.py > answers.json``.

The answers stand in answers.json, as TensorFlow 2.21's ``compat.v1`` gave them.
"""

from __future__ import annotations

import collections
import gzip
import json
import os
import sys
import tempfile

import numpy as np

Pair = collections.namedtuple("Pair", "left right")


def slices_of_a_dict(tf):
    return tf.data.Dataset.from_tensor_slices({"b": np.arange(3), "a": (["x", "y", "z"], np.ones((3, 2)))})


def slices_of_a_namedtuple(tf):
    return tf.data.Dataset.from_tensor_slices(Pair([1, 2], [[1.5], [2.5]]))


def tensors_of_a_list(tf):
    return tf.data.Dataset.from_tensors(([1, 2], [[3.0], [4.0]])).repeat(2)


def slices_of_different_lengths(tf):
    return tf.data.Dataset.from_tensor_slices(([1, 2], [1, 2, 3]))


def range_up(tf):
    return tf.data.Dataset.range(2, 12, 3)


def range_down(tf):
    return tf.data.Dataset.range(5, 0, -2)


def range_of_nothing(tf):
    return tf.data.Dataset.range(3, 1)


def batches(tf):
    return tf.data.Dataset.range(7).batch(3)


def batches_without_remainder(tf):
    return tf.data.Dataset.from_tensor_slices((np.arange(7), np.ones((7, 2), np.float32))).batch(3, drop_remainder=True)


def batches_of_texts(tf):
    return tf.data.Dataset.from_tensor_slices(["a", "bc", "d"]).batch(2)


def batches_of_several_shapes(tf):
    return tf.data.Dataset.from_tensor_slices([1, 3, 2]).map(lambda x: tf.fill([x], x)).batch(2)


def batch_size_of_0(tf):
    return tf.data.Dataset.range(4).batch(0)


def padded(tf):
    return tf.data.Dataset.from_tensor_slices([1, 3, 2]).map(lambda x: tf.fill([x], x)).padded_batch(2, [None])


def padded_with_values(tf):
    d = tf.data.Dataset.from_tensor_slices([1, 3, 2])
    d = d.map(lambda x: {"n": tf.fill([x, 1], x), "t": tf.fill([x], "a")})
    return d.padded_batch(3, {"n": [4, 2], "t": [-1]}, {"n": -1, "t": "?"}, drop_remainder=True)


def padded_too_small(tf):
    return tf.data.Dataset.from_tensor_slices([1, 3]).map(lambda x: tf.fill([x], x)).padded_batch(2, [2])


def repeated(tf):
    return tf.data.Dataset.range(2).repeat(3).batch(4)


def repeated_0_times(tf):
    return tf.data.Dataset.range(2).repeat(0)


def nothing_repeated_for_good(tf):
    return tf.data.Dataset.range(0).repeat()


def taken_and_skipped(tf):
    return tf.data.Dataset.range(10).skip(2).take(5).skip(-1).concatenate(tf.data.Dataset.range(3).take(-1))


def shards(tf):
    return tf.data.Dataset.range(10).shard(3, 1)


def zipped(tf):
    return tf.data.Dataset.zip((tf.data.Dataset.range(3), {"a": tf.data.Dataset.range(4, 9).batch(2)}))


def concatenated_of_several_shapes(tf):
    a = tf.data.Dataset.from_tensors(np.ones((2, 3), np.int32))
    return a.concatenate(tf.data.Dataset.from_tensors(np.ones((2, 1), np.int32)))


def mapped_to_a_tuple(tf):
    return tf.data.Dataset.range(3).map(lambda x: (x * 2, tf.cast(x, tf.float32) + 0.5))


def mapped_to_a_list(tf):
    return tf.data.Dataset.range(3).map(lambda x: [x, tf.as_string(x)])


def mapped_from_a_tuple(tf):
    d = tf.data.Dataset.zip((tf.data.Dataset.range(3), tf.data.Dataset.range(5, 9)))
    return d.map(lambda a, b: {"sum": a + b, "pair": (a, b)})


def mapped_in_parallel(tf):
    return tf.data.Dataset.range(30).map(lambda x: x * x, num_parallel_calls=3)


def mapped_with_a_captured_tensor(tf):
    c = tf.constant([7, 8], tf.int64)
    return tf.data.Dataset.range(3).map(lambda x: x + c)


def map_that_fails(tf):
    return tf.data.Dataset.range(2, -2, -1).map(lambda x: tf.check_numerics(1.0 / tf.cast(x, tf.float32), "bad"))


def filtered(tf):
    return tf.data.Dataset.range(8).filter(lambda x: tf.equal(x % 3, 1))


def flat(tf):
    return tf.data.Dataset.range(4).flat_map(lambda x: tf.data.Dataset.range(x).map(lambda y: y * 10 + x))


def flat_of_captured(tf):
    c = tf.constant([[1, 2], [3, 4]])
    return tf.data.Dataset.range(2).flat_map(lambda x: tf.data.Dataset.from_tensor_slices(c[x] * 2).repeat(2))


def interleaved(tf):
    def of(x):
        return tf.data.Dataset.from_tensors(x).repeat(x)

    return tf.data.Dataset.from_tensor_slices(np.array([4, 5, 6, 4, 5, 6])).interleave(of, 2, 3)


def interleaved_wide(tf):
    def of(x):
        return tf.data.Dataset.from_tensors(x).repeat(x)

    return tf.data.Dataset.from_tensor_slices(np.array([4, 5, 1, 0, 3])).interleave(of, 7, 2)


def interleaved_in_parallel(tf):
    def of(x):
        return tf.data.Dataset.range(x, x + 3)

    return tf.data.Dataset.range(6).interleave(of, cycle_length=2, block_length=1, num_parallel_calls=2)


def generated(tf):
    def rows():
        yield 1, [2.0]
        yield 3, [4, 5.5]

    return tf.data.Dataset.from_generator(rows, (tf.int32, tf.float32), ((), (None,)))


def generated_twice_from_arguments(tf):
    d = tf.data.Dataset.from_generator(lambda n: range(n), tf.int64, [], args=(3,))
    return d.repeat(2)


def generated_dicts(tf):
    rows = [{"a": 1, "b": "x"}, {"b": b"y", "a": 2}]
    return tf.data.Dataset.from_generator(lambda: iter(rows), {"a": tf.int64, "b": tf.string})


def generated_of_a_wrong_type(tf):
    return tf.data.Dataset.from_generator(lambda: iter([1, 2, "three"]), tf.int64, [])


def generated_of_a_wrong_shape(tf):
    return tf.data.Dataset.from_generator(lambda: iter([[1, 2], [1, 2, 3]]), tf.int64, [2])


def generated_of_a_wrong_structure(tf):
    return tf.data.Dataset.from_generator(lambda: iter([(1, 2), (1,)]), (tf.int64, tf.int64))


def prefetched(tf):
    return tf.data.Dataset.range(5).map(lambda x: x + 1).prefetch(2).batch(2).prefetch(1)


def shuffled_sorted(tf):
    """Orders differ, elements don't: the whole as one sorted batch."""
    return tf.data.Dataset.range(20).shuffle(7, seed=3).batch(20).map(lambda x: tf.nn.top_k(x, 20).values)


def cached(tf):
    return tf.data.Dataset.range(4).map(lambda x: x * 3).cache().repeat(3).batch(5)


def parallel_map_that_fails(tf):
    d = tf.data.Dataset.range(2, -2, -1)
    return d.map(lambda x: tf.check_numerics(1.0 / tf.cast(x, tf.float32), "bad"), num_parallel_calls=2)


def unbatched(tf):
    d = tf.data.Dataset.from_tensor_slices((np.arange(7), np.ones((7, 2), np.float32))).batch(3)
    return d.apply(tf.data.experimental.unbatch())


def mapped_and_batched(tf):
    return tf.data.Dataset.range(7).apply(tf.data.experimental.map_and_batch(lambda x: x * x, 3, drop_remainder=True))


def file_of(content):
    path = os.path.join(tempfile.mkdtemp(), "file")
    with open(path, "wb") as file:
        file.write(content)
    return path


def lines_of_text(tf):
    return tf.data.TextLineDataset([file_of(b"one\ntwo\r\n\nlast"), file_of(b""), file_of(b"x\n")])


def lines_of_compressed_text(tf):
    return tf.data.TextLineDataset(file_of(gzip.compress(b"one\ntwo\n")), "GZIP")


def lines_of_no_file(tf):
    return tf.data.TextLineDataset("/there/is/no/such/file")


def records_of_files(tf):
    def written(*records):
        path = file_of(b"")
        with tf.python_io.TFRecordWriter(path) as writer:
            for record in records:
                writer.write(record)
        return path

    return tf.data.TFRecordDataset([written(b"a", b"", b"bc"), written(b"d")])


def damaged_records(tf):
    return tf.data.TFRecordDataset(file_of(b"no record at all"))


def records_of_one_length(tf):
    return tf.data.FixedLengthRecordDataset(file_of(b"HHaabbccF"), 2, header_bytes=2, footer_bytes=1)


def records_of_one_length_with_a_rest(tf):
    return tf.data.FixedLengthRecordDataset(file_of(b"aabbc"), 2)


PROGRAMS = {
    name: value
    for name, value in list(globals().items())
    if callable(value) and not isinstance(value, type) and name != "file_of"
}


def answer(tf, make):
    """What a dataset gives, as plain data: its types, shapes and elements, and the class of the error that ends them."""
    with tf.Graph().as_default():
        try:
            dataset = make(tf)
        except (TypeError, ValueError) as error:
            return {"refused": "TypeError" if isinstance(error, TypeError) else "ValueError"}
        it = dataset.make_initializable_iterator()
        element = it.get_next()
        pairs = zip(leaves(dataset.output_types), leaves(dataset.output_shapes), strict=True)
        said = [[t.name, None if s.ndims is None else s.as_list()] for t, s in pairs]
        found, end = [], None
        with tf.Session() as session:
            try:
                session.run(it.initializer)
                while True:
                    found.append([array(x) for x in leaves(session.run(element))])
            except tf.errors.OpError as error:
                end = type(error).__name__
        return {"components": said, "elements": [[[a.dtype.name, listed(a)] for a in e] for e in found], "end": end}


def leaves(value):
    if isinstance(value, dict):
        return [x for k in sorted(value) for x in leaves(value[k])]
    if isinstance(value, tuple):
        return [x for item in value for x in leaves(item)]
    return [value]


def array(value):
    return np.asarray(value, object if isinstance(value, bytes) else None)


def listed(found):
    return np.vectorize(bytes.decode, otypes=[object])(found).tolist() if found.dtype == object else found.tolist()


if __name__ == "__main__":
    import tensorflow.compat.v1 as tensorflow

    tensorflow.disable_eager_execution()
    lines = [f" {json.dumps(name)}: {json.dumps(answer(tensorflow, make))}" for name, make in PROGRAMS.items()]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
