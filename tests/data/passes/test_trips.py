"""How often loops run at most, and the indices that they go through, beside what they do."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock_data.passes.affine import Affine, Facts, Scopes
from graphdock_data.passes.trips import NotKnown, indices_of, trips_of

N = 4


def loops(condition, first=0, step=1, limit=None, fed=N):
    n = tf.placeholder(tf.int32, [], name="n")
    made = tf.while_loop(
        lambda i, v: condition(i, v, n), lambda i, v: (i + step, v * 2.0), [first, 1.0], maximum_iterations=limit
    )
    return [*made, n * 1], {n: fed}


TABLE = [
    (lambda i, v, n: i < n, 0, 1, True, N),
    (lambda i, v, n: i <= n, 1, 1, True, N),
    (lambda i, v, n: n > i, 2, 1, True, N - 2),
    (lambda i, v, n: n - 1 >= i + 1, 0, 1, True, N - 1),
    (lambda i, v, n: i < 7, 3, 1, True, 4),
    (lambda i, v, n: i >= 0, N, -1, True, N + 1),
    (lambda i, v, n: i > -1, 2, -1, True, 3),
    (lambda i, v, n: tf.logical_and(i < n, v < 5.0), 0, 1, False, N),
]


@pytest.mark.parametrize("condition,first,step,exact,most", TABLE)
def test_how_often_a_loop_runs(planned, condition, first, step, exact, most):
    fetches, fed = loops(condition, first, step)
    graph, nodes = planned(fetches, fed)
    (loop,) = graph.holders
    trips = trips_of(loop, Scopes(graph, Facts()))
    assert trips.exact is exact
    assert trips.most.number + sum(f * N for _, f in trips.most.terms) == most
    with tf.Session() as sess:
        final = sess.run(fetches[0], fed)
    assert (final - first) * step == most if exact else (final - first) * step < most


@pytest.mark.parametrize("other,exact", [(0, True), (1, False)])
def test_two_counters_that_end_a_loop_at_once_are_as_one(planned, other, exact):
    n = tf.placeholder(tf.int32, [], name="n")
    made = tf.while_loop(lambda i, j: tf.logical_and(i < n, j < n), lambda i, j: (i + 1, j + 1), [0, other])
    graph, _ = planned([*made, n * 1], {n: 4})
    trips = trips_of(graph.holders[0], Scopes(graph, Facts()))
    assert trips.exact is exact and trips.most.terms == ((graph.inputs[0], 1),) and trips.most.number == 0


@pytest.mark.parametrize(
    "condition,first,step,limit,reason",
    [
        (lambda i, v, n: v < 100.0, 0, 1, None, "does not say how far"),
        (lambda i, v, n: i < n, 0, 2, None, "one by one"),
        (lambda i, v, n: i < n, -1, 1, None, "negative"),
        (lambda i, v, n: i < tf.cast(v, tf.int32) + n, 0, 1, None, "does not say how far"),
        (lambda i, v, n: i > n, 0, 1, None, "does not say how far"),
    ],
)
def test_loops_of_which_it_is_not_known(planned, condition, first, step, limit, reason):
    fetches, fed = loops(condition, first, step, limit, fed=-9)
    graph, _ = planned(fetches, fed)
    (loop,) = graph.holders
    with pytest.raises(NotKnown, match=reason):
        trips_of(loop, Scopes(graph, Facts()))


def test_a_limit_is_a_bound(planned):
    fetches, fed = loops(lambda i, v, n: v < 100.0, limit=5)
    graph, _ = planned(fetches, fed)
    trips = trips_of(graph.holders[0], Scopes(graph, Facts()))
    assert trips.most == Affine((), 5) and not trips.exact


def test_the_way_back_goes_through_indices_from_the_last_to_the_first(planned):
    x = tf.placeholder(tf.float32, [3])
    arrays = tf.TensorArray(tf.float32, size=6).unstack(tf.tile(x[tf.newaxis], [6, 1]))
    y = tf.while_loop(lambda i, _: i < 5, lambda i, v: (i + 1, tf.tanh(v + arrays.read(i + 1))), [0, x])[1]
    graph, nodes = planned(tf.gradients(y, x)[0], {x: [1.0, 2.0, 3.0]})
    scopes, known = Scopes(graph, Facts()), {}
    reads = [n for n in nodes.values() if n.op == "TensorListGetItem"]
    back = [n for n in nodes.values() if n.op == "TensorListSetItem"]
    found = []
    for node in (reads[0], back[0]):
        loop = next(n for n in graph.holders if node in n.bodies[1].nodes)
        found.append(indices_of(node.inputs[1], loop, scopes, known))
    forward, backward = found
    assert not forward.falling and backward.falling and backward.trips.loop is forward.trips.loop
    assert forward.low(forward.trips.most) == backward.low(forward.trips.most) == Affine((), 1)
    assert forward.end(forward.trips.most) == Affine((), 6)
    assert forward.within(Affine((), 1), Affine((), 6), scopes)
    assert not forward.within(Affine((), 2), Affine((), 6), scopes)
    assert not forward.within(Affine(), Affine((), 5), scopes)
