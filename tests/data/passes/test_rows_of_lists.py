"""What plans know of lists, beside what the lists hold."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock_data.passes.affine import Facts, Scopes
from graphdock_data.passes.rows_of_lists import forgets, is_gradient, listed, named, reads_of
from graphdock_data.passes.trips import NotKnown


def list_read(planned, array, feed=None):
    graph, _ = planned(array.stack(), feed)
    (node,) = [n for n in graph.nodes if n.op == "TensorListStack"]
    return node.inputs[0], graph, Scopes(graph, Facts())


def test_an_array_that_was_unstacked_is_rows(planned):
    x = tf.placeholder(tf.float32, [4, 2], name="x")
    made = tf.TensorArray(tf.float32, size=6, tensor_array_name="some").unstack(x)
    array, graph, scopes = list_read(planned, made, {x: np.zeros((4, 2))})
    known = listed(array, {}, scopes)
    assert known.rows is graph.inputs[0] and (known.low.known, known.end.known, known.size.known) == (0, 4, 6)
    assert named(array, scopes) == "some" and forgets(array, scopes) and not is_gradient(array)
    assert reads_of(graph)[array] == 1


@pytest.mark.parametrize(
    "build,reason",
    [
        (lambda x, t: t.write(1, x[0]), "not the rows of one tensor"),
        (lambda x, t: t.unstack(x).write(5, x[0]), "not the rows of one tensor"),
        (lambda x, t: t.scatter([1, 0, 2, 3], x), "which of its elements"),
        (lambda x, t: t.scatter(tf.cast(x[:, 0], tf.int32), x), "which of its elements"),
    ],
)
def test_lists_of_which_it_is_not_known(planned, build, reason):
    x = tf.placeholder(tf.float32, [4, 2], name="x")
    array, _, scopes = list_read(planned, build(x, tf.TensorArray(tf.float32, size=6)), {x: np.zeros((4, 2))})
    with pytest.raises(NotKnown, match=reason):
        listed(array, {}, scopes)


def test_an_array_that_may_be_too_small_is_not(planned):
    x, n = tf.placeholder(tf.float32, [4, 2], name="x"), tf.placeholder(tf.int32, [], name="n")
    feed = {x: np.zeros((4, 2)), n: 4}
    array, _, scopes = list_read(planned, tf.TensorArray(tf.float32, size=n).unstack(x), feed)
    with pytest.raises(NotKnown, match="have a place"):
        listed(array, {}, scopes)
    grows = tf.TensorArray(tf.float32, size=n, dynamic_size=True, clear_after_read=False).unstack(x)
    array, _, scopes = list_read(planned, grows, feed)
    assert listed(array, {}, scopes).end.known == 4 and not forgets(array, scopes)
