"""Random steps of reads and updates against a sequential interpreter: snapshots, control order, bodies, several steps."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.ops import apply_op
from graphdock.passes.pipeline import simplifications

OFF = dict.fromkeys(simplifications(), False)
pytestmark = pytest.mark.modes  # every program runs in debug mode, too
VARIANTS = [{}, {"debug": True}, {"passes": OFF}, {"debug": True, "passes": OFF}]


@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("seed", range(18))
@pytest.mark.sampled(4)
def test_steps_run_as_if_one_node_ran_after_another(random_updates, seed, devices):
    program = random_updates.Updates(seed)
    program.grow(4 + seed, late=0.15 if seed % 3 == 0 else 0)
    rng = program.rng
    count = len(program.nodes)
    steps = [[int(i) for i in rng.integers(0, program.fetchable, int(rng.integers(1, 6)))] for _ in range(4)]
    where = [f"/cpu:{i}" for i in rng.integers(0, 3, count)]
    with tf.Graph().as_default() as graph:
        variables, tensors = program.build(where.__getitem__ if devices > 1 else None)
        for fields in VARIANTS[:: 1 if devices == 1 else 3]:
            state = {i: a.copy() for i, a in enumerate(program.initial)}
            with tf.Session(graph=graph, config=tf.SessionConfig(device_count={"cpu": devices}, **fields)) as sess:
                sess.run([v.initializer for v in variables])
                for number, fetched in enumerate([*steps, *steps[:2]]):
                    expected = program.step(state, fetched)
                    got = sess.run([tensors[i] for i in fetched])
                    for i, a, b in zip(fetched, got, expected, strict=True):
                        what = f"{fields}, step {number}: {program.what(i)}"
                        np.testing.assert_array_equal(a, b, err_msg=what)
                    for variable, b in zip(variables, state.values(), strict=True):
                        np.testing.assert_array_equal(sess.run(variable), b, err_msg=f"{fields}, step {number}")


@pytest.mark.parametrize("fields", VARIANTS)
def test_what_only_an_unread_capture_needs_does_not_run_whatever_passes_are_on(fields):
    with tf.Graph().as_default():
        v = tf.Variable(np.zeros(3))
        updated = v.assign_add(np.ones(3))
        p = tf.placeholder(tf.bool, [])

        def inner():
            tf.sin(updated)  # nobody reads it
            return tf.constant(1.0)

        out = tf.cond(p, lambda: tf.cond(p, inner, lambda: tf.constant(2.0)), lambda: tf.constant(3.0))
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(v.initializer)
            assert sess.run(out, {p: True}) == 1.0
            np.testing.assert_array_equal(sess.run(v), np.zeros(3))


@pytest.mark.parametrize("fields", VARIANTS)
def test_an_update_behind_a_shape_that_the_feeds_tell_runs(fields):
    with tf.Graph().as_default():
        v, calls = tf.Variable(np.zeros(2)), tf.Variable(0)
        x = tf.placeholder(tf.float64, [None])
        with tf.control_dependencies([calls.assign_add(1)]):
            y = x * 2.0
        size = tf.shape(y + tf.reduce_sum(v.assign_add(np.ones(2))))
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run([v.initializer, calls.initializer])
            for step in range(1, 4):
                assert sess.run(size, {x: np.zeros(2)}).tolist() == [2]
                assert sess.run([v, calls])[0].tolist() == [step, step]
                assert sess.run(calls) == step


@pytest.mark.parametrize("seed", range(6))
def test_variables_that_change_their_shape(seed):
    rng = np.random.default_rng(seed)
    with tf.Graph().as_default() as graph:
        start = rng.integers(-9, 9, (3, 2))
        u = tf.Variable(start, validate_shape=False)
        total = tf.Variable(np.zeros(2, np.int64))
        x = tf.placeholder(tf.int64, [None, 2])
        before = u.read_value()
        head = before[:2]
        with tf.control_dependencies([before]):
            longer = u.assign(tf.concat([u.read_value(), x], 0))
        with tf.control_dependencies([longer]):
            flipped = u.assign(u.read_value()[::-1])
        shorter = u.assign(u.read_value()[1:])
        doubled = u.assign_add(u.read_value())
        added = total.assign_add(tf.reduce_sum(u.read_value(), 0))
        grown = tf.while_loop(
            lambda i: i < 3,
            lambda i: i + tf.size(u.assign(tf.concat([u.read_value(), x], 0))) * 0 + 1,
            [tf.constant(0)],
        )
        for fields in VARIANTS:
            rng = np.random.default_rng(seed)
            with tf.Session(graph=graph, config=tf.SessionConfig(**fields)) as sess:
                sess.run(tf.global_variables_initializer())
                value, sums = start, np.zeros(2, np.int64)
                for _ in range(12):
                    fed = rng.integers(-9, 9, (int(rng.integers(0, 3)), 2))
                    kind = rng.choice(["longer", "flipped", "shorter", "doubled", "added", "grown"])
                    if kind == "longer":
                        got = sess.run([before, head, longer], {x: fed})
                        expected = [value, value[:2], np.concatenate([value, fed])]
                        value = expected[2]
                    elif kind == "flipped":
                        got = sess.run([before, head, flipped], {x: fed})
                        expected = [value, value[:2], np.concatenate([value, fed])[::-1]]
                        value = expected[2]
                    elif kind == "shorter":
                        got, expected = [sess.run(shorter)], [value[1:]]
                        value = value[1:]
                    elif kind == "doubled":
                        got, expected = [sess.run(doubled)], [value * 2]
                        value = value * 2
                    elif kind == "grown":
                        sess.run(grown, {x: fed})
                        value = np.concatenate([value, fed, fed, fed])
                        got, expected = [sess.run(u)], [value]
                    else:
                        sums = sums + value.sum(0)
                        got, expected = [sess.run(added)], [sums]
                    for a, b in zip(got, expected, strict=True):
                        np.testing.assert_array_equal(a, b, err_msg=f"{fields} {kind}")
                    np.testing.assert_array_equal(sess.run(u), value)


@pytest.mark.parametrize("fields", VARIANTS)
def test_a_body_may_read_what_it_has_assigned(fields):
    with tf.Graph().as_default():
        v = tf.Variable(0)

        def body(i):
            with tf.control_dependencies([v.assign(i * 2)]):
                return i + 1 + 0 * v.read_value()

        out = tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])
        early = tf.while_loop(lambda i: i < 3, lambda i: i + 1 + 0 * v.read_value(), [tf.constant(0)])
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            with pytest.raises(tf.errors.UninitializedError):
                sess.run(early)
            assert sess.run(out) == 3
            assert sess.run(v) == 4


@pytest.mark.parametrize("fields", VARIANTS)
def test_a_destroyed_variable_holds_no_value(fields):
    with tf.Graph().as_default():
        v = tf.Variable(5)
        with tf.control_dependencies([v.initializer]):
            destroy = apply_op("DestroyResourceOp", resource=v.handle)
        with tf.control_dependencies([destroy]):
            after = v.read_value()
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            for _ in range(2):
                with pytest.raises(tf.errors.UninitializedError):
                    sess.run(after)
            with pytest.raises(tf.errors.UninitializedError):
                sess.run(v)
            sess.run(v.initializer)
            assert sess.run(v) == 5


@pytest.mark.parametrize("fields", VARIANTS)
def test_two_handles_of_one_variable_are_one_variable(fields):
    with tf.Graph().as_default():
        one, other = (apply_op("VarHandleOp", dtype=tf.float64, shape=[2], shared_name="same") for _ in range(2))
        start = apply_op("AssignVariableOp", resource=one, value=np.array([1.0, 2.0]))
        before = apply_op("ReadVariableOp", resource=one, dtype=tf.float64)
        with tf.control_dependencies([before]):
            update = apply_op("AssignAddVariableOp", resource=other, value=np.array([10.0, 10.0]))
        with tf.control_dependencies([update]):
            late, after = before * 2.0, apply_op("ReadVariableOp", resource=other, dtype=tf.float64)
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(start)
            got = sess.run([before, late, after])
        assert [g.tolist() for g in got] == [[1, 2], [2, 4], [11, 12]]
