"""gradients: structure of what is added, values against differences and against derivatives worked out by hand, errors."""

from __future__ import annotations

import dataclasses
import logging

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.contracts.ir_check import check
from graphdock.errors import AlreadyExistsError, DTypeError, GradientError, InvalidArgumentError, ShapeError
from graphdock.gradients import registry
from graphdock.passes.dead_code import eliminate_dead_code
from graphdock.planning.translate import translate
from graphdock_testing.gradient_check import check_gradients, compute_gradient, compute_gradient_error


@pytest.fixture(autouse=True)
def graph():
    state = registry.snapshot()
    with tf.Graph().as_default() as g:
        yield g
    registry.restore(state)


@pytest.fixture
def sess(graph):
    with tf.Session() as s:
        yield s


def added(graph, before):
    return [op.type for op in graph.get_operations()[before:]]


def f64(*shape, name=None):
    return tf.placeholder(tf.float64, list(shape), name=name)


# -- values


def test_matmul_chain_against_differences():
    x, w, b = f64(4, 3), f64(3, 2), f64(2)
    h = tf.matmul(x, w) + b
    y = tf.reduce_sum(tf.square(h) * tf.sigmoid(h), axis=1)
    rng = np.random.default_rng(1)
    error = check_gradients(y, {x: rng.normal(size=(4, 3)), w: rng.normal(size=(3, 2)), b: rng.normal(size=2)})
    assert error < 1e-6


def test_core_ops_against_differences():
    x = f64(2, 3)
    default = tf.placeholder_with_default(x, [2, 3])
    parts = [tf.identity(x), default, tf.check_numerics(x * x, "x"), tf.cast(tf.cast(x, tf.float64), tf.float64)]
    check_gradients(tf.add_n(parts), {x: np.random.default_rng(0).normal(size=(2, 3))})


def test_jacobian_of_a_matrix_product():
    x = f64(2)
    w = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = tf.matmul(tf.reshape(x, [1, 2]), tf.constant(w))
    symbolic, numeric = compute_gradient(x, [2], y, [1, 3])
    np.testing.assert_array_equal(symbolic, w)
    np.testing.assert_allclose(numeric, w, atol=1e-8)
    assert compute_gradient_error(x, [2], y, [1, 3]) < 1e-8


def test_the_check_finds_a_wrong_gradient(graph):
    tf.RegisterGradient("WrongSquare")(lambda op, grad: grad * op.inputs[0])
    x = f64(3)
    with graph.gradient_override_map({"Square": "WrongSquare"}):
        y = tf.square(x)
    with pytest.raises(AssertionError, match="differences say"):
        check_gradients(y, {x: [1.0, 2.0, 3.0]})
    with pytest.raises(DTypeError, match="float64"):
        check_gradients(tf.square(tf.constant(1.0)), {tf.constant(1.0): 1.0})


def test_cast_scales_nothing_and_stops_at_integers(sess):
    x = tf.placeholder(tf.float32, [2])
    (g,) = tf.gradients(tf.cast(x, tf.float64) * 3.0, x)
    assert g.dtype == tf.float32 and sess.run(g, {x: [1, 2]}).tolist() == [3.0, 3.0]
    assert tf.gradients(tf.cast(tf.cast(x, tf.int32), tf.float32), x) == [None]


def test_a_variables_gradient_sums_all_its_reads(sess):
    v = tf.Variable(3.0)
    y = v * v + v.read_value() * 5.0
    gv, gr = tf.gradients(y, [v, v.value()])
    sess.run(v.initializer)
    assert sess.run([gv, gr]) == [2 * 3.0 + 5.0, 2 * 3.0]


def test_several_ys_and_grad_ys(sess):
    x = tf.placeholder(tf.float32, [])
    a, b = x * 2.0, x * x
    feed = {x: 5.0}
    assert sess.run(tf.gradients([a, b], [x]), feed) == [2 + 10]
    assert sess.run(tf.gradients([a, b], [x], grad_ys=[10.0, None]), feed) == [20 + 10]
    assert sess.run(tf.gradients(x, [x]), feed) == [1.0]
    with pytest.raises(InvalidArgumentError, match="grad_ys does not fit"):
        tf.gradients([a, b], x, grad_ys=[1.0])
    with pytest.raises(ShapeError, match=r"grad_ys\[0\]"):
        tf.gradients(a, x, grad_ys=[[1.0, 2.0]])


