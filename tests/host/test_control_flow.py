"""cond, case and while_loop: values against Python's own loops and branches, structure of the nodes, errors."""

from __future__ import annotations

import collections

import graphdock as tf
import numpy as np
import pytest
from graphdock import nest
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.fixture
def sess(graph):
    with tf.Session() as s:
        yield s


# -- cond


def test_the_listing_of_the_slides(sess):
    x, y, z = (tf.placeholder(tf.float32, []) for _ in range(3))
    result = tf.cond(x < y, lambda: tf.add(x, z), lambda: tf.square(y))
    assert sess.run(result, {x: 1, y: 2, z: 3}) == 4.0
    assert sess.run(result, {x: 2, y: 3, z: 0.5}) == 2.5
    assert sess.run(result, {x: 5, y: 3, z: 3}) == 9.0


def test_captures_are_the_union_in_order_of_first_use(graph):
    p = tf.placeholder(tf.bool, [])
    a, b, c = (tf.placeholder(tf.float32, [2], name=n) for n in "abc")
    out = tf.cond(p, lambda: b + a, lambda: c + b)
    node = out.op
    assert node.type == "Cond" and node.name == "cond"
    assert list(node.inputs) == [p, b, a, c]
    for body in node.bodies:
        assert list(body.captures) == [b, a, c]
    assert node.get_attr("Tin") == (tf.float32,) * 3 and node.get_attr("Tout") == (tf.float32,)


def test_names_inside_a_body_begin_with_its_own():
    p = tf.placeholder(tf.bool, [])
    out = tf.cond(p, lambda: tf.constant(1, name="one"), lambda: tf.constant(2, name="two"), name="choose")
    then, other = out.op.bodies
    assert [op.name for op in then.get_operations()] == ["choose/then/one"]
    assert [op.name for op in other.get_operations()] == ["choose/else/two"]


def test_only_the_chosen_branch_runs(sess):
    v = tf.Variable(0)
    p = tf.placeholder(tf.bool, [])
    out = tf.cond(p, lambda: v.assign_add(1), lambda: v.assign_add(10))
    sess.run(v.initializer)
    assert [sess.run(out, {p: q}) for q in (True, False, False, True)] == [1, 11, 21, 22]


def test_branches_of_operations_give_the_operation(sess):
    v = tf.Variable(0)
    p = tf.placeholder(tf.bool, [])
    out = tf.cond(p, lambda: v.assign_add(1).op, lambda: tf.no_op())
    assert isinstance(out, tf.Operation) and out.outputs == []
    sess.run(v.initializer)
    for q in (True, False, True):
        sess.run(out, {p: q})
    assert sess.run(v) == 2
    with pytest.raises(ValueError, match="true_fn must return something"):
        tf.cond(p, lambda: None, lambda: None)


def test_structures_go_in_and_out(sess):
    Pair = collections.namedtuple("Pair", ["first", "second"])
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.int32, [])
    out = tf.cond(p, lambda: Pair(x, {"b": x + 1, "a": [x + 2]}), lambda: Pair(x * 10, {"b": x * 20, "a": [x * 30]}))
    assert isinstance(out, Pair) and set(out.second) == {"a", "b"}
    assert sess.run([out.first, out.second["b"], out.second["a"][0]], {p: True, x: 1}) == [1, 2, 3]
    assert sess.run([out.first, out.second["b"], out.second["a"][0]], {p: False, x: 1}) == [10, 20, 30]


def test_a_list_of_one_is_unpacked_unless_strict():
    p = tf.placeholder(tf.bool, [])
    assert isinstance(tf.cond(p, lambda: [tf.constant(1)], lambda: [tf.constant(2)]), tf.Tensor)
    assert isinstance(tf.cond(p, lambda: [tf.constant(1)], lambda: [tf.constant(2)], strict=True), list)


def test_older_names_of_the_functions():
    p = tf.placeholder(tf.bool, [])
    assert tf.cond(p, fn1=lambda: tf.constant(1), fn2=lambda: tf.constant(2)).dtype == tf.int32
    with pytest.raises(TypeError, match="not both"):
        tf.cond(p, lambda: tf.constant(1), lambda: tf.constant(2), fn2=lambda: tf.constant(2))


def test_shapes_of_branches_are_joined():
    p = tf.placeholder(tf.bool, [])
    assert tf.cond(p, lambda: tf.ones([2, 3]), lambda: tf.ones([4, 3])).shape == [None, 3]
    assert tf.cond(p, lambda: tf.ones([2, 3]), lambda: tf.ones([4])).shape.rank is None


