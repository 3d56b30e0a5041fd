"""Rows of tensors where indices say, in regions: what becomes one, what does not, and what it says."""

from __future__ import annotations

import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import hookimpl
from graphdock.plugin.host import Host
from graphdock_testing.region_reference import ReferenceCompiler

RNG = np.random.default_rng(7)
TABLE, BIAS = RNG.normal(size=(9, 4)).astype(np.float32), RNG.normal(size=4).astype(np.float32)
IDS = np.int32([[8, 0, 3], [3, 3, 1]])


class Lab:
    def __init__(self, process_host, **fields):
        self.compiler = type("Lab", (ReferenceCompiler,), fields)()
        hook = hookimpl(specname="register_region_compilers")(lambda: [self.compiler])
        self.host = process_host(Host())
        self.host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))

    def session(self, **fields):
        return tf.Session(config=tf.SessionConfig(**{"backends": ["lab", "cpu"], **fields}), host=self.host)


@pytest.fixture
def lab(process_host):
    with tf.Graph().as_default():
        yield lambda **fields: Lab(process_host, **fields)


def embedded(table, ids, bias):
    return tf.tanh(tf.gather(table, ids)) + bias


def test_rows_are_read_by_the_region_that_computes_of_them(lab):
    made = lab()
    table, ids, bias = tf.placeholder(tf.float32, [9, 4], "table"), tf.placeholder(tf.int32, [2, 3], "ids"), BIAS
    y = embedded(table, ids, tf.placeholder_with_default(bias, [4], "bias"))
    with made.session() as sess:
        assert sess.explain(y).kernels() == {"lab.reference": 1}
        got = sess.run(y, {table: TABLE, ids: IDS})
        np.testing.assert_allclose(got, np.tanh(TABLE[IDS]) + BIAS, 1e-6)
    assert str(made.compiler.programs_built[-1]) == (
        "region Gather (i: 2, j: 3, k: 4) {\n"
        "  ids: int32[i, j], aligned 4\n"
        "  table: float32[at ids, k], aligned 4\n"
        "  bias/input: float32[k], aligned 4\n"
        "  t0: float32 = input table  # Gather\n"
        "  t1: float32 = tanh t0  # Tanh\n"
        "  t2: float32 [k] = input bias/input  # add\n"
        "  t3: float32 = add t1, t2  # add\n"
        "  return t3 as add: float32[i, j, k]\n"
        "}"
    )


def test_any_shape_is_one_plan_and_a_variable_is_read_where_it_lies(lab):
    made = lab()
    table = tf.Variable(TABLE)
    ids = tf.placeholder(tf.int64, [None, None])
    y = tf.reduce_sum(embedded(table, ids, BIAS), -1)
    with made.session(shape_policy="generic") as sess:
        sess.run(table.initializer)
        for shape in ((2, 3), (1, 1), (0, 2), (5, 7)):
            chosen = RNG.integers(0, 9, shape)
            np.testing.assert_allclose(sess.run(y, {ids: chosen}), (np.tanh(TABLE[chosen]) + BIAS).sum(-1), 1e-5)
        assert "lab.reference" in sess.explain(y, {ids: chosen}).kernels()
        assert not any(".gather" in k for k in sess.explain(y, {ids: chosen}).kernels())


def test_the_step_before_a_write_reads_what_was_there(lab):
    made = lab()
    table = tf.Variable(TABLE)
    y = embedded(table, tf.constant(IDS), BIAS)
    with tf.control_dependencies([y]):
        write = table.assign(table * 0.0)
    with made.session() as sess:
        sess.run(table.initializer)
        got, _ = sess.run([y, write])
        np.testing.assert_allclose(got, np.tanh(TABLE[IDS]) + BIAS, 1e-6)
        np.testing.assert_array_equal(sess.run(table), 0.0)


@pytest.mark.parametrize("index", [9, -1])
def test_an_index_out_of_range_is_an_error_of_the_gather_and_nothing_is_written(lab, index):
    made = lab()
    table, ids = tf.placeholder(tf.float32, [9, 4]), tf.placeholder(tf.int32, [9])
    state = tf.Variable(np.zeros((9, 4), np.float32))
    bias = tf.identity(BIAS) * 2.0
    rows = tf.gather(table, ids)
    write = state.assign_add(tf.tanh(rows) + bias)
    with made.session() as sess:
        sess.run(state.initializer)
        good = np.arange(9)
        sess.run(write, {table: TABLE, ids: good})
        before = sess.run(state)
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"indices\[4\] is {index}") as refused:
            sess.run(write, {table: TABLE, ids: np.where(good == 4, index, good)})
        assert refused.value.op is rows.op and "test_gathers.py" in str(refused.value)
        np.testing.assert_array_equal(sess.run(state), before)


def test_what_is_no_gather_of_rows_from_outside_stays_a_kernel(lab):
    made = lab()
    table, ids = tf.placeholder(tf.float32, [9, 4]), tf.placeholder(tf.int32, [2, 3])
    fetches = {
        "along another axis": tf.tanh(tf.gather(table, ids, axis=1)),
        "of what is computed": tf.tanh(tf.gather(tf.tanh(table) * 2.0, ids)),
        "by itself": tf.gather(table, ids),
    }
    feed = {table: TABLE, ids: np.minimum(IDS, 3)}
    with made.session() as sess, tf.Session(config=tf.SessionConfig(backends=["cpu"])) as plain:
        for what, y in fetches.items():
            kernels = sess.explain(y).kernels()
            assert kernels.get("cpu.gather") == (None if what == "of what is computed" else 1), (what, kernels)
            np.testing.assert_allclose(sess.run(y, feed), plain.run(y, feed), 1e-6)


