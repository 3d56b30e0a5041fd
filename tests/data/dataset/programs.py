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


def failing(tf, count, *at):
    """Numbers, some of which fail."""

    def checked(x):
        bad = tf.reduce_any(tf.equal(x, tf.constant(at, tf.int64)))
        value = tf.cast(x, tf.float32)
        return tf.cast(tf.check_numerics(tf.where(bad, value / 0.0 * 0.0, value), "bad"), tf.int64)

    return tf.data.Dataset.range(count).map(checked)


def failing_in_parallel_map(tf):
    return failing(tf, 6, 2, 5).map(lambda x: x + 1, num_parallel_calls=2)


def failing_filter(tf):
    d = failing(tf, 6, 2)
    return d.filter(lambda x: tf.check_numerics(1.0 / tf.cast(x - 4, tf.float32), "bad") < 10.0)


def failing_before_flat_map(tf):
    return failing(tf, 4, 2).flat_map(lambda x: tf.data.Dataset.from_tensors(x).repeat(2))


def failing_in_flat_map(tf):
    return tf.data.Dataset.range(2).flat_map(lambda x: failing(tf, 4, 1))


def failing_function_of_flat_map(tf):
    def of(x):
        return tf.data.Dataset.from_tensors(tf.check_numerics(1.0 / tf.cast(x - 1, tf.float32), "bad"))

    return tf.data.Dataset.range(4).flat_map(of)


def failing_before_interleave(tf):
    return failing(tf, 4, 2).interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(2), 2, 1)


def failing_in_interleave(tf):
    return tf.data.Dataset.range(2).interleave(lambda x: failing(tf, 5, 1), 2, 2)


def failing_before_shuffle(tf):
    return failing(tf, 6, 2).shuffle(1)


def failing_before_repeat(tf):
    return failing(tf, 3, 1).repeat(2)


def failing_for_good(tf):
    return failing(tf, 1, 0).repeat()


def failing_before_take(tf):
    return failing(tf, 6, 1).take(3)


def failing_before_skip(tf):
    return failing(tf, 6, 1).skip(3)


def failing_before_shard(tf):
    return failing(tf, 7, 1, 4).shard(2, 0)


def failing_before_concatenate(tf):
    return failing(tf, 3, 1).concatenate(failing(tf, 3, 1))


def failing_before_zip(tf):
    whole = tf.data.Dataset.range(5)
    return tf.data.Dataset.zip((whole, failing(tf, 5, 2), whole))


def failing_before_batch(tf):
    return failing(tf, 9, 1).batch(3)


def failing_before_padded_batch(tf):
    return failing(tf, 7, 1).padded_batch(2, [])


def failing_before_unbatch(tf):
    return failing(tf, 6, 2).batch(2).apply(tf.data.experimental.unbatch())


def failing_before_cache(tf):
    return failing(tf, 4, 2).cache().repeat(2)


def failing_before_file_cache(tf):
    return failing(tf, 4, 2).cache(os.path.join(tempfile.mkdtemp(), "kept")).repeat(2)


def failing_before_prefetch(tf):
    return failing(tf, 4, 2).prefetch(2)


def failing_before_windows(tf):
    by = tf.data.experimental.group_by_window(lambda x: x % 2, lambda key, window: window.batch(2), 2)
    return failing(tf, 6, 2).apply(by)


def failing_before_scan(tf):
    return failing(tf, 5, 2).apply(tf.data.experimental.scan(np.int64(0), lambda s, x: (s + x, s)))


def failing_generator(tf):
    def numbers():
        yield 1
        yield "two"
        yield 3
        raise ValueError("no more")

    return tf.data.Dataset.from_generator(numbers, tf.int64)


def failing_records(tf):
    def written(*records):
        path = file_of(b"")
        with tf.python_io.TFRecordWriter(path) as writer:
            for record in records:
                writer.write(record)
        return path

    broken = written(b"d", b"e", b"f")
    with open(broken, "r+b") as file:
        file.seek(17 + 12)
        file.write(b"!")
    return tf.data.TFRecordDataset([written(b"a", b"b"), broken, written(b"g")])


def errors_ignored(tf):
    return failing(tf, 6, 2, 3, 5).apply(tf.data.experimental.ignore_errors())


def files_listed(tf):
    folder = tempfile.mkdtemp()
    for name in ("b.txt", "a.txt", "c.csv"):
        with open(os.path.join(folder, name), "w") as file:
            file.write(name)
    names = tf.data.Dataset.list_files([folder + "/*.txt", folder + "/c*"], shuffle=False)
    return names.map(lambda path: tf.string_split([path], "/").values[-1])


