"""tf.image's crops, margins, flips and turns against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest

from tests.std.image.support import adjoint, run

BATCH = np.random.default_rng(2).normal(size=(2, 5, 4, 3))


@pytest.mark.parametrize("image", [BATCH, BATCH[0]], ids=["batch", "one"])
def test_boxes_are_cut_and_padded(image: np.ndarray) -> None:
    got = run(lambda x: tf.image.crop_to_bounding_box(x, 1, 2, 3, 2), image)
    np.testing.assert_array_equal(got, image[..., 1:4, 2:4, :])
    back = run(lambda x: tf.image.pad_to_bounding_box(x, 1, 2, 5, 4), got)
    expected = np.zeros_like(image)
    expected[..., 1:4, 2:4, :] = got
    np.testing.assert_array_equal(back, expected)
    np.testing.assert_array_equal(run(lambda x: tf.image.crop_to_bounding_box(x, 1, np.int32(2), 3, 2), image), got)


@pytest.mark.parametrize(("height", "width"), [(3, 6), (8, 3), (5, 4), (2, 9), (1, 1)])
@pytest.mark.parametrize("known", [True, False])
def test_crop_or_pad_keeps_the_middle(height: int, width: int, known: bool) -> None:
    got = run(lambda x: tf.image.resize_image_with_crop_or_pad(x, height, width), BATCH)
    if not known:
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float64, [None, None, None, 3])
            y = tf.image.resize_image_with_crop_or_pad(x, height, width)
            assert y.shape.as_list() == [None, height, width, 3]
            np.testing.assert_array_equal(session.run(y, {x: BATCH}), got)
    expected = BATCH
    for axis, size in ((1, height), (2, width)):
        have = expected.shape[axis]
        cut, margin = max((have - size) // 2, 0), max((size - have) // 2, 0)
        expected = np.take(expected, range(cut, cut + min(size, have)), axis)
        rows = [(0, 0)] * 4
        rows[axis] = (margin, size - margin - expected.shape[axis])
        expected = np.pad(expected, rows)
    np.testing.assert_array_equal(got, expected)


def test_central_crop() -> None:
    image = np.arange(10 * 7.0).reshape(10, 7, 1)
    np.testing.assert_array_equal(run(lambda x: tf.image.central_crop(x, 0.5), image), image[2:8, 1:6])
    assert run(lambda x: tf.image.central_crop(x, 1.0), image).shape == (10, 7, 1)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, [None, None, None, 1])
        np.testing.assert_array_equal(
            session.run(tf.image.central_crop(x, 0.5), {x: image[None]}), image[None, 2:8, 1:6]
        )
    for wrong in (0.0, 1.5):
        with pytest.raises(ValueError, match="central_fraction"):
            tf.image.central_crop(tf.zeros([4, 4, 1]), wrong)


@pytest.mark.parametrize("image", [BATCH, BATCH[0]], ids=["batch", "one"])
def test_flips_and_turns(image: np.ndarray) -> None:
    rows, columns = image.ndim - 3, image.ndim - 2
    np.testing.assert_array_equal(run(tf.image.flip_left_right, image), np.flip(image, columns))
    np.testing.assert_array_equal(run(tf.image.flip_up_down, image), np.flip(image, rows))
    np.testing.assert_array_equal(run(tf.image.transpose_image, image), np.swapaxes(image, rows, columns))
    for k in range(-2, 6):
        expected = np.rot90(image, k, (rows, columns))
        np.testing.assert_array_equal(run(lambda x, k=k: tf.image.rot90(x, k), image), expected)
        np.testing.assert_array_equal(run(tf.image.rot90, image, np.int32(k)), expected)


def test_what_is_moved_carries_its_gradient() -> None:
    moves: list[Callable] = [
        tf.image.flip_left_right,
        tf.image.rot90,
        lambda x: tf.image.crop_to_bounding_box(x, 1, 1, 2, 2),
        lambda x: tf.image.resize_image_with_crop_or_pad(x, 3, 6),
    ]
    for move in moves:
        assert adjoint(move, (2, 5, 4, 3), np.float64) < 1e-12


@pytest.mark.parametrize("flip", [tf.image.random_flip_left_right, tf.image.random_flip_up_down])
def test_random_flips_take_each_image_by_itself(flip: Callable) -> None:
    plain = tf.image.flip_left_right if flip is tf.image.random_flip_left_right else tf.image.flip_up_down
    many = np.repeat(BATCH[:1], 400, 0)
    got, flipped = run(lambda x: flip(x, seed=5), many), run(plain, many)
    turned = (got == flipped).all((1, 2, 3))
    assert ((got == many).all((1, 2, 3)) ^ turned).all()
    assert 150 < turned.sum() < 250
    with tf.Graph().as_default(), tf.Session() as session:
        one = flip(tf.constant(BATCH[0]), seed=5)
        assert one.shape.as_list() == [5, 4, 3]
        seen = {session.run(one).tobytes() for _ in range(20)}
    assert seen == {BATCH[0].tobytes(), run(plain, BATCH[0]).tobytes()}


def test_random_crop_takes_every_place() -> None:
    value = np.arange(12.0).reshape(4, 3)
    with tf.Graph().as_default(), tf.Session() as session:
        crop = tf.random_crop(tf.constant(value), [2, 3], seed=4)
        assert crop.shape.as_list() == [2, 3]
        seen = {tuple(session.run(crop)[:, 0]) for _ in range(40)}
        assert seen == {(0, 3), (3, 6), (6, 9)}
        with pytest.raises(tf.errors.InvalidArgumentError, match="need value.shape|not inside"):
            session.run(tf.random_crop(tf.placeholder_with_default(value, None), [5, 3]))
    assert tf.image.random_crop is tf.random_crop


def test_boxes_that_leave_the_image_are_refused() -> None:
    x = tf.placeholder(tf.float32, [5, 4, 3])
    with pytest.raises(ValueError, match="leaves the image"):
        tf.image.crop_to_bounding_box(x, 3, 0, 3, 4)
    with pytest.raises(ValueError, match="offset_width must be >= 0"):
        tf.image.crop_to_bounding_box(x, 0, -1, 3, 4)
    with pytest.raises(ValueError, match="target_height must be > 0"):
        tf.image.resize_image_with_crop_or_pad(x, 0, 4)
    with pytest.raises(ValueError, match="does not fit"):
        tf.image.pad_to_bounding_box(x, 1, 0, 5, 4)
    with pytest.raises(ValueError, match="rank"):
        tf.image.flip_left_right(tf.zeros([3, 3]))
    with pytest.raises(ValueError, match="no known rank"):
        tf.image.central_crop(tf.placeholder(tf.float32), 0.5)


#: Function -> the static shape that TensorFlow gives for an image of unknown rank, at least, and the ranks that it takes.
UNKNOWN = {
    "crop": (lambda x: tf.image.crop_to_bounding_box(x, 0, 1, 3, 2), [3, 2, None], [3]),
    "pad": (lambda x: tf.image.pad_to_bounding_box(x, 1, 1, 9, 8), [9, 8, None], [3]),
    "crop or pad": (lambda x: tf.image.resize_image_with_crop_or_pad(x, 5, 6), [5, 6, None], [3]),
    "transpose": (tf.image.transpose_image, None, [4]),
    "turn": (tf.image.rot90, None, [4]),
    "flip": (tf.image.flip_up_down, None, [3, 4]),
    "flip or not": (lambda x: tf.image.random_flip_left_right(x, 1), None, [3, 4]),
    "flip or not, upside down": (lambda x: tf.image.random_flip_up_down(x, 1), None, [3, 4]),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_images_of_unknown_rank(name) -> None:
    function, least, ranks = UNKNOWN[name]
    image = np.arange(120, dtype=np.float32).reshape(2, 4, 5, 3)
    with tf.Graph().as_default(), tf.Session() as sess:
        fed = tf.placeholder(tf.float32)
        made = function(fed)
        assert fed.shape.rank is None  # what was given is left as it is
        assert least is None or made.shape.as_list() == least
        for value in (image, image[0]):
            if value.ndim not in ranks:
                with pytest.raises(tf.errors.InvalidArgumentError):
                    sess.run(made, {fed: value})
                continue
            got, known = sess.run([made, function(tf.constant(value))], {fed: value})
            if "or not" in name:
                mirrored = value[..., ::-1, :] if name == "flip or not" else value[..., ::-1, :, :]
                for found in zip(*(a.reshape(-1, 4, 5, 3) for a in (got, value, mirrored)), strict=True):
                    assert any((found[0] == other).all() for other in found[1:])
            else:
                np.testing.assert_array_equal(got, known)


def test_the_whole_is_the_middle_of_any_tensor() -> None:
    image = np.ones((3, 3), np.float32)
    np.testing.assert_array_equal(run(lambda x: tf.image.central_crop(x, 1.0), image), image)


@pytest.mark.parametrize("shape", [(0, 3, 3), (3, 0, 3), (1, 0, 3, 3), (1, 3, 3, 0)], ids=str)
@pytest.mark.parametrize(
    "function",
    [
        tf.image.flip_left_right,
        tf.image.flip_up_down,
        tf.image.random_flip_left_right,
        tf.image.rot90,
        tf.image.transpose_image,
        tf.image.per_image_standardization,
        lambda x: tf.image.central_crop(x, 0.5),
        lambda x: tf.image.pad_to_bounding_box(x, 0, 0, 4, 4),
        lambda x: tf.image.resize_image_with_crop_or_pad(x, 2, 2),
    ],
)
def test_an_image_without_pixels_is_refused(function: Any, shape: tuple[int, ...]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(ValueError, match="no pixels"):
            function(tf.zeros(shape))
        fed = tf.placeholder(tf.float32, [None] * len(shape))
        late = function(fed)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(late, {fed: np.zeros(shape)})
