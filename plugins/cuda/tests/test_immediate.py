"""Kernels that read what they made in the step: they wait for it, and a device that is lost meanwhile is told."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install


@pytest.fixture
def session() -> Any:
    """Where a condition holds, behind work that is queued: its driver, and what runs it."""
    tools, host = toolkit(seed=3), Host()
    install(host, tools)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [None])
        found = tf.where(tf.tanh(x) > 0.0)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        with tf.Session(config=config, host=host) as opened:
            yield tools.driver, lambda values: opened.run(found, {x: values})


def test_what_is_read_is_there(session: Any) -> None:
    driver, where = session
    for count in (5, 0, 3, 1):
        values = np.concatenate([np.ones(count), -np.ones(7 - count)]).astype(np.float32)
        assert where(values).reshape(-1).tolist() == list(range(count))
    driver.verify()


def test_a_device_that_is_lost_while_a_kernel_waits_is_told(session: Any) -> None:
    driver, where = session
    where(np.ones(3))
    driver.faults.reset()
    driver.faults.at(1, 719, "launch", late=True)
    for _ in range(2):
        with pytest.raises(tf.errors.DeviceLostError, match="cuda:0 is lost"):
            where(np.ones(3))
