"""Functions that set and change variables."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.errors import InvalidArgumentError


def test_each_function_gives_the_new_value_and_is_named_as_the_method_is():
    with tf.Graph().as_default():
        v = tf.Variable([1.0, 2.0])
        updates = [tf.assign(v, [5.0, 6.0]), tf.assign_add(v, [1.0, 1.0], name="more"), tf.assign_sub(v, [0.5, 0.5])]
        assert [u.name.partition("/")[0] for u in updates] == ["Assign", "more", "AssignSub"]
        with tf.Session() as sess:
            sess.run(v.initializer)
            assert [sess.run(u).tolist() for u in updates] == [[5.0, 6.0], [6.0, 7.0], [5.5, 6.5]]
            assert sess.run(v).tolist() == [5.5, 6.5]


@pytest.mark.parametrize("function", [tf.assign, tf.assign_add, tf.assign_sub])
def test_what_is_no_variable_is_refused(function):
    with tf.Graph().as_default(), pytest.raises(InvalidArgumentError, match="needs a Variable") as caught:
        function(tf.constant(1.0), 2.0)
    assert caught.value.message.startswith(f"{function.__name__} ") and "(a Tensor)" in caught.value.got