def test_a_predicate_that_is_no_bool_scalar():
    one = lambda: tf.constant(1)  # noqa: E731
    with pytest.raises(TypeError, match="must not be a Python bool"):
        tf.cond(True, one, one)
    with pytest.raises(DTypeError, match="pred must be a bool"):
        tf.cond(tf.constant(1), one, one)
    with pytest.raises(ShapeError):
        tf.cond(tf.constant([True, False]), one, one)
    with pytest.raises(TypeError, match="true_fn must be callable"):
        tf.cond(tf.placeholder(tf.bool, []), tf.constant(1), one)


def test_branches_that_do_not_agree():
    p = tf.placeholder(tf.bool, [])
    with pytest.raises(DTypeError, match="output 1 differs in dtype: true_fn returns float32") as info:
        tf.cond(p, lambda: (tf.constant(1), tf.constant(1.0)), lambda: (tf.constant(1), tf.constant(1)))
    assert "test_control_flow.py" in str(info.value)
    with pytest.raises(InvalidArgumentError, match="nested differently") as info:
        tf.cond(p, lambda: {"a": tf.constant(1)}, lambda: {"b": tf.constant(1)})
    assert "missing: 'a'" in info.value.hint
    with pytest.raises(InvalidArgumentError, match="output 0 differs in kind"):
        tf.cond(p, lambda: tf.constant(1), lambda: tf.no_op())


def test_an_inner_tensor_is_out_of_reach(graph, sess):
    p, inner = tf.placeholder(tf.bool, []), []

    def branch():
        inner.append(tf.constant(1.0) + 1.0)
        return inner[0]

    out = tf.cond(p, branch, lambda: tf.constant(0.0))
    with pytest.raises(InvalidArgumentError, match="stands inside the body 'cond/then'"):
        sess.run(inner[0], {p: True})
    with pytest.raises(InvalidArgumentError, match="stands inside the body"):
        sess.run(out, {p: True, inner[0]: 1.0})
    with pytest.raises(InvalidArgumentError), tf.control_dependencies([inner[0]]):
        tf.constant(1)
    with pytest.raises(InvalidArgumentError, match="another graph"):
        inner[0] + 1.0


def test_outer_control_inputs_of_inner_ops_become_the_nodes(sess):
    v = tf.Variable(1)
    update = v.assign(5)
    p = tf.placeholder(tf.bool, [])

    def branch():
        with tf.control_dependencies([update]):
            return v.read_value()

    out = tf.cond(p, branch, lambda: tf.constant(0))
    assert update.op in out.op.control_inputs
    sess.run(v.initializer)
    assert sess.run(out, {p: True}) == 5


def test_nested_conds_capture_through(sess):
    p, q, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, []), tf.placeholder(tf.int32, [])
    out = tf.cond(p, lambda: tf.cond(q, lambda: x + 1, lambda: x + 2), lambda: tf.cond(q, lambda: x + 3, lambda: x + 4))
    assert set(out.op.inputs) == {p, q, x}
    got = [sess.run(out, {p: a, q: b, x: 0}) for a in (True, False) for b in (True, False)]
    assert got == [1, 2, 3, 4]


# -- case


def test_case_takes_the_first_true_predicate(sess):
    x = tf.placeholder(tf.int32, [])
    pairs = [(x < 1, lambda: tf.constant("low")), (x < 2, lambda: tf.constant("middle"))]
    out = tf.case(pairs, default=lambda: tf.constant("high"))
    assert [sess.run(out, {x: i}) for i in range(3)] == [b"low", b"middle", b"high"]


@pytest.mark.parametrize("count", [8, 9, 17, 70])
def test_case_of_many_branches_takes_the_first_true_one(sess, count):
    """Also where several are true, which a search that halves must not mix up; each function is called once, in order."""
    x, called = tf.placeholder(tf.int32, []), []

    def branch(i):
        return lambda: called.append(i) or tf.constant(i)

    out = tf.case([(x < i, branch(i)) for i in range(count)], default=lambda: tf.constant(-1))
    assert called == list(range(count))
    assert [int(sess.run(out, {x: i})) for i in range(-1, count)] == [*range(count), -1]


