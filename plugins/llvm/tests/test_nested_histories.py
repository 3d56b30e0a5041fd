"""Loops within loops that keep what they compute, and their gradients, as one native call each: against the cpu's own kernels."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock_tensorflow.plain_data.writing import as_data

LLVM = {"backends": ("llvm", "cpu")}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def same(fetches, feeds, whole, near=1e-4, executor="straight_line", before=()):
    """Steps with the plugin give what they give without it; so many loops are one node each, and none is left in the plan."""
    found = []
    for fields in ({**LLVM, "executor": executor}, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(list(before))
            found.append([sess.run(fetches, feed) for feed in [*feeds, *feeds]])
            if len(found) == 1:
                explained = sess.explain(fetches, feeds[0])
                assert whole == str(explained).count("Loop, whole"), str(explained)
                assert sum(b.verb == "loop" for g in explained.plan.graph.all_graphs() for b in g.nodes) == 0
    for step, other in zip(*found, strict=True):
        for got, want in zip(step, other, strict=True):
            assert np.asarray(got).dtype == np.asarray(want).dtype and np.shape(got) == np.shape(want)
            np.testing.assert_allclose(got, want, near, near * max(1.0, float(np.nanmax(np.abs(want), initial=0.0))))
    return found[0]


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
@pytest.mark.parametrize("size", [3, 300])
def test_the_gradient_of_a_loop_in_a_loop_whose_iterations_differ_in_number(size, executor):
    """Histories of histories grow beyond the room that they begin with; zero iterations, of either loop, are in no one's way."""
    n, m = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    x, w = (tf.placeholder(tf.float32, [size]) for _ in range(2))

    def outer(i, v):
        inner = tf.while_loop(lambda j, _: j < m - tf.minimum(i, 2), lambda j, u: (j + 1, tf.sin(u * w) + 0.5), [0, v])
        return i + 1, tf.tanh(inner[1])

    loop = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), x])
    counts = ((4, 3), (3, 0), (0, 3), (0, 0), (7, 1), (90, 2), (2, 90))
    feeds = [{n: a, m: b, x: numbers(size), w: np.tanh(numbers(size, seed=1))} for a, b in counts]
    feeds.append({**feeds[0], x: np.where(np.arange(size) == 1, np.nan, numbers(size)).astype(np.float32)})
    same([*loop, *tf.gradients(tf.reduce_sum(loop[1]), [x, w])], feeds, 2, executor=executor)


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
def test_three_loops_one_within_the_other(executor):
    a, b, c = (tf.placeholder(tf.int32, []) for _ in range(3))
    x, w = (tf.placeholder(tf.float32, [5]) for _ in range(2))

    def outer(i, v):
        def middle(j, v):
            inner = tf.while_loop(lambda k, _: k < c + i - j, lambda k, u: (k + 1, tf.sin(u) * w + 0.1), [0, v])
            return j + 1, inner[1] * 0.9

        return i + 1, tf.tanh(tf.while_loop(lambda j, _: j < b + tf.minimum(i, 1), middle, [0, v])[1])

    y = tf.while_loop(lambda i, _: i < a, outer, [tf.constant(0), x])[1]
    counts = ((3, 2, 2), (0, 3, 3), (4, 0, 3), (3, 3, 0), (20, 5, 4))
    feeds = [{a: p, b: q, c: r, x: numbers(5), w: numbers(5, seed=1)} for p, q, r in counts]
    same([y, *tf.gradients(tf.reduce_sum(y * y), [x, w])], feeds, 2, executor=executor)


def test_a_gradient_that_the_body_takes_of_a_loop_in_it_and_the_gradient_of_that():
    """The history is made and read in one iteration; its memory serves the next one."""
    n, m = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float32, [4])

    def outer(i, v):
        y = tf.while_loop(lambda j, _: j < m + i, lambda j, u: (j + 1, tf.sin(u) * u), [0, v])[1]
        return i + 1, v - 0.1 * tf.gradients(tf.reduce_sum(y), [v])[0]

    y = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), x])[1]
    feeds = [{n: a, m: b, x: numbers(4)} for a, b in ((3, 3), (0, 4), (3, 0), (40, 2), (2, 90))]
    same([y], feeds, 1, 1e-3)
    same([y, *tf.gradients(tf.reduce_sum(y * y), [x])], [*feeds[:3], {n: 9, m: 2, x: numbers(4)}], 2, 1e-3)


