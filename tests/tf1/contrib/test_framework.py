"""tf.contrib.framework: arg_scope, variables and how they are found again; the namespace itself."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError, ShapeError
from graphdock_tensorflow.catalogue import entry

F = tf.contrib.framework


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@F.add_arg_scope
def one(a, b=1, c=2):
    """One."""
    return a, b, c


@F.add_arg_scope
def other(a, b=1):
    return a, b


def test_scopes_set_defaults_of_calls_within():
    assert one.__name__ == "one" and one.__doc__ == "One." and F.arg_scoped_arguments(one) == ("b", "c")
    with F.arg_scope([one, other], b=10):
        assert (one(0), one(0, b=5), other(0)) == ((0, 10, 2), (0, 5, 2), (0, 10))
        with F.arg_scope([one], c=20) as inner:
            assert one(0) == (0, 10, 20) and other(0) == (0, 10)
        assert one(0) == (0, 10, 2)
    assert one(0) == (0, 1, 2)
    with F.arg_scope(inner):
        assert one(0) == (0, 10, 20)
        with pytest.raises(ZeroDivisionError), F.arg_scope([one], c=30):
            raise ZeroDivisionError
        assert one(0) == (0, 10, 20)
    assert F.current_arg_scope() == {}


def test_a_scope_of_layers_reaches_what_calls_them():
    slim = tf.contrib.slim
    with (
        slim.arg_scope([slim.conv2d], padding="VALID", activation_fn=tf.nn.elu),
        slim.arg_scope([slim.convolution], stride=2),
    ):
        y = slim.conv2d(tf.ones([1, 8, 8, 1]), 2, 3)
    assert y.shape.as_list() == [1, 6, 6, 2] and y.op.name == "Conv/Elu"
    assert "padding" in slim.arg_scoped_arguments(slim.conv2d)


def test_scopes_that_are_wrong():
    for wrong, error, words in (
        (lambda: F.arg_scope([len], a=1), InvalidArgumentError, "len is not decorated"),
        (lambda: F.arg_scope(one, b=1), ArgumentTypeError, "a list of functions"),
        (lambda: F.arg_scope({}, b=1), InvalidArgumentError, "takes no arguments"),
        (lambda: F.arg_scope([one], d=1), TypeError, "'d'"),
    ):
        with pytest.raises(error, match=words), wrong():
            one(0)
    assert not F.has_arg_scope(len) and F.has_arg_scope(one)


def test_variables_and_how_they_are_found():
    with tf.variable_scope("a"):
        w = F.model_variable("weights", [2, 3], initializer=tf.ones_initializer(), regularizer=tf.nn.l2_loss)
        with tf.variable_scope("b"):
            b = F.variable("weights", [2], trainable=False, collections=["kept"])
    n = F.local_variable(0, name="n")
    g = F.global_variable(1.0, name="g")
    F.add_model_variable(g)
    F.add_model_variable(g)
    assert tf.model_variables() == [w, g] and tf.local_variables() == [n] and tf.get_collection("kept") == [b]
    assert F.get_variables() == [w, g] and F.get_variables("a") == [w] == F.get_trainable_variables()
    assert (
        F.get_variables_by_suffix("weights") == [w] == F.get_variables_by_name("weights") == F.get_model_variables("a/")
    )
    assert F.get_variables_to_restore(exclude=["g"]) == [w] and F.get_variables_to_restore(["g"]) == [g]
    assert F.get_local_variables() == [n] and F.get_unique_variable("a/weights") is w
    assert F.filter_variables([w, g], ["weig"]) == [w] == F.filter_variables([w, g], exclude_patterns=["^g$"])
    assert F.get_variable_full_name(w) == "a/weights"
    with pytest.raises(NotFoundError, match="did you mean 'a/weights'"):
        F.get_unique_variable("a/weight")
    step = F.get_or_create_global_step()
    assert F.assert_or_get_global_step() is step is F.assert_or_get_global_step(global_step_tensor=step)


def test_values_from_elsewhere(tmp_path):
    with tf.variable_scope("a"):
        w, v = (F.model_variable(n, [2], initializer=tf.zeros_initializer()) for n in "wv")
    saver = tf.train.Saver([w])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        F.assign_from_values_fn({"a/w": np.array([1.0, 2.0])})(sess)
        path = saver.save(sess, str(tmp_path / "c"))
        sess.run(tf.global_variables_initializer())
        F.assign_from_checkpoint_fn(path, [w, v], ignore_missing_vars=True)(sess)
        assert sess.run(w).tolist() == [1, 2]
        op, feed = F.assign_from_checkpoint(path, {"a/w": v})
        sess.run(op, feed)
        assert sess.run(v).tolist() == [1, 2]
    assert F.assign_from_checkpoint_fn(path, [v], ignore_missing_vars=True) is None
    with pytest.raises(NotFoundError, match="has no 'a/v'"):
        F.assign_from_checkpoint(path, [v])
    with pytest.raises(ShapeError, match="a value for a/w"):
        F.assign_from_values({"a/w": np.ones(3)})


def test_a_name_of_contrib_that_is_not_here():
    with pytest.raises(AttributeError, match="has no attribute 'convv2d'; did you mean 'conv2d'"):
        _ = tf.contrib.layers.convv2d
    with pytest.raises(AttributeError, match="of contrib only what people use is here"):
        _ = tf.contrib.boosted_trees
    with pytest.raises(AttributeError, match=r"dir\(tf.contrib.slim\) lists what there is"):
        _ = tf.contrib.slim.evaluation
    assert entry("contrib.slim.conv2d").status == "here" == entry("contrib.layers").status
    assert entry("contrib.learn.DNNClassifier").status == "refused"


def test_namespaces_are_modules():
    import graphdock.contrib.slim as slim
    from graphdock.contrib import layers
    from graphdock.contrib.framework import arg_scope

    assert slim is tf.contrib.slim and layers is tf.contrib.layers and arg_scope is F.arg_scope
    with pytest.raises(ModuleNotFoundError, match="graphdock.contrib.boosted_trees"):
        import graphdock.contrib.boosted_trees  # noqa: F401
