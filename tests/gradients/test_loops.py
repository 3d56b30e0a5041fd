"""Gradients of while_loop: what runs how often, what is kept and for how long, against closed forms and differences."""

from __future__ import annotations

import math
import weakref
from types import SimpleNamespace

import graphdock as tf
import numpy as np
import pytest
from graphdock import dtypes
from graphdock.errors import InvalidArgumentError
from graphdock_executor.straight_line import instance_builder as make
from graphdock_tensorflow.plain_data.writing import as_data
from graphdock_testing.gradient_check import check_gradients


def f64(*shape):
    return tf.placeholder(tf.float64, list(shape))


def power(x, n):
    """x ** (n + 1), by a loop."""
    return tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * x), [0, x])[1]


def histories(op):
    """The histories that a While makes."""
    return [t for t in op.outputs if t.dtype is dtypes.variant]


# -- what runs, and what is kept


def test_the_forward_body_runs_once_and_stateful_ops_keep_their_value(sess):
    calls = []

    def noted(y):
        calls.append(float(y))
        return y * 2.0

    x, v = f64(), tf.Variable(0.0, dtype=tf.float64)

    def body(i, y):
        drawn = tf.random_uniform([], 1.0, 2.0, dtype=tf.float64)
        called = tf.py_func(noted, [y], tf.float64)
        called.set_shape([])
        count = v.assign_add(1.0)
        return i + 1, tf.Print(y * y * drawn * tf.stop_gradient(called) * count, [i], "at ")

    _, y = tf.while_loop(lambda i, y: i < 3, body, [0, x])
    (g,) = tf.gradients(y, x)
    sess.run(v.initializer)
    value, grad = sess.run([y, g], {x: 1.5})
    assert len(calls) == 3 and sess.run(v) == 3.0
    # y -> c * y * y * (a constant): the logarithm of the result grows twice as fast with every iteration
    np.testing.assert_allclose(grad, 8 * value / 1.5, rtol=1e-12)
    only = sess.run(g, {x: 1.5})
    assert len(calls) == 6 and only != grad


@pytest.mark.parametrize("where", ["loop", "cond in a loop"])
def test_dropout_inside_is_that_of_the_forward_loop(sess, where):
    x, masks = f64(6), tf.placeholder_with_default(np.zeros((0, 6)), [None, 6])

    def dropped(y):
        mask = tf.cast(tf.random_uniform([6], dtype=tf.float64, seed=7) < 0.7, tf.float64)
        return y * mask / 0.7, mask

    def body(i, y, masks):
        if where == "loop":
            y, mask = dropped(y)
        else:
            y, mask = tf.cond(tf.equal(i % 2, 0), lambda: dropped(y), lambda: (tf.sin(y), tf.cos(y)))
        return i + 1, y, tf.concat([masks, mask[None]], 0)

    _, y, kept = tf.while_loop(lambda i, *_: i < 5, body, [0, x, masks], shape_invariants=[[], [6], [None, 6]])
    (g,) = tf.gradients(y, x)
    value, factors, grad = sess.run([y, kept, g], {x: np.linspace(0.1, 0.6, 6)})
    scale = 1 / 0.7 if where == "loop" else np.where(np.arange(5) % 2 == 0, 1 / 0.7, 1.0)[:, None]
    np.testing.assert_allclose(grad, (factors * scale).prod(0), rtol=1e-12)
    assert (factors == 0).any() and value.shape == (6,)


def test_a_step_without_the_gradient_is_what_it_was(graph, sess):
    x, n = f64(3), tf.placeholder(tf.int32, [])
    _, y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, tf.tanh(y * x)), [0, x])
    feed = {x: [0.1, 0.2, 0.3], n: 4}
    before = sess.explain(y, feed).source
    runs = [tf.RunMetadata(), tf.RunMetadata()]
    sess.run(y, feed, run_metadata=runs[0])
    (g,) = tf.gradients(y, x)
    sess.run(y, feed, run_metadata=runs[1])
    assert runs[0].plan is runs[1].plan, "plans made before stay valid"
    assert len(histories(y.op)) > 0
    with tf.Session(graph=graph) as other:
        assert other.explain(y, feed).source == before, "what only a gradient needs is pruned"
        assert ".append(" in other.explain(g, feed).source


