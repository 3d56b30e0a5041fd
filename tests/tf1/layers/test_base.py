"""Layers of one's own: names, scopes, sharing, collections. The names are those that TensorFlow 1.15's layers print."""

from __future__ import annotations

import copy

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import (
    AlreadyExistsError,
    ArgumentTypeError,
    InvalidArgumentError,
    NotFoundError,
    ShapeError,
    UnimplementedError,
)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


class Mine(tf.layers.Layer):
    """A matrix, and a counter that a step updates."""

    def build(self, input_shape):
        self.w = self.add_variable("w", [int(input_shape[-1]), 2], regularizer=getattr(self, "shrink", None))
        self.u = self.add_weight("u", [2], initializer=tf.zeros_initializer(), trainable=False)
        self.built = True

    def call(self, inputs):
        made = tf.matmul(inputs, self.w)
        self.add_update(tf.assign_add(self.u, tf.reduce_sum(made, 0)))
        self.add_update(tf.assign_add(self.u, [1.0, 1.0]))
        return made + self.u


def inputs():
    return tf.placeholder(tf.float32, [None, 4], name="x")


def names(variables):
    return [v.op.name for v in variables]


def test_variables_and_outputs_stand_below_the_layers_name():
    x, layer = inputs(), Mine(name="mine")
    assert layer(x).op.name == "mine/add" and layer(x).op.name == "mine/add_1"
    assert names(layer.variables) == ["mine/w", "mine/u"] == names(layer.weights)
    assert names(layer.trainable_variables) == ["mine/w"] and names(layer.non_trainable_variables) == ["mine/u"]
    assert names(tf.trainable_variables()) == ["mine/w"]
    assert layer.count_params() == 10 and layer.dtype == tf.float32 and layer.scope_name == "mine"
    assert layer.input_shape.as_list() == [None, 4] and layer.output_shape.as_list() == [None, 2]


def test_layers_without_a_name_are_numbered_by_graph():
    assert [Mine().name, Mine().name] == ["mine_1", "mine_2"]
    with tf.Graph().as_default():
        x = inputs()
        assert Mine().name == "mine_1"
        assert [Mine()(x).op.name for _ in range(2)] == ["mine/add", "mine_1/add"]
        with tf.variable_scope("a"):
            assert [Mine()(x).op.name for _ in range(2)] == ["a/mine/add", "a/mine_1/add"]
        with tf.variable_scope("a", reuse=True):
            assert [Mine()(x).op.name for _ in range(2)] == ["a_1/mine/add", "a_1/mine_1/add"]
        assert len(tf.global_variables()) == 8
        with tf.name_scope("ns"):  # variables keep their scope, operations do not
            assert Mine()(x).op.name == "ns/mine/add"
        assert names(tf.global_variables())[-2:] == ["mine_2/w", "mine_2/u"]


def test_reuse_shares_and_refuses():
    x = inputs()
    first = Mine(name="m", _scope="m")
    first(x)
    for reuse in (True, tf.AUTO_REUSE):
        again = Mine(name="m", _scope="m", _reuse=reuse)
        again(x)
        assert again.w is first.w
    with pytest.raises(AlreadyExistsError):
        Mine(name="m", _scope="m")(x)
    with pytest.raises(NotFoundError, match="did you mean 'm/w'"):
        Mine(name="n", _scope="n", _reuse=True)(x)
    assert names(tf.global_variables()) == ["m/w", "m/u"]


def test_a_scope_is_given_at_the_first_call_or_captured():
    x = inputs()
    layer = Mine()
    layer(x, scope="s")
    assert layer.scope_name == "s"
    with tf.variable_scope("t") as t:
        pass
    with tf.variable_scope("elsewhere"):
        assert Mine(_scope=t)(x).op.name == "t/add" and names(tf.global_variables())[-1] == "t/u"


def test_updates_join_their_collection_once():
    x, layer = inputs(), Mine(name="mine")
    layer(x)
    assert [len(layer.get_updates_for(i)) for i in (x, None, tf.constant(1.0))] == [1, 1, 0]
    layer(x)
    assert len(layer.updates) == 4 and tf.get_collection(tf.GraphKeys.UPDATE_OPS) == layer.updates
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(layer.updates[1::2])
        assert sess.run(layer.u).tolist() == [2.0, 2.0]


def test_losses_join_their_collection_once():
    x = inputs()
    layer = Mine(name="mine", activity_regularizer=tf.reduce_sum)
    layer.shrink = tf.nn.l2_loss
    y = layer(x)
    layer(x)
    assert [t.op.name for t in layer.losses] == [
        "mine/w/Regularizer/L2Loss",
        "mine/ActivityRegularizer/truediv",
        "mine/ActivityRegularizer_1/truediv",
    ]
    assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == layer.losses
    assert layer.get_losses_for(None) == layer.losses[:1] and layer.get_losses_for(x) == layer.losses[1:]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        w, out, losses = sess.run([layer.w, y, layer.losses], {x: np.ones((3, 4))})
        assert np.allclose(losses, [(w**2).sum() / 2, out.sum() / 3, out.sum() / 3])
    shared = Mine(name="mine", _scope="mine", _reuse=True)
    shared.shrink = tf.nn.l2_loss
    shared(x)  # the variable has its loss already
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 3


