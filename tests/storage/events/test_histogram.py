"""Histograms by numbers of TensorFlow's; more of them stand in tests/oracle/test_summaries.py."""

from __future__ import annotations

import bisect
import sys

import numpy as np
from graphdock_storage.events.histogram import bucket_limits, histogram


def test_limits():
    limits = bucket_limits().tolist()
    assert len(limits) == 1551 and limits == sorted(limits) and limits[775] == 0.0
    assert limits[-1] == -limits[0] == sys.float_info.max
    assert limits[776] == 1e-12 and limits[777] == 1e-12 * 1.1 and limits[778] == 1e-12 * 1.1 * 1.1
    assert limits[-2] < 1e20 < limits[-2] * 1.1 and [-v for v in limits[::-1]] == limits


def test_a_histogram_of_tensorflow():
    """tf.summary.histogram("h", [1., 2., 3., 0., -1.]) of TensorFlow 2.15."""
    made = histogram(np.array([1.0, 2.0, 3.0, 0.0, -1.0], np.float32))
    assert (made.min, made.max, made.num, made.sum, made.sum_squares) == (-1.0, 3.0, 5.0, 5.0, 15.0)
    expected = [-1.0090005493706106, -0.9172732266996042, 0.0, 1e-12, 0.9172732266996042, 1.0090005493706106]
    np.testing.assert_allclose(made.bucket_limit[:6], expected, rtol=2e-2)
    assert list(made.bucket) == [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    assert made.bucket_limit[-1] == sys.float_info.max


def test_no_values():
    made = histogram(np.zeros((0, 3), np.float32))
    largest = sys.float_info.max
    assert (made.min, made.max, made.num) == (largest, -largest, 0.0)
    assert made.bucket_limit == [largest] and made.bucket == [0.0]


def test_each_value_lies_below_its_limit():
    rng = np.random.default_rng(0)
    values = rng.standard_normal(500) * 10.0 ** rng.integers(-14, 22, 500)
    limits = bucket_limits().tolist()
    values[:20] = limits[700:720]  # a limit belongs into the next bucket
    made = histogram(values)
    assert sum(made.bucket) == 500
    counts = dict(zip(made.bucket_limit, made.bucket, strict=True))
    for value in values.tolist():
        limit = limits[bisect.bisect_right(limits, value)]
        assert counts[limit] >= 1 and value < limit
    pairs = list(zip(made.bucket, made.bucket[1:], strict=False))
    assert (0.0, 0.0) not in pairs, "runs of empty buckets are one"


def test_sums_go_from_left_to_right():
    values = np.random.default_rng(1).standard_normal(200_003)
    total = squares = 0.0
    for value in values.tolist():
        total, squares = total + value, squares + value * value
    made = histogram(values)
    assert (made.sum, made.sum_squares) == (total, squares)
    huge = histogram(np.array([1e300, 1e300]))
    assert huge.sum_squares == float("inf")
