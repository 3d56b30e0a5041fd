"""Variables by reference: handles where they are updated, reads where their value is taken, in the order that TensorFlow keeps."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

F = tf.float32


@pytest.fixture
def variable(made):
    """``w`` of shape [2], its initializer ``init`` and its read ``w/read``, as TensorFlow 1 makes them."""
    made.node("w", "VariableV2", dtype=F, shape=tf.TensorShape([2]), shared_name="", container="")
    made.const("value", np.float32([1, 2]))
    made.node("init", "Assign", "w", "value", T=F, validate_shape=True, use_locking=True)
    made.node("w/read", "Identity", "w", T=F)
    made.const("one", np.float32([1, 1]))
    return made


def test_reads_and_updates(variable):
    variable.node("add", "AssignAdd", "w", "one", T=F, use_locking=False)
    variable.node("after", "Mul", "add", "one", T=F)
    variable.node("direct", "Mul", "w", "one", T=F)
    variable.node("late", "Identity", "w", "^add", T=F)
    assert variable.run(["w/read:0", "direct:0"])[1].tolist() == [1, 2]
    assert variable.run("after:0").tolist() == [2, 3] == variable.run("late:0").tolist()


def test_updates_of_updates(variable):
    variable.node("first", "AssignAdd", "w", "one", T=F)
    variable.node("second", "AssignSub", "first", "value", T=F)
    variable.node("third", "RefIdentity", "second", T=F)
    variable.node("y", "Mul", "third", "one", T=F)
    assert variable.run("y:0").tolist() == [1, 1]


def test_optimizers_and_scatters(variable):
    variable.const("rate", np.float32(0.5))
    variable.node("step", "ApplyGradientDescent", "w", "rate", "one", T=F, use_locking=True)
    variable.const("rows", np.int32([1]))
    variable.const("row", np.float32([5]))
    variable.node("scatter", "ScatterUpdate", "w", "rows", "row", T=F, Tindices=tf.int32, use_locking=True)
    variable.node("a", "Identity", "step", T=F)
    variable.node("b", "Identity", "scatter", T=F)
    assert variable.run("a:0").tolist() == [0.5, 1.5] and variable.run("b:0").tolist() == [1, 5]


def test_whether_it_is_initialised(variable):
    variable.node("there", "IsVariableInitialized", "w", dtype=F)
    assert variable.run("there:0")
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(variable.message, name="")
        assert not sess.run("there:0")


def test_another_tensor_may_stand_for_it(variable):
    with tf.Graph().as_default(), tf.Session() as sess:
        (y,) = tf.import_graph_def(
            variable.message, {"w/read:0": tf.constant([7.0, 8.0]), "value": [0.0, 0.0]}, ["one:0"]
        )
        assert sess.run(y).tolist() == [1, 1]


def test_a_counter_gives_its_value_before(made):
    made.node("n", "VariableV2", dtype=tf.int64, shape=tf.TensorShape([]), shared_name="", container="")
    made.const("zero", np.int64(0))
    made.node("init", "Assign", "n", "zero", T=tf.int64, validate_shape=True, use_locking=True)
    made.node("count", "CountUpTo", "n", T=tf.int64, limit=2)
    made.node("y", "Add", "count", "count", T=tf.int64)
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(made.message, name="")
        sess.run("init")
        assert [sess.run("y:0") for _ in range(2)] == [0, 2]
        with pytest.raises(tf.errors.OutOfRangeError, match="limit of 2"):
            sess.run("y:0")
