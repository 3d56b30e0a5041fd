"""Primitives of dataflow: what they hand on, what is dead, how frames begin and end."""

from __future__ import annotations

import threading

import graphdock as tf
import lab
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_tensorflow.run import control_flow_ops as ops


def beside(near, value):
    """A constant in the frame of a tensor."""
    with tf.control_dependencies([near]):
        return tf.constant(value)


def loop(first, cond, body, frame="f", parallel=10):
    entered = [ops.enter(t, frame, parallel_iterations=parallel) for t in first]
    merges = [ops.merge([e, e]).output for e in entered]
    going = ops.loop_cond(cond(*merges))
    switches = [ops.switch(m, going) for m in merges]
    for merge, value in zip(merges, body(*[on for _, on in switches]), strict=True):
        merge.op._update_input(1, ops.next_iteration(value))
    return [ops.exit(out) for out, _ in switches]


def test_a_switch_hands_on_at_one_output_and_the_other_is_dead():
    x, p = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.bool, [])
    no, yes = ops.switch(x, p)
    merged, which = ops.merge([no * 2.0, yes + 1.0])
    with tf.Session() as sess:
        assert sess.run([merged, which], {x: [1, 2], p: True})[0].tolist() == [2, 3]
        assert sess.run(which, {x: [1, 2], p: False}) == 0
        assert sess.run(yes, {x: [1, 2], p: True}).tolist() == [1, 2]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Switch was fetched and has no value: it is dead"):
            sess.run(no, {x: [1, 2], p: True})
        assert "straight_line: Switch (Switch) may give nothing" in str(sess.explain(merged, {x: [1, 2], p: True}))


def test_what_follows_something_dead_does_not_run():
    v = tf.Variable(0.0)
    p = tf.placeholder(tf.bool, [])
    no, yes = ops.switch(p, p)
    with tf.control_dependencies([tf.identity(yes)]):
        add = tf.assign_add(v, 1.0)
    with tf.control_dependencies([tf.identity(no)]):
        constant = tf.constant(7.0)
    merged, which = ops.merge([constant, add])
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([merged, which], {p: False}) == [7.0, 0] and sess.run(v) == 0.0
        assert sess.run([merged, which], {p: True}) == [1.0, 1] and sess.run(v) == 1.0
        sess.run(add.op, {p: False})  # an operation that is dead is no error, as in TensorFlow
        assert sess.run(v) == 1.0


@pytest.mark.parametrize("parallel", [1, 2, 10])
def test_a_loop_of_frames_in_any_order(told, parallel):
    n = tf.placeholder(tf.int32, [])
    most = ops.enter(n, "f", is_constant=True)
    count, total = loop(
        [tf.constant(0), tf.constant(0)],
        lambda i, s: i < most,
        lambda i, s: (i + beside(i, 1), s + i * i),
        parallel=parallel,
    )
    for seed in (None, 3, 4):
        with told(seed=seed, hand_off=0.0 if seed == 4 else 1.0) as sess:
            for k in (0, 1, 7):
                assert sess.run([count, total], {n: k}) == [k, sum(i * i for i in range(k))]


@pytest.mark.parametrize("parallel", [1, 3])
def test_no_more_iterations_run_at_once_than_the_frame_allows(parallel):
    host = Host()
    with tf.Graph(host=host).as_default():
        mailbox, count, most = lab.Mailbox(host), 6, [0]

        def body(i, total):
            with tf.control_dependencies([tf.identity(i)]):  # the Switch itself is never dead
                return i + beside(i, 1), total + mailbox()

        _, total = loop([tf.constant(0), tf.zeros([1])], lambda i, t: i < beside(i, count), body, parallel=parallel)
        with tf.Session(host=host) as sess:
            got = []
            step = threading.Thread(target=lambda: got.append(sess.run(total)))
            step.start()
            for _ in range(parallel):
                assert mailbox.came.acquire(timeout=60)
            for i in range(count):
                with mailbox.lock:
                    most[0] = max(most[0], len(mailbox.waiting))
                mailbox.hand_over([float(i)])
                if i + parallel < count:
                    assert mailbox.came.acquire(timeout=60)
            step.join(60)
    assert got[0].tolist() == [15.0] and most == [parallel]


def test_a_loop_around_a_loop_and_exits_that_are_dead(told):
    n, p = tf.placeholder(tf.int32, []), tf.placeholder(tf.bool, [])
    no, yes = ops.switch(n, p)
    most = ops.enter(yes, "outer", is_constant=True)

    def outer(i, s):
        limit = ops.enter(i, "inner", is_constant=True)
        _, inner = loop([i - i, s], lambda j, t: j < limit, lambda j, t: (j + beside(j, 1), t + j), "inner")
        return i + beside(i, 1), inner

    _, total = loop([yes - 7, tf.zeros_like(yes)], lambda i, s: i < most, outer, "outer")
    merged, which = ops.merge([no * 100, total])
    for seed in (None, 1, 2):
        with told(seed=seed) as sess:
            expected = sum(j for i in range(2, 9) for j in range(i))
            assert sess.run([merged, which], {n: 9, p: True}) == [expected, 1]
            assert sess.run([merged, which], {n: 9, p: False}) == [900, 0]
            with pytest.raises(tf.errors.InvalidArgumentError, match="dead"):
                sess.run(total, {n: 9, p: False})


