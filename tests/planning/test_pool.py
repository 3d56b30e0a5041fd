"""Idle contexts are dropped where a session's plans hold more than the budget, oldest first; a memory limit is kept."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.planning.pool import InstancePool


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


def totals(graph_size, count):
    """A placeholder and as many fetches that need about 4 bytes per element of it."""
    x = tf.placeholder(tf.float32, [None])
    return x, [tf.reduce_sum(tf.sqrt(x) * float(i + 2)) for i in range(count)]


def makes(sess, fetch, feeds):
    """How many contexts' memory is taken while a step runs."""
    taken = []
    program = sess._planner.setting.spaces["host"]
    allocate = type(program).allocate

    def counting(self, nbytes, *args):
        taken.append(nbytes)
        return allocate(self, nbytes, *args)

    type(program).allocate = counting
    try:
        sess.run(fetch, feeds)
    finally:
        type(program).allocate = allocate
    return len(taken)


def test_two_plans_that_take_turns_keep_their_memory_although_it_is_more_than_the_budget():
    with tf.Graph().as_default():
        x, (train, test) = totals(1000, 2)
        feeds = {x: np.ones(1000)}
        with tf.Session() as sess:
            sess._planner._pool.budget = 5_000  # one of them
            first = [makes(sess, fetch, feeds) for fetch in (train, test, train, test)]
            then = [makes(sess, fetch, feeds) for fetch in (train, test) * 5]
    assert first == [1, 1, 1, 0], "the second takes the first one's memory once, before a pattern is there"
    assert then == [0] * 10


def test_many_plans_in_turn_stay_within_the_budget():
    with tf.Graph().as_default():
        x, fetches = totals(1000, 12)
        feeds = {x: np.ones(1000)}
        with tf.Session() as sess:
            pool = sess._planner._pool
            pool.budget = 20_000
            for _ in range(3):
                for fetch in fetches:
                    sess.run(fetch, feeds)
                    assert pool.held() <= 20_000


def test_the_plan_that_takes_turns_with_ever_new_ones_keeps_its_memory():
    with tf.Graph().as_default():
        x, (train, test) = totals(1000, 2)
        with tf.Session(config=tf.SessionConfig(shape_policy="exact")) as sess:
            sess._planner._pool.budget = 10_000  # two
            sess.run(train, {x: np.ones(1000)})
            for size in range(1001, 1010):
                assert makes(sess, test, {x: np.ones(size)}) == 1
                assert makes(sess, train, {x: np.ones(1000)}) == 0, size


def test_memory_counts_until_a_context_is_gone():
    with tf.Graph().as_default():
        x, (y,) = totals(1000, 1)
        with tf.Session() as sess:
            pool = sess._planner._pool
            seen = tf.RunMetadata()
            sess.run(y, {x: np.ones(1000)}, run_metadata=seen)
            one = pool.held("host")
            assert one >= 4_000 and pool.held("elsewhere") == 0
            steps = [seen.plan.lease() for _ in range(3)]
            assert pool.held() == 3 * one
            for step in steps:
                seen.plan.give_back(step)
            seen.plan.drop_idle(1)
            assert pool.held() == one
            del seen, steps, step
            sess._plans.clear()
            assert pool.held() == 0


def test_spaces_have_budgets_of_their_own():
    from graphdock.plugin.host import Host
    from graphdock_testing import fake

    host = Host()
    fake.install(host)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [1000])
        with tf.device("/cpu:0"):
            here = tf.reduce_sum(tf.sqrt(x) * 2.0)
        with tf.device("/device:fake:0"):
            there = tf.reduce_sum(tf.sqrt(x) * 2.0)
        with tf.Session(config=tf.SessionConfig(backends=("fake", "cpu"))) as sess:
            pool = sess._planner._pool
            pool.budget = 9_000
            for fetch in (here, there):
                sess.run(fetch, {x: np.ones(1000)})
            assert pool.held("host") >= 4_000 and pool.held("fake:0") >= 4_000
            held = pool.held("host")
            sess.run(tf.reduce_sum(tf.sqrt(x) * 3.0), {x: np.ones(1000)})
            assert held <= pool.held("host") < 2 * held, "only the device was short of memory"


# -- memory_limit


def limited(amount, **fields):
    return tf.Session(config=tf.SessionConfig(memory_limit={"cpu": amount}, **fields))


def test_a_step_that_does_not_fit_into_the_limit_is_refused_before_it_runs():
    with tf.Graph().as_default():
        x, (y,) = totals(1000, 1)
        with limited("20KiB") as sess:
            assert sess.run(y, {x: np.ones(1000)}) == 2000
            with pytest.raises(tf.errors.ResourceExhaustedError, match="memory limit of host") as caught:
                sess.run(y, {x: np.ones(10_000)})
            assert caught.value.expected == "20 KiB at most" and "KiB of buffers" in caught.value.got
            assert sess.run(y, {x: np.ones(1000)}) == 2000


def test_the_limit_takes_the_memory_of_whatever_is_idle_even_of_what_takes_turns():
    with tf.Graph().as_default():
        x, fetches = totals(1000, 4)
        with limited(10_000) as sess:
            pool = sess._planner._pool
            for _ in range(3):
                for i, fetch in enumerate(fetches):
                    assert sess.run(fetch, {x: np.ones(1000)}) == 1000 * (i + 2)
                    assert pool.held("host") <= 10_000


def test_variables_count_in_the_limit_when_they_are_made():
    with tf.Graph().as_default():
        small, large = tf.Variable(tf.zeros([1000])), tf.Variable(tf.zeros([5000]))
        with limited(20_000) as sess:
            sess.run(small.initializer)
            with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
                sess.run(large.initializer)
            assert "19.5 KiB of new variables, beside 3.91 KiB of variables" in caught.value.got
            assert sess.run(small).shape == (1000,)


def test_steps_that_run_count_in_the_limit():
    with tf.Graph().as_default():
        x, (y,) = totals(1000, 1)
        with limited(6_000) as sess:
            seen = tf.RunMetadata()
            sess.run(y, {x: np.ones(1000)}, run_metadata=seen)
            running = seen.plan.lease()
            with pytest.raises(tf.errors.ResourceExhaustedError, match="memory limit") as caught:
                sess.run(y, {x: np.ones(1000)})
            assert "KiB that other steps use now" in caught.value.got
            seen.plan.give_back(running)
            assert sess.run(y, {x: np.ones(1000)}) == 2000


def test_a_limit_for_a_misspelt_device_type_is_refused():
    with pytest.raises(tf.errors.ConfigError, match="memory_limit: no installed plugin owns the device type 'cpuu'"):
        tf.Session(config=tf.SessionConfig(memory_limit={"cpuu": "1GiB"}))


def test_a_session_that_is_closed_while_a_step_is_planned_does_not_begin_it(monkeypatch):
    """As a step does that is planned anew, behind a reset, while another thread closes its session."""
    x = tf.placeholder(tf.float32, [])
    sess = tf.Session()
    plan = sess._planner.plan

    def late(*args, **kwargs):
        made = plan(*args, **kwargs)
        sess._planner.close()
        return made

    monkeypatch.setattr(sess._planner, "plan", late)
    with pytest.raises(tf.errors.CancelledError, match="the step was cancelled: its session was closed while it ran"):
        sess.run(x + 1.0, {x: 1.0})
    sess.close()