def test_intermediate_tensors_are_xs_as_well(sess):
    x = tf.placeholder(tf.float32, [])
    h = tf.square(x)
    y = h * 3.0
    assert sess.run(tf.gradients(y, [x, h, y, x]), {x: 2.0}) == [12.0, 3.0, 1.0, 12.0]


def test_stop_gradients_as_documented(sess):
    """TensorFlow's own example: with a = 0, b = 2 a the partial derivatives of a + b are 1 and 1, the total one is 3."""
    a = tf.constant(0.0)
    b = 2 * a
    assert sess.run(tf.gradients(a + b, [a, b])) == [3.0, 1.0]
    assert sess.run(tf.gradients(a + b, [a, b], stop_gradients=[a, b])) == [1.0, 1.0]
    assert sess.run(tf.gradients(tf.stop_gradient(b) + a, [a])) == [1.0]


def test_second_derivatives(sess):
    x = tf.placeholder(tf.float64, [])
    y = x * x * x
    (first,) = tf.gradients(y, x)
    (second,) = tf.gradients(first, x)
    assert sess.run([first, second], {x: 2.0}) == [12.0, 12.0]


def test_unconnected(sess):
    x, other = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [3])
    y = x + 1.0
    assert tf.gradients(y, [other]) == [None]
    (zeros,) = tf.gradients(y, [other], unconnected_gradients="zero")
    assert sess.run(zeros, {other: [1, 2, 3]}).tolist() == [0, 0, 0]
    with pytest.raises(InvalidArgumentError, match="unconnected_gradients"):
        tf.gradients(y, x, unconnected_gradients="zeros")


# -- structure


def test_only_ops_between_are_differentiated(graph):
    x, c = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
    side = tf.exp(c)
    y = tf.negative(x) * side
    before = graph.version
    tf.gradients(y, x)
    scopes = {op.name.split("/")[1] for op in graph.get_operations()[before:]}
    assert scopes == {"grad_ys_0", "mul_grad", "Neg_grad"}


def test_tensors_with_several_users_get_one_addn(graph):
    x = tf.placeholder(tf.float32, [3])
    for users in (1, 2, 5):
        before = graph.version
        y = tf.add_n([tf.negative(x) for _ in range(users)])
        tf.gradients(y, x)
        sums = [op for op in graph.get_operations()[before:] if op.type == "AddN" and op.name.startswith("gradients")]
        assert [len(op.inputs) for op in sums] == ([users] if users > 1 else [])


def test_names_stand_in_scopes_of_their_ops():
    x = tf.placeholder(tf.float32, [3])
    with tf.name_scope("layer"):
        y = tf.square(x, name="sq")
    (g,) = tf.gradients(y, x)
    assert g.name.startswith("gradients/layer/sq_grad/")
    (again,) = tf.gradients(y, x, name="mine")
    assert again.name.startswith("mine/layer/sq_grad/")


@pytest.mark.slow
def test_a_long_chain_needs_no_recursion(graph):
    x = y = tf.placeholder(tf.float32, [])
    for _ in range(20_000):
        y = tf.negative(y)
    before = graph.version
    tf.gradients(y, x)
    assert added(graph, before).count("Neg") == 20_000


def test_colocation_with_the_ops(graph):
    x = tf.placeholder(tf.float32, [3])
    y = tf.negative(x, name="neg")
    (g,) = tf.gradients(y, x, colocate_gradients_with_ops=True)
    assert g.op.colocation_groups() == [b"loc:@neg"]


def test_static_shapes_are_the_xs():
    x = tf.placeholder(tf.float32, [None, 4])
    w = tf.Variable(np.ones((4, 2), np.float32))
    gx, gw = tf.gradients(tf.matmul(x, w), [x, w])
    assert gx.shape == [None, 4] and gw.shape == [4, 2]


def test_inside_a_body_outer_tensors_and_variables_are_xs(sess):
    w = tf.Variable(5.0)

    def body(i):
        (g,) = tf.gradients(tf.square(w.read_value()), [w])
        with tf.control_dependencies([w.assign_sub(0.1 * g)]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 3, body, [0])
    sess.run(w.initializer)
    sess.run(loop)
    assert sess.run(w) == pytest.approx(5.0 * 0.8**3)


# -- errors