def test_what_is_not_trainable_is_left_by_optimizers():
    x = inputs()
    frozen = Mine(trainable=False)
    frozen(x)
    assert frozen.trainable_variables == [] and len(frozen.variables) == 2 and frozen.updates == []
    with tf.variable_scope("s", custom_getter=lambda getter, *a, **k: getter(*a, **dict(k, trainable=False))):
        fixed = Mine()
        fixed(x)
    assert fixed.trainable_variables == [] and len(fixed.variables) == 2 and tf.trainable_variables() == []


def test_a_layer_is_built_within_a_loop():
    layer = Mine(name="mine")
    layer.shrink = tf.nn.l2_loss

    def body(i, x):
        return i + 1, tf.concat([tf.matmul(x, _of(layer, x)), x[:, :2]], 1)

    def _of(one, x):
        one(x)
        return one.w

    tf.while_loop(lambda i, x: i < 3, body, [0, tf.ones([2, 4])])
    assert names(tf.global_variables()) == ["mine/w", "mine/u"]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(layer.losses)


def test_a_deep_copy_shares_variables_and_scope():
    x = inputs()
    layer = Mine(name="mine")
    before = copy.deepcopy(layer)
    layer(x)
    after = copy.deepcopy(layer)
    after(x)
    assert after.w is layer.w and not hasattr(before, "w") and after.weights == layer.weights
    after.updates.clear()
    assert len(layer.updates) == 2 and len(after.updates) == 4


def test_a_call_may_take_its_scope_and_a_structure():
    class Add(tf.layers.Layer):
        def build(self, input_shape):
            self.seen = input_shape
            self.w = self.add_weight("w", [1])

        def call(self, inputs, times=1, scope=None):
            assert scope.name == "add" == tf.get_variable_scope().name
            return (inputs["a"] + inputs["b"][0] + self.w) * times

    layer = Add()
    made = layer({"a": np.ones(2, np.float32), "b": (tf.ones([2]),)}, times=2)
    assert made.shape.as_list() == [2] and layer.seen["b"][0].as_list() == [2] and layer.built
    assert tf.layers.Layer()([[1.0, 2.0]]).shape.as_list() == [1, 2]


def test_partitioned_variables_have_a_loss_each():
    class Table(tf.layers.Layer):
        def build(self, input_shape):
            cut = tf.fixed_size_partitioner(2)
            self.w = self.add_weight("w", [4, 2], partitioner=cut, regularizer=tf.nn.l2_loss)

    layer = Table()
    layer(inputs())
    assert names(layer.weights) == ["table/w/part_0", "table/w/part_1"] and len(layer.losses) == 2


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: Mine().count_params(), InvalidArgumentError, "no parameters"),
        (lambda: Mine().scope_name, InvalidArgumentError, "call the layer"),
        (lambda: Mine().input_shape, AttributeError, "never called"),
        (lambda: Mine().compute_output_shape([1]), UnimplementedError, "Mine does not define"),
        (lambda: Mine(trainble=True), TypeError, "trainble"),
        (
            lambda: type("N", (Mine,), {"call": lambda self, x: None})()(inputs()),
            InvalidArgumentError,
            "N.call returned None",
        ),
    ],
)
def test_misuse(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"ndim": 3}, "expected rank 3"),
        ({"min_ndim": 3}, "rank 3 or more"),
        ({"max_ndim": 1}, "rank 1 or less"),
        ({"axes": {-1: 5}}, "5 along axis -1"),
        ({"shape": (None, 7)}, "7"),
        ({"dtype": tf.float64}, "expected float64"),
    ],
)
def test_inputs_are_held_to_the_spec(spec, words):
    layer = Mine(name="mine")
    layer.input_spec = tf.layers.InputSpec(**spec)
    with pytest.raises((ShapeError, ValueError), match=words):
        layer(inputs())
    layer.input_spec = tf.layers.InputSpec(shape=[None, 4], dtype="float32")
    layer(inputs())
    layer.input_spec = [tf.layers.InputSpec(), tf.layers.InputSpec()]
    with pytest.raises(InvalidArgumentError, match="another number of inputs"):
        layer(inputs())


def test_a_spec_is_checked():
    assert repr(tf.layers.InputSpec(ndim=2, axes={0: 3})) == "InputSpec(ndim=2, axes={0: 3})"
    assert tf.layers.InputSpec(shape=[None, 2]).ndim == 2
    with pytest.raises(InvalidArgumentError, match="beyond the rank"):
        tf.layers.InputSpec(ndim=2, axes={2: 3})
    with pytest.raises(ArgumentTypeError, match="axes must be a dict"):
        tf.layers.InputSpec(axes="xy")
