"""Variables that begin with the values of a checkpoint."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DTypeError, InvalidArgumentError, NotFoundError, ShapeError

W, B, P = np.arange(4.0, dtype=np.float32).reshape(2, 2), np.array([5.0, 6.0], np.float32), np.arange(10.0, 15.0)


@pytest.fixture
def path(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.get_variable("old/w", initializer=W)
        tf.get_variable("old/b", initializer=B)
        tf.get_variable("old/p", initializer=P, partitioner=tf.fixed_size_partitioner(2))
        sess.run(tf.global_variables_initializer())
        return tf.train.Saver().save(sess, str(tmp_path / "m"), global_step=3)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def begun(*variables):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [v.tolist() for v in sess.run([tf.convert_to_tensor(v) for v in variables])]


def test_by_name_and_by_variable(path):
    w, b = tf.get_variable("new/w", [2, 2]), tf.get_variable("b", [2])
    p = tf.get_variable("p", [5], tf.float64, partitioner=tf.fixed_size_partitioner(3))
    q = tf.get_variable("q", [5], tf.float64, partitioner=tf.fixed_size_partitioner(2))
    tf.train.init_from_checkpoint(path, {"old/w": "new/w", "old/b": b, "old/p": p})
    tf.train.init_from_checkpoint(path, {"old/p": list(q)})
    assert begun(w, b, p, q) == [W.tolist(), B.tolist(), P.tolist(), P.tolist()]
    assert w.initial_value.op.name == "new/w/checkpoint_initializer"


@pytest.mark.parametrize("names", [{"old/": "new/"}, {"/": "/"}])
def test_by_scope(path, tmp_path, names):
    with tf.variable_scope("new" if "old/" in names else "old"):
        w = tf.get_variable("w", [2, 2])
        p = tf.get_variable("p", [5], tf.float64, partitioner=tf.fixed_size_partitioner(2))
    other = tf.Variable([1.0], name="new/other")  # made by hand: no scope finds it
    tf.contrib.framework.init_from_checkpoint(str(tmp_path), names)
    assert begun(w, p, other) == [W.tolist(), P.tolist(), [1.0]]


def test_root_to_scope(path):
    with tf.variable_scope("around/old"):
        b = tf.get_variable("b", [2])
    tf.train.init_from_checkpoint(path, {"/": "around/"})
    assert begun(b) == [B.tolist()]


@pytest.mark.parametrize(
    ("error", "words", "names"),
    [
        (NotFoundError, "no variable 'old/x'", {"old/x": "w"}),
        (NotFoundError, "graph has no variable 'v'", {"old/w": "v"}),
        (NotFoundError, "graph has no variable 'scope'", {"old/": "scope"}),
        (NotFoundError, "no variable 'old/v'", {"old/": "s/"}),
        (ShapeError, "w:0 has another shape", {"old/b": "w"}),
        (InvalidArgumentError, "goes to variables", {"old/b": 3}),
    ],
)
def test_what_does_not_fit(path, error, words, names):
    tf.get_variable("w", [2, 2])
    tf.get_variable("s/v", [2, 2])
    with pytest.raises(error, match=words):
        tf.train.init_from_checkpoint(path, names)


def test_another_dtype(path):
    tf.get_variable("old/b", [2], tf.float64)
    with pytest.raises(DTypeError, match="old/b:0 has another dtype"):
        tf.train.init_from_checkpoint(path, {"/": "/"})