def test_a_gradient_that_the_body_takes_of_loops_in_loops():
    """Both ledgers of the inner loops begin anew in each outer iteration."""
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [4])

    def outer(i, v):
        def middle(j, v, total):
            _, v, total = tf.while_loop(
                lambda k, *_: k < j + 1, lambda k, u, t: (k + 1, tf.sin(u), t * 0.5 + u * u), [0, v, total]
            )
            return j + 1, v, total

        y = tf.while_loop(lambda j, *_: j < 2 + tf.minimum(i, 1), middle, [0, v, v * 0.5])[2]
        return i + 1, tf.tanh(v * 1.5 - tf.gradients(tf.reduce_sum(y), [v])[0])

    y = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), x])[1]
    same([y], [{n: count, x: numbers(4)} for count in (3, 0, 1)], 1, 1e-3)


def test_gradients_of_gradients():
    n, m = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float64, [4])

    def outer(i, v):
        return i + 1, tf.tanh(tf.while_loop(lambda j, _: j < m, lambda j, u: (j + 1, tf.sin(u) * u + 0.5), [0, v])[1])

    y = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), x])[1]
    once = tf.gradients(tf.reduce_sum(y * y), [x])[0]
    twice = tf.gradients(tf.reduce_sum(once * once), [x])[0]
    feeds = [{n: a, m: b, x: numbers(4).astype(float)} for a, b in ((3, 3), (0, 4), (3, 0), (9, 2))]
    same([y, once, twice], feeds, 4, 1e-9)


def test_gradients_are_those_of_differences():
    x, w = tf.constant(numbers(4)), tf.constant(numbers(4, seed=1) * 0.5)

    def outer(i, v):
        inner = tf.while_loop(lambda j, _: j < 2 + tf.minimum(i, 1), lambda j, u: (j + 1, tf.sin(u) * w + 0.3), [0, v])
        return i + 1, tf.tanh(inner[1]) + v * 0.5

    y = tf.while_loop(lambda i, _: i < 3, outer, [tf.constant(0), x])[1]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        text = str(sess.explain(tf.gradients(tf.reduce_sum(y * y), [x, w])))
        assert text.count("Loop, whole") == 2, text
        for source in (x, w):
            assert tf.test.compute_gradient_error(source, [4], y, [4], delta=1e-2) < 5e-3


@pytest.mark.parametrize("reverse", [False, True])
def test_loops_over_rows_within_loops(reverse):
    """A recurrent network in a loop, and one over the rows of rows: tensors that become histories, and histories that become
    tensors."""
    n, x, rows = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [5, 3])

    def outer(i, v):
        made = tf.scan(lambda h, row: tf.tanh(h * 0.5 + row), rows, v)
        turned = tf.map_fn(lambda row: tf.tanh(tf.reduce_sum(row * v)) * row, made)
        return i + 1, tf.tanh(tf.reduce_sum(made * turned, 0) * 0.1)

    y = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), x])[1]
    feeds = [{n: count, x: numbers(3), rows: numbers(5, 3, seed=1)} for count in (3, 0, 80)]
    same([y, *tf.gradients(tf.reduce_sum(y), [x, rows])], feeds, 2, 1e-3)

    z = tf.scan(
        lambda h, row: tf.reduce_sum(tf.map_fn(lambda e: tf.sin(e * h), row)) + h * 0.5, rows, 0.5, reverse=reverse
    )
    first = tf.map_fn(lambda row: tf.scan(lambda h, e: tf.tanh(h + e), row, tf.constant(0.0)), rows)
    fetches = [z, first, *tf.gradients([tf.reduce_sum(z), tf.reduce_sum(first)], [rows])]
    same(fetches, [{rows: numbers(5, 3, seed=2)}], 4)


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
def test_the_gradient_by_a_matrix_of_products_in_an_inner_loop(executor):
    """Its factors are kept, those of all inner iterations end to end; one product behind the loops sums them up."""
    n, m, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [2, 6])
    w, u = tf.placeholder(tf.float32, [6, 6]), tf.placeholder(tf.float32, [6, 6])

    def outer(i, v):
        inner = tf.while_loop(lambda j, _: j < m - i, lambda j, h: (j + 1, tf.tanh(tf.matmul(h, w) + v)), [0, v])
        return i + 1, tf.tanh(tf.matmul(inner[1], u))

    y = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), x])[1]
    fed = {x: numbers(2, 6), w: numbers(6, 6, seed=1) * 0.4, u: numbers(6, 6, seed=2) * 0.4}
    feeds = [{**fed, n: a, m: b} for a, b in ((3, 4), (0, 3), (3, 0), (1, 90), (70, 3))]
    same([y, *tf.gradients(tf.reduce_sum(y * y), [x, w, u])], feeds, 2, 1e-3, executor)


