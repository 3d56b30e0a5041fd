"""Cells against their formulas in NumPy, and TensorFlow 1's names of their variables."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DTypeError, InvalidArgumentError, NotFoundError, ShapeError, UnimplementedError

cells = tf.nn.rnn_cell
X = np.random.RandomState(0).randn(3, 4)


def flatten(values):
    return [v for item in values for v in flatten(item)] if isinstance(values, (list, tuple)) else [values]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(cell, state=None):
    """Output, next state, the state before and the variables by name, in float64, all drawn."""
    rng = np.random.RandomState(1)
    flat = [rng.randn(3, n) for n in flatten(cell.state_size)] if state is None else state
    given = iter(tf.constant(s) for s in flat)
    sizes = cell.state_size
    before = next(given) if isinstance(sizes, int) else type(sizes)(*given) if hasattr(sizes, "c") else tuple(given)
    output, after = cell(tf.constant(X), before)
    with tf.Session() as sess:
        for v in tf.global_variables():
            sess.run(tf.assign(v, rng.randn(*v.shape.as_list()) * 0.5))
        found = sess.run([output, after])
        return *found, flat, {v.op.name: sess.run(v) for v in tf.global_variables()}


def test_basic_rnn_cell():
    output, after, (h,), v = step(cells.BasicRNNCell(5, dtype=tf.float64))
    assert list(v) == ["basic_rnn_cell/kernel", "basic_rnn_cell/bias"]
    want = np.tanh(np.hstack([X, h]) @ v["basic_rnn_cell/kernel"] + v["basic_rnn_cell/bias"])
    np.testing.assert_allclose(output, want)
    np.testing.assert_array_equal(after, output)


def test_gru_cell():
    output, _, (h,), v = step(cells.GRUCell(5, name="g", dtype=tf.float64))
    assert list(v) == ["g/gates/kernel", "g/gates/bias", "g/candidate/kernel", "g/candidate/bias"]
    r, u = np.split(sigmoid(np.hstack([X, h]) @ v["g/gates/kernel"] + v["g/gates/bias"]), 2, 1)
    c = np.tanh(np.hstack([X, r * h]) @ v["g/candidate/kernel"] + v["g/candidate/bias"])
    np.testing.assert_allclose(output, u * h + (1 - u) * c)


@pytest.mark.parametrize("is_tuple", [True, False])
def test_basic_lstm_cell(is_tuple):
    cell = cells.BasicLSTMCell(5, forget_bias=0.5, state_is_tuple=is_tuple, dtype=tf.float64)
    output, after, flat, v = step(cell)
    c, h = flat if is_tuple else np.split(flat[0], 2, 1)
    i, j, f, o = np.split(np.hstack([X, h]) @ v["basic_lstm_cell/kernel"] + v["basic_lstm_cell/bias"], 4, 1)
    c = c * sigmoid(f + 0.5) + sigmoid(i) * np.tanh(j)
    np.testing.assert_allclose(output, np.tanh(c) * sigmoid(o))
    np.testing.assert_allclose(after.c if is_tuple else after[:, :5], c)


def test_lstm_cell_with_everything():
    cell = cells.LSTMCell(5, True, 0.6, num_proj=2, proj_clip=0.4, forget_bias=0.1, dtype=tf.float64)
    assert (cell.state_size, cell.output_size) == (cells.LSTMStateTuple(5, 2), 2)
    output, after, (c, h), v = step(cell)
    v = {k.removeprefix("lstm_cell/"): a for k, a in v.items()}
    assert list(v) == ["kernel", "bias", "w_f_diag", "w_i_diag", "w_o_diag", "projection/kernel"]
    i, j, f, o = np.split(np.hstack([X, h]) @ v["kernel"] + v["bias"], 4, 1)
    new = sigmoid(f + 0.1 + v["w_f_diag"] * c) * c + sigmoid(i + v["w_i_diag"] * c) * np.tanh(j)
    new = np.clip(new, -0.6, 0.6)
    h = np.clip((sigmoid(o + v["w_o_diag"] * new) * np.tanh(new)) @ v["projection/kernel"], -0.4, 0.4)
    np.testing.assert_allclose(output, h)
    np.testing.assert_allclose(after.c, new)
    assert abs(after.c).max() == 0.6


def test_layer_norm_lstm_cell():
    cell = tf.contrib.rnn.LayerNormBasicLSTMCell(5)
    output, after, (c, h), v = step(cell)
    v = {k.removeprefix("layer_norm_basic_lstm_cell/"): a for k, a in v.items()}
    parts = ("input", "transform", "forget", "output", "state")
    assert list(v) == ["kernel", *(f"{p}/{n}" for p in parts for n in ("gamma", "beta"))]

    def norm(x, part):
        x = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
        return x * v[f"{part}/gamma"] + v[f"{part}/beta"]

    i, j, f, o = map(norm, np.split(np.hstack([X, h]) @ v["kernel"], 4, 1), parts)
    c = norm(c * sigmoid(f + 1) + sigmoid(i) * np.tanh(j), "state")
    np.testing.assert_allclose(output, np.tanh(c) * sigmoid(o), rtol=1e-6)
    np.testing.assert_allclose(after.c, c, rtol=1e-6)


def test_diagonal_weights_stand_in_the_order_of_tensorflows_cells():
    x = tf.zeros([2, 4])
    for cell, order in (
        (cells.LSTMCell(3, True), "fio"),
        (tf.contrib.rnn.LSTMBlockCell(3, use_peephole=True, name="b"), "ifo"),
    ):
        cell(x, cell.zero_state(2, tf.float32))
        assert [v.op.name.rpartition("/")[2] for v in cell.variables[2:]] == [f"w_{gate}_diag" for gate in order]


def test_block_cells_are_the_cells():
    lstm, block = cells.LSTMCell(5, True, 0.5, name="a"), tf.contrib.rnn.LSTMBlockCell(5, 1.0, 0.5, True, name="b")
    gru, other = cells.GRUCell(5, name="c"), tf.contrib.rnn.GRUBlockCell(cell_size=5, name="d")
    x = tf.constant(X, tf.float32)
    made = [cell(x, cell.zero_state(3, tf.float32))[0] for cell in (lstm, block, gru, other)]
    assert [v.op.name for v in other.variables] == ["d/w_ru", "d/b_ru", "d/w_c", "d/b_c"], "those of its checkpoints"
    second = tf.contrib.rnn.GRUBlockCellV2(5, name="e")
    second(x, second.zero_state(3, tf.float32))
    assert [v.op.name for v in second.variables] == [v.op.name.replace("c/", "e/", 1) for v in gru.variables]
    with tf.Session() as sess:
        for v in (*lstm.variables, *block.variables):
            sess.run(tf.assign(v, np.random.RandomState(len(v.name)).randn(*v.shape.as_list())))
        for i, pair in enumerate(zip(gru.variables, other.variables, strict=True)):
            sess.run([tf.assign(v, np.random.RandomState(i).randn(*v.shape.as_list())) for v in pair])
        a, b, c, d = sess.run(made)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(c, d)


def test_cells_share_their_variables_and_say_where_they_stand():
    cell = cells.MultiRNNCell([cells.LSTMCell(5), cells.GRUCell(4)])
    x = tf.constant(X, tf.float32)
    with tf.variable_scope("rnn"):
        _, state = cell(x, cell.zero_state(3, tf.float32))
    with tf.variable_scope("rnn", reuse=True):
        cell(x, state)
    names = [v.name for v in cell.trainable_weights]
    assert names == [v.name for v in tf.trainable_variables()] and len(names) == 6
    assert names[0] == "rnn/multi_rnn_cell/cell_0/lstm_cell/kernel:0"
    zero = cells.BasicLSTMCell(2).zero_state(3, tf.float32)
    assert [t.name for t in zero] == ["BasicLSTMCellZeroState/zeros:0", "BasicLSTMCellZeroState/zeros_1:0"]
    with pytest.raises(ValueError, match="exists, made at"), tf.variable_scope("rnn"):
        cells.MultiRNNCell([cells.LSTMCell(5)])(x, (state[0],), scope="multi_rnn_cell")


def test_zero_states_of_any_size():
    class Cell(cells.RNNCell):
        state_size = (tf.TensorShape([2, 3]), [4, 5])
        output_size = 1

    first, (second, third) = Cell().zero_state(tf.placeholder(tf.int64, []), tf.float64)
    assert [t.shape.as_list() for t in (first, second, third)] == [[None, 2, 3], [None, 4], [None, 5]]
    with pytest.raises(InvalidArgumentError, match="needs inputs"):
        Cell().get_initial_state(batch_size=3)
    with pytest.raises(DTypeError, match="dtype"):
        Cell().get_initial_state(tf.ones([2, 3]), dtype=tf.int32)
    with pytest.raises(UnimplementedError, match="state_size"):
        cells.RNNCell().zero_state(3, tf.float32)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: cells.MultiRNNCell([]), InvalidArgumentError, "at least one"),
        (lambda: cells.MultiRNNCell(cells.GRUCell(3)), TypeError, "list or tuple"),
        (
            lambda: cells.MultiRNNCell([cells.LSTMCell(3)], state_is_tuple=False),
            InvalidArgumentError,
            "tuples as states",
        ),
        (lambda: cells.ResidualWrapper(3), TypeError, "is not an RNNCell: it lacks 'output_size'"),
        (lambda: cells.GRUCell(3, activation="tahn"), NotFoundError, "tahn"),
        (
            lambda: cells.GRUCell(3)(tf.placeholder(tf.float32, [2, None]), tf.zeros([2, 3])),
            ShapeError,
            "last dim of its inputs",
        ),
        (lambda: cells.LSTMStateTuple(tf.ones([1]), tf.ones([1], tf.float64)).dtype, DTypeError, "differ"),
        (lambda: tf.contrib.rnn.GRUBlockCell(), InvalidArgumentError, "one of num_units"),
    ],
)
def test_what_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("make", [lambda: cells.BasicLSTMCell(3), lambda: tf.layers.Dense(3)])
def test_a_getter_may_give_casts_of_variables(make):
    """As programs that compute in bfloat16 and learn in float32 have it; casts are no weights of the cell."""

    def wide(getter, *args, **keywords):
        return tf.cast(getter(*args, **(keywords | {"dtype": tf.float32})), tf.bfloat16)

    with tf.variable_scope("net", custom_getter=wide):
        made = make()
        x = tf.ones([2, 4], tf.bfloat16)
        output = tf.nn.static_rnn(made, [x], dtype=tf.bfloat16)[0][0] if isinstance(made, cells.RNNCell) else made(x)
    assert output.dtype == tf.bfloat16 and made.weights == []
    assert {v.dtype.base_dtype for v in tf.trainable_variables()} == {tf.float32}


def test_the_fused_lstm_is_the_cell_over_all_steps():
    x = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
    fused = tf.contrib.rnn.LSTMBlockFusedCell(5)
    outputs, state = fused(x, dtype=tf.float32, sequence_length=[4, 2])
    assert [v.op.name for v in tf.global_variables()] == ["lstm_fused_cell/kernel", "lstm_fused_cell/bias"]
    cell = tf.nn.rnn_cell.LSTMCell(5, name="lstm_fused_cell", reuse=True)
    want, last = tf.nn.static_rnn(
        cell, [tf.constant(each) for each in x], dtype=tf.float32, sequence_length=[4, 2], scope=tf.get_variable_scope()
    )
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        got, expected = sess.run([[outputs, state.c, state.h], [want, last.c, last.h]])
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="Either initial_state or dtype"):
        fused(x)
