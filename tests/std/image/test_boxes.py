"""tf.image's boxes: TensorFlow 1's numbers, gradients against differences, and what random boxes promise."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_testing.numeric import central_differences

from tests.std.image.support import run

SQUARES = (np.arange(12, dtype=np.float32) ** 2).reshape(1, 3, 4, 1)
BOXES = np.array([[0.1, 0.2, 0.9, 0.8], [0.8, 0.9, 0.1, -0.2]], np.float32)
ROWS = np.array(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]],
    np.float32,
)
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("bilinear", [[4.76, 8.1, 13.04, 63.64, 78.5, 94.96], [86.86, 59.39, -1, 15.02, 6.03, -1]]),
        ("nearest", [[1, 4, 4, 81, 100, 100], [121, 81, -1, 9, 1, -1]]),
    ],
)
def test_crops_give_tensorflows_numbers(method: str, expected: Any) -> None:
    got = run(
        lambda x, b: tf.image.crop_and_resize(x, b, [0, 0], [2, 3], method=method, extrapolation_value=-1),
        SQUARES,
        BOXES,
    )
    assert got.shape == (2, 2, 3, 1)
    np.testing.assert_allclose(got.reshape(2, 6), expected, atol=1e-4)


def test_gradients_by_boxes_give_tensorflows_numbers() -> None:
    weights = np.arange(1.0, 13.0, dtype=np.float32).reshape(2, 2, 3, 1)
    got = run(lambda x, b: tf.gradients(tf.image.crop_and_resize(x, b, [0, 0], [2, 3]) * weights, b)[0], SQUARES, BOXES)
    expected = [[364.8, 336.9, 1828.8, 552.9], [1876.8, 837.3001, 1288.8, 265.5]]
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_crops_are_differentiable_twice() -> None:
    """By images and boxes: the derivative of a weighted sum of both first gradients, against differences of those."""
    rng = np.random.default_rng(5)
    image, boxes = (
        rng.normal(size=(2, 5, 6, 2)).astype(np.float32),
        np.array([[0.11, 0.17, 0.83, 0.77], [0.21, 0.07, 0.57, 0.93], [0.9, 0.13, 0.31, 0.71]], np.float32),
    )
    indices, g = np.array([0, 1, 1]), rng.normal(size=(3, 2, 3, 2)).astype(np.float32)
    parts = rng.normal(size=image.shape).astype(np.float32), rng.normal(size=boxes.shape).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x, b = tf.placeholder(tf.float32, image.shape), tf.placeholder(tf.float32, boxes.shape)
        crops = tf.image.crop_and_resize(x, b, tf.constant(indices, tf.int32), [2, 3])
        first = tf.gradients(crops * crops * g, [x, b])
        loss = tf.add_n([tf.reduce_sum(f * p) for f, p in zip(first, parts, strict=True)])
        second = session.run(tf.gradients(loss, [x, b]), {x: image, b: boxes})

        def value(*at: Any) -> float:
            return float(session.run(loss, {x: at[0], b: at[1]}))

        for which, eps in ((0, 1e-2), (1, 1e-3)):
            numeric = central_differences(value, [image, boxes], which, eps)
            np.testing.assert_allclose(second[which], numeric, rtol=2e-2, atol=0.02 * np.abs(numeric).max())


def test_images_of_integers_have_crops_and_boxes_a_gradient() -> None:
    image = (SQUARES % 200).astype(np.uint8)
    got = run(lambda x, b: tf.gradients(tf.image.crop_and_resize(x, b, [0, 0], [2, 3]), b)[0], image, BOXES)
    assert np.abs(got).max() > 1


def test_box_ind_is_checked_when_the_step_runs() -> None:
    with pytest.raises(tf.errors.OutOfRangeError, match="box_ind holds 2 at 1"):
        run(lambda x, b: tf.image.crop_and_resize(x, b, [0, 2], [2, 3]), SQUARES, BOXES)
    with pytest.raises(ValueError, match="needs box_ind and crop_size"):
        tf.image.crop_and_resize(SQUARES, BOXES)
    crops = tf.image.crop_and_resize(SQUARES, tf.placeholder(tf.float32, [None, 4]), box_indices=[0], crop_size=[2, 3])
    assert crops.shape.as_list()[1:] == [2, 3, 1]


def test_suppression_gives_tensorflows_indices() -> None:
    assert run(lambda b, s: tf.image.non_max_suppression(b, s, 3, 0.5), ROWS, SCORES).tolist() == [3, 0, 5]
    assert run(lambda b, s: tf.image.non_max_suppression(b, s, 3, 0.5, 0.92), ROWS, SCORES).tolist() == [3]
    assert run(lambda b, s: tf.image.non_max_suppression(b, s, 0), ROWS, SCORES).tolist() == []
    for limit in (1.0, 0.5):
        taken, kept = run(
            lambda b, s, t=limit: tf.image.non_max_suppression_with_scores(b, s, 6, t, 0.0, 0.5), ROWS, SCORES
        )
        assert taken.tolist() == [3, 0, 1, 5, 4, 2]
        np.testing.assert_allclose(kept, [0.95, 0.9, 0.384, 0.3, 0.256, 0.19697], atol=1e-5)


def test_suppression_fills_up_with_zeros() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        taken, count = tf.image.non_max_suppression_padded(ROWS, SCORES, 5, pad_to_max_output_size=True)
        assert taken.shape.as_list() == [5]
        values, number = session.run([taken, count])
    assert values.tolist() == [3, 0, 5, 0, 0] and number == 3


def test_equal_scores_are_taken_in_order_and_corners_in_any() -> None:
    far = np.array([[5, 5, 4, 4], [0, 0, 1, 1], [9, 8, 8, 9]], np.float32)
    assert run(lambda b: tf.image.non_max_suppression(b, [0.5, 0.5, 0.5], 3), far).tolist() == [0, 1, 2]
    twice = np.concatenate([far[:1], far[:1, ::-1]])
    assert run(lambda b: tf.image.non_max_suppression(b, [0.5, 0.6], 3), twice).tolist() == [1]


def test_overlaps_may_be_given() -> None:
    overlaps = np.array([[1, 0.9, 0.2], [0.9, 1, 0.3], [0.2, 0.3, 1]], np.float32)
    got = run(lambda o: tf.image.non_max_suppression_overlaps(o, [0.1, 0.3, 0.2], 3, 0.5), overlaps)
    assert got.tolist() == [1, 2]


def test_classes_are_suppressed_by_themselves() -> None:
    scores = np.stack([SCORES, SCORES[::-1]], 1)[None]
    made = run(
        lambda b, s: list(tf.image.combined_non_max_suppression(b, s, 2, 3, clip_boxes=False)),
        ROWS[None, :, None],
        scores,
    )
    boxes, values, classes, count = made
    assert count.tolist() == [3] and classes.tolist() == [[0, 1, 0]]
    np.testing.assert_allclose(sorted(values[0])[::-1], values[0])
    assert boxes.shape == (1, 3, 4)


def test_boxes_are_drawn_one_pixel_wide() -> None:
    images = np.zeros((1, 4, 5, 3), np.float32)
    boxes = np.array([[[0, 0.25, 0.7, 0.8], [0.9, 0.9, 2, 2]]], np.float32)
    got = run(tf.image.draw_bounding_boxes, images, boxes)[0]
    assert got[:, :, 1].tolist() == [[0, 1, 1, 1, 0], [0, 1, 0, 1, 0], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]]
    assert got[0, 1].tolist() == [1, 1, 0] and got[2, 3].tolist() == [0, 0, 1]
    painted = run(lambda x, b: tf.image.draw_bounding_boxes(x, b, colors=[[0.5, 0.25, 0.125]]), images, boxes)[0]
    assert painted[2, 3].tolist() == [0.5, 0.25, 0.125]
    slope = run(lambda x, b: tf.gradients(tf.image.draw_bounding_boxes(x, b), x)[0], images, boxes)[0]
    np.testing.assert_array_equal(slope, np.repeat((got == 0).all(-1, keepdims=True), 3, -1))


def test_glimpses() -> None:
    got = run(lambda x: tf.image.extract_glimpse(x, [2, 2], [[0.1, 0.3]]), SQUARES)
    assert got.ravel().tolist() == [1, 4, 25, 36]
    corner = run(
        lambda x: tf.image.extract_glimpse(x, [2, 2], [[0.0, 0.0]], centered=False, normalized=False), SQUARES + 5
    )[0, :, :, 0]
    assert corner[1, 1] == 5 and corner.min() >= 5 and corner.max() <= 126
    with tf.Graph().as_default():
        noisy = tf.image.extract_glimpse(tf.placeholder(tf.float32, [None, 9, 9, 3]), [4, 5], [[0.0, 0.0]])
        assert noisy.shape.as_list()[1:] == [4, 5, 3]


def test_glimpses_have_normal_noise_of_the_image() -> None:
    image = np.random.default_rng(0).normal(3, 2, (1, 40, 40, 1)).astype(np.float32)
    got = run(
        lambda x: tf.image.extract_glimpse(x, [60, 60], [[9.0, 9.0]], uniform_noise=False, normalized=True), image
    )
    assert abs(got.mean() - image.mean()) < 0.2 and abs(got.std() - image.std()) < 0.2


def test_distorted_boxes_keep_their_promises() -> None:
    box = np.array([[[0.3, 0.4, 0.6, 0.9]]], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        begin, size, made = tf.image.sample_distorted_bounding_box(
            [60, 80, 3], box, seed=4, min_object_covered=0.5, aspect_ratio_range=[0.5, 2.0], area_range=[0.1, 0.6]
        )
        assert (begin.shape.as_list(), size.shape.as_list(), made.shape.as_list()) == ([3], [3], [1, 1, 4])
        cut = tf.slice(tf.zeros([60, 80, 3]), begin, size)
        seen = set()
        for _ in range(60):
            (row, column, _), (h, w, rest), ends, pixels = session.run([begin, size, made, cut])
            assert rest == -1 and pixels.shape == (h, w, 3)
            assert 0 <= row <= 60 - h and 0 <= column <= 80 - w
            assert 0.1 <= h * w / 4800 <= 0.6 and 0.45 < w / h < 2.1
            np.testing.assert_allclose(
                ends[0, 0], [row / 60, column / 80, (row + h) / 60, (column + w) / 80], rtol=1e-6
            )
            down = max(0, min(36, row + h) - max(18, row))
            along = max(0, min(72, column + w) - max(32, column))
            assert down * along / (18 * 40) >= 0.499
            seen.add((row, column, h, w))
    assert len(seen) > 50


def test_distorted_boxes_need_a_box_or_leave() -> None:
    empty = np.zeros((1, 0, 4), np.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="use_image_if_no_bounding_boxes"):
        run(lambda b: tf.image.sample_distorted_bounding_box([9, 9, 3], b), empty)
    begin, size, _ = run(
        lambda b: tf.image.sample_distorted_bounding_box([9, 8, 3], b, use_image_if_no_bounding_boxes=True), empty
    )
    assert begin.tolist() == [0, 0, 0] and size.tolist() == [9, 8, -1]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"in \[0, 1\]"):
        run(lambda b: tf.image.sample_distorted_bounding_box([9, 9, 3], b), np.array([[[0, 0, 2, 1]]], np.float32))


@pytest.mark.parametrize(
    ("shape", "noise", "number"),
    [
        ((1, 0, 4, 2), "uniform", np.nan),
        ((1, 4, 0, 2), "gaussian", np.nan),
        ((1, 0, 0, 2), "zero", 0.0),
        ((1, 4, 4, 0), "uniform", np.nan),
        ((0, 0, 0, 0), "uniform", np.nan),
    ],
)
def test_a_glimpse_of_no_pixels_is_noise_of_none(shape: tuple[int, ...], noise: str, number: float) -> None:
    """TensorFlow 2.21's answers: nothing has no least, largest and middle."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, at = tf.placeholder(tf.float32), tf.zeros([shape[0], 2])
        how = {"uniform_noise": noise == "uniform", "noise": noise}
        made = tf.ops.apply_op("ExtractGlimpse", input=x, size=[2, 3], offsets=at, **how)
        got = session.run(made, {x: np.ones(shape)})
    assert made.shape.as_list() == [shape[0], 2, 3, None]
    np.testing.assert_array_equal(got, np.full((shape[0], 2, 3, shape[3]), number, np.float32))
