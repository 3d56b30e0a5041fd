"""What a step promises about storage: snapshots, aliases, escapes, loop variables, control order."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock_std._gen import train_ops


@pytest.fixture(autouse=True)
def graph():
    graph = tf.Graph()
    with graph.as_default():
        yield graph


def test_a_fetched_view_of_a_feed_is_a_copy():
    x = tf.placeholder(tf.float32, [2, 3])
    views = [tf.identity(x), tf.reshape(x, [3, 2]), tf.transpose(x), x[:, 1:], tf.expand_dims(x, 0)]
    fed = np.arange(6, dtype=np.float32).reshape(2, 3)
    with tf.Session() as sess:
        for tensor in views:
            got = sess.run(tensor, {x: fed})
            assert not np.shares_memory(got, fed)
        got = sess.run(x, {x: fed})
        assert not np.shares_memory(got, fed)


def test_two_fetches_of_one_storage_do_not_share_memory():
    x = tf.placeholder(tf.float32, [4])
    y = x * 2.0
    z = tf.reshape(y, [2, 2])
    with tf.Session() as sess:
        a, b = sess.run([y, z], {x: np.ones(4, np.float32)})
        assert not np.shares_memory(a, b)
        a[:] = 7
        assert (b == 2).all()


def test_a_fetched_array_is_not_written_by_the_next_step():
    x = tf.placeholder(tf.float32, [3])
    y = x + 1.0
    with tf.Session() as sess:
        first = sess.run(y, {x: np.zeros(3, np.float32)})
        sess.run(y, {x: np.full(3, 5, np.float32)})
        np.testing.assert_array_equal(first, [1, 1, 1])


def test_a_read_before_a_write_keeps_the_old_value():
    w = tf.Variable(tf.ones([3]))
    old = w.read_value()
    with tf.control_dependencies([old]):
        update = tf.assign_add(w, tf.ones([3]))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before, _ = sess.run([old, update])
        np.testing.assert_array_equal(before, [1, 1, 1])
        np.testing.assert_array_equal(sess.run(w), [2, 2, 2])


def test_a_view_of_a_read_keeps_the_old_value():
    w = tf.Variable(np.arange(4, dtype=np.float32))
    view = tf.reshape(w.read_value(), [2, 2])
    with tf.control_dependencies([view]):
        update = tf.assign(w, tf.zeros([4]))
    with tf.control_dependencies([update]):
        late = view + 0.0
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(sess.run(late), [[0, 1], [2, 3]])


def test_a_read_after_a_write_sees_it():
    w = tf.Variable(1.0)
    update = tf.assign_add(w, 2.0)
    with tf.control_dependencies([update]):
        after = w.read_value()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(after) == 3.0
        assert sess.run(update) == 5.0


def test_assigning_a_view_of_a_feed_does_not_alias_it():
    x = tf.placeholder(tf.float32, [4])
    w = tf.Variable(tf.zeros([2, 2]))
    update = tf.assign(w, tf.reshape(x, [2, 2]))
    fed = np.arange(4, dtype=np.float32)
    with tf.Session() as sess:
        sess.run(update, {x: fed})
        fed[:] = -1
        np.testing.assert_array_equal(sess.run(w), [[0, 1], [2, 3]])


def test_loop_variables_may_be_swapped():
    a, b, _ = tf.while_loop(
        lambda a, b, n: n < 5, lambda a, b, n: (b, a, n + 1), [tf.constant([1.0]), tf.constant([2.0]), 0]
    )
    with tf.Session() as sess:
        got = sess.run([a, b])
    np.testing.assert_array_equal(got, [[2.0], [1.0]])


def test_fibonacci_in_three_loop_variables():
    n, a, b = tf.while_loop(
        lambda n, a, b: n < 20,
        lambda n, a, b: (n + 1, b, a + b),
        [tf.constant(0), tf.constant([0.0], tf.float64), tf.constant([1.0], tf.float64)],
    )
    with tf.Session() as sess:
        assert sess.run(a)[0] == 6765


def test_a_capture_is_not_changed_by_the_loop():
    x = tf.placeholder(tf.float32, [3])
    y = x * 1.0
    _, total = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + y), [0, tf.zeros([3])])
    with tf.Session() as sess:
        got_y, got = sess.run([y, total], {x: np.array([1, 2, 3], np.float32)})
    np.testing.assert_array_equal(got, 4 * got_y)


def test_a_loop_updates_a_variable_in_order():
    w = tf.Variable(1.0)

    def body(i):
        with tf.control_dependencies([tf.assign(w, w.read_value() * 2.0)]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 10, body, [0])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(loop)
        assert sess.run(w) == 1024.0


def test_int32_counters_wrap_around_as_arrays_do():
    start = 2**31 - 3
    loop = tf.while_loop(lambda i: i > 0, lambda i: i + 1, [tf.constant(start, tf.int32)])
    with tf.Session() as sess:
        assert sess.run(loop) == np.int32(-(2**31))


def test_nested_cond_in_a_loop_counts_even_numbers():
    def body(i, even, odd):
        even, odd = tf.cond(
            tf.equal(i % 2, 0), lambda: (even + i, tf.identity(odd)), lambda: (tf.identity(even), odd + i)
        )
        return i + 1, even, odd

    _, even, odd = tf.while_loop(lambda i, e, o: i < 10, body, [0, 0, 0])
    with tf.Session() as sess:
        assert sess.run([even, odd]) == [20, 25]


def test_only_the_branch_taken_runs():
    w = tf.Variable(0.0)
    pred = tf.placeholder(tf.bool, [])
    out = tf.cond(pred, lambda: tf.assign_add(w, 1.0), lambda: tf.constant(-1.0))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(out, {pred: False}) == -1.0
        assert sess.run(w) == 0.0
        assert sess.run(out, {pred: True}) == 1.0
        assert sess.run(w) == 1.0


def test_feeding_an_intermediate_cuts_the_graph():
    x = tf.placeholder(tf.float32, [2])
    hidden = tf.sqrt(x)
    y = hidden * 3.0
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(y, {hidden: [1.0, 2.0]}), [3, 6])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Placeholder.*not fed"):
            sess.run(y)


def test_shapes_that_vary_are_planned_for_once_there_are_many():
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.reduce_sum(tf.transpose(x) * 2.0, axis=1)
    with tf.Session() as sess:
        for n in range(20):
            fed = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
            np.testing.assert_allclose(sess.run(y, {x: fed}), 2 * fed.sum(0), rtol=1e-5, atol=1e-6)
        (signature,) = sess._signatures.values()
        assert len(signature.plans) == 9


def test_the_graph_may_grow_between_steps():
    x = tf.placeholder(tf.float32, [])
    y = x + 1.0
    with tf.Session() as sess:
        assert sess.run(y, {x: 1.0}) == 2.0
        z = y * 10.0
        assert sess.run(z, {x: 1.0}) == 20.0
        assert sess.run(y, {x: 1.0}) == 2.0


def test_py_func_sees_arrays_and_may_run_another_step():
    x = tf.placeholder(tf.float32, [2])
    with tf.Session() as sess:

        def double(a):
            return a * sess.run(tf.constant(2.0))

        y = tf.py_func(double, [x + 1.0], tf.float32)
        np.testing.assert_array_equal(sess.run(y, {x: [1.0, 2.0]}), [4, 6])


def test_an_assertion_names_the_line_and_stops_the_step():
    x = tf.placeholder(tf.float32, [])
    check = tf.Assert(x > 0.0, [x])
    with tf.control_dependencies([check]):
        y = tf.identity(x)
    with tf.Session() as sess:
        assert sess.run(y, {x: 1.0}) == 1.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed") as caught:
            sess.run(y, {x: -1.0})
        assert "test_step_semantics.py" in str(caught.value)


def test_a_fetch_that_waits_for_an_update():
    w = tf.Variable(0.0)
    step = tf.assign_add(w, 1.0)
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([step]):
        y = tf.identity(x)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for n in range(3):
            assert sess.run(y, {x: n}) == n
        assert sess.run(w) == 3.0


def test_a_view_that_checks_its_input_checks_it_in_every_step():
    x = tf.placeholder(tf.float32, [2])
    y = tf.check_numerics(x * 1.0, "x") + 0.0
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(y, {x: [1.0, 2.0]}), [1, 2])
        with pytest.raises(tf.errors.InvalidArgumentError, match="NaN"):
            sess.run(y, {x: [1.0, np.nan]})


def test_check_numerics_names_the_node():
    x = tf.placeholder(tf.float32, [2])
    y = tf.log(x, name="the_log") * 2.0
    with tf.Session(config=tf.SessionConfig(check_numerics=True)) as sess:
        sess.run(y, {x: [1.0, 2.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="the_log.*NaN or infinity"):
            sess.run(y, {x: [1.0, 0.0]})


def test_splitting_into_one_and_unstacking_one():
    x = tf.placeholder(tf.float32, [1, 4])
    (whole,) = tf.split(x * 1.0, 1)
    (row,) = tf.unstack(x * 1.0)
    with tf.Session() as sess:
        got = sess.run([whole, row], {x: [[1, 2, 3, 4]]})
    assert [g.shape for g in got] == [(1, 4), (4,)]


def test_one_buffer_for_two_inputs_is_not_taken_over():
    """TanhGrad may write over y, but not where dy lies there too."""
    x = tf.placeholder(tf.float32, [3])
    z = x + 1.0
    y = tf.add(ops.apply_op("TanhGrad", y=z, dy=z), 0.5)
    with tf.Session() as sess:
        at = np.array([0.0, 1.0, 2.0], np.float32)
        np.testing.assert_allclose(sess.run(y, {x: at}), (at + 1) * (1 - (at + 1) ** 2) + 0.5)


def test_an_update_by_the_variables_own_value_takes_the_value_from_before():
    start, decay = np.array([1.0, -2.0, 3.0], np.float32), 0.5
    w, m, v = (tf.Variable(a) for a in (start, np.zeros(3, np.float32), np.zeros(3, np.float32)))
    rates = [0.9, 0.99, 0.1, 0.9, 0.99, 1e-8, decay]
    handles = [u.handle for u in (w, m, v)]
    update = train_ops.resource_apply_adam_w(*handles, *rates, w.read_value())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(update)
        np.testing.assert_allclose(sess.run(m), 0.1 * start, rtol=1e-6)


def test_what_a_loop_captures_lives_until_the_loop_ends():
    x = tf.placeholder(tf.float32, [8])
    c = tf.sqrt(x)

    def body(i, v):
        first = v * c
        others = [tf.exp(-first * k) for k in (1.0, 2.0, 3.0)]
        return i + 1, tf.add_n(others)

    _, out = tf.while_loop(lambda i, v: i < 3, body, [0, tf.ones([8])])
    at = np.linspace(0.1, 2.0, 8).astype(np.float32)
    want = np.ones(8)
    for _ in range(3):
        want = sum(np.exp(-want * np.sqrt(at) * k) for k in (1.0, 2.0, 3.0))
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(out, {x: at}), want, rtol=1e-5)


def test_loop_variables_of_integers_may_be_vectors():
    loop = tf.while_loop(lambda v: tf.reduce_max(v) < 10, lambda v: v + tf.constant([1, 2]), [tf.constant([0, 0])])
    with tf.Session() as sess:
        assert sess.run(loop).tolist() == [5, 10]


def test_a_scalar_loop_variable_may_come_from_any_kernel():
    x = tf.placeholder(tf.int32, [3])
    loop = tf.while_loop(lambda n: n < 100, lambda n: tf.reduce_sum(x * n), [tf.constant(1)])
    with tf.Session() as sess:
        assert sess.run(loop, {x: [1, 2, 0]}) == 243


def test_an_integer_that_a_cond_returns_may_come_from_any_kernel():
    x = tf.placeholder(tf.int32, [3])
    p = tf.placeholder(tf.bool, [])
    n = tf.cond(p, lambda: tf.reduce_sum(x), lambda: tf.reduce_max(x) + 1)
    y = tf.cond(n > 5, lambda: n * 2, lambda: n)
    with tf.Session() as sess:
        assert [sess.run(y, {x: [1, 2, 4], p: value}) for value in (True, False)] == [14, 5]


def test_a_fetch_after_a_cond_is_written_where_the_caller_gets_it():
    x = tf.placeholder(tf.float32, [4])
    with tf.control_dependencies([tf.cond(x[0] > 0, lambda: x * 2.0, lambda: x)]):
        y = tf.exp(x)
    with tf.Session() as sess:
        assert "copy" not in sess.explain(y).source.partition("return")[2]


def test_a_read_is_a_snapshot_also_where_a_python_function_writes_the_variable():
    w = tf.Variable(np.ones(3, np.float32))
    double = tf.assign(w, w * 2.0)
    before = w.read_value()
    with tf.control_dependencies([before]):
        call = tf.py_func(lambda: sess.run(double.op), [], [])
    with tf.control_dependencies([call]):
        after = w.read_value()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first, second = sess.run([before + 0.0, after + 0.0])
        assert (first.tolist(), second.tolist()) == ([1, 1, 1], [2, 2, 2])


def test_a_python_function_gets_arrays_of_its_own():
    x = tf.placeholder(tf.float32, [3])
    y = x * 2.0

    def spoil(a):
        a[:] = 7
        return a

    with tf.control_dependencies([tf.py_func(spoil, [y], tf.float32)]):
        z = y + 1.0
    with tf.Session() as sess:
        assert sess.run(z, {x: [1.0, 2.0, 3.0]}).tolist() == [3, 5, 7]


def test_a_control_input_added_later_is_honoured_though_it_was_made_later():
    w = tf.Variable(1.0)
    first = w.read_value()
    update = tf.assign(w, 5.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(first) == 1.0
        first.op._add_control_input(update.op)
        assert sess.run(first) == 5.0


def test_control_inputs_through_identities_that_are_dropped_reach_what_they_stand_for():
    w = tf.Variable(1.0)
    chain = tf.identity(tf.identity(tf.identity(tf.assign(w, 5.0))))
    with tf.control_dependencies([chain]):
        after = w.read_value() * 2.0
    with tf.Session(config=tf.SessionConfig(debug=True)) as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(after) == 10.0


def test_what_only_a_known_shape_needed_does_not_run():
    x = tf.placeholder(tf.float32, [None, 2])
    y = x * tf.cast(tf.shape(x)[0], tf.float32)
    with tf.Session() as sess:
        feed = {x: np.ones((3, 2), np.float32)}
        assert set(sess.explain(y, feed).kernels()) == {"cpu.mul"}
        assert sess.run(y, feed).tolist() == [[3, 3]] * 3


def test_an_identity_keeps_the_device_it_asks_for():
    x = tf.placeholder(tf.float32, [2])
    with tf.device("cpu:7"):
        y = tf.identity(x)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="cpu:7"):
        sess.run(y * 2.0, {x: [1.0, 2.0]})


def test_a_pass_that_does_not_exist_cannot_be_switched():
    with pytest.raises(tf.errors.ConfigError, match="no pass named 'cze'"):
        tf.Session(config=tf.SessionConfig(passes={"cze": False}))


def test_steps_that_run_at_once_have_kernels_and_buffers_of_their_own_and_few_are_kept():
    x = tf.placeholder(tf.float32, [4, 5])
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(tf.nn.softmax(x) * 2.0, {x: np.ones((4, 5), np.float32)}, run_metadata=metadata)
        plan = metadata.plan
        taken = [plan.lease() for _ in range(20)]
        for step in taken:
            plan.run(step, [np.ones((4, 5), np.float32)])
        spaces = [step.state.namespace for step in taken]
        kernels = [n for n in spaces[0] if n[0] == "k" and n[1:].isdigit() and not isinstance(spaces[0][n], np.ufunc)]
        assert kernels
        for name in kernels:
            assert len({id(space[name]) for space in spaces}) == 20
        for step in taken:
            plan.give_back(step)
        assert len(plan.idle) == 16
        plan.drop_idle()
        assert plan.lease() not in taken


@pytest.mark.parametrize("alias", [tf.stop_gradient, tf.identity, lambda x: tf.placeholder_with_default(x, [3])])
def test_another_name_of_a_read_keeps_the_old_value_too(alias):
    w, other = tf.Variable(np.ones(3, np.float32)), tf.Variable(0.0)
    read = w.read_value()
    with tf.control_dependencies([tf.assign(other, 1.0)]):
        named = alias(read)
    with tf.control_dependencies([named]):
        update = tf.assign(w, [5.0, 5.0, 5.0])
    with tf.control_dependencies([update]):
        late = named * 2.0
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(late).tolist() == [2, 2, 2]
        assert sess.run(w).tolist() == [5, 5, 5]


def test_every_plan_enters_the_gates_of_its_containers_in_one_order():
    variables = []
    for i in range(12):
        with tf.container(f"ordered {i % 3}" if i % 4 else ""):
            variables.append(tf.Variable(float(i), name=f"v{i}"))
    orders = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for chosen in (variables, variables[::-1], variables[::2] + variables[1::2]):
            total = tf.add_n([tf.assign_add(v, 1.0) if i % 2 else v.read_value() for i, v in enumerate(chosen)])
            plan = sess.plan(total)
            orders.append([lock.number for lock in plan.locks])
            assert len(plan.lock_set.writes) == len(plan.lock_set.reads) == 6
            assert sess.run(total) > 0
    assert orders[0] == orders[1] == orders[2] == sorted(orders[0])
    assert len(orders[0]) == 4


def test_one_over_x_is_not_x():
    x = tf.placeholder(tf.float32, [2])
    one = tf.constant([1.0, 1.0])
    fetches = [one / x, x / one, one * x, x * one, tf.pow(one, x), tf.pow(x, one), one - x]
    with tf.Session() as sess:
        got = [a.tolist() for a in sess.run(fetches, {x: [2.0, 4.0]})]
    assert got == [[0.5, 0.25], [2, 4], [2, 4], [2, 4], [1, 1], [2, 4], [-1, -3]]


def test_a_product_with_ones_of_a_larger_shape_has_that_shape():
    x = tf.placeholder(tf.float32, [3])
    with tf.Session() as sess:
        assert sess.run(x * np.ones((2, 3), np.float32), {x: [1.0, 2.0, 3.0]}).tolist() == [[1, 2, 3]] * 2


def test_equal_nodes_on_two_devices_stay_two():
    x = tf.placeholder(tf.float32, [3])
    parts = []
    for name in ("cpu:0", "cpu:1"):
        with tf.device(name):
            parts.append(tf.exp(x))
    with tf.Session(config=tf.SessionConfig(device_count={"cpu": 2})) as sess:
        rows = sess.explain(parts[0] + parts[1]).rows
        assert sorted(r.device for r in rows if r.op == "Exp") == ["cpu:0", "cpu:1"]


def test_an_operation_that_is_dropped_may_be_fetched():
    w = tf.Variable(1.0)
    nothing = tf.identity(tf.identity(tf.assign(w, 3.0)))
    with tf.Session(config=tf.SessionConfig(debug=True)) as sess:
        assert sess.run(nothing.op) is None
        assert sess.run(w) == 3.0


def test_a_python_function_returns_its_dtype():
    with tf.Session() as sess:
        assert sess.run(tf.py_func(lambda: np.int32(3), [], tf.int32)) == 3
        for value in (1.5, np.int64(3)):
            with pytest.raises(tf.errors.InvalidArgumentError, match="returned the wrong dtype"):
                sess.run(tf.py_func(lambda v=value: v, [], tf.int32))