def test_asking_twice_keeps_once():
    x = f64(2)
    y = power(x, 3)
    tf.gradients(y, x)
    count = len(y.op.outputs)
    tf.gradients(y, x)
    assert len(y.op.outputs) == count


def test_what_no_iteration_changes_is_not_kept():
    h0, w = tf.placeholder(tf.float32, [1, 4]), tf.Variable(np.eye(4, dtype=np.float32))
    c = tf.placeholder(tf.float32, [4, 4])
    body = lambda i, h: (i + 1, tf.tanh(tf.matmul(h, tf.square(w) + tf.exp(c))))  # noqa: E731
    _, h = tf.while_loop(lambda i, h: i < 9, body, [0, h0])
    tf.gradients(h, [w, c])
    kept = h.op.bodies[1].outputs[2:]
    assert kept and all(t.shape == [1, 4] for t in kept)


def test_a_gradient_that_is_not_fetched_keeps_nothing(sess):
    x, w = f64(), f64()
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y) * w), [0, x])
    by_x, by_w = tf.gradients(y, [x, w])
    feed = {x: 0.3, w: 0.7}
    one, both = (sess.explain(f, feed).source for f in (by_x, [by_x, by_w]))
    assert one.count(".append(") < both.count(".append(")
    assert one.count(" k") < both.count(" k"), "the sum over iterations is dropped with what it reads"


class Buffers:
    """Notes, while it is installed, every buffer that a step makes in host memory."""

    def __init__(self, monkeypatch):
        self.made = []
        proxy = SimpleNamespace(**{**vars(np), "empty": self.empty})
        monkeypatch.setattr(make, "np", proxy)

    def empty(self, *args, **kwargs):
        array = np.empty(*args, **kwargs)
        self.made.append(weakref.ref(array))
        return array

    @property
    def alive(self):
        return sum(ref() is not None for ref in self.made)


@pytest.mark.plain
def test_a_history_is_freed_on_the_way_back(sess, monkeypatch):
    alive = []

    @tf.RegisterGradient("Watched")
    def watched(op, grad):
        (seen,) = tf.py_func(lambda g: (alive.append(buffers.alive), g)[1], [grad], [tf.float64])
        seen.set_shape(grad.shape)
        return seen * (1.0 - tf.square(op.outputs[0]))

    buffers = Buffers(monkeypatch)
    x = f64(16)

    def body(i, y):
        with tf.get_default_graph().gradient_override_map({"Tanh": "Watched"}):
            return i + 1, tf.tanh(y)

    _, y = tf.while_loop(lambda i, _: i < 50, body, [0, x])
    (g,) = tf.gradients(y, x)
    sess.run(g, {x: np.full(16, 0.5)})
    assert len(alive) == 50 and alive[0] > 45 and alive[-1] < 5
    assert alive == sorted(alive, reverse=True)
    assert buffers.alive == 0


@pytest.mark.plain
def test_a_history_that_is_read_twice_outlives_the_first_reader(sess, monkeypatch):
    buffers = Buffers(monkeypatch)
    x = f64(4)
    y = power(x, 6)
    first, second = tf.gradients(y, x)[0], tf.gradients(tf.square(y), x)[0]
    at = np.array([0.5, 0.9, 1.1, 2.0])
    a, b = sess.run([first, second], {x: at})
    np.testing.assert_allclose(a, 7 * at**6, rtol=1e-12)
    np.testing.assert_allclose(b, 14 * at**13, rtol=1e-12)
    assert buffers.alive == 2, "what was fetched"


# -- values


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_derivatives_of_a_power_up_to_the_fourth(sess, n):
    x, times = f64(), tf.placeholder(tf.int32, [])
    derivatives = [power(x, times)]
    for _ in range(4):
        derivatives += tf.gradients(derivatives[-1], x)
    got = sess.run(derivatives, {x: 1.25, times: n})
    want = [math.perm(n + 1, k) * 1.25 ** (n + 1 - k) if k <= n + 1 else 0.0 for k in range(5)]
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_two_first_derivatives_of_one_loop_have_a_second_together(sess):
    x = f64()
    y = power(x, 3)
    (a,) = tf.gradients(y, x)
    (b,) = tf.gradients(y * 2.0, x)
    (second,) = tf.gradients(a * b, x)  # of 32 x^6
    assert sess.run(second, {x: 1.5}) == pytest.approx(32 * 6 * 1.5**5)


