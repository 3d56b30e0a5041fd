"""Plans that a session keeps."""

import gc
import threading
import weakref

import graphdock as tf
import numpy as np
import pytest
from graphdock.session import plan_cache


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


class Steps:
    """Steps of one session, each over a chain of some nodes; tells whether each was planned anew."""

    def __init__(self, count, nodes=1, **config):
        self.x = tf.placeholder(tf.float32, [None])
        self.fetches = []
        for i in range(count):
            y = self.x * float(i)
            for _ in range(nodes - 1):
                y = tf.tanh(y)
            self.fetches.append(y)
        self.session = tf.Session(config=tf.SessionConfig(**config))
        self.plans = []

    def cached(self, i, size=2):
        metadata = tf.RunMetadata()
        self.session.run(self.fetches[i], {self.x: np.zeros(size)}, run_metadata=metadata)
        self.plans.append(weakref.ref(metadata.plan))
        return metadata.cached

    @property
    def alive(self):
        gc.collect()
        return len({id(p()) for p in self.plans if p() is not None})


def test_the_least_recently_used_plan_goes_first():
    steps = Steps(4, plan_cache_size=3)
    assert [steps.cached(i) for i in (0, 1, 2, 0, 3)] == [False, False, False, True, False]
    assert [steps.cached(i) for i in (0, 2, 3)] == [True, True, True]
    assert not steps.cached(1)
    assert not steps.cached(0)


def test_shapes_of_one_step_and_steps_share_the_bound():
    steps = Steps(2, plan_cache_size=3, shape_policy="exact")
    for size in range(1, 6):
        steps.cached(0, size)
    assert steps.alive == 3
    steps.cached(1)
    assert steps.alive == 3
    assert steps.cached(1)
    assert not steps.cached(0, 1)


def test_a_shape_that_was_dropped_does_not_put_off_the_generic_plan():
    steps = Steps(1, plan_cache_size=2)
    for size in range(1, 9):
        assert not steps.cached(0, size)
    steps.cached(0, 20)
    steps.cached(0, 30)
    assert steps.alive == 2
    generic = steps.plans[-1]()
    assert generic is steps.plans[-2]() and generic.graph.inputs[0].shape == (None,)


def test_large_plans_are_fewer(monkeypatch):
    monkeypatch.setattr(plan_cache, "NODES", 100)
    monkeypatch.setattr(plan_cache, "ALWAYS", 3)
    small = Steps(20, nodes=2)
    for i in range(20):
        small.cached(i)
    assert small.alive == 20
    large = Steps(10, nodes=60)
    for i in range(10):
        large.cached(i)
    assert large.alive == 3


def test_plans_of_an_older_graph_go_when_their_step_is_planned_again(graph):
    steps = Steps(2)
    steps.cached(0)
    steps.cached(1)
    steps.fetches[0].op._add_control_input(tf.no_op())
    assert not steps.cached(0)
    assert steps.alive == 2
    assert not steps.cached(1)
    assert steps.alive == 2


def test_a_step_that_cannot_be_planned_leaves_nothing_behind():
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as sess:
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="not fed"):
                sess.run(x * 2.0)
        assert not sess._signatures


def test_close_drops_the_plans():
    steps = Steps(3)
    for i in range(3):
        steps.cached(i)
    steps.session.close()
    assert steps.alive == 0


def test_threads_may_use_more_plans_than_are_kept():
    steps = Steps(6, plan_cache_size=2)
    failures = []

    def work(number):
        try:
            for i in range(60):
                which = (i * (number + 1)) % 6
                got = steps.session.run(steps.fetches[which], {steps.x: np.ones(1 + i % 3)})
                assert got.tolist() == [float(which)] * (1 + i % 3)
        except BaseException as error:  # noqa: BLE001 - raised again by the test itself
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert len(steps.session._plans) <= 2


def test_plans_may_be_touched_while_others_are_dropped():
    """Two threads, a cache of two plans, and always one more in use."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        fetches = [x * float(i) for i in range(6)]
        with tf.Session(config=tf.SessionConfig(plan_cache_size=2)) as sess:
            stop, wrong = threading.Event(), []

            def alternate():
                try:
                    while not stop.is_set():
                        for fetch in fetches[:2]:
                            sess.run(fetch, {x: 1.0})
                except Exception as error:  # noqa: BLE001 - told to the test's own thread
                    wrong.append(error)

            thread = threading.Thread(target=alternate)
            thread.start()
            for _ in range(5):
                for i, fetch in enumerate(fetches):
                    assert sess.run(fetch, {x: 2.0}) == 2.0 * i
            stop.set()
            thread.join()
            assert not wrong


@pytest.mark.parametrize("policy", ["generic", "auto"])
def test_explain_shows_the_plan_for_any_shape_where_a_step_would_run_it(policy):
    x, w = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 4])
    y = tf.tanh(x + w) * 2.0
    told = tf.RunMetadata()

    def both(*shape):
        feed = {x: np.ones(shape), w: np.ones((shape[0], 4))}
        explained = session.plan(y, feed)
        session.run(y, feed, run_metadata=told)
        return [[[v.shape for v in n.outputs] for n in plan.graph.nodes] for plan in (explained, told.plan)]

    with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as session:
        for rows in range(1, 9):
            explained, ran = both(rows, 4)
            assert explained == ran and ((None, 4) in ran[-1]) == (policy == "generic")
        explained, ran = both(50, 4)
        assert explained == ran and (None, 4) in ran[-1]
        explained, ran = both(3, 4)  # a plan that is there already
        assert explained == ran and ((None, 4) in ran[-1]) == (policy == "generic")
