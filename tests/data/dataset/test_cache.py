"""A cache in a file: it is read by later programs, is whole or not there, and says when it is of another dataset."""

from __future__ import annotations

import gc

import graphdock as tf
import numpy as np
import pytest

Dataset = tf.data.Dataset


def drained(dataset, limit=None):
    with tf.Session() as session:
        element, found = dataset.make_one_shot_iterator().get_next(), []
        while limit is None or len(found) < limit:
            try:
                found.append(session.run(element))
            except tf.errors.OutOfRangeError:
                break
        return found


def test_what_a_function_captures_is_kept_for_all_of_its_calls():
    calls = []

    def rows():
        for i in range(3):
            calls.append(i)
            yield i

    with tf.Graph().as_default():
        kept = Dataset.from_generator(rows, tf.int32, []).cache()
        assert drained(Dataset.range(4).flat_map(lambda _: kept)) == [0, 1, 2] * 4
    assert calls == [0, 1, 2]


def test_a_later_program_reads_the_file_and_not_the_source(tmp_path):
    name, calls = str(tmp_path / "kept"), []

    def rows():
        for i in range(3):
            calls.append(i)
            yield [f"row {i}"] * i, i / 2

    def dataset():
        return Dataset.from_generator(rows, (tf.string, tf.float32), ([None], [])).cache(name)

    first, second = drained(dataset()), drained(dataset())
    assert calls == [0, 1, 2] and [p.name for p in tmp_path.iterdir()] == ["kept.cache.tfrecord"]
    for one, other in zip(first, second, strict=True):
        assert one[0].tolist() == other[0].tolist() and one[1] == other[1] and other[1].dtype == np.float32


def test_what_was_not_read_to_the_end_leaves_no_file(tmp_path):
    assert drained(Dataset.range(5).cache(str(tmp_path / "kept")), 2) == [0, 1]
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_cache_of_another_dataset_is_told(tmp_path):
    drained(Dataset.range(3).cache(str(tmp_path / "kept")))
    with pytest.raises(tf.errors.InvalidArgumentError, match="another dtype") as caught:
        drained(Dataset.from_tensor_slices(["a", "b"]).cache(str(tmp_path / "kept")))
    assert "kept.cache.tfrecord" in str(caught.value) and "test_cache.py" in str(caught.value)


def test_a_damaged_cache_names_file_and_byte(tmp_path):
    drained(Dataset.range(3).cache(str(tmp_path / "kept")))
    path = tmp_path / "kept.cache.tfrecord"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(tf.errors.DataLossError, match=r"byte \d+ of .*kept"):
        drained(Dataset.range(3).cache(str(tmp_path / "kept")))


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="cannot make the cache"):
        drained(Dataset.range(3).cache(str(tmp_path / "no" / "kept")))


def test_of_two_iterators_one_writes_and_the_other_is_refused_meanwhile(tmp_path):
    """TensorFlow raises AlreadyExistsError too, and gives what the file has once it is whole."""
    dataset = Dataset.range(2).cache(str(tmp_path / "kept"))
    one, other = dataset.make_initializable_iterator(), dataset.prefetch(1).make_initializable_iterator()
    first, second = one.get_next(), other.get_next()
    with tf.Session() as session:
        session.run([one.initializer, other.initializer])
        assert session.run(first) == 0
        session.run(one.initializer)  # it begins anew, and writes again
        assert session.run(first) == 0
        for _ in range(2):
            with pytest.raises(tf.errors.AlreadyExistsError, match="another iterator writes") as caught:
                session.run(second)
            assert "test_cache.py" in str(caught.value)
        assert session.run(first) == 1
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(first)
        session.run(other.initializer)
        assert session.run(second) == 0 and session.run(second) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["kept.cache.tfrecord"]


def test_an_iterator_that_was_closed_leaves_the_cache_to_the_next(tmp_path):
    dataset = Dataset.range(3).cache(str(tmp_path / "kept")).prefetch(1)
    element = dataset.make_one_shot_iterator().get_next()
    sessions = [tf.Session(), tf.Session()]
    assert sessions[0].run(element) == 0
    sessions[0].close()
    assert [sessions[1].run(element) for _ in range(3)] == [0, 1, 2]
    sessions[1].close()