def test_branches_loops_and_waits_of_other_forms_in_a_frame(told):
    """A Cond, a While and a queue in an iteration, whose draws are its own."""
    queue = tf.FIFOQueue(10, tf.int32, [[]])
    x = tf.placeholder(tf.int32, [])

    def body(i, s):
        made = tf.cond(i > beside(i, 1), lambda: s * 2, lambda: s + 1)
        made = tf.while_loop(lambda j, v: j < i, lambda j, v: (j + 1, v + 1), [tf.zeros_like(i), made])[1]
        with tf.control_dependencies([tf.identity(i)]):  # the Switch itself is never dead
            return i + beside(i, 1), made + queue.dequeue()

    _, total = loop([tf.constant(0), x], lambda i, s: i < beside(i, 4), body, parallel=1)

    def expected(s):
        for i in range(4):
            s = (s * 2 if i > 1 else s + 1) + i + 10 * i
        return s

    for seed in (None, 5):
        with told(seed=seed) as sess:
            sess.run(queue.enqueue_many([[0, 10, 20, 30]]))
            assert sess.run(total, {x: 3}) == expected(3)


def test_iterations_draw_numbers_of_their_own():
    def body(i, s):
        with tf.control_dependencies([tf.identity(i)]):  # the Switch itself is never dead
            return i + beside(i, 1), s + tf.random_uniform([3], seed=1)

    _, total = loop([tf.constant(0), tf.zeros([3])], lambda i, s: i < beside(i, 2), body)
    once = loop([tf.constant(0), tf.zeros([3])], lambda i, s: i < beside(i, 1), body, "g")[1]
    with tf.Session() as sess:
        two, one = sess.run([total, once])
    assert not np.allclose(two, 2 * one)


def test_the_shape_of_a_loop_variable_may_grow():
    x = tf.placeholder(tf.float32, [None])
    entered = ops.enter(x, "f", use_input_shape=False)
    count = ops.merge([ops.enter(tf.constant(0), "f")] * 2).output
    merged = ops.merge([entered, entered]).output
    going = ops.loop_cond(count < beside(count, 3))
    (i, on_i), (out, on) = ops.switch(count, going), ops.switch(merged, going)
    count.op._update_input(1, ops.next_iteration(on_i + beside(on_i, 1)))
    merged.op._update_input(1, ops.next_iteration(tf.concat([on, on], 0)))
    with tf.Session() as sess:
        assert sess.run(ops.exit(out), {x: [1.0, 2.0]}).tolist() == [1.0, 2.0] * 8
        assert sess.run(ops.exit(i), {x: [1.0]}) == 3


def test_errors_name_the_node():
    x = tf.placeholder(tf.float32, [], name="x")
    entered = ops.enter(x, "f", name="into")
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="mixed .*takes into of f and x2 of no frame"):
            sess.run(ops.exit(tf.add(entered, tf.square(x, name="x2"), name="mixed")), {x: 1})
        with pytest.raises(tf.errors.InvalidArgumentError, match="into .* stands in a frame, and can't be fetched"):
            sess.run(entered, {x: 1})
        with pytest.raises(tf.errors.InvalidArgumentError, match="out .Exit. stands in no frame"):
            sess.run(ops.exit(x, name="out"), {x: 1})
        with pytest.raises(tf.errors.InvalidArgumentError, match="NextIteration. stands in no frame"):
            sess.run(ops.next_iteration(x), {x: 1})
        with pytest.raises(tf.errors.InvalidArgumentError, match="only a Merge does"):
            sess.run(ops.exit(ops.next_iteration(entered) + 1.0), {x: 1})
    with pytest.raises(tf.errors.GraphdockError, match=r"has no gradient.*tf\.while_loop"):
        tf.gradients(ops.exit(entered), x)


def test_primitives_in_a_body_or_in_a_step_by_pieces_are_refused():
    p = tf.placeholder(tf.bool, [])
    made = tf.cond(p, lambda: ops.merge(ops.switch(p, p)).output, lambda: p)
    with tf.Session() as sess:
        with pytest.raises(tf.errors.UnimplementedError, match="Switch.* stands in the body"):
            sess.run(made, {p: True})
        merged = ops.merge(ops.switch(p, p)).output
        handle = sess.partial_run_setup([merged], [p])
        with pytest.raises(tf.errors.UnimplementedError, match="stands in a step in pieces"):
            sess.partial_run(handle, merged, {p: True})


def test_only_a_merge_takes_what_comes_later():
    x = tf.placeholder(tf.float32, [2])
    entered = ops.enter(x, "f")
    merged = ops.merge([entered, entered]).output
    later = ops.next_iteration(merged)
    with pytest.raises(tf.errors.InvalidArgumentError, match="only a Merge takes what is made after it"):
        entered.op._update_input(0, later)
    with pytest.raises(tf.errors.InvalidArgumentError, match="only a Merge takes what is made after it"):
        merged.op._update_input(1, x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no input 4"):
        merged.op._update_input(4, later)
    with pytest.raises(tf.errors.InvalidArgumentError, match="merges float32; .* is int32"):
        merged.op._update_input(1, ops.next_iteration(tf.cast(merged, tf.int32)))
    with pytest.raises(tf.errors.ShapeError, match=r"has the shape \[2\], and"):
        merged.op._update_input(1, ops.next_iteration(tf.concat([merged, merged], 0)))
    merged.op._update_input(1, later)
    assert merged.op.node_def.input == ("Enter", "NextIteration") and merged.op.later == (later,)


def test_what_follows_a_trigger_runs_though_what_that_follows_is_dead():
    v, p = tf.Variable(0.0), tf.placeholder(tf.bool, [])
    no, _ = ops.switch(p, p)
    with tf.control_dependencies([tf.identity(no)]):
        trigger = ops.control_trigger()
    with tf.control_dependencies([trigger]):
        add = tf.assign_add(v, 1.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        for count, taken in enumerate((True, False), 1):
            sess.run(add.op, {p: taken})
            assert sess.run(v) == count
