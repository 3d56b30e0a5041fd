"""Copies overlap with compute: the feeds of a step go to the GPU while the step before it is at work."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install

#: Rows of a feed; 128 KiB go ahead, 8 KiB are a part of the recording.
LARGE, SMALL = 256, 16


def _train(rows: int, flights: int) -> tuple[list[Any], float, Any, Any]:
    """The driver's calls of two more steps in a row, the last loss, the plan as it is explained, and the driver."""
    tools, host = toolkit(seed=flights), Host()
    driver: Any = tools.driver
    install(host, tools)
    rng = np.random.default_rng(0)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [rows, 128])
        w = tf.Variable(np.full((128, 4), 0.1, np.float32))
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid", steps_in_flight=flights)
        with tf.Session(config=config, host=host) as session:
            session.run(w.initializer)
            feeds = [rng.standard_normal((rows, 128)).astype(np.float32) for _ in range(8)]
            for feed in feeds[:6]:  # as it is, recorded, replayed, on each of two lanes
                session.run(train, {x: feed})
            session.synchronize()
            driver.log.reset()
            for feed in feeds[6:]:
                session.run(train, {x: feed})
            calls = list(driver.log.calls)
            session.synchronize()
            return calls, float(session.run(loss, {x: feeds[0]})), session.explain(train, {x: feeds[0]}), driver


@pytest.mark.plain
def test_a_large_feed_is_copied_before_the_step_waits_for_the_one_before_it() -> None:
    calls, loss, explained, driver = _train(LARGE, 2)
    names = [c.name for c in calls if c.name in ("copy", "stream_wait", "graph_launch")]
    assert names == ["copy", "graph_launch", "copy", "stream_wait", "graph_launch"]
    assert "it goes ahead of what the step waits for" in str(explained)
    driver.verify()
    assert loss == _train(LARGE, 1)[1]


@pytest.mark.plain
def test_a_small_feed_is_a_part_of_the_recording() -> None:
    calls, loss, _, driver = _train(SMALL, 2)
    names = [c.name for c in calls if c.name in ("copy", "stream_wait", "graph_launch")]
    assert names == ["graph_launch", "stream_wait", "graph_launch"]
    driver.verify()
    assert loss == _train(SMALL, 1)[1]


@pytest.mark.plain
def test_alone_a_step_sends_all_of_its_feeds_with_its_recording() -> None:
    calls, *_ = _train(LARGE, 1)
    assert [c.name for c in calls if c.name in ("copy", "stream_wait", "graph_launch")] == ["graph_launch"] * 2
