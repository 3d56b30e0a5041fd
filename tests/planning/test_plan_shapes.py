"""Shapes that translation proves, what becomes a condition of the feeds, and what is left to the step."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Conditions
from graphdock.errors import ShapeError
from graphdock.planning.translate import translate

EACH = Conditions()
#: Rows of the first two feeds are the same.
ROWS = Conditions(equal=(((0, 0), (1, 0)),))


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def place(*dims, dtype=tf.float32):
    return tf.placeholder(dtype, list(dims))


def softmax_step():
    x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int32, [None])
    w, b = tf.Variable(tf.zeros([784, 10])), tf.Variable(tf.zeros([10]))
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=tf.matmul(x, w) + b, labels=y)
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(loss)), [x, y]


def mean_square_step():
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.float32, [None, 1])
    w, b = tf.Variable(tf.zeros([5, 1])), tf.Variable(0.0)
    return tf.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))), [x, y]


def flattened_step():
    x, y = tf.placeholder(tf.float32, [None, 28, 28]), tf.placeholder(tf.float32, [None, 10])
    h = tf.matmul(tf.reshape(x, [-1, 784]), tf.Variable(tf.zeros([784, 10])))
    out = tf.reshape(tf.tanh(h), [tf.shape(x)[0], 10])
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(out - y))), [x, y]


def joined_step():
    x, ids = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int32, [None])
    rows = tf.gather(tf.Variable(tf.zeros([7, 3])), ids)
    both = tf.concat([tf.nn.dropout(x, 0.5), rows], 1)[:, 1:]
    most = tf.expand_dims(tf.reduce_max(both, 1), 1)
    return tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_mean(both * most)), [x, ids]


@pytest.mark.parametrize("program", [softmax_step, mean_square_step, flattened_step, joined_step])
def test_training_steps_need_one_condition_and_no_guard(program):
    step, feeds = program()
    plan = translate([], [step], [(f, f._dims) for f in feeds])
    assert plan.conditions == ROWS
    assert not [n for level in plan.all_graphs() for n in level.nodes if n.guard]


def test_a_loop_over_steps_of_a_sequence_needs_none():
    x = tf.placeholder(tf.float32, [None, None, 4])
    w = tf.Variable(tf.zeros([4, 4]))
    body = lambda t, h: (t + 1, tf.tanh(tf.matmul(h, w) + x[:, t]))  # noqa: E731
    h = tf.while_loop(lambda t, h: t < tf.shape(x)[1], body, [0, tf.zeros([tf.shape(x)[0], 4])])[1]
    plan = translate([h], [], [(x, (None, None, 4))])
    assert plan.conditions == EACH
    assert not [n for level in plan.all_graphs() for n in level.nodes if n.guard]


def test_a_plan_for_one_shape_has_no_conditions():
    step, feeds = softmax_step()
    assert translate([], [step], list(zip(feeds, [(3, 784), (3,)], strict=True))).conditions == EACH
    with pytest.raises(ShapeError, match=r"SparseSoftmax.*\[3\] and \[4\]"):
        translate([], [step], list(zip(feeds, [(3, 784), (4,)], strict=True)))


@pytest.mark.parametrize(
    ("make", "conditions"),
    [
        (lambda x, y: tf.add_n([x, y]), Conditions(equal=(((0, 0), (1, 0)), ((0, 1), (1, 1))))),
        (lambda x, y: tf.matmul(x, y), Conditions(equal=(((0, 1), (1, 0)),))),
        (lambda x, y: tf.matmul(x, tf.zeros([7, 2])), Conditions(equal=(((0, 1), 7),))),
        (lambda x, y: x + tf.zeros([3]), Conditions(one_or_equal=(((0, 1), 3),))),
        (lambda x, y: x[2], Conditions(at_least=(((0, 0), 3),))),
        (lambda x, y: x[-4, 1], Conditions(at_least=(((0, 0), 4), ((0, 1), 2)))),
        (lambda x, y: tf.concat([x, y], 0), Conditions(equal=(((0, 1), (1, 1)),))),
        (lambda x, y: tf.stack([x, x]), EACH),
        (lambda x, y: tf.reshape(x, tf.shape(x)), EACH),
        (lambda x, y: tf.reshape(x, [tf.shape(x)[0], -1]), Conditions(at_least=(((0, 0), 1),))),
        (lambda x, y: tf.reshape(tf.reshape(x, [-1]), tf.shape(x)), Conditions(proven=False)),
        (lambda x, y: tf.unstack(x, 2), Conditions(equal=(((0, 0), 2),))),
        (lambda x, y: tf.split(x, 2), Conditions(proven=False)),
        (lambda x, y: tf.reduce_max(x, 1), EACH),
        (lambda x, y: tf.argmax(x, 1), Conditions(at_least=(((0, 1), 1),))),
        (lambda x, y: tf.squeeze(x, [1]), Conditions(equal=(((0, 1), 1),))),
        (lambda x, y: tf.transpose(x) + tf.zeros_like(tf.transpose(x)), EACH),
        (lambda x, y: tf.tile(x, [2, 1]) + tf.tile(x, [2, 1]), EACH),
        (lambda x, y: tf.range(tf.shape(x)[0]) + tf.cast(x[:, 0], tf.int32), Conditions(at_least=(((0, 1), 1),))),
    ],
)
def test_conditions(make, conditions):
    x, y = place(None, None), place(None, None)
    made = make(x, y)
    made = made if isinstance(made, list) else [made]
    assert translate(made, [], [(x, (None, None)), (y, (None, None))]).conditions == conditions


def rows_of(x):
    """As many rows as x has positive elements."""
    return tf.gather(x, tf.cast(tf.where(x > 0.0)[:, 0], tf.int32))


def test_what_only_the_step_knows_is_a_guard_of_the_node():
    x, y = place(None), place(None)
    rows = rows_of(x)
    plan = translate([rows + 1.0, rows + rows, tf.tanh(rows), rows + y], [], [(x, (None,)), (y, (None,))])
    assert plan.conditions == EACH
    (guarded,) = [n for n in plan.nodes if n.guard]
    assert guarded.op == "Add" and guarded.guard.shape_rule and not guarded.guard.promised


def test_a_promise_is_compared_with_what_comes():
    x = place(None)
    count = tf.where(x > 0.0)
    count.set_shape([2, 1])
    plan = translate([count], [], [(x, (4,))])
    (guarded,) = [n for n in plan.nodes if n.guard]
    assert guarded.op == "Where" and guarded.guard.promised == (0,)
    with tf.Session() as sess:
        assert sess.run(count, {x: [1.0, 0.0, 2.0, 0.0]}).tolist() == [[0], [2]]
        with pytest.raises(ShapeError, match="promised by set_shape") as info:
            sess.run(count * 2, {x: [1.0, 0.0, 0.0, 0.0]})
        assert info.value.op.name == "Where" and "test_plan_shapes.py" in info.value.site


def test_a_promise_about_the_feeds_is_a_condition():
    x = place(None, None)
    y = tf.identity(x)
    y.set_shape([None, 3])
    assert translate([y], [], [(x, (None, None))]).conditions == Conditions(equal=(((0, 1), 3),))
    for policy in ("exact", "generic"):
        with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess:
            assert sess.run(y, {x: np.zeros((2, 3))}).shape == (2, 3)
            with pytest.raises(ShapeError, match=r"\[\?,3\] and \[2,4\] do not agree"):
                sess.run(y, {x: np.zeros((2, 4))})


@pytest.mark.parametrize("policy", ["exact", "generic"])
def test_a_fed_constant_is_not_taken_for_what_it_was(policy):
    x, shape = place(6), tf.constant([6])
    y = tf.reshape(x, shape)
    with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess:
        assert sess.run(y, {x: np.zeros(6)}).shape == (6,)
        assert sess.run(y, {x: np.zeros(6), shape: [6]}).shape == (6,)
        with pytest.raises(ShapeError, match=r"cannot reshape \[6\] \(6 elements\) to \[4\]") as info:
            sess.run(y, {x: np.zeros(6), shape: [4]})
        assert info.value.op.name == "Reshape"


@pytest.mark.parametrize("policy", ["exact", "generic"])
def test_a_check_runs_although_only_the_shape_of_its_node_is_needed(policy):
    x, v, to = place(None, None), place(None), place(2, dtype=tf.int32)
    total = tf.add_n([x, tf.broadcast_to(v, to)])
    for y in (tf.reshape(tf.ones([3, 3]), tf.stack([tf.shape(tf.transpose(total))[0], -1])), tf.shape(total) + 1):
        with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess:
            feeds = {x: np.zeros((3, 3)), v: np.zeros(3)}
            sess.run(y, {**feeds, to: [3, 3]})
            with pytest.raises(ShapeError, match=r"AddN: shapes \[3,3\] and \[4,3\]"):
                sess.run(y, {**feeds, to: [4, 3]})


def test_shapes_that_broadcast_are_accepted_though_others_are_expected():
    x, y = place(None, None), place(None, None)
    z = x * y
    with tf.Session(config=tf.SessionConfig(shape_policy="generic")) as sess:
        for a, b in (((2, 3), (2, 3)), ((1, 3), (2, 1)), ((2, 3), (1, 1)), ((4, 5), (4, 5))):
            assert sess.run(z, {x: np.ones(a), y: np.ones(b)}).shape == np.broadcast_shapes(a, b)
        with pytest.raises(ShapeError, match=r"\[2,3\] and \[3,3\] cannot be broadcast") as info:
            sess.run(z, {x: np.ones((2, 3)), y: np.ones((3, 3))})
        assert info.value.op.name == "mul" and "test_plan_shapes.py" in info.value.site


def test_a_loop_whose_iterations_do_not_fit_fails_with_its_node():
    x, y = place(None), place(None)
    grow = lambda i, a: (i + 1, tf.concat([a, a[:1]], 0) + y)  # noqa: E731
    z = tf.while_loop(lambda i, a: i < 3, grow, [0, x], [tf.TensorShape([]), tf.TensorShape([None])])[1]
    for policy in ("exact", "generic"):
        with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess:
            assert sess.run(z, {x: [1.0], y: [1.0]}).shape == (4,)
            with pytest.raises(ShapeError, match=r"Add: shapes \[4\] and \[3\] cannot be broadcast"):
                sess.run(z, {x: [1.0, 2.0], y: [1.0, 2.0, 3.0]})


def _branches(x):
    return tf.cond(tf.reduce_sum(x) > 5.0, lambda: x * 1.0, lambda: x * 2.0)


def _cases(x):
    return tf.case([(tf.reduce_sum(x) > 5.0, lambda: x * 1.0)], default=lambda: x * 2.0)


def _nested(x):
    return tf.cond(tf.reduce_sum(x) > 5.0, lambda: _branches(x + 1.0), lambda: x * 2.0)


def _grows(x):
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    return tf.while_loop(lambda i, v: i < 1, lambda i, v: (i + 1, tf.concat([v, v], 0)), [0, x], shapes)[1]


def _unranked(x):
    shapes = [tf.TensorShape([]), tf.TensorShape(None)]
    return tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, v * 2.0), [0, x], shapes)[1]


@pytest.mark.parametrize("policy", ["exact", "generic"])
@pytest.mark.parametrize(("made", "right"), [(_branches, 3), (_cases, 3), (_nested, 3), (_grows, None), (_unranked, 3)])
def test_a_false_promise_about_what_a_branch_or_a_loop_gives_is_found(policy, made, right):
    x = place(None)
    c = made(x)
    c.set_shape([3])
    readers = [c, c * 1.0, tf.reduce_mean(c), c[2:3] * 1.0, tf.concat([c, tf.ones([2])], 0), tf.unstack(c)[0]]
    with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess:
        for reader in readers:
            for n in (1, 2, 4):
                with pytest.raises(ShapeError):
                    sess.run(reader, {x: np.arange(n)})
            if right is not None:
                sess.run(reader, {x: np.arange(right)})