@pytest.mark.slow
@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.sampled(2)
def test_second_derivatives_of_loops_and_conds_in_one_another(taken, outside):
    x, p, n = f64(2), tf.placeholder(tf.bool, []), tf.placeholder(tf.int32, [])

    def repeated(y):
        def body(i, z):
            then = lambda: tf.cond(z[0] > 0.35, lambda: tf.sin(z) * tf.exp(z), lambda: tf.tanh(z))  # noqa: E731
            return i + 1, then() if outside else tf.cond(tf.equal(i, 1) & p, then, lambda: z * z)

        return tf.while_loop(lambda i, _: i < n, body, [0, y])[1]

    y = tf.cond(p, lambda: repeated(x * 2.0) * x, lambda: tf.cos(x)) if outside else repeated(x)
    a, b = tf.gradients(y, x)[0], tf.gradients(tf.square(y), x)[0]
    feed = {p: taken, n: 3}
    check_gradients(a, {x: [0.3, 0.4]}, feed)
    check_gradients(a * b, {x: [0.3, 0.4]}, feed)
    third = tf.gradients(tf.gradients(a * b, x)[0], x)[0]
    check_gradients(third, {x: [0.3, 0.4]}, feed)


def test_zero_iterations_of_a_body_that_forgets_its_variable(sess):
    x, n = f64(3), tf.placeholder(tf.int32, [])
    _, y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, tf.constant([1.0, 2.0, 3.0], tf.float64)), [0, x])
    (g,) = tf.gradients(y, x)
    assert sess.run(g, {x: [1, 1, 1], n: 0}).tolist() == [1, 1, 1]
    assert sess.run(g, {x: [1, 1, 1], n: 2}).tolist() == [0, 0, 0]


def test_a_variable_that_changes_its_shape_and_has_no_gradient(sess):
    x, z = f64(None), f64(None)
    step = lambda i, y: (i + 1, tf.cond(tf.equal(i, 1), lambda: z, lambda: tf.concat([y, y], 0)))  # noqa: E731
    _, y = tf.while_loop(lambda i, _: i < 3, step, [0, x], shape_invariants=[[], [None]])
    by_x, by_z = tf.gradients(y, [x, z])
    value, a, b = sess.run([y, by_x, by_z], {x: [1.0, 2.0], z: [3.0, 4.0, 5.0]})
    assert value.tolist() == [3, 4, 5, 3, 4, 5] and a.tolist() == [0, 0] and b.tolist() == [2, 2, 2]


@pytest.mark.parametrize("limit", [0, 2, 9])
def test_maximum_iterations(sess, limit):
    x, n = f64(), tf.placeholder(tf.int32, [])
    fixed = tf.while_loop(lambda y: y < 50.0, lambda y: y * y, [x], maximum_iterations=limit)
    fed = tf.while_loop(lambda y: y < 50.0, lambda y: y * y, [x], maximum_iterations=n)
    got = sess.run([tf.gradients(fixed, x)[0], tf.gradients(fed, x)[0]], {x: 1.5, n: limit})
    turns = min(limit, 4)
    assert got == [pytest.approx(2**turns * 1.5 ** (2**turns - 1))] * 2


def test_rows_of_a_captured_table(sess):
    table, rows = f64(5, 2), tf.constant([[0, 3], [3, 3], [1, 0]])

    def step(i, y):
        return y + tf.reduce_sum(tf.square(tf.gather(table, tf.gather(rows, i))), 0) * y

    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, step(i, y)), [0, tf.ones([2], tf.float64)])
    check_gradients(y, {table: np.random.default_rng(3).random((5, 2))})


def test_gradients_inside_of_a_body_that_has_one_itself(sess):
    w = f64()

    def body(i, y):
        (inner,) = tf.gradients(power(y, 2) * w, y)  # 3 y^2 w
        return i + 1, y - 0.1 * inner

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, tf.constant(1.0, tf.float64)])
    check_gradients(y, {w: 0.7})
    value = 1.0
    for _ in range(3):
        value -= 0.3 * value**2 * 0.7
    assert sess.run(y, {w: 0.7}) == pytest.approx(value)


