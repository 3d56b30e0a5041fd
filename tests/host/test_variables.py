"""Variables: names, reads and their order, updates, initialization. Values are worked out by hand."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError, UninitializedError


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def names(graph):
    return [op.name for op in graph.get_operations()]


def test_names_are_tensorflows(graph):
    v = tf.Variable([1.0, 2.0])
    w = tf.Variable(3, name="count")
    with tf.name_scope("layer"):
        b = tf.Variable(tf.zeros([4]), name="b")
    assert [v.name, w.name, b.name] == ["Variable:0", "count:0", "layer/b:0"]
    assert v.initializer.name == "Variable/Assign"
    assert b.op.name == "layer/b" and b.op.type == "VarHandleOp"
    assert "Variable/Read/ReadVariableOp" in names(graph) and "Variable/initial_value" in names(graph)
    assert tf.Variable(1.0).name == "Variable_1:0"


def test_dtype_and_shape_come_from_the_initial_value():
    v = tf.Variable([[1, 2, 3]])
    assert v.dtype == tf.int32 and v.shape == [1, 3] and v.value().shape == [1, 3]
    assert tf.Variable(1, dtype=tf.float64).dtype == tf.float64
    assert tf.Variable(lambda: tf.ones([2, 2])).shape == [2, 2]
    assert tf.Variable(np.zeros(3), dtype=tf.float64).get_shape() == [3]


def test_a_wrong_initial_value_is_refused():
    with pytest.raises(InvalidArgumentError, match="needs an initial value"):
        tf.Variable()
    with pytest.raises(InvalidArgumentError, match="must have a shape that is known"):
        tf.Variable(tf.placeholder(tf.float32, [None, 2]))
    with pytest.raises(DTypeError):
        tf.Variable(tf.constant(1.0), dtype=tf.int32)
    assert tf.Variable(tf.placeholder(tf.float32, [None, 2]), validate_shape=False).shape.rank is None


def test_collections():
    v = tf.Variable(1.0)
    w = tf.Variable(1.0, trainable=False)
    u = tf.Variable(1.0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    assert tf.global_variables() == [v, w]
    assert tf.trainable_variables() == [v]
    assert tf.local_variables() == [u]
    tf.add_to_collection("mine", 7)
    assert tf.get_collection("mine") == [7] and tf.get_collection("other") == []


def test_one_read_is_shared_outside_of_control_dependencies(graph):
    v = tf.Variable(1.0)
    before = graph.version
    a, b = tf.identity(v), tf.identity(v)
    assert a.op.inputs[0] is b.op.inputs[0]
    assert graph.version == before + 2


def test_a_read_under_control_dependencies_is_fresh_and_waits():
    v = tf.Variable(1.0)
    update = v.assign(5.0)
    with tf.control_dependencies([update]):
        read = tf.identity(v).op.inputs[0]
    assert read is not v.value() and update.op in read.op.control_inputs


def test_uninitialized_read_names_variable_and_line():
    v = tf.Variable(1.0, name="weights")
    with tf.Session() as sess:
        with pytest.raises(UninitializedError, match="weights") as info:
            sess.run(v)
        assert "test_variables.py" in str(info.value)
        assert not sess.run(tf.is_variable_initialized(v))
        assert sess.run(tf.report_uninitialized_variables()).tolist() == [b"weights"]
        sess.run(v.initializer)
        assert sess.run(tf.is_variable_initialized(v))
        assert sess.run(tf.report_uninitialized_variables()).tolist() == []


def test_assign_returns_the_new_value():
    v = tf.Variable(1.0)
    set_, add, sub = v.assign(10.0), v.assign_add(2.0), tf.assign_sub(v, 0.5)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(set_) == 10.0
        assert sess.run(add) == 12.0
        assert sess.run(sub) == 11.5
        assert sess.run(sub.op) is None
        assert sess.run(v) == 11.0
        v.load(3.0)
        assert v.eval() == 3.0


def test_updates_check_dtype_and_shape():
    v = tf.Variable([[1.0, 2.0]], name="w")
    with pytest.raises(DTypeError, match="w:0"):
        v.assign(tf.constant([[1, 2]]))
    with pytest.raises(ShapeError, match="w:0") as info:
        v.assign([1.0, 2.0, 3.0])
    assert info.value.expected == "[1,2]" and info.value.got == "[3]"
    assert tf.Variable([1.0], validate_shape=False).assign([1.0, 2.0]) is not None


def test_an_update_in_one_step_is_seen_by_reads_after_it_only():
    v = tf.Variable(1.0)
    before = tf.identity(v)
    update = v.assign_add(1.0)
    with tf.control_dependencies([update]):
        after = tf.identity(v)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([before, after]) == [1.0, 2.0]
        assert sess.run([before, after]) == [2.0, 3.0]


def test_operators_are_a_tensors():
    v = tf.Variable([2.0, 4.0])
    m = tf.Variable([[1.0, 0.0], [0.0, 3.0]])
    results = [v + 1, 1 - v, v * v, 2 / v, -v, v[1], v > 3.0, v**2, m @ m, abs(-v)]
    expected = [[3, 5], [-1, -3], [4, 16], [1, 0.5], [-2, -4], 4, [False, True], [4, 16], [[1, 0], [0, 9]], [2, 4]]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for got, want in zip(sess.run(results), expected, strict=True):
            np.testing.assert_array_equal(got, want)
    for use in (bool, iter, np.asarray):
        with pytest.raises(TypeError, match="symbolic"):
            use(v)


def test_initial_values_that_read_variables_are_initialized_in_order():
    a = tf.Variable(tf.random_uniform([3]), name="a")
    b = tf.Variable(a * 2.0, name="b")
    c = tf.Variable(a.initialized_value() + b, name="c")
    with tf.Session() as sess:
        for _ in range(2):
            sess.run(tf.global_variables_initializer())
            x, y, z = sess.run([a, b, c])
            np.testing.assert_array_equal(y, x * 2)
            np.testing.assert_allclose(z, x * 3, rtol=1e-6)
        sess.run(a.assign([1.0, 2.0, 3.0]))
        sess.run(b.initializer)
        assert sess.run(b).tolist() == [2.0, 4.0, 6.0]
        assert sess.run(a).tolist() == [1.0, 2.0, 3.0]


def test_an_initializer_alone_uses_the_others_initial_value():
    a = tf.Variable(4.0)
    b = tf.Variable(a + 1.0)
    with tf.Session() as sess:
        sess.run(b.initializer)
        assert sess.run(b) == 5.0
        assert not sess.run(tf.is_variable_initialized(a))


def test_a_variable_made_in_a_body_lives_in_the_outermost_graph(graph):
    made = []

    def body(i):
        made.append(tf.Variable(lambda: tf.ones([2]), name="inner"))
        return i + 1

    tf.while_loop(lambda i: i < 3, body, [0])
    assert made[0].graph is graph and tf.global_variables() == made

    with pytest.raises(InvalidArgumentError, match="stands inside the body"):
        tf.while_loop(lambda i: i < 3, lambda i: tf.Variable(i).value(), [0])


def test_variables_are_private_to_a_session():
    v = tf.Variable(1.0)
    with tf.Session() as one, tf.Session() as two:
        one.run(v.initializer)
        two.run(v.assign(9.0))
        assert one.run(v) == 1.0 and two.run(v) == 9.0


def test_feeding_a_variable_replaces_its_read():
    v = tf.Variable(1.0)
    y = v * 2.0
    with tf.Session() as sess:
        assert sess.run(y, {v: 21.0}) == 42.0


def test_variables_initializer_takes_some():
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    init = tf.variables_initializer([b])
    assert init.control_inputs == [b.initializer]
    with tf.Session() as sess:
        sess.run(init)
        assert sess.run(tf.report_uninitialized_variables()).tolist() == [b"a"]
    assert a.initializer not in init.control_inputs
    assert tf.initialize_all_variables().control_inputs == [a.initializer, b.initializer]


def test_an_uninitialized_read_in_a_branch_fails_only_when_the_branch_runs():
    v = tf.Variable(1.0, name="lazy")
    p = tf.placeholder(tf.bool, [])
    out = tf.cond(p, lambda: v.read_value(), lambda: tf.constant(7.0))
    with tf.Session() as sess:
        assert sess.run(out, {p: False}) == 7.0
        with pytest.raises(UninitializedError, match="lazy") as info:
            sess.run(out, {p: True})
        assert info.value.op_name.startswith("cond/then/") and "test_variables.py" in info.value.site
        sess.run(v.initializer)
        assert sess.run(out, {p: True}) == 1.0


def test_each_use_in_a_loop_reads_anew():
    w = tf.Variable(1.0)

    def body(i, total):
        total = total + w
        with tf.control_dependencies([total]):
            update = tf.assign_add(w, 1.0)
        with tf.control_dependencies([update]):
            return i + 1, tf.identity(total)

    _, total = tf.while_loop(lambda i, t: i < 4, body, [0, 0.0])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(total) == 1 + 2 + 3 + 4


def test_collections_in_a_body_are_the_outermost_graphs():
    w = tf.Variable(1.0)
    seen = []

    def branch():
        seen.append((tf.global_variables(), tf.trainable_variables()))
        tf.add_to_collection("mine", 7)
        return tf.constant(1.0)

    tf.cond(w > 0.0, branch, lambda: tf.constant(2.0))
    assert seen == [([w], [w])]
    assert tf.get_collection("mine") == [7]


def test_local_variables_by_scope():
    key = [tf.GraphKeys.LOCAL_VARIABLES]
    a, b = (tf.Variable(1.0, collections=key, name=n, trainable=False) for n in ("one/a", "two/b"))
    assert (tf.local_variables(), tf.local_variables("two")) == ([a, b], [b])
    with tf.Session() as sess:
        assert sess.run(tf.report_uninitialized_variables()).tolist() == [b"one/a", b"two/b"]
        sess.run(tf.local_variables_initializer())
        assert sess.run(tf.report_uninitialized_variables()).tolist() == []


def test_an_initial_value_that_was_ordered_by_its_maker_is_left_alone():
    a = tf.Variable(1.0)
    with tf.control_dependencies([a.initializer]):
        read = a.read_value()
    b = tf.Variable(read)
    assert b.initializer.inputs[1] is read


def test_what_is_known_of_an_initial_values_shape_stays_known():
    a = tf.Variable(np.arange(3, dtype=np.float32))
    value = tf.py_func(lambda x: x * 2, [a], tf.float32)
    value.set_shape([3])
    b = tf.Variable(value)
    assert b.initializer.inputs[1] is not value and b.initializer.inputs[1].shape == [3]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(b).tolist() == [0, 2, 4]


def test_initializers_are_of_variables_only():
    with pytest.raises(tf.errors.InvalidArgumentError, match="variables_initializer needs Variables"):
        tf.variables_initializer([tf.Variable(1.0), tf.constant(1.0)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="is_variable_initialized needs a Variable"):
        tf.is_variable_initialized(tf.constant(1.0))


def test_a_fetched_variable_is_read_behind_the_updates_of_its_step():
    w = tf.Variable([1.0, 2.0], name="w")
    before = w * 1.5
    update = w.assign_add([1.0, 1.0])
    with tf.control_dependencies([update]):
        last = w.assign_add([10.0, 10.0], read_value=False)
    forms = {
        "variable": w,
        "name": "w:0",
        "value": w.value(),
        "nested": {"a": [(w,)]},
    }
    for debug in (False, True):
        with tf.Session(config=tf.SessionConfig(debug=debug)) as sess:
            for what, fetched in forms.items():
                sess.run(w.initializer)
                fetches = [fetched, before, update, last]
                first, call = sess.run(fetches), sess.make_callable(fetches)
                for (now, old, middle, _), runs in ((first, 1), (call(), 2)):
                    now = now["a"][0][0] if what == "nested" else now
                    assert now.tolist() == [1 + 11 * runs, 2 + 11 * runs], what
                    assert old.tolist() == [1.5 * (11 * runs - 10), 1.5 * (11 * runs - 9)]
                    assert middle.tolist() == [11 * runs - 9, 11 * runs - 8]


def test_a_fetched_variable_that_the_step_initialises_or_is_fed():
    w = tf.Variable([3.0], name="w")
    update = w.assign_add([1.0], read_value=False)
    with tf.Session() as sess:
        assert sess.run([w, w.initializer])[0].tolist() == [3.0]
        assert sess.run([w, update], {w: [7.0]})[0].tolist() == [7.0]
        assert sess.run(w).tolist() == [4.0]


def test_a_fetched_variable_of_changing_shape_and_one_that_another_handle_updates():
    u = tf.Variable([1], validate_shape=False)
    longer = u.assign(tf.concat([u.value(), u.value()], 0)).op
    handle = tf.ops.apply_op("VarHandleOp", dtype=tf.float32, shape=[], shared_name="one")
    v = tf.Variable(1.0, name="one")
    more = tf.ops.apply_op("AssignAddVariableOp", resource=handle, value=1.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert [sess.run([longer, u, tf.size(u)])[1:] for _ in range(2)][1][0].tolist() == [1] * 4
        assert sess.run([v, more])[0] == 2.0


def test_a_step_that_only_reads_has_the_plan_that_it_had():
    w = tf.Variable([1.0, 2.0], name="w")
    u = tf.Variable([1.0, 2.0], name="u")
    w.assign_add([1.0, 1.0])
    other = u.assign_add(w, read_value=False)
    with tf.Session() as sess:
        for fetches in (w, [w, w * 2.0], [w, other]):
            nodes = [n.origin for n in sess.plan(fetches).graph.nodes if n.verb == "read"]
            assert nodes == ["w/Read/ReadVariableOp"]
        (read,) = [n for n in sess.plan([u, other]).graph.nodes if n.verb == "read" and "u/" in n.origin]
        assert [n.op for n in read.order] == ["AssignAddVariableOp"]
