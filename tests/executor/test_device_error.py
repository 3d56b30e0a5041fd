"""An error of a device names the device, what it was asked for, and the node where there is one.

A step that does not fit says what its memory is made of, and the session goes on.
"""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InternalError, ResourceExhaustedError
from graphdock.planning.pool import HostMemory
from graphdock.plugin.host import Host
from graphdock_executor.device_error import asking, device_error
from graphdock_testing import queued

DEVICE = HostMemory()


def test_a_foreign_error_becomes_one_that_names_the_device():
    message = r"device host:0 failed at allocate 8 bytes: ValueError: no"
    with pytest.raises(InternalError, match=message) as caught, asking(DEVICE, "allocate 8 bytes", op="layer/w"):
        raise ValueError("no")
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.op == "layer/w"


def test_graphdocks_own_error_keeps_its_class_and_what_it_says():
    full = ResourceExhaustedError("host memory has no 8 bytes", op="mine")
    assert device_error(full, DEVICE, "allocate", op="other") is full
    assert full.op == "mine"
    assert any("host:0" in note for note in full.__notes__)


def test_a_device_without_memory_is_no_fault_of_graphdocks():
    with (
        pytest.raises(
            ResourceExhaustedError, match="device host:0 has no memory left for allocate 8 bytes: full"
        ) as caught,
        asking(DEVICE, "allocate 8 bytes", op="layer/w"),
    ):
        raise MemoryError("full")
    assert caught.value.op == "layer/w"


def test_nothing_raised_is_nothing_said():
    storage = None
    with asking(DEVICE, "allocate"):
        storage = bytearray(8)
    assert storage is not None


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
            assert "64 MiB: float32[4096, 4096] of wide, made at tests/executor/test_device_error.py:58" in notes
            assert sess.run(y, {x: np.ones(8, np.float32)}) == 64
