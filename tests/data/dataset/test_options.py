"""Options are kept and merged, and names that there are not are told."""

from __future__ import annotations

import graphdock as tf
import pytest


def test_options_are_kept_and_merged():
    one, other = tf.data.Options(), tf.data.Options()
    one.experimental_deterministic = False
    other.experimental_threading.private_threadpool_size = 3
    dataset = tf.data.Dataset.range(3).with_options(one).with_options(other)
    assert dataset.options().experimental_deterministic is False
    assert dataset.options().experimental_threading.private_threadpool_size == 3
    other.experimental_deterministic = True
    with pytest.raises(ValueError, match="experimental_deterministic"):
        dataset.with_options(other)


def test_an_option_that_there_is_not_is_told():
    with pytest.raises(ValueError, match="no setting 'experimental_fast'"):
        tf.data.Options().experimental_fast = True


def test_functions_in_place_of_methods():
    dataset = tf.data.Dataset.from_tensor_slices({"a": [1, 2]})
    assert tf.data.get_output_types(dataset) == {"a": tf.int32}
    assert tf.data.get_output_shapes(dataset)["a"].as_list() == []
    assert tf.data.get_output_classes(dataset) == {"a": tf.Tensor}
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    again = tf.data.make_initializable_iterator(dataset)
    with tf.Session() as session:
        session.run(again.initializer)
        assert session.run([element["a"], again.get_next()["a"]]) == [1, 1]
    with pytest.raises(TypeError):
        tf.data.get_output_types(3)