@pytest.mark.parametrize("kind", ["BasicRNNCell", "BasicLSTMCell", "GRUCell"])
def test_recurrent_networks_in_a_loop_are_trained(kind):
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3, 7, 5])
    cell = getattr(tf.nn.rnn_cell, kind)(5)
    tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)  # whose variables it makes, outside of the loop

    def outer(i, v):
        return i + 1, tf.nn.dynamic_rnn(cell, v, dtype=tf.float32)[0] * 0.5 + v * 0.5

    y = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), x])[1]
    variables = tf.trainable_variables()
    before = [v.assign(numbers(*v.shape.as_list(), seed=4) * 0.3) for v in variables]
    feeds = [{n: count, x: numbers(3, 7, 5)} for count in (4, 0, 1)]
    same([y, *tf.gradients(tf.reduce_sum(y * y), variables)], feeds, 2, 1e-3, before=before)


def test_both_ways_over_rows_in_a_loop():
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [2, 3, 4])
    ways = tuple(tf.nn.rnn_cell.GRUCell(4) for _ in range(2))
    with tf.variable_scope("both"):
        tf.nn.bidirectional_dynamic_rnn(*ways, x, dtype=tf.float32)

    def outer(i, v):
        with tf.variable_scope("both", reuse=True):
            there, back = tf.nn.bidirectional_dynamic_rnn(*ways, v, dtype=tf.float32)[0]
        return i + 1, tf.tanh(there * 0.5 - back + tf.reverse(v, [0, 2]) * 0.25)

    y = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), x])[1]
    variables = tf.trainable_variables()
    before = [v.assign(numbers(*v.shape.as_list(), seed=4) * 0.3) for v in variables]
    feeds = [{n: count, x: numbers(2, 3, 4)} for count in (3, 0)]
    same([y, *tf.gradients(tf.reduce_sum(y * y), [x, *variables])], feeds, 2, 1e-3, before=before)


def test_an_inner_loop_whose_gradient_needs_nothing_but_how_often_it_ran():
    n, m, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3])

    def outer(i, v):
        y = tf.while_loop(lambda j, _: j < m + i, lambda j, u: (j + 1, u * 0.5 + 1.0), [0, v])[1]
        return i + 1, y * 0.9

    y = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), x])[1]
    feeds = [{n: a, m: b, x: numbers(3)} for a, b in ((3, 3), (0, 4), (3, 0), (9, 2))]
    same([y, *tf.gradients(tf.reduce_sum(y), [x])], feeds, 2)


def test_limits_and_conditions_of_what_is_computed_at_both_levels():
    x = tf.placeholder(tf.float32, [10])

    def outer(i, v):
        count, y = tf.while_loop(
            lambda j, u: tf.reduce_sum(u) < 10.0 + tf.cast(i, tf.float32),
            lambda j, u: (j + 1, u * 1.2 + 0.1),
            [0, v],
            maximum_iterations=8,
        )
        return i + 1, y * 0.6 + tf.cast(count, tf.float32) * 0.1

    y = tf.while_loop(lambda i, v: tf.reduce_max(v) < 6.0, outer, [0, x], maximum_iterations=7)[1]
    feeds = [{x: numbers(10) * scale} for scale in (1.0, 0.0, 100.0, -100.0, np.nan)]
    same([y, *tf.gradients(tf.reduce_sum(y * y), [x])], feeds, 2, 1e-3)


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
@pytest.mark.parametrize("which", ["forward", "backward"])
def test_one_of_two_nests_alone_is_whole(which, executor):
    """The other one is driven from outside: it makes lists of the inner loop's histories, or takes elements off ragged ones."""
    x, w = tf.placeholder(tf.float32, [5]), tf.placeholder(tf.float32, [5])
    n = tf.placeholder(tf.int32, [])

    @tf.RegisterGradient(f"OneNestAlone{which}{executor}")
    def _(op, grad):
        return grad * (tf.tan(op.inputs[0] * 0.1) if which == "forward" else op.outputs[0])

    def f(v):
        with tf.get_default_graph().gradient_override_map({"Tanh": f"OneNestAlone{which}{executor}"}):
            return tf.tanh(v if which == "forward" else tf.stop_gradient(tf.tan(v * 0.1)) + v)

    def outer(i, v):
        inner = tf.while_loop(lambda j, _: j < 3 + tf.minimum(i, 1), lambda j, u: (j + 1, tf.sin(u) * w + 0.1), [0, v])[
            1
        ]
        return i + 1, f(inner)

    y = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), x])[1]
    fetches = [y, *tf.gradients(tf.reduce_sum(y), [x, w])]
    found = []
    for fields in ({**LLVM, "executor": executor}, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            feeds = [{x: numbers(5), w: numbers(5, seed=1), n: count} for count in (4, 0, 80, 80)]
            found.append([sess.run(fetches, feed) for feed in feeds])
            if len(found) == 1:
                levels = sess.explain(fetches, feeds[0]).plan.graph.all_graphs()
                assert sum(node.verb == "loop" for g in levels for node in g.nodes) == 1
    for got, want in zip(*found, strict=True):
        for g, w_ in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w_, 1e-4, 1e-4)