def files_listed_shuffled(tf):
    folder = tempfile.mkdtemp()
    for name in range(3):
        with open(os.path.join(folder, f"{name}"), "w") as file:
            file.write(f"{name}\n")
    lines = tf.data.Dataset.list_files(folder + "/*", seed=2).flat_map(tf.data.TextLineDataset)
    return lines.map(lambda line: tf.string_to_number(line)).batch(3).map(tf.reduce_sum)


def no_files_listed(tf):
    return tf.data.Dataset.list_files(tempfile.mkdtemp() + "/*.none")


def kept_in_a_file(tf):
    d = tf.data.Dataset.from_tensor_slices({"a": ["x", "yz"], "b": np.arange(4.0).reshape(2, 2)})
    return d.cache(os.path.join(tempfile.mkdtemp(), "kept")).repeat(3)


def windows(tf):
    by = tf.data.experimental.group_by_window(
        lambda x: x % 3,
        lambda key, window: tf.data.Dataset.zip((window.batch(4), tf.data.Dataset.from_tensors(key).repeat())),
        window_size_func=lambda key: key + 2,
    )
    return tf.data.Dataset.range(14).apply(by)


def windows_of_size_0(tf):
    return tf.data.Dataset.range(3).apply(
        tf.data.experimental.group_by_window(lambda x: x, lambda key, window: window, 0)
    )


def windows_of_pairs(tf):
    d = tf.data.Dataset.from_tensor_slices((np.arange(6), ["a", "b", "a", "b", "c", "a"]))
    by = tf.data.experimental.group_by_window(
        lambda number, text: tf.cast(tf.equal(text, "a"), tf.int64), lambda key, window: window.take(2).batch(9), 3
    )
    return d.apply(by)


def sequences(tf):
    lengths = np.array([1, 5, 2, 9, 3, 4, 7, 2, 1], np.int32)
    return tf.data.Dataset.from_tensor_slices(lengths).map(lambda n: (tf.fill([n], n), n))


def buckets(tf):
    by = tf.data.experimental.bucket_by_sequence_length(lambda row, n: n, [3, 6], [2, 2, 1])
    return sequences(tf).apply(by)


def buckets_with_values(tf):
    by = tf.data.experimental.bucket_by_sequence_length(
        lambda row, n: n, [3, 10], [2, 3, 1], ([None], []), (-1, 0), pad_to_bucket_boundary=True
    )
    return sequences(tf).apply(by)


def buckets_without_remainders(tf):
    by = tf.data.experimental.bucket_by_sequence_length(
        lambda x: tf.cast(x, tf.int32), [3, 6], [2, 2, 2], no_padding=True, drop_remainder=True
    )
    return tf.data.Dataset.range(9).apply(by)


CSV = b'a,b,c,d\n1,2.5,x,\n2,,"y, ""z""\nw",7\n3,4e3,,8\n'


def csv_records(tf):
    defaults = [tf.int32, [1.5], tf.constant(["none"]), tf.constant([9], tf.int64)]
    return tf.data.experimental.CsvDataset([file_of(CSV), file_of(CSV)], defaults, header=True)


def csv_columns(tf):
    return tf.data.experimental.CsvDataset(
        file_of(b"1;-;3\n4;5;6\n"), [[0.0], [2.0]], field_delim=";", na_value="-", select_cols=[0, 1]
    )


def csv_of_a_missing_field(tf):
    return tf.data.experimental.CsvDataset(file_of(b"1,2\n3,\n5,6\n"), [tf.int32, tf.int32])


def csv_of_a_short_record(tf):
    return tf.data.experimental.CsvDataset(file_of(b"1,2\n3\n5,6\n"), [tf.int32, tf.int32])


def csv_batches(tf):
    return tf.data.experimental.make_csv_dataset(file_of(CSV), 2, label_name="d", shuffle=False, num_epochs=1)


def csv_batches_of_some_columns(tf):
    d = tf.data.experimental.make_csv_dataset(
        file_of(b"1,a,2.5,5000000000\n3,b,4,1\n"),
        3,
        ["one", "two", "three", "four"],
        select_columns=["four", "one", "three"],
        header=False,
        shuffle=False,
        num_epochs=2,
    )
    return d.map(lambda row: (row["one"], row["three"], row["four"]))


