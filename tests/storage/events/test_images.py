"""Pixels by TensorFlow's rules, and PNG files that Pillow reads."""

from __future__ import annotations

import io

import numpy as np
import pytest
from graphdock_storage.events.images import pixels, png

RED = (255, 0, 0, 255)


def shown(values, dtype=np.float32):
    return pixels(np.array(values, dtype).reshape(1, -1, 1), RED).ravel().tolist()


def test_floats_without_negative_ones_reach_255():
    assert shown([0.0, 0.5, 1.0]) == [0, 127, 255] and shown([0.0, 50.0, 100.0]) == [0, 127, 255]
    assert shown([0.0, 0.25, 0.5], np.float16) == [0, 127, 255] and shown([3.0, 3.0]) == [255, 255]


def test_floats_with_negative_ones_lie_around_128():
    assert shown([-1.0, 0.0, 1.0]) == [1, 128, 255] and shown([-4.0, 0.0, 2.0]) == [1, 128, 191]


def test_nothing_at_all_is_black():
    assert shown([0.0, 0.0]) == [0, 0] and shown([1e-7, 0.0]) == [0, 0] and shown([-1e-7, 0.0]) == [128, 128]


def test_bytes_stay():
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert pixels(image, RED) is image


def test_what_is_not_finite_has_its_colour_and_counts_for_nothing():
    image = np.array([[[1.0, 2.0, 4.0], [np.nan, 1e9, 0.0], [0.0, np.inf, 0.0], [4.0, 0.0, 2.0]]], np.float32)
    assert pixels(image, RED).tolist() == [[[63, 127, 255], [255, 0, 0], [255, 0, 0], [255, 0, 127]]]
    assert pixels(image, (1, 2, 3)).tolist()[0][1] == [1, 2, 3]
    assert pixels(np.full((1, 2, 1), -np.inf), RED).tolist() == [[[255], [255]]]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_files_hold_their_pixels(channels):
    image_module = pytest.importorskip("PIL.Image")
    image = np.random.default_rng(channels).integers(0, 256, (5, 7, channels)).astype(np.uint8)
    file = image_module.open(io.BytesIO(png(image)))
    assert file.format == "PNG" and file.size == (7, 5)
    assert np.asarray(file).reshape(image.shape).tolist() == image.tolist()
