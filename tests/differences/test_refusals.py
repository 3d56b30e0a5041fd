"""What TensorFlow 1 refuses when the graph is made or in the step, and what a missing name is told."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

REFUSED = {
    "updates of other rows": (
        lambda: tf.scatter_add(tf.Variable(np.zeros((3, 2))), [0], np.ones((2, 2))),
        ValueError,
    ),
    "limits that would broadcast": (
        lambda: tf.clip_by_value(tf.constant(1.0), tf.zeros([2]), tf.ones([2])),
        ValueError,
    ),
    "a norm that would broadcast": (lambda: tf.clip_by_norm(tf.ones([2]), tf.ones([3, 2])), ValueError),
    "updates of what is empty": (
        lambda: tf.scatter_nd(np.zeros((2, 2, 2), np.int32), np.zeros((2, 2, 2)), [0, 3, 2]),
        ValueError,
    ),
    "an axis below the rank": (lambda: tf.cumsum(tf.zeros([2, 2]), -3), ValueError),
}


@pytest.mark.parametrize(("program", "kind"), REFUSED.values(), ids=REFUSED)
def test_when_the_graph_is_made(session, program, kind):
    with pytest.raises(kind):
        program()


def test_an_integer_of_another_width_from_a_function(session):
    made = tf.py_func(lambda: np.int32(1), [], tf.int64)
    with pytest.raises(tf.errors.InvalidArgumentError, match="wrong dtype"):
        session.run(made)


def test_a_fold_that_fails_names_its_operation(session):
    made = tf.reshape(tf.placeholder_with_default([1.0, 2.0], [None]), [3], name="r")
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot reshape") as caught:
        session.run(made)
    assert caught.value.op is made.op


def test_no_updates_of_what_is_empty(session):
    made = tf.scatter_nd(np.zeros((0, 2), np.int32), np.zeros((0, 2)), [0, 3, 2])
    assert session.run(made).shape == (0, 3, 2)


def test_what_crashed_before(session):
    stitched = tf.dynamic_stitch([[[0, 1], [2, 3]], [4]], [[[1.0, 2.0], [3.0, 4.0]], [5.0]])
    assert session.run(stitched).tolist() == [1, 2, 3, 4, 5]
    looked_up = session.run(tf.nn.embedding_lookup(np.full((3, 2), 3.0), [0, 2], max_norm=1.0))
    np.testing.assert_allclose(looked_up, np.full((2, 2), 0.5**0.5))


@pytest.mark.parametrize("name", ["nce_loss", "max_pool", "slim"])
def test_no_suggestion_beats_a_wrong_one(name):
    with pytest.raises(AttributeError) as caught:
        getattr(tf, name)
    assert "did you mean" not in str(caught.value)


def test_early_names_tell_todays():
    for name, today in (("mul", "tf.multiply"), ("pack", "tf.stack"), ("scalar_summary", "tf.summary.scalar")):
        with pytest.raises(AttributeError, match=f"use {today}$"):
            getattr(tf, name)


def test_matrix_norms(session):
    m = np.arange(6.0).reshape(2, 3) - 2
    for order in (1, 2, np.inf, "fro"):
        got = session.run(tf.norm(tf.constant(m), order, axis=(0, 1)))
        np.testing.assert_allclose(got, np.linalg.norm(m, order), rtol=1e-12)
