"""Loops over rows are written out where a device records: the same numbers, and no loop left; or the reason why not."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.planning import plan_passes
from graphdock_fusion import unroll

pytestmark = pytest.mark.plain  # debug mode looks between iterations, and keeps loops
ROWS = np.random.default_rng(1).standard_normal((4, 3, 2)).astype(np.float32)


@pytest.fixture
def recorded(monkeypatch):
    """As if the cpu recorded its work."""
    monkeypatch.setattr(plan_passes, "can_record", lambda device: True)


def both(fetches, feed, monkeypatch, **config):
    """The ops of the plan with loops written out, and what became of them; its results are those of the loops."""
    found = []
    for can in (True, False):
        monkeypatch.setattr(plan_passes, "can_record", lambda device, can=can: can)
        with tf.Session(config=tf.SessionConfig(**config)) as session:
            session.run(tf.global_variables_initializer())
            if can:
                explained = session.explain(fetches, feed)
            found.append([session.run(fetches, feed) for _ in range(2)])
    for got, want in zip(tf.nest.flatten(found[0]), tf.nest.flatten(found[1]), strict=True):
        if got is not None:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    return [n.op for g in explained.plan.graph.all_graphs() for n in g.nodes], explained


@pytest.mark.parametrize("shape", [[4, 3, 2], [None, None, None]])
@pytest.mark.parametrize("cell", [tf.nn.rnn_cell.GRUCell, tf.nn.rnn_cell.LSTMCell])
@pytest.mark.sampled(2)
def test_a_recurrent_network_and_its_gradients(monkeypatch, cell, shape):
    """Of a known number of rows, and of one that the feed tells; the cells read variables within."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, shape)
        x.set_shape([None, None, 2])
        length = tf.placeholder(tf.int32, [None])
        with tf.variable_scope("net", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=2)):
            outputs, last = tf.nn.dynamic_rnn(cell(5), x, length, dtype=tf.float32, time_major=True)
        first = tf.gradients(tf.sin(outputs), [x, *tf.trainable_variables()])
        fetches = [outputs, last, first, tf.gradients(tf.square(first[0]), x)]
        seen, explained = both(fetches, {x: ROWS, length: [4, 1, 3]}, monkeypatch)
    assert not {"While", "HistoryStack", "HistoryUnstack"} & set(seen)
    assert {n.count for n in explained.plan.loops} == {4}
    assert "written out: net/rnn/while: 4 iterations" in str(explained)


def test_a_network_that_is_written_out_is_given_no_padding(monkeypatch):
    """All steps are there, also those behind the longest sequence, whose padding is no number."""
    with tf.Graph().as_default():
        x, length = tf.placeholder(tf.float32, [4, 3, 2]), tf.placeholder(tf.int32, [None])
        with tf.variable_scope("net", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=2)):
            found = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(5), x, length, dtype=tf.float32, time_major=True)
        fetches = [found, tf.gradients(tf.sin(found[0]), [x, *tf.trainable_variables()])]
        padded = ROWS.copy()
        padded[2:] = np.nan
        seen, _ = both(fetches, {x: padded, length: [2, 1, 2]}, monkeypatch)
        assert "While" not in seen
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert all(
                np.isfinite(v).all() for v in tf.nest.flatten(session.run(fetches, {x: padded, length: [2, 2, 2]}))
            )


def test_it_keeps_the_order_around_it(monkeypatch):
    """What it waits for runs, and before its reads; who waits for it comes after them."""
    with tf.Graph().as_default():
        v = tf.Variable(np.float32(1.0), use_resource=True)
        x, start = tf.constant(ROWS), tf.constant(ROWS[0])
        with tf.control_dependencies([v.assign_add(1.0)]):
            (last,), (kept,) = ops.scan_loop(lambda s, r: ([s[0] * v.read_value() + r[0]], [s[0]]), [start], [x])
        assert last.op.control_inputs, "the loop itself waits"
        with tf.control_dependencies([last.op]):
            after = v.assign_add(10.0)
        for fetches in ([last], [kept], [after], [last.op, v.read_value()]):
            seen, _ = both(fetches, {}, monkeypatch)
            assert "While" not in seen


def grown(state, row):
    return [state[0] + row[0]], [tf.reshape(state[0], [-1])[: tf.cast(tf.reduce_sum(row[0]) * 0, tf.int32) + 1]]


@pytest.mark.parametrize(
    ("body", "cond", "why"),
    [
        (lambda s, r: ([s[0] + tf.random_uniform([3, 2], seed=3)], [s[0]]), None, "within does more than compute"),
        (lambda s, r: ([s[0] + r[0]], [s[0]]), lambda s: tf.reduce_sum(s) < 1e9, "its condition decides"),
        (lambda s, r: ([tf.cond(s[0][0, 0] > 0, lambda: s[0], lambda: r[0])], []), None, "has bodies of its own"),
        (grown, None, "of several shapes, or of unknown ones"),
    ],
)
def test_what_is_not_written_out(recorded, body, cond, why):
    with tf.Graph().as_default():
        last, kept = ops.scan_loop(body, [ROWS[0]], [tf.constant(ROWS)], cond=cond)
        with tf.Session() as session:
            explained = session.explain([*last, *kept])
            session.run([*last, *kept])
    assert [(n.count, why in n.why) for n in explained.plan.loops] == [(0, True)]
    assert f"not written out: {explained.plan.loops[0].origin}: " in str(explained)


def test_when_the_way_back_can_not_be_written_out_neither_is_the_way_there(monkeypatch):
    """What the one keeps the other reads."""
    monkeypatch.setattr(unroll, "LIMIT", 10)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [4, 3, 2])
        last, _ = ops.scan_loop(lambda s, r: ([tf.tanh(s[0] * r[0])], []), [ROWS[0]], [x])
        seen, explained = both([last, tf.gradients(last, x)], {x: ROWS}, monkeypatch)
    assert seen.count("While") == 2 and "more than 10" in explained.plan.loops[0].why


def test_debug_mode_keeps_loops(recorded):
    with tf.Graph().as_default():
        last, _ = ops.scan_loop(lambda s, r: ([s[0] + r[0]], []), [ROWS[0]], [tf.constant(ROWS)])
        with tf.Session(config=tf.SessionConfig(debug=True)) as session:
            assert not session.explain(last).plan.loops
