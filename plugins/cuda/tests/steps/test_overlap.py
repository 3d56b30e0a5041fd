"""Copies: the feeds of a step go to the GPU while the step before it is at work; large fetches come in memory of their own."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_cuda.device import FETCH_BYTES
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install
from graphdock_testing.driver.detector import RaceError

#: Rows of a feed; 128 KiB go ahead, 8 KiB are a part of the recording.
LARGE, SMALL = 256, 16


def _train(rows: int, most: int) -> tuple[list[Any], float, Any, Any]:
    """The driver's calls of two more steps in a row, the last loss, the plan as it is explained, and the driver."""
    tools, host = toolkit(seed=most, traced=True), Host()
    driver: Any = tools.driver
    install(host, tools)
    rng = np.random.default_rng(0)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [rows, 128])
        w = tf.Variable(np.full((128, 4), 0.1, np.float32))
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid", steps_in_flight=most)
        with tf.Session(config=config, host=host) as session:
            session.run(w.initializer)
            feeds = [rng.standard_normal((rows, 128)).astype(np.float32) for _ in range(8)]
            for feed in feeds[:6]:  # as it is, recorded, replayed, on each of two stream slots
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


@pytest.mark.plain
@pytest.mark.parametrize("elements", [FETCH_BYTES // 4, FETCH_BYTES // 4 - 1])
def test_a_large_fetch_keeps_its_pinned_memory_and_gives_it_back(elements: int) -> None:
    """Each step's is another one, until the caller lets go of his; what is small is the host's copy."""
    tools, host = toolkit(seed=3), Host()
    install(host, tools)
    driver: Any = tools.driver
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [elements])
        y, both = tf.square(x), tf.tanh(x)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        with tf.Session(config=config, host=host) as session:
            kept = [session.run(y, {x: np.full(elements, i)}) for i in range(4)]
            assert [k[[0, -1]].tolist() for k in kept] == [[i * i] * 2 for i in range(4)]  # nobody writes to them
            pinned = [driver.host.find(k.ctypes.data) is not None for k in kept]
            assert pinned == [elements * 4 >= FETCH_BYTES] * 4
            assert all(k.flags.writeable and type(k) is np.ndarray for k in kept)
            first = kept[0].ctypes.data
            del kept
            again = {session.run(y, {x: np.ones(elements)}).ctypes.data for _ in range(4)}
            assert not all(pinned) or first in again  # the pool's
            one, other, third = session.run([y, tf.identity(y), both], {x: np.ones(elements)})
            assert len({a.ctypes.data for a in (one, other, third)}) == 3
    driver.verify()


@pytest.mark.plain
def test_a_step_that_fails_gives_nothing_back_that_a_copy_still_writes() -> None:
    tools, host = toolkit(seed=3), Host()
    install(host, tools)
    driver: Any = tools.driver
    with tf.Graph(host=host).as_default():
        x, at = tf.placeholder(tf.float32, [FETCH_BYTES]), tf.placeholder(tf.int32, [1])
        y = tf.square(x)
        with tf.control_dependencies([y]):
            bad = tf.gather(x, at)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        with tf.Session(config=config, host=host) as session:
            for _ in range(3):
                with pytest.raises(tf.errors.InvalidArgumentError):
                    session.run([y, bad], {x: np.ones(FETCH_BYTES), at: [-7]})
                assert (session.run(y, {x: np.full(FETCH_BYTES, 2.0)}) == 4).all()
            driver.faults.reset()
            driver.faults.at(1, 1, "stream_synchronize")
            with pytest.raises(tf.errors.GraphdockError):
                session.run(y, {x: np.ones(FETCH_BYTES)})
            assert (session.run(y, {x: np.full(FETCH_BYTES, 3.0)}) == 9).all()
    driver.verify()


def _shared(seed: int, query: Any = None) -> tuple[float, Any]:
    """The last value of a sum that two sessions add to, two steps in flight each, and the driver, whose images are traced.

    ``query``: of events, in place of CuPy's.
    """
    tools, host = toolkit(seed=seed, traced=True), Host()
    install(host, tools)
    driver: Any = tools.driver
    if query is not None:
        driver._query = query
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [16, 16])
        with tf.container("shared"):
            w, total = tf.Variable(np.eye(16, dtype=np.float32)), tf.Variable(0.0)
        add = tf.assign_add(total, tf.reduce_sum(tf.matmul(x, w)))
        with tf.control_dependencies([add]):
            step = tf.group(tf.assign_add(w, x))
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid", steps_in_flight=2)
        with tf.Session(config=config, host=host) as one, tf.Session(config=config, host=host) as other:
            one.run(tf.global_variables_initializer())
            for number in range(12):
                (one, other)[number % 2].run(step, {x: np.full((16, 16), 0.5 + number % 3, np.float32)})
            one.synchronize()
            other.synchronize()
            return float(one.run(total)), driver


@pytest.mark.plain
@pytest.mark.parametrize("seed", range(4))
def test_two_sessions_with_steps_in_flight_share_variables(seed: int) -> None:
    found, driver = _shared(seed)
    w, total = np.eye(16), 0.0
    for number in range(12):
        x = np.full((16, 16), 0.5 + number % 3)
        total, w = total + (x @ w).sum(), w + x
    assert found == pytest.approx(total, rel=1e-5)
    driver.verify()


@pytest.mark.plain
def test_a_wait_that_is_left_out_is_a_race_of_two_kernels() -> None:
    """A query that never says "not ready", as one that takes CuPy's status for a truth, leaves out waits across stream slots."""
    with pytest.raises(RaceError, match="and nothing orders them"):
        for seed in range(4):
            _shared(seed, lambda event: 0)[1].verify()
