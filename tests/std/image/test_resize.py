"""tf.image's resizes: TensorFlow 1's numbers, static shapes, and gradients as adjoints."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest

from tests.std.image.support import adjoint, run

SQUARES = (np.arange(12, dtype=np.float32) ** 2).reshape(1, 3, 4, 1)

#: TensorFlow's answers for SQUARES at size [2, 6]: (method, align_corners, half_pixel_centers).
EXPECTED = {
    ("bilinear", False, False): [[0, 0.66667, 2, 4, 7.33333, 9], [40, 48.66667, 58, 68, 79.33333, 85]],
    ("bilinear", True, False): [[0, 0.6, 1.6, 3.4, 6, 9], [64, 74.2, 84.8, 96.2, 108.4, 121]],
    ("bilinear", False, True): [[4, 5.5, 7.83333, 11.16667, 15.5, 19], [52, 59.5, 69.83333, 81.16667, 93.5, 103]],
    ("nearest_neighbor", False, False): [[0, 0, 1, 4, 4, 9], [16, 16, 25, 36, 36, 49]],
    ("nearest_neighbor", True, False): [[0, 1, 1, 4, 4, 9], [64, 81, 81, 100, 100, 121]],
    ("nearest_neighbor", False, True): [[0, 1, 1, 4, 9, 9], [64, 81, 81, 100, 121, 121]],
    ("bicubic", False, False): [
        [0.0, 0.3522, 1.77713, 4.0, 7.59411, 9.55556],
        [41.5, 49.17615, 60.7459, 71.0, 84.04201, 90.72222],
    ],
    ("bicubic", True, False): [
        [0, 0.28767, 1.50442, 3.01523, 6.26606, 9],
        [64, 72.34529, 85.47561, 95.04404, 110.20844, 121],
    ],
    ("bicubic", False, True): [
        [1.83102, 2.83255, 4.91462, 7.80717, 12.2851, 15.43254],
        [54.20925, 61.57021, 73.70727, 85.46707, 100.00001, 109.50685],
    ],
}


@pytest.mark.parametrize(("method", "align", "half"), EXPECTED)
def test_resizes_give_tensorflows_numbers(method: str, align: bool, half: bool) -> None:
    resize = getattr(tf.image, f"resize_{method}")
    got = run(lambda x: resize(x, [2, 6], align_corners=align, half_pixel_centers=half), SQUARES)
    assert got.dtype == np.float32 and got.shape == (1, 2, 6, 1)
    np.testing.assert_allclose(got[0, :, :, 0], EXPECTED[method, align, half], atol=2e-5)


def test_area_is_the_mean_of_what_a_pixel_covers() -> None:
    got = run(lambda x: tf.image.resize_area(x, [2, 3]), SQUARES)[0, :, :, 0]
    np.testing.assert_allclose(got, [[6.25, 11.83333, 20.41667], [51.58333, 70.5, 92.41667]], rtol=1e-6)
    got = run(lambda x: tf.image.resize_area(x, [2, 3], align_corners=True), SQUARES)[0, :, :, 0]
    np.testing.assert_allclose(got, [[9.66667, 17.66667, 29.0], [69.66667, 93.66667, 121.0]], rtol=1e-6)
    blocks = np.random.default_rng(0).normal(size=(2, 6, 8, 3))
    got = run(lambda x: tf.image.resize_area(x, [3, 2]), blocks)
    np.testing.assert_allclose(got, blocks.reshape(2, 3, 2, 2, 4, 3).mean((2, 4)), atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"align_corners": True}, {"half_pixel_centers": True}], ids=str)
@pytest.mark.parametrize("method", ["bilinear", "nearest_neighbor", "bicubic"])
@pytest.mark.parametrize("size", [[7, 3], [2, 9]], ids=str)
def test_gradients_are_adjoints_and_can_be_differentiated_again(
    method: str, options: dict[str, Any], size: Any
) -> None:
    resize = getattr(tf.image, f"resize_{method}")
    assert adjoint(lambda x: resize(x, size, **options), (2, 4, 5, 3)) < 2e-5


@pytest.mark.parametrize("align", [False, True])
def test_area_has_a_gradient(align: bool) -> None:
    assert adjoint(lambda x: tf.image.resize_area(x, [3, 7], align_corners=align), (2, 4, 5, 3)) < 2e-5


def test_a_gradient_has_the_images_dtype() -> None:
    for dtype in (tf.float16, tf.float32, tf.float64):
        x = tf.placeholder(dtype, [1, 4, 4, 1])
        y = tf.image.resize_bilinear(x, [2, 2])
        assert y.dtype == tf.float32 and tf.gradients(y, x)[0].dtype == dtype


def test_resize_images_takes_one_image_or_a_batch_and_every_method() -> None:
    batch = np.random.default_rng(1).uniform(0, 255, (2, 5, 6, 3)).astype(np.uint8)
    for method, dtype in ((0, np.float32), (1, np.uint8), (2, np.float32), (3, np.float32)):
        whole = run(lambda x, m=method: tf.image.resize_images(x, [3, 4], m), batch)
        one = run(lambda x, m=method: tf.image.resize_images(x, [3, 4], m), batch[1])
        assert whole.dtype == dtype and one.shape == (3, 4, 3)
        np.testing.assert_array_equal(one, whole[1])
    assert tf.image.ResizeMethod.AREA == 3


def test_a_known_size_that_stays_leaves_the_images_alone() -> None:
    x = tf.placeholder(tf.uint8, [None, 5, 6, 3])
    assert tf.image.resize_images(x, [5, 6]).dtype == tf.uint8
    assert tf.image.resize_images(x, tf.constant([5, 6]) + 0).dtype == tf.float32


def test_static_shapes() -> None:
    x = tf.placeholder(tf.float32, [None, None, None, 3])
    size = tf.placeholder(tf.int32, [2])
    assert tf.image.resize_bilinear(x, [7, 8]).shape.as_list() == [None, 7, 8, 3]
    assert tf.image.resize_images(x, size).shape.as_list() == [None, None, None, 3]
    assert tf.image.resize_images(x, [7, tf.constant(8)]).shape.as_list() == [None, 7, 8, 3]
    assert tf.image.resize_image_with_pad(x, 7, 8).shape.as_list() == [None, 7, 8, 3]
    assert tf.image.resize_image_with_pad(tf.zeros([4, 4, 3]), 7, 8).shape.as_list() == [7, 8, 3]


def test_a_size_may_be_known_only_in_the_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, size = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
        y = tf.image.resize_nearest_neighbor(x, size)
        image = np.arange(4.0).reshape(1, 2, 2, 1)
        assert session.run(y, {x: image, size: [1, 2]}).ravel().tolist() == [0, 1]
        assert session.run(y, {x: image, size: [4, 1]}).ravel().tolist() == [0, 0, 2, 2]
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
            session.run(y, {x: image, size: [0, 1]})


def test_preserve_aspect_ratio_fits_into_the_box() -> None:
    x = tf.placeholder(tf.float32, [1, 10, 20, 3])
    assert tf.image.resize_images(x, [8, 8], preserve_aspect_ratio=True).shape.as_list() == [1, 4, 8, 3]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, None, None, 3])
        y = tf.image.resize_images(x, [8, 8], preserve_aspect_ratio=True)
        assert session.run(y, {x: np.zeros((1, 10, 20, 3))}).shape == (1, 4, 8, 3)


def test_resize_image_with_pad_centres_what_it_resized() -> None:
    expected = [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81, 100, 121], [0, 0, 0, 0]]
    got = run(lambda x: tf.image.resize_image_with_pad(x, 4, 4), SQUARES)
    np.testing.assert_allclose(got[0, :, :, 0], expected, rtol=1e-6)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [1, None, None, 1])
        dynamic = session.run(tf.image.resize_image_with_pad(x, 4, 4), {x: SQUARES})
    np.testing.assert_allclose(dynamic, got, rtol=1e-6)
    assert run(lambda x: tf.image.resize_image_with_pad(x, 224, 224), np.ones((64, 64, 3), np.float32)).min() == 1


def test_errors_name_what_is_wrong() -> None:
    x = tf.placeholder(tf.float32, [1, 4, 4, 3])
    with pytest.raises(ValueError, match="rank"):
        tf.image.resize_images(tf.zeros([4, 4]), [2, 2])
    with pytest.raises(ValueError, match="vector of new height"):
        tf.image.resize_images(x, [2, 2, 2])
    with pytest.raises(ValueError, match="no such method"):
        tf.image.resize_images(x, [2, 2], method=9)
    with pytest.raises(ValueError, match="positive"):
        tf.image.resize_bilinear(x, [2, 0])
    with pytest.raises(ValueError, match="exclude"):
        tf.image.resize_bicubic(x, [2, 2], align_corners=True, half_pixel_centers=True)
    with pytest.raises(ValueError, match="must be positive"):
        tf.image.resize_image_with_pad(x, 0, 2)


@pytest.mark.parametrize("size", [[6.0, 4.0], [6.5, 4.0]])
def test_sizes_that_are_no_integers_are_refused(size: Any) -> None:
    with pytest.raises(ValueError):
        tf.image.resize_images(np.zeros((1, 6, 4, 1), np.float32), tf.constant(size))
