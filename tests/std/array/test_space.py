"""Pixels between space, channels and batch, and windows of images, against TensorFlow 1's values and NumPy's."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


def test_depth_to_space_as_in_tensorflows_documentation() -> None:
    x = [[[[1, 2, 3, 4]]]]
    assert run(tf.depth_to_space(x, 2)).tolist() == [[[[1], [2]], [[3], [4]]]]
    assert run(tf.depth_to_space([[[[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]]]], 2)).tolist() == [
        [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]
    ]
    assert run(tf.space_to_depth([[[[1], [2]], [[3], [4]]]], block_size=2)).tolist() == x


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_depth_to_space_and_back(data_format: Any) -> None:
    x = np.arange(2 * 18 * 3 * 2).reshape(2, 3, 2, 18)
    if data_format == "NCHW":
        x = x.transpose(0, 3, 1, 2)
    there = tf.nn.depth_to_space(tf.constant(x), 3, data_format=data_format)
    assert there.shape.as_list() == ([2, 9, 6, 2] if data_format == "NHWC" else [2, 2, 9, 6])
    assert np.array_equal(run(tf.nn.space_to_depth(there, 3, None, data_format)), x)


def test_space_to_batch_as_in_tensorflows_documentation() -> None:
    x = tf.constant(np.arange(1, 17).reshape(1, 4, 4, 1))
    made = run(tf.space_to_batch(x, [[0, 0], [0, 0]], 2))
    assert made[..., 0].tolist() == [[[1, 3], [9, 11]], [[2, 4], [10, 12]], [[5, 7], [13, 15]], [[6, 8], [14, 16]]]
    assert np.array_equal(
        run(tf.batch_to_space(made, [[0, 0], [0, 0]], block_size=2))[..., 0], np.arange(1, 17).reshape(1, 4, 4)
    )
    narrow = tf.space_to_batch_nd(tf.reshape(x, [2, 2, 4, 1]), [2, 2], [[0, 0], [2, 0]])
    got = run(narrow)[..., 0].tolist()
    assert got[0] == [[0, 1, 3]] and got[1] == [[0, 9, 11]] and narrow.shape.as_list() == [8, 1, 3, 1]
    with pytest.raises(ValueError, match="two names"):
        tf.nn.space_to_batch(x, [[0, 0], [0, 0]], 2, block_shape=2)


def test_blocks_that_only_a_step_knows() -> None:
    x = tf.placeholder(tf.float32)
    block, margins = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.int64, [2, 2])
    there = tf.space_to_batch_nd(x, block, margins)
    back = tf.batch_to_space_nd(there, block, margins)
    value = np.random.default_rng(0).standard_normal((2, 5, 4, 3))
    feeds = {x: value, block: [3, 2], margins: [[0, 1], [2, 0]]}
    got, again = run([there, back], feeds)
    assert got.shape == (12, 2, 3, 3)
    np.testing.assert_array_equal(again, value.astype(np.float32))
    for wrong in ([0, 2], [5, 2]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(there, {**feeds, block: wrong})


def test_what_margins_a_block_needs() -> None:
    paddings, crops = tf.required_space_to_batch_paddings([5, 6, 7], [2, 3, 4], [[0, 0], [1, 0], [2, 3]])
    got = run([paddings, crops])
    assert [v.tolist() for v in got] == [[[0, 1], [1, 2], [2, 3]], [[0, 1], [0, 2], [0, 0]]]
    size = tf.placeholder(tf.int32, [1])
    paddings, crops = tf.required_space_to_batch_paddings(size, [4])
    assert paddings.shape.as_list() == [1, 2]
    assert [v.tolist() for v in run([paddings, crops], {size: [9]})] == [[[0, 3]], [[0, 3]]]


def test_patches_are_tensorflows() -> None:
    x = tf.constant(np.arange(1, 101).reshape(1, 10, 10, 1))
    got = run(tf.extract_image_patches(x, [1, 3, 3, 1], [1, 5, 5, 1], [1, 1, 1, 1], "VALID"))
    assert got[0, :, :, 0].tolist() == [[1, 6], [51, 56]] and got[0, 1, 0].tolist() == [
        51,
        52,
        53,
        61,
        62,
        63,
        71,
        72,
        73,
    ]
    got = run(
        tf.image.extract_image_patches(x, sizes=[1, 3, 3, 1], strides=[1, 5, 5, 1], rates=[1, 2, 2, 1], padding="VALID")
    )
    assert got[0, 0, 1].tolist() == [6, 8, 10, 26, 28, 30, 46, 48, 50]
    got = run(tf.image.extract_patches(x, [1, 3, 3, 1], [1, 5, 5, 1], [1, 1, 1, 1], "SAME"))
    assert got[0, 0, 0].tolist() == [1, 2, 3, 11, 12, 13, 21, 22, 23] and got.shape == (1, 2, 2, 9)
    with pytest.raises(ValueError, match="two names"):
        tf.extract_image_patches(x, [1, 3, 3, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME", sizes=[1, 3, 3, 1])


def test_the_gradient_of_patches_counts_windows() -> None:
    x = tf.placeholder(tf.float32, [1, None, None, 1])
    y = tf.extract_image_patches(x, [1, 3, 3, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME")
    (grad,) = tf.gradients(y, x)
    assert grad.shape.as_list() == [1, None, None, 1]
    got = run(grad, {x: np.zeros((1, 4, 3, 1))})
    assert got[0, ..., 0].tolist() == [[4, 6, 4], [6, 9, 6], [6, 9, 6], [4, 6, 4]]


def test_margins_of_every_mode_have_gradients() -> None:
    x = tf.placeholder(tf.float64, [3])
    weights = np.arange(1.0, 8.0)
    slopes = [
        run(tf.gradients(tf.pad(x, [[2, 2]], mode) * weights, x)[0], {x: [1, 2, 3]}).tolist()
        for mode in ("CONSTANT", "REFLECT", "SYMMETRIC")
    ]
    assert slopes == [[3, 4, 5], [10, 12, 6], [5, 12, 11]]