def test_case_without_default_or_exclusive_checks_in_the_step(sess):
    x = tf.placeholder(tf.int32, [])
    pairs = [(x < 1, lambda: tf.constant(1)), (x < 2, lambda: tf.constant(2))]
    out = tf.case(pairs, exclusive=True)
    assert sess.run(out, {x: 1}) == 2
    with pytest.raises(InvalidArgumentError, match="none of the predicates"):
        sess.run(out, {x: 5})
    with pytest.raises(InvalidArgumentError, match="more than one predicate"):
        sess.run(out, {x: 0})


def test_case_refuses_what_is_no_pair():
    with pytest.raises(InvalidArgumentError, match="at least one pair"):
        tf.case([])
    with pytest.raises(TypeError, match="element 0 must be a pair"):
        tf.case([tf.constant(True)])
    with pytest.raises(TypeError, match="must be callable"):
        tf.case([(tf.constant(True), 1)])


# -- while_loop


def test_the_loop_of_the_slides(sess):
    out = tf.while_loop(lambda i: i < 10, lambda i: tf.add(i, 1), [0])
    assert isinstance(out, tf.Tensor) and out.op.type == "While" and out.op.name == "while"
    assert sess.run(out) == 10


def test_swapping_loop_variables(sess):
    n = tf.placeholder(tf.int32, [])
    _, a, b = tf.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, a + b), (0, 0, 1))
    python = {0: (0, 1), 1: (1, 1), 7: (13, 21), 20: (6765, 10946)}
    for steps, want in python.items():
        assert tuple(sess.run([a, b], {n: steps})) == want


def test_matrices_against_numpy(sess, graph):
    x = np.arange(9, dtype=np.float64).reshape(3, 3) / 10
    m = tf.constant(x)
    _, power = tf.while_loop(lambda i, p: i < 5, lambda i, p: (i + 1, tf.matmul(p, m)), [0, tf.constant(np.eye(3))])
    np.testing.assert_allclose(sess.run(power), np.linalg.matrix_power(x, 5), rtol=1e-12)
    assert list(power.op.inputs)[2:] == [m]


def test_nested_loops_against_python(sess):
    def inner(i, s):
        return tf.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + i * j), (0, s))[1]

    out = tf.while_loop(lambda i, s: i < 6, lambda i, s: (i + 1, inner(i, s)), (0, 0))[1]
    assert sess.run(out) == sum(i * j for i in range(6) for j in range(i))


def test_conds_in_loops_against_python(sess):
    start = tf.placeholder(tf.int64, [])

    def step(n, count):
        even = tf.equal(n % 2, 0)
        return tf.cond(even, lambda: n // 2, lambda: 3 * n + 1), count + 1

    _, steps = tf.while_loop(lambda n, count: n > 1, step, (start, 0))

    def collatz(n):
        count = 0
        while n > 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    for n in (1, 6, 7, 27):
        assert sess.run(steps, {start: n}) == collatz(n)


def test_updates_in_a_loop_run_in_order(sess):
    v, log = tf.Variable(0), tf.Variable(0)

    def body(i):
        a = v.assign_add(i)
        with tf.control_dependencies([log.assign(log.read_value() * 10 + a)]):
            return i + 1

    out = tf.while_loop(lambda i: i < 4, body, [1])
    sess.run(tf.global_variables_initializer())
    assert sess.run(out) == 4
    assert sess.run([v, log]) == [6, 136]


def test_maximum_iterations_as_number_and_as_tensor(sess):
    n = tf.placeholder(tf.int32, [])
    for limit, feed in ((3, {}), (n, {n: 3})):
        out = tf.while_loop(lambda i: i < 100, lambda i: i + 2, [0], maximum_iterations=limit)
        assert sess.run(out, feed) == 6
    out = tf.while_loop(lambda i, s: i < 100, lambda i, s: (i + 2, s * 2), (0, 1), maximum_iterations=n)
    assert sess.run(out, {n: 4}) == (8, 16)
    assert sess.run(out, {n: 0}) == (0, 1)


def test_structures_of_loop_variables(sess):
    State = collections.namedtuple("State", ["n", "parts"])
    out = tf.while_loop(
        lambda n, parts: n < 3,
        lambda n, parts: State(n + 1, {"a": parts["a"] + n, "b": [parts["b"][0] * 2]}),
        State(0, {"a": 0, "b": [1]}),
    )
    assert isinstance(out, State)
    assert sess.run([out.n, out.parts["a"], out.parts["b"][0]]) == [3, 3, 8]


def test_shape_invariants(sess):
    grow = lambda i, x: (i + 1, tf.concat([x, x], 0))  # noqa: E731
    start = [0, tf.constant([1.0])]
    with pytest.raises(
        ShapeError, match=r"loop variable 1 .* enters with \[1\], but after one iteration it has \[2\]"
    ) as e:
        tf.while_loop(lambda i, x: i < 3, grow, start)
    assert "shape_invariants" in e.value.hint and "TensorShape([None])" in e.value.hint
    _, out = tf.while_loop(
        lambda i, x: i < 3, grow, start, shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])]
    )
    assert out.shape == [None]
    assert sess.run(out).shape == (8,)
    with pytest.raises(ShapeError, match="does not enter with the shape"):
        tf.while_loop(lambda i, x: i < 3, grow, start, shape_invariants=[[], [3]])