def sparse_slices(tf):
    sparse = tf.SparseTensor([[0, 1], [1, 0], [1, 2], [3, 1]], [1.0, 2.0, 3.0, 4.0], [4, 3])
    return tf.data.Dataset.from_tensor_slices({"s": sparse, "d": np.arange(4)})


def sparse_batches(tf):
    return sparse_slices(tf).batch(3)


def sparse_unbatched(tf):
    return sparse_slices(tf).batch(3).apply(tf.data.experimental.unbatch()).map(lambda row: row["s"])


def sparse_mapped(tf):
    sparse = tf.SparseTensorValue([[0, 1], [2, 0]], [7, 8], [3, 2])
    return tf.data.Dataset.from_tensors(sparse).repeat(2).map(lambda s: (s * 2, tf.sparse.to_dense(s)))


def sparse_of_several_shapes(tf):
    def of(n):
        return tf.SparseTensor(tf.reshape(n, [1, 1]), tf.reshape(n, [1]), tf.reshape(n + 1, [1]))

    return tf.data.Dataset.range(4).map(of).batch(2)


def sparse_padded(tf):
    return sparse_slices(tf).padded_batch(2, {"s": [3], "d": []})


def sparse_of_dense_rows(tf):
    d = tf.data.Dataset.from_tensor_slices([1, 3, 2]).map(lambda x: tf.fill([x], x))
    return d.apply(tf.data.experimental.dense_to_sparse_batch(2, [4]))


def sparse_of_large_rows(tf):
    d = tf.data.Dataset.from_tensor_slices([1, 3, 2]).map(lambda x: tf.fill([x], x))
    return d.apply(tf.data.experimental.dense_to_sparse_batch(2, [2]))


def examples_parsed(tf):
    def example(n):
        feature = {
            "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[n])),
            "many": tf.train.Feature(float_list=tf.train.FloatList(value=[n] * n)),
        }
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    features = {"n": tf.io.FixedLenFeature([], tf.int64), "many": tf.io.VarLenFeature(tf.float32)}
    path = file_of(b"")
    with tf.python_io.TFRecordWriter(path) as writer:
        for n in range(5):
            writer.write(example(n))
    return tf.data.experimental.make_batched_features_dataset(
        path, 2, features, tf.data.TFRecordDataset, label_key="n", shuffle=False, num_epochs=1
    )


def scanned(tf):
    return tf.data.Dataset.range(5).apply(
        tf.data.experimental.scan((np.int64(0), [1.0]), lambda s, x: ((s[0] + x, s[1] * 2.0), {"sum": s[0], "x": x}))
    )


def taken_while(tf):
    return tf.data.Dataset.range(9).apply(tf.data.experimental.take_while(lambda x: x * x < 10))


def unique_texts(tf):
    return tf.data.Dataset.from_tensor_slices(["a", "b", "a", "c", "b"]).apply(tf.data.experimental.unique())


def enumerated(tf):
    return tf.data.Dataset.from_tensor_slices(["a", "b"]).apply(tf.data.experimental.enumerate_dataset(5))


def counted(tf):
    return tf.data.experimental.Counter(3, -2).take(4)


def chosen(tf):
    sources = [tf.data.Dataset.range(10 * i, 10 * i + 2) for i in range(3)]
    return tf.data.experimental.choose_from_datasets(
        sources, tf.data.Dataset.from_tensor_slices(np.array([2, 0, 0, 0, 1, 2, 2, 1]))
    )


def sampled_by_one(tf):
    sources = [tf.data.Dataset.range(3), tf.data.Dataset.range(10, 13)]
    return tf.data.experimental.sample_from_datasets(sources, [0.0, 1.0]).take(3)


def reduced_by_key(tf):
    reducer = tf.data.experimental.Reducer(
        lambda key: (key, np.int64(0)), lambda s, x: (s[0], s[1] + x), lambda key, total: {"key": key, "total": total}
    )
    return tf.data.Dataset.range(10).apply(tf.data.experimental.group_by_reducer(lambda x: x % 3, reducer))


def interleaved_by_threads(tf):
    def of(x):
        return tf.data.Dataset.from_tensors(x).repeat(3)

    return tf.data.Dataset.range(4).apply(tf.data.experimental.parallel_interleave(of, 2, 2))


def shuffled_by_a_tensor(tf):
    d = tf.data.Dataset.range(20).shuffle(7, seed=tf.constant(3, tf.int64))
    return d.batch(20).map(lambda x: tf.nn.top_k(x, 20).values)


