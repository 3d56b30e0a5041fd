"""Moves of more elements than a block has threads, of odd sizes, of many axes, from places that are not aligned: against NumPy."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_cuda.moving import divider

SHAPES = [
    ((257, 33), (1, 0)),
    ((31, 5, 65), (2, 0, 1)),
    ((4, 33, 34, 3), (0, 3, 1, 2)),
    ((40, 2, 9, 16), (2, 1, 0, 3)),
]


def _numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.complex128])
@pytest.mark.parametrize(("shape", "perm"), SHAPES)
def test_transposes(on_cuda: Any, shape: tuple[int, ...], perm: tuple[int, ...], dtype: Any) -> None:
    x = _numbers(shape, dtype)
    (got,) = on_cuda(lambda x: tf.transpose(x, perm), x)
    assert np.array_equal(got, x.transpose(perm))


def test_more_axes_than_a_kernel_counts(on_cuda: Any) -> None:
    x = _numbers((2, 3) * 5)
    perm = tuple(reversed(range(10)))
    (got,) = on_cuda(lambda x: tf.transpose(x, perm), x)
    assert np.array_equal(got, x.transpose(perm))


def test_slices_that_are_views_feed_kernels_from_unaligned_places(on_cuda: Any) -> None:
    x = _numbers((41, 64))

    def make(x: Any) -> Any:
        flat = tf.reshape(x, [-1])
        return tf.concat([flat[1:1025], flat[3:1027], flat[4:1028]], 0), tf.tile(
            tf.reshape(flat[5:1029], [16, 64]), [2, 3]
        )

    joined, tiled = on_cuda(make, x)
    flat = x.reshape(-1)
    assert np.array_equal(joined, np.concatenate([flat[1:1025], flat[3:1027], flat[4:1028]]))
    assert np.array_equal(tiled, np.tile(flat[5:1029].reshape(16, 64), (2, 3)))


def test_parts_of_many_elements(on_cuda: Any) -> None:
    x = _numbers((70, 120), np.int16)

    def make(x: Any) -> Any:
        return (
            *tf.split(x, [7, 33, 80], 1),
            *tf.unstack(x[:, :2], axis=1),
            x[::-3, 5:100:7],
            tf.reverse(x, [1]),
            tf.pad(x, [[3, 2], [0, 5]], "REFLECT"),
            tf.pad(x, [[0, 0], [8, 8]]),
            tf.roll(x, [3, -50], [0, 1]),
        )

    got = on_cuda(make, x)
    expected = [
        *np.split(x, [7, 40], 1),
        x[:, 0],
        x[:, 1],
        x[::-3, 5:100:7],
        x[:, ::-1],
        np.pad(x, [(3, 2), (0, 5)], "reflect"),
        np.pad(x, [(0, 0), (8, 8)]),
        np.roll(x, (3, -50), (0, 1)),
    ]
    for a, b in zip(got, expected, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 31, 641, 65537, (1 << 31) - 1])
def test_dividers_divide(divisor: int) -> None:
    d, magic, shift = np.frombuffer(divider(divisor), np.uint32).tolist()
    numbers = [0, 1, d - 1, d, d + 1, 1000003, (1 << 31) - 1]
    assert [((n * magic >> 32) + n) >> shift for n in numbers] == [n // divisor for n in numbers]
