"""``gradient_override_map`` belongs to the thread that entered it, and ends where it ends."""

import threading

import graphdock as tf
import pytest
from graphdock.gradients import registry


@pytest.fixture(autouse=True)
def registered():
    before = registry.snapshot()
    for name, slope in (("Ten", 10.0), ("Twenty", 20.0)):
        tf.RegisterGradient(name)(lambda op, g, slope=slope: g * slope)
    yield
    registry.restore(before)


def slope(x, y):
    with tf.Session() as sess:
        return sess.run(tf.gradients(y, x)[0], {x: 3.0})


def test_an_override_map_does_not_reach_other_threads(graph):
    x = tf.placeholder(tf.float32, [])
    made = []

    def other():
        with graph.as_default():
            made.append(tf.square(x))

    with graph.gradient_override_map({"Square": "Ten"}):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        mine = tf.square(x)
    assert slope(x, mine) == 10.0
    assert slope(x, made[0]) == 6.0


def test_override_maps_of_two_threads_may_end_in_any_order(graph):
    x = tf.placeholder(tf.float32, [])
    first, second = (graph.gradient_override_map({"Square": name}) for name in ("Ten", "Twenty"))
    entered, leave = threading.Event(), threading.Event()

    def other():
        with second:
            entered.set()
            assert leave.wait(60)

    thread = threading.Thread(target=other)
    with first:
        thread.start()
        assert entered.wait(60)
    leave.set()
    thread.join()
    assert slope(x, tf.square(x)) == 6.0


def test_inner_maps_add_to_outer_ones(graph):
    x = tf.placeholder(tf.float32, [])
    with graph.gradient_override_map({"Square": "Ten", "Neg": "Ten"}):
        with graph.gradient_override_map({"Square": "Twenty"}):
            inner = tf.square(x)
            kept = tf.negative(x)
        outer = tf.square(x)
    after = tf.square(x)
    assert [slope(x, y) for y in (inner, kept, outer, after)] == [20.0, 10.0, 10.0, 6.0]


def test_maps_of_one_thread_may_end_in_any_order(graph):
    x = tf.placeholder(tf.float32, [])
    first, second = (graph.gradient_override_map({"Square": name}) for name in ("Ten", "Twenty"))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    inside = tf.square(x)
    second.__exit__(None, None, None)
    assert slope(x, inside) == 20.0
    assert slope(x, tf.square(x)) == 6.0


def test_a_map_reaches_into_bodies_and_ends_with_itself(graph):
    x = tf.placeholder(tf.float32, [])

    def looped():
        return tf.while_loop(lambda i, a: i < 1, lambda i, a: (i + 1, tf.square(a)), [0, x])[1]

    with graph.gradient_override_map({"Square": "Ten"}):
        inside = looped()

    def branch():
        with tf.get_default_graph().gradient_override_map({"Square": "Twenty"}):
            first = tf.square(x)
        return first + tf.square(x)

    with graph.gradient_override_map({"Square": "Ten"}):
        mixed = tf.cond(x > 0.0, branch, lambda: x)
    assert [slope(x, y) for y in (inside, looped(), mixed)] == [10.0, 6.0, 30.0]
