"""Options of one step, and what its metadata says."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


@pytest.mark.parametrize("wrong", [-1, 4, "FULL_TRACE", True, None])
def test_a_trace_level_that_does_not_exist_is_refused_by_name(wrong):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)trace_level is wrong.*RunOptions.FULL_TRACE"):
        tf.RunOptions(trace_level=wrong)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "5"])
def test_a_timeout_that_is_no_number_of_milliseconds_is_refused(wrong):
    with pytest.raises(tf.errors.InvalidArgumentError, match="timeout_in_ms is wrong"):
        tf.RunOptions(timeout_in_ms=wrong)


def test_levels_have_tensorflows_names_and_numbers():
    names = ["NO_TRACE", "SOFTWARE_TRACE", "HARDWARE_TRACE", "FULL_TRACE"]
    assert [int(getattr(tf.RunOptions, name)) for name in names] == [0, 1, 2, 3]
    assert tf.RunOptions(trace_level=3) == tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


def test_a_trace_and_a_timeout_go_together():
    x = tf.placeholder(tf.float32, [2])
    metadata = tf.RunMetadata()
    options = tf.RunOptions(timeout_in_ms=60_000, trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(tf.square(x), {x: [1, 2]}, options, metadata), [1, 4])
    assert "Square" in {e.op for e in metadata.events}