def test_an_lstm_as_torch_has_it(sess):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    xs, h0, c0 = rng.normal(size=(7, 2, 3)), rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
    w, u, b = rng.normal(size=(3, 16)), rng.normal(size=(4, 16)), rng.normal(size=16)
    weights = [tf.Variable(a) for a in (w, u, b)]
    inputs, start = tf.constant(xs), [f64(2, 4), f64(2, 4)]

    def body(t, h, c):
        gates = tf.matmul(tf.gather(inputs, t), weights[0]) + tf.matmul(h, weights[1]) + weights[2]
        i, f, g, o = tf.split(gates, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return t + 1, tf.sigmoid(o) * tf.tanh(c), c

    _, h, c = tf.while_loop(lambda t, *_: t < 7, body, [0, *start])
    grads = tf.gradients(tf.reduce_sum(h * h) + tf.reduce_sum(tf.sin(c)), [*weights, *start])
    sess.run(tf.global_variables_initializer())
    got = sess.run(grads, dict(zip(start, (h0, c0), strict=True)))
    leaves = [torch.tensor(a, requires_grad=True) for a in (w, u, b, h0, c0)]
    cell = torch.nn.LSTMCell(3, 4, dtype=torch.float64)
    ht, ct = leaves[3], leaves[4]
    for x in torch.tensor(xs):
        ht, ct = torch.func.functional_call(
            cell,
            {
                "weight_ih": leaves[0].T,
                "weight_hh": leaves[1].T,
                "bias_ih": leaves[2],
                "bias_hh": torch.zeros(16).double(),
            },
            (x, (ht, ct)),
        )
    ((ht * ht).sum() + ct.sin().sum()).backward()
    for a, leaf in zip(got, leaves, strict=True):
        np.testing.assert_allclose(a, leaf.grad.numpy(), rtol=1e-9, atol=1e-12)


# -- variables


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize("inside", ["the body", "a branch", "an inner loop"])
def test_the_gradient_sees_the_value_that_the_loop_saw(sess, n, inside):
    v, x, times = tf.Variable(2.0, dtype=tf.float64), f64(), tf.placeholder(tf.int32, [])

    def once(y):
        if inside == "the body":
            return y * v
        if inside == "a branch":
            return tf.cond(y > 0.0, lambda: y * v, lambda: y)
        return tf.while_loop(lambda j, _: j < 1, lambda j, z: (j + 1, z * v), [0, y])[1]

    _, y = tf.while_loop(lambda i, _: i < times, lambda i, y: (i + 1, once(y)), [0, x])
    with tf.control_dependencies([y]):
        update = v.assign(100.0)
    by_x, by_v = tf.gradients(y, [x, v])
    sess.run(v.initializer)
    got = sess.run([by_x, by_v, update.op], {x: 5.0, times: n})
    np.testing.assert_allclose(got[:2], [2.0**n, 5.0 * n * 2.0 ** (n - 1)])
    assert sess.run(v) == 100.0
    assert sess.run(by_x, {x: 5.0, times: n}) == pytest.approx(100.0**n)


def test_an_update_before_the_loop_that_was_ordered_late(sess):
    v, x = tf.Variable(2.0, dtype=tf.float64), f64()
    _, y = tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y * v), [0, x])
    (g,) = tf.gradients(y, x)
    update = v.assign(3.0)
    y.op._add_control_input(update.op)
    sess.run(v.initializer)
    assert sess.run([y, g], {x: 1.0}) == [9.0, 9.0]


def test_a_variable_that_the_body_writes(sess):
    v, x = tf.Variable(2.0, dtype=tf.float64), f64()

    def body(i, y):
        y = y * v.read_value()
        with tf.control_dependencies([y]):
            grown = v.assign_add(1.0)
        with tf.control_dependencies([grown]):
            return i + 1, tf.identity(y)

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, x])
    (g,) = tf.gradients(y, x)
    sess.run(v.initializer)
    assert sess.run([y, g], {x: 1.0}) == [24.0, 24.0]
    assert sess.run([y, g], {x: 1.0}) == [210.0, 210.0]


def test_training_in_a_loop_through_a_loop(sess):
    w = tf.Variable(0.9, dtype=tf.float64)

    def body(i):
        (g,) = tf.gradients(power(w.read_value(), 2), [w])
        with tf.control_dependencies([w.assign_sub(0.1 * g)]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 4, body, [0])
    sess.run(w.initializer)
    sess.run(loop)
    value = 0.9
    for _ in range(4):
        value -= 0.3 * value**2
    assert sess.run(w) == pytest.approx(value)


# -- as data, and bad input


