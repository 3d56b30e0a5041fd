"""Layers of convolutions and pools: names, shapes, formats, and what they refuse. Values are held to TensorFlow's by the oracle."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import ArgumentTypeError, InvalidArgumentError, ShapeError

L = tf.layers
ROW, IMAGE, CUBE = (2, 9, 3), (2, 7, 6, 3), (1, 5, 4, 5, 2)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


#: Class -> arguments, shape of inputs, variables.
CONVS = {
    "Conv1D": ((4, 3, 2, "same"), ROW, ["kernel [3, 3, 4]", "bias [4]"]),
    "Conv2D": ((4, (3, 2), 1, "valid"), IMAGE, ["kernel [3, 2, 3, 4]", "bias [4]"]),
    "Conv3D": ((4, 2, (1, 2, 1), "SAME"), CUBE, ["kernel [2, 2, 2, 2, 4]", "bias [4]"]),
    "Conv2DTranspose": ((4, 3, (2, 1), "valid"), IMAGE, ["kernel [3, 3, 4, 3]", "bias [4]"]),
    "Conv3DTranspose": ((4, 3, 2, "same"), CUBE, ["kernel [3, 3, 3, 4, 2]", "bias [4]"]),
    "SeparableConv1D": ((4, 3), ROW, ["depthwise_kernel [3, 3, 1]", "pointwise_kernel [1, 3, 4]", "bias [4]"]),
    "SeparableConv2D": (
        (4, 2, 2),
        IMAGE,
        ["depthwise_kernel [2, 2, 3, 1]", "pointwise_kernel [1, 1, 3, 4]", "bias [4]"],
    ),
    "MaxPooling1D": ((2, 2), ROW, []),
    "MaxPooling2D": (((2, 3), (2, 3), "same"), IMAGE, []),
    "MaxPooling3D": ((2, 1), CUBE, []),
    "AveragePooling1D": ((3, 1, "same"), ROW, []),
    "AveragePooling2D": ((2, (1, 2)), IMAGE, []),
    "AveragePooling3D": ((2, 2), CUBE, []),
}
SNAKE = {"Conv2DTranspose": "conv2d_transpose", "SeparableConv1D": "separable_conv1d", "MaxPooling3D": "max_pooling3d"}


@pytest.mark.parametrize("kind", CONVS)
def test_names_shapes_and_both_formats(kind):
    arguments, shape, variables = CONVS[kind]
    rank = len(shape)
    last = tf.placeholder(tf.float32, [None, *shape[1:]])
    first = tf.placeholder(tf.float32, [None, shape[-1], *shape[1:-1]])
    bias = {"bias_initializer": tf.random_normal_initializer()} if variables else {}
    layer = getattr(L, kind)(*arguments, **bias, **({"name": "it", "_scope": "it"} if variables else {}))
    out = layer(last)
    own = [f"{v.op.name.partition('/')[2]} {v.shape.as_list()}" for v in layer.weights]
    assert own == variables and layer.compute_output_shape(last.shape).as_list() == out.shape.as_list()
    turned = getattr(L, kind)(
        *arguments,
        data_format="channels_first",
        **({"name": "it", "_scope": "it", "_reuse": True} if variables else {}),
    )
    moved = turned(first)
    assert turned.compute_output_shape(first.shape).as_list() == moved.shape.as_list()
    given = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        a, b = sess.run([out, moved], {last: given, first: np.moveaxis(given, -1, 1)})
    assert list(a.shape[1:]) == out.shape.as_list()[1:] and a.ndim == rank
    np.testing.assert_allclose(np.moveaxis(b, 1, -1), a, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", SNAKE)
def test_functions_are_layers_named_after_their_class(kind):
    arguments, shape, _ = CONVS[kind]
    x = tf.zeros(shape)
    names = [getattr(L, SNAKE[kind])(x, *arguments).op.name.partition("/")[0] for _ in range(2)]
    assert names == [SNAKE[kind], SNAKE[kind] + "_1"]


def test_sizes_that_only_the_step_knows():
    x = tf.placeholder(tf.float32, [None, None, None, 3])
    y = L.conv2d_transpose(L.conv2d(x, 4, 3, padding="same"), 2, 4, (2, 3))
    assert y.shape.as_list() == [None, None, None, 2]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(y, {x: np.ones((2, 5, 4, 3))}).shape == (2, 12, 13, 2)


def test_causal_outputs_do_not_see_what_comes_after():
    x = tf.placeholder(tf.float32, [1, 6, 2])
    made = [
        L.conv1d(x, 3, 2, padding="causal", dilation_rate=2),
        L.separable_conv1d(x, 3, 2, padding="causal", dilation_rate=2),
    ]
    given = np.random.default_rng(0).normal(size=(1, 6, 2)).astype(np.float32)
    later = given.copy()
    later[:, 3:] += 1
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for a, b in zip(sess.run(made, {x: given}), sess.run(made, {x: later}), strict=True):
            assert a.shape == (1, 6, 3) and (a[:, :3] == b[:, :3]).all() and (a[:, 3:] != b[:, 3:]).all()


def test_losses_and_constraints_of_separable_kernels():
    layer = L.SeparableConv2D(
        2, 2, depthwise_regularizer=tf.nn.l2_loss, pointwise_constraint=tf.abs, pointwise_initializer="ones", name="s"
    )
    layer(tf.zeros(IMAGE))
    assert [t.op.name for t in layer.losses] == ["s/depthwise_kernel/Regularizer/L2Loss"]
    assert layer.pointwise_kernel.constraint is tf.abs and layer.depthwise_kernel.constraint is None


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: L.conv2d(tf.zeros(IMAGE), 4, 3, padding="full"), InvalidArgumentError, "valid or same, got 'full'"),
        (lambda: L.conv2d(tf.zeros(IMAGE), 4, 3, padding="causal"), InvalidArgumentError, "no such padding"),
        (lambda: L.conv2d(tf.zeros(IMAGE), 4, (3,)), InvalidArgumentError, "kernel_size must be one integer, or 2"),
        (lambda: L.conv2d(tf.zeros(IMAGE), 4, 3, strides=0), InvalidArgumentError, "strides"),
        (lambda: L.conv2d(tf.zeros(IMAGE), 0, 3), InvalidArgumentError, "filters"),
        (lambda: L.conv2d(tf.zeros(IMAGE), 4, 3, data_format="NHWC"), InvalidArgumentError, "channels_last"),
        (lambda: L.conv2d(tf.zeros(ROW), 4, 3), ShapeError, "expected rank 4"),
        (lambda: L.conv2d(tf.placeholder(tf.float32, [1, 8, 8, None]), 4, 3), ShapeError, "must know the channels"),
        (lambda: L.Conv2DTranspose(4, 3, dilation_rate=2), ArgumentTypeError, "no dilation_rate"),
        (lambda: L.max_pooling2d(tf.zeros(IMAGE), 2, 2, "causal"), InvalidArgumentError, "no such padding"),
    ],
)
def test_what_they_refuse(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