def test_steps_of_several_threads_have_ledgers_of_their_own():
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [200])

    def outer(i, v):
        inner = tf.while_loop(lambda j, _: j < n - i, lambda j, u: (j + 1, tf.sin(u) + 0.1), [0, v])
        return i + 1, inner[1] * 0.9

    y = tf.while_loop(lambda i, _: i < n, outer, [tf.constant(0), x])[1]
    gradient = tf.gradients(tf.reduce_sum(y), x)[0]
    feeds = [{n: 12 + 9 * k, x: numbers(200, seed=k)} for k in range(3)]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        want, wrong = [sess.run(gradient, feed) for feed in feeds], []

        def work(k):
            for _ in range(8):
                wrong.append(float(np.max(np.abs(sess.run(gradient, feeds[k]) - want[k]))))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(wrong) == 24 and max(wrong) == 0


def test_an_endless_loop_within_one_that_keeps_histories_is_stopped():
    x = tf.placeholder(tf.float32, [2])

    def outer(i, v):
        return i + 1, tf.while_loop(lambda j, u: u[0] < 1e15, lambda j, u: (j + 1, u * u), [0, v])[1]

    y = tf.while_loop(lambda i, _: i < 2, outer, [0, x])[1]
    gradient = tf.gradients(y, x)[0]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        assert str(sess.explain(gradient, {x: [2.0, 1.0]})).count("Loop, whole") == 2
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(gradient, {x: [1.0, 1.0]}, options=tf.RunOptions(timeout_in_ms=50))
        np.testing.assert_allclose(sess.run(gradient, {x: [2.0, 1.0]}), [64 * 2.0**63, 64.0])


def test_what_does_not_fit_raises_and_the_next_step_runs(monkeypatch):
    x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])

    def outer(i, v):
        return i + 1, tf.while_loop(lambda j, u: j < n, lambda j, u: (j + 1, tf.sin(u)), [0, v])[1]

    gradient = tf.gradients(tf.while_loop(lambda i, v: i < 4, outer, [0, x])[1], x)[0]
    empty, feed = np.empty, {x: numbers(3)}

    def no_room(shape, *args, **kwargs):
        if isinstance(shape, tuple) and shape[:1] > (64,) and len(shape) == 2:
            raise MemoryError("there is no room for that")
        return empty(shape, *args, **kwargs)

    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        want = sess.run(gradient, {**feed, n: 3})
        with monkeypatch.context() as patched:
            patched.setattr(np, "empty", no_room)
            with pytest.raises((MemoryError, tf.errors.OpError), match="no room"):
                sess.run(gradient, {**feed, n: 50})
        np.testing.assert_array_equal(sess.run(gradient, {**feed, n: 3}), want)


def test_histories_of_different_lengths_within_a_loop_are_an_error():
    """A graph that somebody else has put together wrongly: an inner loop reads what two others made."""
    with tf.Graph().as_default() as graph:
        x, n = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.int32, [], name="n")

        def outer(i, v):
            short = tf.while_loop(lambda j, _: j < n, lambda j, u: (j + 1, u * v), [0, v], name="short")[1]
            long = tf.while_loop(lambda j, _: j < 3, lambda j, u: (j + 1, u * tf.sin(u)), [0, v], name="long")[1]
            of_long = tf.gradients(long, v, name="b")[0]
            return i + 1, tf.gradients(short, v, name="a")[0] + of_long

        y = tf.while_loop(lambda i, _: i < 2, outer, [0, x])[1]
        data, name = as_data(graph), y.name
    found = []

    def look(thing):
        if isinstance(thing, dict):
            nodes = thing.get("nodes", ())
            for node in nodes if isinstance(nodes, list) else ():
                if node.get("op") == "While" and node["attrs"].get("scanned") == {"int": 2}:
                    found.append((node, [other["name"] for other in nodes]))
            for value in thing.values():
                look(value)
        elif isinstance(thing, (list, tuple)):
            for value in thing:
                look(value)

    look(data)
    ((node, _),) = found
    at = next(i for i, source in enumerate(node["inputs"]) if "long:" in source)
    node["inputs"][at] = node["inputs"][at].partition("long:")[0] + "short:2"
    (z,) = tf.import_graph_def(data, return_elements=[name], name="")
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        feed = {"x:0": [1.0, 2.0], "n:0": 3}
        assert str(sess.explain(z, feed)).count("Loop, whole") == 1
        sess.run(z, feed)
        with pytest.raises(tf.errors.InvalidArgumentError, match="histories of different lengths"):
            sess.run(z, {**feed, "n:0": 2})
        sess.run(z, feed)