def test_loop_variables_that_change_dtype_or_structure():
    with pytest.raises(
        DTypeError, match=r"loop variable 0 .* enters as int32, but after one iteration it is float32"
    ) as info:
        tf.while_loop(lambda i: i < 3, lambda i: tf.cast(i, tf.float32), [0])
    assert "test_control_flow.py" in str(info.value)
    with pytest.raises(InvalidArgumentError, match="nested differently"):
        tf.while_loop(lambda i, j: i < 3, lambda i, j: [i], [0, 0])
    with pytest.raises(DTypeError, match="cond must return a bool"):
        tf.while_loop(lambda i: i, lambda i: i, [0])
    with pytest.raises(ShapeError, match="cond must return a scalar"):
        tf.while_loop(lambda i: i < 3, lambda i: i, [tf.constant([1, 2])])
    with pytest.raises(InvalidArgumentError, match="at least one loop variable"):
        tf.while_loop(lambda: True, lambda: None, [])
    with pytest.raises(TypeError, match="body must be callable"):
        tf.while_loop(lambda i: i < 3, 3, [0])


def test_random_programs_against_python(sess):
    """Loops whose bodies are random trees of conds and arithmetic give what Python gives."""
    rng = np.random.default_rng(7)

    def program(depth):
        kind = rng.integers(0, 4 if depth else 2)
        k = int(rng.integers(1, 5))
        if kind == 0:
            return (lambda x, i: x + i * k), (lambda x, i: x + i * k)
        if kind == 1:
            return (lambda x, i: (x * k + 3) % 1009), (lambda x, i: (x * k + 3) % 1009)
        (f, pf), (g, pg) = program(depth - 1), program(depth - 1)
        if kind == 2:
            return (
                lambda x, i: tf.cond(tf.equal((x + i) % k, 0), lambda: f(x, i), lambda: g(x, i)),
                lambda x, i: pf(x, i) if (x + i) % k == 0 else pg(x, i),
            )

        def python(x, i):
            for j in range(k):
                x = pg(pf(x, i), j)
            return x

        return (
            lambda x, i: tf.while_loop(lambda j, y: j < k, lambda j, y: (j + 1, g(f(y, i), j)), (0, x))[1],
            python,
        )

    for _ in range(6):
        f, python = program(3)
        out = tf.while_loop(lambda i, x: i < 4, lambda i, x, f=f: (i + 1, f(x, i) % 1009), (0, 5))[1]
        want = 5
        for i in range(4):
            want = python(want, i) % 1009
        assert sess.run(out) == want


# -- nest


def test_nest_packs_what_it_flattens():
    Point = collections.namedtuple("Point", ["x", "y"])
    structure = [1, (2, Point(3, {"b": 5, "a": 4})), []]
    assert nest.flatten(structure) == [1, 2, 3, 4, 5]
    assert nest.pack_sequence_as(structure, [1, 2, 3, 4, 5]) == structure
    assert nest.map_structure(lambda v: -v, Point(1, [2])) == Point(-1, [-2])
    with pytest.raises(InvalidArgumentError, match="cannot be packed"):
        nest.pack_sequence_as(structure, [1])
    assert nest.flatten_up_to([0, (0, 0)], [[None, 2], ([3], None)]) == [[None, 2], [3], None]
    with pytest.raises(InvalidArgumentError, match=r"at \[1\]"):
        nest.assert_same_structure([1, (2, 3)], [1, [2, 3]])