def test_what_is_not_floating_has_no_gradient_and_gives_none(sess):
    i, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [])
    assert tf.gradients(i * 2, [i]) == [None] == tf.gradients(x, tf.Variable(1, name="step"))
    of_x, of_i = tf.gradients([x * x, tf.cast(x, tf.int32)], [x, i])
    assert of_i is None and sess.run(of_x, {x: 3.0}) == 6.0
    [of_i] = tf.gradients(x, [i], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert of_i.dtype is tf.int32 and sess.run(of_i, {i: 7}) == 0


def test_what_can_have_no_gradient_is_refused():
    x = tf.placeholder(tf.float32, [])
    with pytest.raises(InvalidArgumentError, match=r"xs\[0\] must be a tensor or a Variable"):
        tf.gradients(x, [1.0])


def test_other_graphs_are_refused():
    x = tf.placeholder(tf.float32, [])
    with tf.Graph().as_default():
        y = tf.placeholder(tf.float32, [])
    with pytest.raises(InvalidArgumentError, match="different graphs"):
        tf.gradients([x, y], x)
    with pytest.raises(InvalidArgumentError, match="another graph"):
        tf.gradients(x, y)


def test_a_missing_gradient_shows_the_path_and_adds_nothing(graph):
    x = tf.placeholder(tf.float32, [], name="x")
    h = tf.square(x, name="h")

    def step(a):
        with tf.get_default_graph().gradient_override_map({"Neg": "Broken"}):
            return tf.negative(a * 2.0, name="inside")

    loop = tf.while_loop(lambda a: a < 100.0, step, [h], name="loop")
    loss = tf.negative(loop, name="loss")
    with graph.gradient_override_map({"Neg": "Broken"}):
        odd = tf.negative(h, name="odd")
    before = graph.version, len(loop.op.outputs)
    with pytest.raises(GradientError, match="'Broken', which is not registered") as info:
        tf.gradients(loss, x)
    assert info.value.op_name == "loop/body/inside"
    assert "inside the body 'loop/body' of loop, made at" in "".join(info.value.__notes__)
    with pytest.raises(GradientError, match="'Broken', which is not registered"):
        tf.gradients(odd, x)
    assert (graph.version, len(loop.op.outputs)) == before
    assert tf.gradients(loss, tf.placeholder(tf.float32, [])) == [None]
    (g,) = tf.gradients(tf.stop_gradient(loop) * x, x)
    assert g is not None


def test_an_op_without_gradient_is_shown_with_the_path_to_it(graph, monkeypatch):
    x = tf.placeholder(tf.float32, [], name="x")
    h = tf.square(x, name="h")
    loss = tf.negative(tf.sigmoid(h, name="middle"), name="loss")
    opdef = dataclasses.replace(h.op.op_def, gradient_kinds={"x": "todo: somebody must write it"})
    monkeypatch.setattr(h.op, "op_def", opdef)
    before = graph.version
    with pytest.raises(GradientError) as info:
        tf.gradients(loss, x)
    text = str(info.value)
    assert "h (Square) stands between loss and x:0" in text and "somebody must write it" in text
    places = [text.index(line) for line in ("loss (Neg), made at", "middle (Sigmoid), made at", "h (Square), made at")]
    assert places == sorted(places)
    assert text.count("test_gradients.py:") >= 3 and "stop_gradient" in info.value.hint
    assert graph.version == before


def test_a_gradient_function_that_does_not_fit_is_named():
    x = tf.placeholder(tf.float32, [3])
    cases = [
        (lambda op, grad: [grad, grad], InvalidArgumentError, "wrong number of gradients"),
        (lambda op, grad: tf.cast(grad, tf.float64), DTypeError, "another dtype than input 0"),
        (lambda op, grad: tf.reduce_sum(grad), ShapeError, "another shape than input 0"),
    ]
    for function, kind, message in cases:
        state = registry.snapshot()
        tf.RegisterGradient("Square")(function)
        with pytest.raises(kind, match=message) as info:
            tf.gradients(tf.square(x), x)
        assert "Square" in str(info.value) and "<lambda>" in str(info.value)
        registry.restore(state)


# -- registration


def test_the_seeds_square_gradient(sess, caplog):
    @ops.RegisterGradient("Square")
    def SquareGrad(op, grad):
        x = op.inputs[0]
        with ops.control_dependencies([grad.op]):
            return grad * (2.0 * x)

    x = tf.placeholder(tf.float32, [3])
    y = tf.square(x)
    with caplog.at_level(logging.INFO, logger="graphdock"):
        (g,) = tf.gradients(y, x)
        tf.gradients(y, x)
    assert len(caplog.records) == 1 and "SquareGrad" in caplog.records[0].getMessage()
    assert g.op.control_inputs[0].name == "gradients/grad_ys_0"
    assert sess.run(g, {x: [1, 2, 3]}).tolist() == [2, 4, 6]
    with pytest.raises(AlreadyExistsError, match="SquareGrad"):
        ops.RegisterGradient("Square")(SquareGrad)


def test_not_differentiable_stops():
    ops.NotDifferentiable("Square")
    x = tf.placeholder(tf.float32, [])
    assert tf.gradients(tf.square(x), x) == [None]


def test_override_map_holds_for_ops_made_inside(graph, sess):
    ops.RegisterGradient("Tenfold")(lambda op, grad: grad * 10.0)
    x = tf.placeholder(tf.float32, [])
    plain = tf.square(x)
    with graph.gradient_override_map({"Square": "Tenfold"}):
        odd = tf.square(x)
    assert sess.run(tf.gradients(plain, x) + tf.gradients(odd, x), {x: 3.0}) == [6.0, 10.0]
    with graph.gradient_override_map({"Square": "Tenfould"}):
        wrong = tf.square(x)
    with pytest.raises(GradientError, match="not registered") as info:
        tf.gradients(wrong, x)
    assert "Tenfold" in info.value.hint


def test_a_registered_function_gets_zeros_where_no_gradient_arrives(sess):
    seen = []

    @ops.RegisterGradient("Unpack")
    def unpack(op, *grads):
        seen.extend(grads)
        return tf.stack(list(grads))

    x = tf.placeholder(tf.float32, [2, 3])
    first, _ = tf.unstack(x, num=2)
    (g,) = tf.gradients(first, x)
    assert len(seen) == 2 and None not in seen
    assert sess.run(g, {x: np.zeros((2, 3))}).tolist() == [[1, 1, 1], [0, 0, 0]]


# -- IndexedSlices


def test_gathers_give_the_gradient_of_their_rows(sess):
    table = tf.Variable(np.arange(8.0, dtype=np.float64).reshape(4, 2))
    picked = tf.gather(table, [2, 0, 2])
    (g,) = tf.gradients(tf.square(picked), [table])
    sess.run(table.initializer)
    want = np.zeros((4, 2))
    np.add.at(want, [2, 0, 2], 2 * np.arange(8.0).reshape(4, 2)[[2, 0, 2]])
    np.testing.assert_array_equal(sess.run(tf.convert_to_tensor(g)), want)


def test_indexed_slices_become_a_tensor(sess):
    slices = tf.IndexedSlices(
        tf.constant([[1.0, 1.0], [2.0, 3.0], [10.0, 10.0]]), tf.constant([3, 0, 3]), tf.constant([4, 2])
    )
    assert slices.shape == [4, 2] and slices.dtype == tf.float32
    assert sess.run(tf.convert_to_tensor(slices)).tolist() == [[2, 3], [0, 0], [0, 0], [11, 11]]
    with pytest.raises(InvalidArgumentError, match="dense_shape"):
        tf.convert_to_tensor(tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([0])))
    with pytest.raises(DTypeError, match="indices"):
        tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([0.0]))