@pytest.mark.parametrize("reductions", [False, True])
def test_a_gather_by_itself_is_offered_to_who_takes_reductions(lab, reductions):
    table, ids = tf.placeholder(tf.float32, [9, 4]), tf.placeholder(tf.int32, [2, 3])
    y = tf.gather(table, ids)
    with lab(reductions=reductions).session() as sess:
        assert sess.explain(y).kernels() == {"lab.reference" if reductions else "cpu.gather": 1}
        np.testing.assert_array_equal(sess.run(y, {table: TABLE, ids: IDS}), TABLE[IDS])


def test_indices_that_the_region_computes_are_made_before_it(lab):
    made = lab()
    table, ids = tf.placeholder(tf.float32, [6, 6]), tf.placeholder(tf.int32, [6, 6])
    square = tf.gather(table, tf.placeholder_with_default(np.arange(6, dtype=np.int32), [6]))
    y = square * tf.cast(ids + 1, tf.float32)
    z = tf.tanh(tf.gather(table[:, 0], ids + 1))
    feed = {table: RNG.normal(size=(6, 6)), ids: RNG.integers(0, 5, (6, 6))}
    with made.session() as sess, tf.Session(config=tf.SessionConfig(backends=["cpu"])) as plain:
        np.testing.assert_allclose(sess.run([y, z], feed), plain.run([y, z], feed), 1e-6)


def test_a_compiler_that_does_not_gather_is_not_asked_to(lab):
    made = lab(gathers=False)
    table, ids = tf.placeholder(tf.float32, [9, 4]), tf.placeholder(tf.int32, [2, 3])
    y = embedded(table, ids, BIAS)
    with made.session() as sess:
        assert sess.explain(y).kernels() == {"cpu.gather": 1, "lab.reference": 1}


def test_bodies_of_loops_gather_by_kernels(lab):
    made = lab()
    table, ids = tf.placeholder(tf.float32, [9, 4]), tf.placeholder(tf.int32, [3])
    _, y = tf.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, tf.tanh(tf.gather(table, ids)) + x), [0, tf.zeros([3, 4])]
    )
    with made.session() as sess:
        got = sess.run(y, {table: TABLE, ids: IDS[0]})
    np.testing.assert_allclose(got, 3 * np.tanh(TABLE[IDS[0]]), 1e-5)


@pytest.mark.parametrize("how", ["alone", "with others", "read before"])
def test_an_index_is_held_to_the_tensor_though_nothing_reads_the_row(lab, how):
    """Rows that are only waited for: nothing behind them is written."""
    made = lab()
    table, state = tf.Variable(np.ones((16, 16), np.float32)), tf.Variable(np.zeros((16, 16), np.float32))
    ids, x = tf.placeholder(tf.int32, [16]), tf.placeholder(tf.float32, [16, 16])
    rows = tf.gather(table, ids)
    before = {"alone": rows, "with others": tf.reduce_sum(tf.tanh(rows) * 2.0), "read before": rows * 2.0 + x}[how]
    with tf.control_dependencies([before]):
        write = tf.assign(state, tf.tanh(x) * 2.0)
    feed = {ids: np.arange(16), x: np.ones((16, 16))}
    with made.session() as sess:
        sess.run([table.initializer, state.initializer])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[3\] is 99") as refused:
            sess.run(write.op, {**feed, ids: np.where(np.arange(16) == 3, 99, 0)})
        assert refused.value.op is rows.op
        assert not sess.run(state).any()
        sess.run(write.op, feed)
        np.testing.assert_allclose(sess.run(state), np.tanh(1) * 2, 1e-6)


def test_an_element_of_a_vector_that_is_computed_is_gathered_by_a_kernel(lab):
    made = lab()
    x = tf.placeholder(tf.float32, [33])
    y = [tf.gather(tf.abs(x), 0), tf.gather(x * 2.0, 3) + 1.0, tf.gather(tf.cast(x, tf.float64), tf.constant([1, 2]))]
    fed = np.arange(33) - 5.0
    with made.session() as sess:
        for got, want in zip(sess.run(y, {x: fed}), [5.0, -3.0, [-4.0, -3.0]], strict=True):
            np.testing.assert_array_equal(got, want)


def test_an_error_in_a_branch_says_where_the_gather_was_made(lab):
    made = lab()
    ids, way = tf.placeholder(tf.int32, [3]), tf.placeholder(tf.bool, [])
    y = tf.cond(way, lambda: tf.tanh(tf.gather(tf.constant(TABLE), ids)) * 2.0, lambda: tf.ones([3, 4]))
    with made.session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0\] is 9.*") as refused:
            sess.run(y, {ids: [9, 9, 9], way: True})
        assert "Gather, made at" in str(refused.value) and "test_gathers.py" in str(refused.value)
