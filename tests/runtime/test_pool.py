"""Idle instances are dropped when a session's plans hold more than the budget, oldest first, and made again when needed."""

from __future__ import annotations

import graphdock as tf
import numpy as np
from graphdock.runtime.pool import InstancePool


def test_the_oldest_plans_lose_their_idle_instances():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None])
        y = tf.reduce_sum(tf.sqrt(x) * 2.0)
        with tf.Session() as sess:
            pool = sess._planner._pool
            assert isinstance(pool, InstancePool)
            pool.budget = 40_000
            plans = []
            for size in (1000, 2000, 3000, 4000):
                seen = tf.RunMetadata()
                got = sess.run(y, {x: np.ones(size)}, run_metadata=seen)
                assert got == 2 * size
                plans.append(seen.plan)
            held = [plan.live_bytes() for plan in plans]
            assert held[0] == 0, "the first plan's instance was dropped"
            assert held[-1] >= 16_000, "the last plan keeps its own"
            assert pool.held() == sum(held) <= 40_000
            assert sess.run(y, {x: np.ones(1000)}) == 2000
            assert plans[0].live_bytes() > 0


def test_a_plan_larger_than_the_budget_keeps_its_own():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [5000])
        y = tf.reduce_sum(tf.sqrt(x))
        with tf.Session() as sess:
            sess._planner._pool.budget = 1
            seen = tf.RunMetadata()
            for _ in range(3):
                assert sess.run(y, {x: np.ones(5000)}, run_metadata=seen) == 5000
            assert seen.plan.live_bytes() >= 20_000
