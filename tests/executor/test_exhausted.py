"""A step that does not fit says what its memory is made of, and the session goes on."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_testing import queued


def test_a_step_that_does_not_fit_names_its_peak_and_its_largest_buffers() -> None:
    host = Host()
    queued.install(host, memory=1 << 22)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [None])
        y = tf.reduce_sum(tf.matmul(x[:, None], x[None, :], name="wide"))
        with tf.Session(config=tf.SessionConfig(backends=("queued", "cpu")), host=host) as sess:
            with pytest.raises(tf.errors.ResourceExhaustedError) as found:
                sess.run(y, {x: np.ones(4096, np.float32)})
            notes = "\n".join(found.value.__notes__)
            assert "64 MiB at their peak" in notes
            assert "64 MiB: float32[4096, 4096] of wide, made at tests/executor/test_exhausted.py:17" in notes
            assert sess.run(y, {x: np.ones(8, np.float32)}) == 64
