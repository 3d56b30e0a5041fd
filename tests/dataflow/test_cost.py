"""Costs of kernels: only what takes longer than a hand-off is handed over, by its spec's formula and this machine's rates."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Rates
from graphdock.plugin.host import Host
from graphdock_cpu.device import CpuDevice


@pytest.fixture(autouse=True)
def rates(monkeypatch, tmp_path):
    """A machine of 1e9 operations and 1e10 bytes per second, of which nothing else is known."""
    monkeypatch.setattr("graphdock.measured_times.cache_dir", lambda: tmp_path)
    monkeypatch.setattr(CpuDevice, "rates", lambda self: Rates(1e9, 1e10))


def dear(fetches, feeds, **settings):
    with tf.Session(config=tf.SessionConfig(executor="dataflow", **settings), host=Host()) as sess:
        return {node.op for node in sess.plan(fetches, feeds).program.dear}


def test_large_products_are_dear_and_small_ones_are_not():
    x = tf.placeholder(tf.float32, [None, None])
    y = tf.matmul(x, x) + 1.0
    assert dear(y, {x: np.ones((128, 128))}) == {"MatMul"}  # 4.2 ms, and an addition of 13 us
    assert dear(y, {x: np.ones((16, 16))}) == set()


def test_what_moves_many_bytes_is_dear():
    x = tf.placeholder(tf.float32, [None])
    assert dear(x + 1.0, {x: np.ones(100_000)}) == {"Add"}  # 0.1 ms of operations
    moved = dear(tf.concat([x, x], 0), {x: np.ones(1_000_000)})
    assert len(moved) == 1 and "Concat" in moved.pop()


def test_what_nobody_can_estimate_is_not():
    x = tf.placeholder(tf.float32, [None])
    some = tf.boolean_mask(x, x > 0.0)  # as many as a step finds
    assert "Tanh" not in dear(tf.tanh(some), {x: np.ones(10_000_000)})


def test_a_step_that_holds_nothing_updates_variables_on_its_own_thread():
    v = tf.Variable(np.ones(1_000_000, np.float32))
    x = tf.placeholder(tf.float32, [1_000_000])
    feeds = {x: np.ones(1_000_000)}
    more = v.assign_add(x, read_value=False)
    with tf.control_dependencies([more]):
        alone = tf.py_func(lambda: np.float32(1.0), [], tf.float32)
    assert any("Assign" in op for op in dear(more, feeds))
    assert not any("Assign" in op for op in dear([more, alone], feeds))
