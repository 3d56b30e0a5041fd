"""Windows of datasets, and reductions, beyond what TensorFlow's answers cover."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


@pytest.mark.parametrize(
    "use",
    [
        lambda windows: windows.batch(2),
        lambda windows: windows.padded_batch(2, [None]),
        lambda windows: windows.unbatch(),
        lambda windows: windows.cache(),
        lambda windows: windows.map(lambda window: window),
        lambda windows: windows.filter(lambda window: True),
        lambda windows: windows.reduce(0, lambda state, window: state),
        lambda windows: windows.make_one_shot_iterator(),
        lambda windows: windows.make_initializable_iterator(),
        lambda windows: tf.data.Iterator.from_structure(tf.int64, []).make_initializer(windows),
    ],
)
def test_what_takes_tensors_refuses_windows_and_says_what_makes_tensors_of_them(use):
    with pytest.raises(
        TypeError, match=r"windows, which are datasets\n.*flat_map\(lambda window: window.batch\(size\)\)"
    ):
        use(tf.data.Dataset.range(4).window(2))


def test_a_window_tells_types_and_shapes_of_its_elements():
    rows = tf.data.Dataset.from_tensor_slices({"a": np.ones((4, 3), np.float32), "b": ["x"] * 4}).window(2)
    assert rows.output_types == {"a": tf.float32, "b": tf.string}
    assert [shape.as_list() for shape in rows.output_shapes.values()] == [[3], []]
    assert rows.output_classes == {"a": tf.data.Dataset, "b": tf.data.Dataset}


def test_numbers_of_a_window_may_be_tensors():
    size, shift = tf.placeholder_with_default(np.int64(2), []), tf.placeholder_with_default(np.int64(3), [])
    windows = tf.data.Dataset.range(7).window(size, shift, drop_remainder=tf.constant(True))
    iterator = windows.flat_map(lambda window: window.batch(9)).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer, {size: 3, shift: 2})
        assert [session.run(element).tolist() for _ in range(3)] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element)


def test_an_error_of_an_element_is_raised_by_each_window_that_holds_it():
    read = tf.data.Dataset.range(5).map(lambda x: tf.check_numerics(1.0 / tf.cast(x - 2, tf.float32), "two"))
    element = read.window(2, 1).flat_map(lambda window: window.batch(2)).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element).tolist() == [-0.5, -1.0]
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match="two"):
                session.run(element)
        assert [session.run(element).tolist() for _ in range(2)] == [[1.0, 0.5], [0.5]]


def test_a_reduction_is_made_in_every_step_anew_and_reads_variables():
    scale = tf.Variable(2.0)
    count = tf.placeholder(tf.int64, [])
    total = tf.data.Dataset.range(count).reduce(0.0, lambda total, x: total + scale * tf.cast(x, tf.float32))
    assert total.shape.as_list() == []
    with tf.Session() as session:
        session.run(scale.initializer)
        assert [session.run(total, {count: n}) for n in (4, 4, 0)] == [12.0, 12.0, 0.0]
        session.run(scale.assign(10.0))
        assert session.run(total, {count: 4}) == 60.0


def test_a_reduction_gives_its_first_state_back_as_an_array_of_the_callers_own():
    first = np.arange(3)
    kept = tf.data.Dataset.range(0).reduce(first, lambda state, x: state + x)
    with tf.Session() as session:
        made = session.run(kept)
        made[:] = 7
        assert session.run(kept).tolist() == [0, 1, 2]


def test_a_reduction_ends_with_the_error_of_its_element_and_its_place():
    bad = tf.data.Dataset.range(3).map(lambda x: tf.check_numerics(1.0 / tf.cast(x - 1, tf.float32), "one"))
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="MapDataset.*one"):
        session.run(bad.reduce(0.0, lambda total, x: total + x))


def test_a_reduction_ends_the_threads_of_its_dataset():
    import threading

    ahead = tf.data.Dataset.range(1000).prefetch(4).take(3).reduce(np.int64(0), lambda total, x: total + x)
    with tf.Session() as session:
        assert [session.run(ahead) for _ in range(20)] == [3] * 20
        begun = [thread for thread in threading.enumerate() if "prefetch" in thread.name.lower()]
        for thread in begun:
            thread.join(60)
            assert not thread.is_alive()


def test_a_function_of_a_reduction_that_returns_another_state_is_told():
    with pytest.raises(TypeError, match="a state like the first one"):
        tf.data.Dataset.range(3).reduce(0.0, lambda total, x: (total, total))
    with pytest.raises(TypeError, match="Dataset.reduce"):
        tf.data.Dataset.range(3).reduce(0.0, "add")


@pytest.mark.parametrize(
    "use",
    [
        lambda window: window.reduce(np.int64(0), lambda a, b: a + b),
        lambda window: window.batch(3).reduce(np.int64(0), lambda a, b: a + tf.reduce_sum(b)),
    ],
)
def test_a_reduction_of_a_window_within_its_function_is_refused_where_it_is_written(use):
    rows = tf.data.Dataset.range(6)
    with pytest.raises(TypeError, match=r"within the function that gets it\n.*window.batch\(size\)"):
        rows.window(3).flat_map(lambda window: tf.data.Dataset.from_tensors(use(window)))
    by_key = tf.data.experimental.group_by_window(
        lambda x: x % 2, lambda key, window: tf.data.Dataset.from_tensors(use(window)), 2
    )
    with pytest.raises(TypeError, match="within the function that gets it"):
        rows.apply(by_key)


def test_a_reduction_takes_what_grouped_or_flattened_windows():
    by_key = tf.data.experimental.group_by_window(lambda x: x % 2, lambda key, window: window.batch(2), 2)
    grouped = (
        tf.data.Dataset.range(6).apply(by_key).reduce(np.int64(0), lambda total, pair: total + tf.reduce_max(pair))
    )
    flat = tf.data.Dataset.range(6).window(3).flat_map(lambda window: window.batch(3))
    with tf.Session() as session:
        assert session.run([grouped, flat.reduce(np.int64(0), lambda total, row: total + row[0])]) == [2 + 3 + 4 + 5, 3]