# -- cond


def branchy(x, p, v=None):
    def true_fn():
        h = tf.tanh(x * 3.0)
        return tf.exp(h) * h + (x if v is None else v * x)

    return tf.cond(p, true_fn, lambda: tf.square(x) * 0.5)


@pytest.mark.parametrize("choice", [True, False])
def test_cond_against_differences(choice):
    x, p = f64(3), tf.placeholder(tf.bool, [])
    y = tf.reduce_sum(tf.sigmoid(branchy(tf.sin(x), p)))
    check_gradients(y, {x: [0.3, -0.7, 1.1]}, {p: choice})


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_nested_conds_and_second_derivatives_against_differences(outer, inner):
    x, p, q = f64(), tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    scale = tf.exp(x)
    y = tf.cond(p, lambda: tf.cond(q, lambda: tf.sin(x * scale), lambda: scale * x) * x, lambda: branchy(scale, q))
    feed = {p: outer, q: inner}
    check_gradients(y, {x: 0.4}, feed)
    (first,) = tf.gradients(y, x)
    check_gradients(first, {x: 0.4}, feed)


def test_cond_and_its_variables(sess):
    v, u = tf.Variable(2.0), tf.Variable([1.0, 2.0])
    x, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: v * v * x, lambda: tf.reduce_sum(u * u) * x)
    grads = tf.gradients(y, [v, u, x])
    sess.run(tf.global_variables_initializer())
    gv, gu, gx = sess.run(grads, {p: True, x: 3.0})
    assert (gv, gu.tolist(), gx) == (12.0, [0.0, 0.0], 4.0)
    gv, gu, gx = sess.run(grads, {p: False, x: 3.0})
    assert (gv, gu.tolist(), gx) == (0.0, [6.0, 12.0], 5.0)


