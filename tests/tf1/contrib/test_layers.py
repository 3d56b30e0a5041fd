"""tf.contrib.layers and slim: names, scopes and collections as TensorFlow 1.15's contrib prints them, and what they compute."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import (
    ArgumentTypeError,
    DTypeError,
    InvalidArgumentError,
    NotFoundError,
    ShapeError,
    UnimplementedError,
)

L, slim = tf.contrib.layers, tf.contrib.slim


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def names(variables):
    return [v.op.name for v in variables]


def run(tensors, feed=None):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(tensors, feed)


def test_fully_connected():
    x = tf.constant(np.arange(12.0).reshape(4, 3), tf.float32)
    y = L.fully_connected(x, 5, weights_regularizer=L.l2_regularizer(0.5), outputs_collections="outs")
    L.fully_connected(x, 2, activation_fn=None, scope="out", biases_initializer=None, variables_collections=["kept"])
    L.fully_connected(x, 2, scope="out", reuse=True, biases_initializer=None)
    assert y.op.name == "fully_connected/Relu"
    assert names(tf.global_variables()) == ["fully_connected/weights", "fully_connected/biases", "out/weights"]
    assert tf.model_variables() == tf.global_variables() == tf.trainable_variables()
    assert names(tf.get_collection("kept")) == ["out/weights"]
    assert slim.utils.convert_collection_to_dict("outs") == {"fully_connected": y}
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert [t.op.name for t in losses] == ["fully_connected/kernel/Regularizer/l2_regularizer"]
    out, w, loss = run([y, tf.global_variables()[0], losses[0]])
    np.testing.assert_allclose(
        out, np.maximum(np.arange(12.0).reshape(4, 3) @ w, 0), rtol=1e-5, atol=1e-6
    )  # terms near 10 may cancel
    np.testing.assert_allclose(loss, 0.25 * (w**2).sum(), rtol=1e-5)


def test_linear_and_relu_are_fully_connected():
    x = tf.ones([2, 3])
    assert L.linear(x, 2).op.name == "fully_connected/BiasAdd" and L.relu(x, 2).op.name == "fully_connected_1/Relu"
    assert L.relu6(x, 2).op.name == "fully_connected_2/Relu6"


CONVS = {
    "conv1d": ((8, 3), "Conv", ["weights [3, 3, 4]", "biases [4]"], (2, 8, 4)),
    "conv2d": ((8, 6, 3), "Conv", ["weights [3, 3, 3, 4]", "biases [4]"], (2, 8, 6, 4)),
    "conv3d": ((4, 4, 4, 3), "Conv", ["weights [3, 3, 3, 3, 4]", "biases [4]"], (2, 4, 4, 4, 4)),
    "conv2d_transpose": ((4, 4, 3), "Conv2d_transpose", ["weights [3, 3, 4, 3]", "biases [4]"], (2, 4, 4, 4)),
    "conv3d_transpose": ((4, 4, 4, 3), "Conv3d_transpose", ["weights [3, 3, 3, 4, 3]", "biases [4]"], (2, 4, 4, 4, 4)),
    "separable_conv2d": (
        (8, 6, 3),
        "SeparableConv2d",
        ["depthwise_weights [3, 3, 3, 1]", "pointwise_weights [1, 1, 3, 4]", "biases [4]"],
        (2, 8, 6, 4),
    ),
}


@pytest.mark.parametrize("kind", CONVS)
def test_convolutions(kind):
    shape, scope, variables, out = CONVS[kind]
    y = getattr(L, kind)(tf.ones([2, *shape]), 4, 3)
    assert [f"{v.op.name} {v.shape.as_list()}" for v in tf.model_variables()] == [f"{scope}/{v}" for v in variables]
    assert y.op.name == f"{scope}/Relu" and tuple(y.shape.as_list()) == out and run(y).min() >= 0


def test_convolutions_of_one_filter_and_formats():
    x = tf.ones([2, 8, 6, 3])
    deep = L.separable_conv2d(x, None, 3, depth_multiplier=2, stride=2, activation_fn=None)
    first = L.conv2d(tf.transpose(x, [0, 3, 1, 2]), 4, [3, 2], stride=2, data_format="NCHW", padding="VALID", scope="c")
    last = L.conv2d(x, 4, [3, 2], stride=2, padding="VALID", scope="c", reuse=True)
    assert L.conv2d(x, 4, 3, rate=2, padding="VALID", scope="wide").shape.as_list() == [2, 4, 2, 4]
    assert deep.shape.as_list() == [2, 4, 3, 6] and names(tf.model_variables())[:2] == [
        "SeparableConv2d/depthwise_weights",
        "SeparableConv2d/biases",
    ]
    a, b = run([first, last])
    np.testing.assert_allclose(np.moveaxis(a, 1, -1), b, rtol=1e-5)


def test_one_filter_for_each_channel():
    """Each channel by itself gives what ``tf.nn.conv2d`` gives of it alone."""
    x = tf.constant(np.random.default_rng(0).normal(size=(2, 5, 6, 3)), tf.float32)
    with slim.arg_scope([slim.conv2d_in_plane], stride=2, variables_collections={"weights": ["mine"]}):
        y = slim.conv2d_in_plane(x, [3, 2], activation_fn=None, biases_initializer=tf.constant_initializer(0.5))
    weights, biases = tf.model_variables()
    assert [f"{v.op.name} {v.shape.as_list()}" for v in (weights, biases)] == [
        "ConvInPlane/weights [3, 2, 1, 1]",
        "ConvInPlane/biases [3]",
    ]
    assert tf.get_collection("mine") == [weights]
    alone = [tf.nn.conv2d(x[..., i : i + 1], weights, [1, 2, 2, 1], "SAME") + 0.5 for i in range(3)]
    got, want = run([y, tf.concat(alone, -1)])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert L.utils.get_variable_collections({"weights": "a"}, "weights") == ["a"]


def test_pools_and_what_has_no_variables():
    x = tf.constant(np.arange(32.0).reshape(1, 4, 4, 2), tf.float32)
    made = [L.max_pool2d(x, 2), L.avg_pool2d(x, [2, 2], stride=1, padding="SAME"), L.flatten(x), slim.softmax(x)]
    assert [t.op.name.partition("/")[0] for t in made] == ["MaxPool2D", "AvgPool2D", "Flatten", "softmax"]
    assert [t.shape.as_list() for t in made[:3]] == [[1, 2, 2, 2], [1, 4, 4, 2], [1, 32]]
    assert L.max_pool3d(x[:, :, :, :, None], 2).shape.as_list() == [1, 2, 2, 1, 1]
    np.testing.assert_allclose(np.linalg.norm(run(L.unit_norm(x + 1.0, 3)), axis=-1), 1, rtol=1e-5)
    kept = run(L.dropout(tf.ones([50, 20]), 0.8, seed=1))
    assert (
        set(np.unique(kept)) == {0.0, np.float32(1.25)} and (run(L.dropout(x, 0.5, is_training=False)) == run(x)).all()
    )
    assert run(L.one_hot_encoding([2, 0], 3)).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_batch_norm():
    x = tf.constant(np.random.default_rng(0).normal(size=(6, 3)), tf.float32)
    y = L.batch_norm(x, scale=True, decay=0.5, param_initializers={"beta": tf.ones_initializer()})
    assert names(tf.model_variables()) == [
        f"BatchNorm/{n}" for n in ("gamma", "beta", "moving_mean", "moving_variance")
    ]
    assert names(tf.trainable_variables()) == ["BatchNorm/gamma", "BatchNorm/beta"]
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2
    np.testing.assert_allclose(run(y).mean(0), 1, atol=1e-5)
    own = L.batch_norm(x, updates_collections="mine", scope="own")
    assert len(tf.get_collection("mine")) == 2 and len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2
    at_once = L.batch_norm(x, updates_collections=None, decay=0.0, scope="now", is_training=tf.constant(True))
    mean = slim.get_unique_variable("now/moving_mean")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run([own, at_once])
        np.testing.assert_allclose(sess.run(mean), sess.run(x).mean(0), atol=1e-6)


def test_layer_norm():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    y = L.layer_norm(x, activation_fn=tf.nn.relu)
    assert names(tf.model_variables()) == ["LayerNorm/beta", "LayerNorm/gamma"]
    flat = x.reshape(2, -1)
    expected = (flat - flat.mean(1, keepdims=True)) / flat.std(1, keepdims=True)
    np.testing.assert_allclose(run(y), np.maximum(expected, 0).reshape(x.shape), atol=1e-5)
    assert L.layer_norm(x, begin_norm_axis=-1, center=False, scale=False).shape.as_list() == [2, 3, 4]


def test_stacks_and_repeats():
    x = tf.ones([2, 8, 8, 3])
    y = slim.repeat(x, 2, slim.conv2d, 4, [3, 3], scope="conv1")
    z = slim.stack(slim.flatten(y), slim.fully_connected, [5, (6, tf.nn.elu)])
    slim.repeat(z, 2, slim.fully_connected, 6)
    assert (y.op.name, z.op.name) == ("conv1/conv1_2/Relu", "Stack/fully_connected_2/Elu")
    assert names(tf.model_variables())[-1] == "Repeat/fully_connected_2/biases"


def test_sequences_are_embedded():
    rows = [L.embed_sequence([[1, 2], [2, 0]], 4, 3, unique=u, scope="e", reuse=u) for u in (False, True)]
    assert names(tf.model_variables()) == ["e/embeddings"] and rows[1].shape.as_list() == [2, 2, 3]
    a, b, table = run([*rows, tf.model_variables()[0]])
    assert (a == b).all() and (a == table[[[1, 2], [2, 0]]]).all()


def test_initializers():
    even = run(L.xavier_initializer(seed=1)([50, 70]))
    assert abs(even).max() <= np.sqrt(6 / 120) and even.std() > 0.1
    wide = run(L.variance_scaling_initializer(seed=1)([3, 3, 20, 60]))
    assert abs(wide.std() / np.sqrt(2 / 180) - 1) < 0.05
    assert slim.xavier_initializer_conv2d is L.xavier_initializer
    with pytest.raises(InvalidArgumentError, match="FAN_AVG"):
        L.variance_scaling_initializer(mode="fan_in")
    with pytest.raises(DTypeError):
        L.xavier_initializer(dtype=tf.int32)


def test_regularizers():
    w = tf.constant([[1.0, -2.0], [3.0, 0.0]])
    made = [L.l1_regularizer(0.5)(w), L.l2_regularizer(0.5)(w), L.l1_l2_regularizer(0.5, 0.5)(w)]
    both = L.sum_regularizer([L.l1_regularizer(1.0), None])
    assert [t.op.name for t in made] == ["l1_regularizer", "l2_regularizer", "l1_l2_regularizer"]
    assert run([*made, both(w)]) == [3.0, 3.5, 6.5, 6.0]
    assert L.l2_regularizer(0.0)(w) is None and L.sum_regularizer([None]) is None
    total = L.apply_regularization(L.l2_regularizer(2.0), [w, w])
    assert total.op.name == "get_regularization_penalty" and run(total) == 28.0
    assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == [total]
    for wrong in (lambda: L.l2_regularizer(1), lambda: L.l1_regularizer(-0.5), lambda: L.apply_regularization(both)):
        with pytest.raises(InvalidArgumentError):
            wrong()


def test_optimize_loss():
    v = tf.Variable([3.0, 4.0], name="v")
    step = tf.train.get_or_create_global_step()
    seen = tf.Variable(0, trainable=False)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(seen, 1).op)
    train = L.optimize_loss(
        tf.reduce_sum(tf.square(v)) / 2, None, 0.5, "SGD", clip_gradients=1.0, gradient_multipliers={"v": 2.0},
        learning_rate_decay_fn=lambda rate, step: rate / (1.0 + tf.cast(step, tf.float32)),
    )  # fmt: skip
    assert "OptimizeLoss/learning_rate" in names(tf.global_variables())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(train) == 12.5
        np.testing.assert_allclose(sess.run(v), [2.7, 3.6], rtol=1e-5)  # by the rate 0.5, of a gradient of norm 1
        assert sess.run([step, seen]) == [1, 1]
    other = L.optimize_loss(
        tf.reduce_sum(v), step, None, lambda: tf.train.MomentumOptimizer(1.0, 0.9), name="o", gradient_noise_scale=0.1,
        increment_global_step=False, variables=[v], update_ops=[],
    )  # fmt: skip
    assert other.shape.as_list() == []
    for wrong, words in (
        (dict(optimizer="Adm", learning_rate=0.1), "did you mean 'Adam'"),
        (dict(optimizer="Adam", learning_rate=None), "needs a learning rate"),
        (dict(optimizer="Adam", learning_rate=-1.0), "negative"),
        (dict(optimizer=3, learning_rate=0.1), "optimizer is none"),
    ):
        with pytest.raises(InvalidArgumentError, match=words):
            L.optimize_loss(tf.reduce_sum(v), step, **wrong, update_ops=[])


def tags():
    return [t.op.name for t in tf.get_collection(tf.GraphKeys.SUMMARIES)]


def test_summaries_of_a_step():
    v = tf.Variable([3.0, 4.0], name="v")
    loss = tf.reduce_sum(v)
    L.optimize_loss(loss, None, 0.5, "SGD")
    expected = ["learning_rate_1", "global_norm/gradient_norm", "loss"]  # the variable has the name itself
    assert tags() == [f"OptimizeLoss/{t}" for t in expected]
    L.optimize_loss(loss, None, 0.5, "SGD", clip_gradients=1.0, summaries=L.OPTIMIZER_SUMMARIES, name="o")
    more = ["gradients/v_0", "gradient_norm/v_0", "global_norm/clipped_gradient_norm"]
    assert tags()[3:] == [f"o/{t}" for t in [*expected, *more]]
    L.optimize_loss(loss, None, 0.5, "SGD", summaries=[], name="none")
    assert len(tags()) == 9 and all(run(tf.get_collection(tf.GraphKeys.SUMMARIES)))
    with pytest.raises(InvalidArgumentError, match="there is no summary 'los'"):
        L.optimize_loss(loss, None, 0.5, "SGD", summaries=["los"])


def test_summaries_of_collections():
    x = tf.constant([[-1.0, 2.0, 8.0, -3.0]], name="x")
    y = L.fully_connected(x, 3, scope="a", outputs_collections=tf.GraphKeys.ACTIVATIONS)
    six = tf.nn.relu6(x, name="six")
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, six)
    assert len(L.summarize_variables("a/w")) == 1 and L.summarize_tensor(tf.constant("s")) is None
    L.summarize_activations()
    L.summarize_tensor(tf.constant(1.0, name="one"))
    found = [
        "a/weights_summary",
        "a/Relu/zeros",
        "a/Relu/activation",
        "six/zeros",
        "six/sixes",
        "six/activation",
        "one_summary",
    ]
    assert tags() == found and y.op.name == "a/Relu"
    zeros, sixes = (tf.get_default_graph().get_tensor_by_name(f"six/{n}:0") for n in ("zeros", "sixes"))
    parts = [tf.Summary.FromString(s).value[0].simple_value for s in run([zeros, sixes])]
    assert parts == [0.5, 0.25]


def test_losses_of_slim_take_predictions_first():
    p, t = np.array([[0.2, 0.8], [0.6, 0.4]], np.float32), np.array([[0.0, 1.0], [1.0, 0.0]], np.float32)
    pairs = [
        (slim.losses.softmax_cross_entropy(p, t), tf.losses.softmax_cross_entropy(t, p, loss_collection=None)),
        (
            slim.losses.sparse_softmax_cross_entropy(p, [1, 0]),
            tf.losses.sparse_softmax_cross_entropy([1, 0], p, loss_collection=None),
        ),
        (slim.losses.sigmoid_cross_entropy(p, t), tf.losses.sigmoid_cross_entropy(t, p, loss_collection=None)),
        (slim.losses.log_loss(p, t), tf.losses.log_loss(t, p, loss_collection=None)),
        (slim.losses.mean_squared_error(p, t), tf.losses.mean_squared_error(t, p, loss_collection=None)),
        (slim.losses.absolute_difference(p, t), tf.losses.absolute_difference(t, p, loss_collection=None)),
        (slim.losses.cosine_distance(p, t, 1), tf.losses.cosine_distance(t, p, 1, loss_collection=None)),
    ]
    for a, b in run(pairs):
        assert a == b
    assert slim.losses.get_losses() == [a for a, _ in pairs] and slim.losses.hinge_loss(p, t).shape.as_list() == [2, 2]
    assert run(slim.losses.get_total_loss()) > 0


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: L.fully_connected(tf.ones([2, 3]), 2.5), ArgumentTypeError, "an integer"),
        (lambda: L.conv2d(tf.ones([2, 3, 3]), 4, 3), InvalidArgumentError, "expected rank 4"),
        (lambda: L.convolution(tf.ones([2, 3]), 4, 3), InvalidArgumentError, "3, 4 or 5"),
        (lambda: L.conv2d(tf.ones([2, 3, 3, 1]), 4, 3, data_format="HWC"), InvalidArgumentError, "no such data_format"),
        (lambda: L.batch_norm(tf.ones([2, 3]), batch_weights=1.0), UnimplementedError, "batch_weights"),
        (lambda: L.batch_norm(tf.ones([2, 3]), renorm=True), UnimplementedError, "renorm"),
        (lambda: L.layer_norm(tf.placeholder(tf.float32)), ShapeError, "the rank"),
        (lambda: L.layer_norm(tf.ones([2, 3]), begin_norm_axis=2), InvalidArgumentError, "beyond the rank"),
        (lambda: L.embed_sequence([1, 2], 3), InvalidArgumentError, "embed_dim"),
        (lambda: L.stack(tf.ones([2, 3]), L.relu, 3), ArgumentTypeError, "stack_args"),
        (lambda: L.fully_connected(tf.ones([2, 3]), 2, scope="s", reuse=True), NotFoundError, "s/weights"),
    ],
)
def test_what_they_refuse(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