def mapped_in_batches(tf):
    d = tf.data.Dataset.from_tensor_slices((np.arange(24, dtype=np.uint8).reshape(6, 2, 2), [3, 1, 4, 1, 5, 9]))

    def scaled(image, label):
        image = tf.reshape(tf.cast(image, tf.float32) / 8.0 - [[0.5], [1.0]], [2, 2, 1])
        return {"image": image, "label": tf.one_hot(label, 5), "rest": label % 4, "is": tf.equal(label, 1)}

    return d.map(scaled).repeat(2).skip(1).batch(4)


def mapped_in_batches_of_texts(tf):
    return tf.data.Dataset.from_tensor_slices(["a", "b", "c"]).map(lambda x: (x + "!", tf.equal(x, "b"))).batch(2)


def mapped_in_batches_by_columns(tf):
    """A vector is added to a scalar: not along the same axes for whole batches."""
    return tf.data.Dataset.range(4).map(lambda x: x + tf.constant([10, 20, 30, 40], tf.int64)).batch(4)


def mapped_in_batches_to_a_constant(tf):
    return tf.data.Dataset.range(3).map(lambda x: (x * 2, tf.constant(7), tf.add(1, 2))).batch(2)


def mapped_in_batches_of_selected_rows(tf):
    """A condition that is a vector chooses rows of a matrix, and elements of a vector."""
    choose = lambda x: tf.where([True, False], x, tf.negative(x))  # noqa: E731
    return tf.data.Dataset.from_tensor_slices(np.arange(8.0).reshape(4, 2)).map(choose).batch(2)


def mapped_in_batches_without_elements(tf):
    return tf.data.Dataset.from_tensor_slices(np.zeros((3, 0, 2))).map(lambda x: tf.reshape(x + 1, [2, 0])).batch(2)


def rows_of_a_sparse_tensor(tf):
    places = np.array([[0, 0], [0, 2], [2, 1]], np.int64)
    return tf.data.Dataset.from_sparse_tensor_slices(tf.SparseTensor(places, [1.0, 2.0, 3.0], [4, 3]))


def rows_of_a_sparse_tensor_of_rank_3(tf):
    places = np.array([[0, 0, 1], [1, 1, 0]], np.int64)
    return tf.data.Dataset.from_sparse_tensor_slices(tf.SparseTensor(places, ["a", "b"], [2, 2, 2])).repeat(2)


def rows_of_a_sparse_tensor_without_values(tf):
    places = np.zeros((0, 2), np.int64)
    return tf.data.Dataset.from_sparse_tensor_slices(tf.SparseTensor(places, np.zeros(0, np.int32), [2, 3]))


def rows_of_what_is_not_sparse(tf):
    return tf.data.Dataset.from_sparse_tensor_slices(tf.constant([[1.0, 0.0]]))


def sliding_windows(tf):
    return tf.data.Dataset.range(7).window(3, shift=1, drop_remainder=True).flat_map(lambda window: window.batch(3))


def windows_side_by_side(tf):
    return tf.data.Dataset.range(7).window(3).flat_map(lambda window: window.batch(3))


def windows_with_strides(tf):
    return tf.data.Dataset.range(12).window(3, 2, 2).flat_map(lambda window: window.batch(3))


def windows_with_gaps(tf):
    return tf.data.Dataset.range(20).window(3, 7, 2, drop_remainder=True).flat_map(lambda window: window.batch(3))


def windows_with_gaps_and_a_rest(tf):
    return tf.data.Dataset.range(16).window(2, 5).flat_map(lambda window: window.batch(2))


def windows_of_nothing(tf):
    return tf.data.Dataset.range(0).window(3).flat_map(lambda window: window.batch(3))


def windows_of_no_size(tf):
    return tf.data.Dataset.range(3).window(0, 1).flat_map(lambda window: window.batch(3))


def windows_of_no_shift(tf):
    return tf.data.Dataset.range(3).window(2, 0).flat_map(lambda window: window.batch(3))


def windows_of_tuples(tf):
    pairs = tf.data.Dataset.from_tensor_slices((np.arange(5), np.ones((5, 2), np.float32)))
    return pairs.window(2).flat_map(lambda a, b: tf.data.Dataset.zip((a.batch(2), b.skip(1).batch(2))))


def windows_of_a_dict(tf):
    rows = tf.data.Dataset.from_tensor_slices({"b": np.arange(5), "a": ["v", "w", "x", "y", "z"]})
    return rows.window(3).flat_map(lambda row: tf.data.Dataset.zip((row["a"], row["b"].map(lambda b: b * 10))))


