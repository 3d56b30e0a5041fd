"""Many threads in one session, with other fetches and shapes each: exact variables, no torn reads, errors that stay at home."""

from __future__ import annotations

import sys
import threading

import graphdock as tf
import numpy as np
import pytest

pytestmark = pytest.mark.modes  # every program runs in debug mode, too
THREADS, STEPS = 8, 120


@pytest.fixture(autouse=True)
def switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class World:
    """A session and what may be asked of it; each request checks its own answer."""

    def __init__(self, **fields):
        with tf.Graph().as_default() as graph:
            self.x = tf.placeholder(tf.float64, [None, 4])
            self.total = tf.Variable(np.zeros(4))
            self.count = tf.Variable(np.int64(0))
            self.big = tf.Variable(np.zeros(20_000))
            self.shapeless = tf.Variable(np.zeros(3, np.int64), validate_shape=False)
            self.y = tf.tanh(self.x) * 2.0
            self.sum = tf.reduce_sum(self.y, 0)
            self.add = self.total.assign_add(tf.ones([4], tf.float64))
            self.increment = self.count.assign_add(np.int64(1))
            self.refill = self.big.assign(self.big.read_value() + 1.0)
            self.next = self.shapeless.assign(self.shapeless.read_value()[::-1] + 1)
            self.loop = tf.while_loop(
                lambda i, a: i < 5, lambda i, a: (i + 1, a * 0.5 + tf.cast(i, tf.float64)), [tf.constant(0), self.sum]
            )[1]
            outside = tf.placeholder_with_default(np.int32(9), [])
            self.broken = tf.gather(self.sum, outside)
            with tf.control_dependencies([self.increment]):
                self.broken_late = tf.gather(self.sum, outside)
            tripled = tf.py_func(lambda a: a * 3, [self.count.read_value()], tf.int64)
            with tf.control_dependencies([tripled]):
                self.python = [tripled, self.big.read_value(), self.count.assign_add(np.int64(1), read_value=False)]
            self.session = tf.Session(graph=graph, config=tf.SessionConfig(**fields))
            self.session.run(tf.global_variables_initializer())
        self.requests = [self.plain, self.updating, self.counting, self.filling, self.reading, self.looping, self.failing,
                         self.failing_late, self.calling, self.growing]  # fmt: skip

    def plain(self, a, done):
        got = self.session.run(self.sum, {self.x: a})
        np.testing.assert_allclose(got, (np.tanh(a) * 2).sum(0), rtol=1e-12, atol=1e-12)

    def updating(self, a, done):
        doubled, total, _ = self.session.run([self.y, self.add, self.sum], {self.x: a})
        done["total"] += 1
        np.testing.assert_allclose(doubled, np.tanh(a) * 2, rtol=1e-12)
        assert len(set(total)) == 1

    def counting(self, a, done):
        self.session.run(self.increment)
        done["count"] += 1

    def filling(self, a, done):
        got = self.session.run(self.refill)
        done["big"] += 1
        assert (got == got[0]).all()

    def reading(self, a, done):
        got, again = self.session.run([self.big, self.total])
        assert (got == got[0]).all() and len(set(again)) == 1

    def looping(self, a, done):
        expected = (np.tanh(a) * 2).sum(0)
        for i in range(5):
            expected = expected * 0.5 + i
        np.testing.assert_allclose(self.session.run(self.loop, {self.x: a}), expected, rtol=1e-12)

    def failing(self, a, done):
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
            self.session.run(self.broken, {self.x: a})
        with pytest.raises(tf.errors.ShapeError):
            self.session.run([self.sum, self.increment], {self.x: np.zeros((2, 3))})

    def failing_late(self, a, done):
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
            self.session.run(self.broken_late, {self.x: a})
        done["count"] += 1  # the update ran before the error

    def calling(self, a, done):
        tripled, big, _ = self.session.run(self.python)
        done["count"] += 1
        assert tripled % 3 == 0 and (big == big[0]).all()

    def growing(self, a, done):
        got, value = self.session.run([self.next, self.shapeless])
        done["shapeless"] += 1
        assert len(set(got)) == 1 and len(set(value)) == 1


@pytest.mark.parametrize("fields", [{}, {"debug": True}, {"shape_policy": "generic"}, {"plan_cache_size": 2}])
@pytest.mark.sampled(2)
def test_threads_do_not_disturb_one_another(fields):
    world = World(**fields)
    done = [dict.fromkeys(["total", "count", "big", "shapeless"], 0) for _ in range(THREADS)]
    failures = []

    def work(number):
        rng = np.random.default_rng(number)
        try:
            for _ in range(STEPS):
                rows = int(rng.integers(0, 14))
                world.requests[int(rng.integers(len(world.requests)))](rng.uniform(-1, 1, (rows, 4)), done[number])
        except BaseException as error:  # noqa: BLE001 - raised again by the test itself
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(t.is_alive() for t in threads), "threads wait for each other"
    if failures:
        raise failures[0]
    for name in ("total", "count", "big", "shapeless"):
        expected = sum(d[name] for d in done)
        assert (np.asarray(world.session.run(getattr(world, name))) == expected).all(), name


def test_a_python_function_may_run_a_step_of_its_own_session():
    with tf.Graph().as_default():
        count = tf.Variable(0)
        increment = count.assign_add(1)
        outer = tf.py_func(lambda a: np.int32(a + sess.run(increment)), [count.read_value()], tf.int32)
        with tf.control_dependencies([outer]):
            after = count.assign_add(10)
        with tf.Session() as sess:
            sess.run(count.initializer)
            assert sess.run([outer, after]) == [1, 11]
            assert sess.run([outer, after]) == [23, 22]


def test_closing_while_others_run():
    """Whoever comes after the close is refused; whoever is inside gets an answer or is refused, and nobody hangs."""
    with tf.Graph().as_default() as graph:
        v = tf.Variable(np.zeros(100))
        update = v.assign_add(np.ones(100))
        sess = tf.Session(graph=graph)
        sess.run(v.initializer)
        begun, strange = threading.Barrier(5), []

        def work():
            begun.wait()
            for _ in range(100_000):
                try:
                    got = sess.run(update)
                    if len(set(got)) != 1:
                        strange.append(got)
                except (tf.errors.FailedPreconditionError, tf.errors.UninitializedError):
                    return
                except BaseException as error:  # noqa: BLE001 - shown by the test itself
                    strange.append(error)
                    return

        threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        begun.wait()
        sess.close()
        for thread in threads:
            thread.join(60)
        assert not any(t.is_alive() for t in threads) and not strange
        with pytest.raises(tf.errors.FailedPreconditionError):
            sess.run(update)