def test_no_iteration_at_all_is_a_limit(sess):
    assert sess.run(tf.while_loop(lambda i: i < 5, lambda i: i + 1, [2], maximum_iterations=0)) == 2
    with pytest.raises(InvalidArgumentError, match="maximum_iterations is negative"):
        tf.while_loop(lambda i: i < 5, lambda i: i + 1, [2], maximum_iterations=-1)


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0])
def test_parallel_iterations_are_at_least_one(wrong):
    with pytest.raises(InvalidArgumentError, match="parallel_iterations is wrong"):
        tf.while_loop(lambda i: i < 5, lambda i: i + 1, [2], parallel_iterations=wrong)


# -- what runs in a body


def test_an_update_that_no_result_waits_for_does_not_happen(sess):
    v = tf.Variable(0.0)

    def branch():
        tf.assign(v, 5.0)
        return tf.constant(1.0)

    def body(i):
        tf.assign_add(v, 1.0)
        return i + 1

    chosen = tf.cond(tf.constant(True), branch, lambda: tf.constant(2.0))
    looped = tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])
    sess.run(v.initializer)
    assert sess.run([chosen, looped]) == [1.0, 3] and sess.run(v) == 0.0


def test_an_update_that_a_result_waits_for_happens_though_only_the_node_is_waited_for(sess):
    v = tf.Variable(0.0)

    def branch():
        with tf.control_dependencies([tf.assign_add(v, 5.0)]):
            return tf.constant(1.0), tf.constant(2.0)

    first, second = tf.cond(tf.placeholder_with_default(True, []), branch, lambda: (tf.constant(0.0),) * 2)

    def body(i, x):
        with tf.control_dependencies([tf.assign_add(v, 1.0)]):
            return i + 1, tf.identity(x)

    _, kept = tf.while_loop(lambda i, x: i < 3, body, [0, tf.constant(0.0)])
    with tf.control_dependencies([second, kept]):
        after = tf.constant(7)
    sess.run(v.initializer)
    assert sess.run(after) == 7 and sess.run(v) == 8.0
    sess.run([first.op, tf.group(kept)])
    assert sess.run(v) == 16.0


def test_a_returned_operation_runs_what_it_waits_for(sess):
    v, p = tf.Variable(0), tf.placeholder(tf.bool, [])
    out = tf.cond(p, lambda: tf.group(v.assign_add(1)), lambda: tf.no_op())
    both = tf.cond(p, lambda: (tf.group(v.assign_add(10)), tf.constant(1)), lambda: (tf.no_op(), tf.constant(0)))
    sess.run(v.initializer)
    sess.run(out, {p: True})
    sess.run(out, {p: False})
    assert sess.run(v) == 1
    assert sess.run(both[1], {p: True}) == 1 and sess.run(v) == 11


def test_a_returned_operation_goes_through_json(sess, graph):
    v, p = tf.Variable(0, name="v"), tf.placeholder(tf.bool, [], name="p")
    tf.cond(p, lambda: tf.group(v.assign_add(1)), lambda: tf.no_op(), name="chosen")
    text = graph.to_json()
    with tf.Graph().as_default() as again:
        tf.import_graph_def(text, name="")
        with tf.Session() as other:
            other.run(again.get_operation_by_name("v/Assign"))
            other.run(again.get_operation_by_name("chosen"), {again.get_tensor_by_name("p:0"): True})
            assert other.run(again.get_tensor_by_name("v/Read/ReadVariableOp:0")) == 1


def test_control_inputs_of_what_does_not_run_are_not_waited_for(sess):
    p, a = tf.placeholder(tf.float32, []), tf.constant(3)

    def branch():
        with tf.control_dependencies([p]):
            a + 1
        return a + 2

    assert sess.run(tf.cond(tf.constant(True), branch, lambda: tf.constant(1))) == 5

    def waiting():
        with tf.control_dependencies([p]):
            return a + 2

    with pytest.raises(ValueError, match="not fed"):
        sess.run(tf.cond(tf.constant(True), waiting, lambda: tf.constant(1)))


@pytest.mark.parametrize("limit", [None, 3, "tensor"])
def test_a_loop_without_back_prop_is_a_constant_to_gradients(sess, limit):
    x = tf.constant(2.0)
    maximum = tf.constant(3) if limit == "tensor" else limit
    looped = tf.while_loop(lambda y: y < 100.0, tf.square, [x], back_prop=False, maximum_iterations=maximum)
    assert sess.run([looped, tf.gradients(looped + x, x)[0]]) == [256.0, 1.0]
    assert tf.gradients(looped, x) == [None]