def test_cond_with_random_values_uses_the_forward_ones(sess):
    x, p = tf.placeholder(tf.float32, [4]), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: x * tf.random_uniform([4]), lambda: x)
    (g,) = tf.gradients(y, x)
    for _ in range(3):
        value, gradient = sess.run([y, g], {x: np.ones(4), p: True})
        np.testing.assert_array_equal(value, gradient)
    assert sess.run(g, {x: np.ones(4), p: False}).tolist() == [1, 1, 1, 1]


def test_cond_of_unknown_shapes(sess):
    x, p = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.exp(x) * x, lambda: tf.reduce_sum(tf.square(x)))
    (g,) = tf.gradients(y, x)
    at = np.array([[0.0, 1.0], [2.0, -1.0], [0.5, 0.25]], np.float32)
    np.testing.assert_allclose(sess.run(g, {x: at, p: True}), np.exp(at) * (1 + at), rtol=1e-6)
    np.testing.assert_allclose(sess.run(g, {x: at, p: False}), 2 * at, rtol=1e-6)


def test_plans_and_updates_made_before_stay(sess):
    v = tf.Variable(0.0)
    x, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: v.assign_add(1.0) * tf.exp(x), lambda: x)
    sess.run(v.initializer)
    assert sess.run(y, {x: 0.0, p: True}) == 1.0
    (g,) = tf.gradients(y, x)
    assert len(y.op.outputs) > 1 and y.op.get_attr("Tout") == tuple(t.dtype for t in y.op.outputs)
    assert sess.run(y, {x: 0.0, p: True}) == 2.0
    assert sess.run([y, g], {x: 0.0, p: True}) == [3.0, 3.0]
    count = len(y.op.outputs)
    tf.gradients(y, x)
    assert len(y.op.outputs) == count


def test_cond_in_a_loops_training(sess):
    w = tf.Variable(4.0)

    def body(i):
        loss = tf.cond(tf.equal(i % 2, 0), lambda: tf.square(w.read_value()), lambda: w.read_value() * 3.0)
        (g,) = tf.gradients(loss, [w])
        with tf.control_dependencies([w.assign_sub(0.1 * g)]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 4, body, [0])
    sess.run(w.initializer)
    sess.run(loop)
    value = 4.0
    for i in range(4):
        value -= 0.1 * (2 * value if i % 2 == 0 else 3.0)
    assert sess.run(w) == pytest.approx(value, rel=1e-6)


def test_what_a_branch_hides_is_found_before_anything_is_added(graph):
    x, p = tf.placeholder(tf.float32, [], name="x"), tf.placeholder(tf.bool, [])

    def step(a):
        with tf.get_default_graph().gradient_override_map({"Neg": "Broken"}):
            return tf.negative(a)

    y = tf.cond(p, lambda: tf.while_loop(lambda a: a < 9.0, step, [x]), lambda: x)
    before = graph.version
    with pytest.raises(GradientError, match="'Broken'") as info:
        tf.gradients(y, x)
    assert [n.split(" of ")[0] for n in info.value.__notes__] == [
        "inside the body 'cond/then/while/body'",
        "inside the body 'cond/then'",
    ]
    assert graph.version == before and len(y.op.outputs) == 1


def test_an_embedding_in_a_branch(sess):
    table, p = tf.Variable(np.ones((4, 2), np.float32)), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.reduce_sum(tf.gather(table, [1, 1, 3])), lambda: tf.constant(0.0))
    (g,) = tf.gradients(y, table)
    sess.run(table.initializer)
    assert sess.run(g, {p: True}).tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]
    assert sess.run(g, {p: False}).tolist() == [[0, 0]] * 4


# -- while_loop


@pytest.mark.parametrize("steps", [0, 1, 6])
def test_while_against_differences(steps):
    x, n = f64(), tf.placeholder(tf.int32, [])
    _, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x + tf.sin(y)), [0, tf.exp(x)])
    check_gradients(y, {x: 0.3}, {n: steps})


