"""Edge cases that walks over every op's samples found: what TensorFlow 2.21 gives where a dim is 0 or 1, or slots do not fit."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import ShapeError


@pytest.mark.parametrize(
    ("align", "row"), [(False, [-1.5, 0.6, 2.2, 3.0, 3.8, 4.4, 5.0]), (True, [-1.5, 0.25, 2, 3, 3.5, 4, 5])]
)
def test_resize_area_of_one_row_repeats_it(align, row):
    image = tf.constant([-1.5, 2.0, 3.0, 4.0, 5.0], shape=[1, 1, 5, 1])
    with tf.Session() as sess:
        got = sess.run(tf.image.resize_area(image, [2, 7], align_corners=align))
    np.testing.assert_allclose(got[0, :, :, 0], [row, row], rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "summarize", "text"),
    [
        ((2, 0), 3, b"[\n ...]"),
        ((2, 0, 2), -1, b"[\n\n ...]"),
        ((0,), 3, b"[]"),
        ((0, 2), 1, b"[]"),
        ((3,), 0, b"[ ...]"),
        ((2, 2), 0, b"[\n ...]"),
        ((3,), 3, b"[0 0 0]"),
    ],
)
def test_format_of_no_elements(shape, summarize, text):
    with tf.Session() as sess:
        assert sess.run(tf.strings.format("{}", tf.zeros(shape, tf.int32), summarize=summarize)) == text


def test_a_label_that_no_path_makes_has_the_softmax_as_slope():
    labels = tf.SparseTensor([[0, 0], [0, 1]], [0, 0], [1, 2])
    logits = tf.constant([[[0.5, 0.75]], [[0.25, -1.0]]])
    loss = tf.nn.ctc_loss(labels, logits, [2])
    with tf.Session() as sess:
        got, slope = sess.run([loss, tf.gradients(loss, logits)[0]])
    softmax = np.exp([[[0.5, 0.75]], [[0.25, -1.0]]])
    assert got == np.inf
    np.testing.assert_allclose(slope, softmax / softmax.sum(2, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("shape", [[0, 3], [2, 3]])
def test_slots_of_other_shapes_are_named(shape):
    var, slot = tf.Variable(tf.zeros([4, 3])), tf.Variable(tf.zeros(shape))
    update = tf.ops.apply_op(
        "ResourceSparseApplyAdagrad", var=var.handle, accum=slot.handle, lr=0.1, grad=tf.ones([1, 3]), indices=[2]
    )
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(ShapeError, match="accum has not the shape of var"):
            sess.run(update)


@pytest.mark.parametrize("policy", ["exact", "generic"])
@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (lambda x: tf.extract_image_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"), [(2, 0, 5, 2)]),
        (lambda x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "VALID"), [(1, 6, 0, 2), (2, 3, 2, 3)]),
        (lambda x, w: tf.nn.dilation2d(x, w, [1, 1, 1, 1], [1, 1, 1, 1], "VALID"), [(1, 6, 0, 2), (2, 2, 2)]),
    ],
    ids=["patches", "conv", "dilation"],
)
def test_a_window_larger_than_the_image_by_strides_is_refused_in_every_plan(policy, make, shapes):
    inputs = [tf.placeholder(tf.float32) for _ in shapes]
    y, feeds = make(*inputs), {x: np.zeros(s) for x, s in zip(inputs, shapes, strict=True)}
    negative = pytest.raises(ShapeError, match="the output size would be negative: a window of [23] elements over 0")
    with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess, negative:
        sess.run(y, feeds)