def test_a_graph_with_second_derivatives_goes_through_json(graph):
    v, x = tf.Variable(2.0, dtype=tf.float64, name="v"), tf.placeholder(tf.float64, [], name="x")
    body = lambda i, y: (i + 1, tf.cond(y > 3.0, lambda: tf.sin(y) * v, lambda: y * y * v))  # noqa: E731
    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, x])
    with tf.control_dependencies([y]):
        update = v.assign(9.0)
    (first,) = tf.gradients(y, x)
    (second,) = tf.gradients(first, x)
    names = [first.name, second.name, update.op.name, v.initializer.name]
    with tf.Session() as s:
        s.run(v.initializer)
        want = s.run([first, second, update.op], {x: 0.8})
    text = tf.graph_to_json(graph) if hasattr(tf, "graph_to_json") else None
    data = as_data(graph) if text is None else text
    with tf.Graph().as_default() as copy:
        again = tf.import_graph_def(data, return_elements=names, name="")
        assert as_data(copy)["nodes"] == as_data(graph)["nodes"]
        with tf.Session() as s:
            s.run(again[3])
            got = s.run(again[:3], {"x:0": 0.8})
    assert got[:2] == want[:2]


def test_a_history_is_no_tensor(sess):
    x = f64()
    y = power(x, 3)
    tf.gradients(y, x)
    (kept,) = histories(y.op)
    with pytest.raises(InvalidArgumentError, match="cannot fetch while:2: it is what a loop or a branch keeps"):
        sess.run(kept, {x: 1.0})
    with pytest.raises(InvalidArgumentError, match="cannot feed while:2"):
        sess.run(y, {kept: 1.0})
    for wrong in (lambda: tf.constant(1, tf.variant), lambda: kept + 1.0):
        with pytest.raises(tf.errors.DTypeError):
            wrong()


def data_of_a_gradient():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float64, [2], name="x")
        short = tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y * x), [0, x], name="short")[1]
        long = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * tf.sin(y)), [0, x], name="long")[1]
        tf.gradients(short, x, name="a")
        g = tf.gradients(long, x, name="b")[0]
        data = as_data(graph)
    node = next(n for n in data["nodes"] if n["op"] == "While" and n["name"].startswith("b/"))
    return data, node, g.name


def test_histories_of_different_lengths_are_an_error(sess):
    data, node, name = data_of_a_gradient()
    assert node["attrs"]["scanned"] == {"int": 2}
    at = next(i for i, n in enumerate(node["inputs"]) if n.startswith("long:"))
    node["inputs"][at] = "short:2"
    (g,) = tf.import_graph_def(data, return_elements=[name], name="")
    checked = tf.Session(config=tf.SessionConfig(debug=True))
    with checked, pytest.raises(InvalidArgumentError, match="histories of different lengths"):
        checked.run(g, {"x:0": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda n: n["attrs"].update(scanned={"int": 1}), "does not fit the inputs of its node"),
        (lambda n: n["attrs"].update(scanned={"int": -1}), "'scanned' is negative"),
        (lambda n: n["attrs"].update(scanned={"int": 99}), "does not fit the inputs of its node"),
        (lambda n: n["inputs"].__setitem__(slice(1, 2), ["x:0"]), "is no history"),
        (lambda n: n["attrs"].update(Tout={"list(type)": ["float32", "float64"]}), "do not have the dtypes Tout"),
        (lambda n: n["attrs"].update(Tout={"list(type)": ["float64"] * 3}), "is no history"),
    ],
)
def test_a_graph_def_that_binds_histories_wrongly_is_refused(graph, change, message):
    data, node, _ = data_of_a_gradient()
    change(node)
    with pytest.raises(InvalidArgumentError, match=message):
        tf.import_graph_def(data, name="")
    assert not graph.get_operations()


def test_elements_of_another_shape_are_refused_when_a_plan_is_made(sess):
    data, node, name = data_of_a_gradient()
    body = node["attrs"]["body"]["func"]
    element = next(n for n in body["nodes"] if n["name"] == body["parameters"][-1])
    element["attrs"]["shape"] = {"shape": [3]}
    for other in body["nodes"]:
        other.pop("output_shapes", None)
    try:
        (g,) = tf.import_graph_def(data, return_elements=[name], name="")
    except tf.errors.ShapeError:
        return
    with pytest.raises(InvalidArgumentError, match="reads elements of a history as float64"):
        sess.run(g, {"x:0": [1.0, 2.0]})