@pytest.mark.parametrize("batch", [2, None])
def test_a_recurrence_against_the_same_unrolled(sess, batch):
    rng = np.random.default_rng(5)
    h0 = tf.placeholder(tf.float64, [batch, 3])
    w, b = tf.Variable(rng.normal(size=(3, 3))), tf.Variable(rng.normal(size=3))
    xs = tf.constant(rng.normal(size=(5, 3)))
    step = lambda i, h: tf.tanh(tf.matmul(h, w) * h + b + tf.gather(xs, i))  # noqa: E731
    _, looped = tf.while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, step(i, h)), [0, h0])
    unrolled = h0
    for i in range(5):
        unrolled = step(i, unrolled)
    sess.run(tf.global_variables_initializer())
    feed = {h0: rng.normal(size=(2, 3))}
    wanted = sess.run(tf.gradients(unrolled, [h0, w, b]), feed)
    for got, want in zip(sess.run(tf.gradients(looped, [h0, w, b]), feed), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_loops_in_loops_and_conds_in_loops_against_differences():
    x, p = f64(2), tf.placeholder(tf.bool, [])

    def inner(y, i):
        return tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, tf.sin(z) * x + z), [0, y])[1]

    def body(i, y):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: inner(y, i) * y, lambda: tf.exp(y * 0.1) * x)

    _, y = tf.while_loop(lambda i, y: i < 4, body, [0, x])
    out = tf.cond(p, lambda: tf.reduce_sum(y * y), lambda: tf.reduce_sum(inner(x, tf.constant(3))))
    for choice in (True, False):
        check_gradients(out, {x: [0.3, -0.2]}, {p: choice})


def test_second_derivatives_of_a_loop():
    x = f64()
    _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * tf.sin(x * y)), [0, x + 1.0])
    (first,) = tf.gradients(y, x)
    check_gradients(first, {x: 0.4})


def test_a_loop_whose_shapes_grow():
    x = f64(2)
    grow = lambda i, y: (i + 1, tf.concat([tf.sin(y), y * y], 0))  # noqa: E731
    _, y = tf.while_loop(lambda i, y: i < 3, grow, [0, x], shape_invariants=[[], [None]])
    check_gradients(y, {x: [0.3, 0.8]})


def test_a_loop_limited_by_maximum_iterations(sess):
    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda y: y < 1e6, lambda y: y * x, [x], maximum_iterations=3)
    (g,) = tf.gradients(y, x)
    assert sess.run([y, g], {x: 2.0}) == [16.0, 4 * 8.0]


def test_loop_variables_that_are_swapped_or_passed_through(sess):
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    _, x, y, z = tf.while_loop(lambda i, *_: i < 3, lambda i, x, y, z: (i + 1, y, x * 2.0, z), [0, a, b, a])
    grads = tf.gradients([x, y * 10.0, z * 100.0], [a, b])
    # after three steps x = 2 b, y = 4 a, z = a
    assert sess.run(grads, {a: 1.0, b: 1.0}) == [40.0 + 100.0, 2.0]


def test_a_step_without_the_gradient_does_not_compute_what_only_that_needs(sess):
    x, p = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.exp(tf.tanh(x) * x), lambda: tf.square(x))
    tf.gradients(y, x)
    plan = translate([y], [], [(x, (3,)), (p, ())])
    (node,) = [n for n in plan.nodes if n.op == "Cond"]
    assert len(node.outputs) > 1
    eliminate_dead_code(plan)
    assert [v.index for v in node.outputs] == [0] and all(len(b.outputs) == 1 for b in node.bodies)
    check(plan)
    np.testing.assert_allclose(sess.run(y, {x: [1, 2, 3], p: False}), [1, 4, 9])


# -- corners of cond and while_loop


@pytest.mark.parametrize("choice", [True, False])
def test_a_branch_that_returns_what_it_captured_and_one_tensor_twice(choice):
    x, p = f64(2), tf.placeholder(tf.bool, [])

    def branch():
        h = tf.sin(x)
        return x, h, h

    a, b, c = tf.cond(p, branch, lambda: (x * x, x, x * 3.0))
    check_gradients([a, b * 2.0, c * c], {x: [0.3, 0.4]}, {p: choice})