def windows_of_windows(tf):
    twice = tf.data.Dataset.range(10).window(2).window(2)
    return twice.flat_map(lambda outer: outer.flat_map(lambda inner: inner.batch(2)).batch(2))


def windows_counted_and_shuffled(tf):
    numbered = tf.data.Dataset.range(8).window(2).shuffle(10, seed=3).take(2).repeat(2).skip(1)
    return (
        tf.data.Dataset.zip((tf.data.Dataset.range(9), numbered))
        .flat_map(lambda number, window: tf.data.Dataset.zip((window.batch(2), tf.data.Dataset.from_tensors(number))))
        .map(lambda window, number: (number, tf.shape(window)))
    )


def windows_interleaved(tf):
    return tf.data.Dataset.range(9).window(3).interleave(lambda window: window, cycle_length=2, block_length=2)


def windows_of_sparse_tensors(tf):
    sparse = tf.SparseTensor([[0, 0], [1, 2], [3, 1]], [1.0, 2.0, 3.0], [4, 3])
    return (
        tf.data.Dataset.from_tensor_slices(sparse)
        .window(2)
        .flat_map(lambda window: window.map(lambda row: tf.sparse.to_dense(row)).batch(2))
    )


def reduced(tf):
    return tf.data.Dataset.from_tensors(tf.data.Dataset.range(5).reduce(np.int64(7), lambda total, x: total + x))


def reduced_from_nothing(tf):
    return tf.data.Dataset.from_tensors(tf.data.Dataset.range(0).reduce(np.int64(7), lambda total, x: total + x))


def reduced_to_a_pair(tf):
    pairs = tf.data.Dataset.from_tensor_slices(([1.0, 5.0, 3.0], ["a", "b", "c"]))

    def step(state, pair):
        number, text = pair
        return {"most": tf.maximum(state["most"], number), "all": tf.strings.join([state["all"], text])}

    return tf.data.Dataset.from_tensors(pairs.reduce({"most": 0.0, "all": ""}, step))


def reduced_to_a_longer_vector(tf):
    grown = tf.data.Dataset.range(4).reduce(np.zeros(0, np.int64), lambda row, x: tf.concat([row, [x]], 0))
    return tf.data.Dataset.from_tensors(grown)


def reduced_to_another_dtype(tf):
    return tf.data.Dataset.from_tensors(tf.data.Dataset.range(4).reduce(0.0, lambda total, x: x))


def map_that_stops(tf):
    """A Python function of a map that raises StopIteration ends the elements."""

    def stopping(x):
        if x == 2:
            raise StopIteration
        return x

    return tf.data.Dataset.range(4).map(lambda x: tf.py_func(stopping, [x], tf.int64))


#: Programs whose first error is the last thing that is compared: TensorFlow raises it for good.
TO_THE_FIRST_ERROR = {"lines_of_no_file", "records_of_one_length_with_a_rest", "windows_of_size_0"}

PROGRAMS = {
    name: value
    for name, value in list(globals().items())
    if callable(value) and not isinstance(value, type) and name not in ("file_of", "failing", "sequences")
}


def answer(tf, make):
    """What a dataset gives, as plain data: its types, shapes and elements, and the class of the error that ends them.

    In the place of an element that failed stands the class of its error.
    """
    with tf.Graph().as_default():
        try:
            dataset = make(tf)
        except (TypeError, ValueError) as error:
            return {"refused": "TypeError" if isinstance(error, TypeError) else "ValueError"}
        if hasattr(tf, "raw_ops"):  # TensorFlow 2 rewrites pipelines: a batch that fails loses other elements
            options = tf.data.Options()
            options.experimental_optimization.apply_default_optimizations = False
            dataset = dataset.with_options(options)
        it = dataset.make_initializable_iterator()
        element = it.get_next()
        pairs = zip(leaves(dataset.output_types), leaves(dataset.output_shapes), strict=True)
        said = [[t.name, None if s.ndims is None else s.as_list()] for t, s in pairs]
        found, end = [], None
        with tf.Session() as session:
            step = it.initializer
            while end is None and len(found) < 40:
                try:
                    made = session.run(step)
                    if step is element:
                        found.append([[a.dtype.name, listed(a)] for a in map(array, leaves(made))])
                    step = element
                except tf.errors.OpError as error:
                    found.append(type(error).__name__)
                    if step is not element or found[-1] == "OutOfRangeError" or make.__name__ in TO_THE_FIRST_ERROR:
                        end = found.pop()
        return {"components": said, "elements": found, "end": end}


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