def test_an_output_of_a_cond_that_is_also_its_incoming_gradient(sess):
    x, p = f64(), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.exp(x), lambda: x)
    (g,) = tf.gradients(y, x, grad_ys=y)
    assert sess.run(g, {x: 0.5, p: True}) == pytest.approx(np.exp(1.0))


@pytest.mark.parametrize("choice", [0, 1, 2])
def test_case_against_differences(choice):
    x, k = f64(), tf.placeholder(tf.int32, [])
    pairs = [(tf.equal(k, 0), lambda: tf.sin(x)), (tf.equal(k, 1), lambda: x * x)]
    check_gradients(tf.case(pairs, default=lambda: tf.exp(x)), {x: 0.7}, {k: choice})


def test_variables_of_unknown_shape_in_a_branch(sess):
    v = tf.Variable(tf.placeholder_with_default(np.ones(3), [None]), validate_shape=False)
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.reduce_sum(v * v), lambda: tf.constant(0.0, tf.float64))
    (g,) = tf.gradients(y, v)
    sess.run(v.initializer)
    assert sess.run(g, {p: True}).tolist() == [2, 2, 2] and sess.run(g, {p: False}).tolist() == [0, 0, 0]


def test_bools_are_kept_from_iteration_to_iteration():
    x = f64(3)
    step = lambda y: tf.where(y > 0.2, y * 0.5 + tf.nn.relu(y - 0.3), y * 3.0)  # noqa: E731
    _, y = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, step(y)), [0, x])
    check_gradients(y, {x: [0.35, 0.05, 0.9]})


def test_gathers_in_a_loop_against_the_same_unrolled(sess):
    table, ids = tf.Variable(np.random.default_rng(0).random((5, 2))), tf.constant([0, 3, 3, 1])
    start = tf.constant([1.0, 1.0], tf.float64)
    step = lambda i, y: y * tf.gather(table, tf.gather(ids, i)) + 1.0  # noqa: E731
    _, looped = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, step(i, y)), [0, start])
    unrolled = start
    for i in range(4):
        unrolled = step(i, unrolled)
    sess.run(table.initializer)
    got, want = (sess.run(tf.convert_to_tensor(tf.gradients(y, table)[0])) for y in (looped, unrolled))
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_stopped_captures_of_a_loop(sess):
    x = f64()
    z = tf.sin(x)
    _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * z), [0, x])
    gx, gz = sess.run(tf.gradients(y, [x, z], stop_gradients=[z]), {x: 0.5})
    assert gx == pytest.approx(np.sin(0.5) ** 3) and gz == pytest.approx(3 * 0.5 * np.sin(0.5) ** 2)


def test_training_through_a_loop(sess):
    w = tf.Variable(0.5)
    _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * w), [0, tf.constant(2.0)])
    (g,) = tf.gradients(tf.square(y - 1.0), w)
    step = w.assign_sub(0.05 * g)
    sess.run(w.initializer)
    for _ in range(200):
        sess.run(step)
    assert sess.run(w) == pytest.approx(0.5 ** (1 / 3), rel=1e-5)


@pytest.mark.parametrize(("outer", "inner"), [(True, True), (True, False), (False, True)])
def test_a_variable_that_only_one_branch_of_nested_conds_reads(sess, outer, inner):
    w = tf.Variable(3.0, dtype=tf.float64)
    x, p, q = f64(), tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.cond(q, lambda: w * x * x, lambda: x * 5.0), lambda: x * 7.0)
    by_w, by_x = tf.gradients(y, [w, x])
    sess.run(w.initializer)
    got = sess.run([by_w, by_x], {x: 2.0, p: outer, q: inner})
    assert got == ([4.0, 12.0] if outer and inner else [0.0, 5.0] if outer else [0.0, 7.0])


def test_override_map_holds_in_bodies(graph, sess):
    @tf.RegisterGradient("TenfoldInBodies")
    def tenfold(op, grad):
        return grad * 10.0

    x = f64()
    with graph.gradient_override_map({"Square": "TenfoldInBodies"}):
        y = tf.cond(x > 0, lambda: tf.square(x), lambda: x)
    assert sess.run(tf.gradients(y, x), {x: 2.0}) == [10.0]


def test_nothing_flows_on_where_a_gradient_function_returns_none():
    @tf.RegisterGradient("Tanh")
    def nothing(op, grad):
        return None

    x = f64()
    assert tf.gradients(tf.exp(tf.tanh(tf.square(x))), x) == [None]
