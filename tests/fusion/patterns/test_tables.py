"""Large tables that follow from constants are folded where patterns look at them, and nowhere else."""

from __future__ import annotations

import dataclasses
import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import hookimpl
from graphdock.ops import apply_op
from graphdock.plugin.host import Host
from graphdock_fusion.patterns import graphs as pattern_graphs
from graphdock_fusion.patterns import tables
from graphdock_std.patterns import PATTERNS

LENGTH = 160  # a mask of float32 takes 100 KiB: passes do not fold it


@pytest.fixture
def host(process_host):
    """Patterns of attention are looked for on cpus as well."""
    made = Host()
    everywhere = [dataclasses.replace(p, not_on=()) for p in PATTERNS if "attention" in p.name]
    hook = hookimpl(specname="register_patterns")(lambda: everywhere)
    made.register("lab", types.SimpleNamespace(__name__="lab", register_patterns=hook))
    made.backend("lab")
    process_host(made)
    return made


def _banded(dtype):
    seen = tf.cast(tf.matrix_band_part(tf.ones([LENGTH, LENGTH]), -1, 0), dtype)
    return lambda scores: scores * seen - 1e9 * (1.0 - seen)


def _added(dtype):
    low = tf.cast(np.where(np.tri(LENGTH), np.float32(0), np.float32(-np.inf)), dtype)
    return lambda scores: scores + tf.reshape(low * 1.0, [LENGTH, LENGTH])


def _chosen(dtype):
    seen = tf.matrix_band_part(tf.ones([1, LENGTH, LENGTH]), -1, 0) > 0
    return lambda scores: tf.where(seen, scores, -1e9)


def _hidden(dtype):
    hidden = tf.constant(~np.tri(LENGTH, dtype=bool)[None])
    return lambda scores: tf.where(hidden, tf.constant(-np.inf, dtype), scores)


def _blended_with_ones(dtype):
    seen = tf.constant(np.tri(LENGTH)[None], dtype)
    return lambda scores: scores * seen - 1e9 * (1.0 - seen)


def _chosen_of_one_shape(dtype):
    """TensorFlow 1's tf.where broadcasts nothing."""

    def hide(scores):
        seen = tf.tile(tf.constant(np.tri(LENGTH, dtype=bool)[None]), [tf.shape(scores)[0], 1, 1])
        return tf.where(seen, scores, tf.fill(tf.shape(scores), tf.constant(-1e9, dtype)))

    return hide


def _hidden_by_paddings(dtype):
    """As a well known transformer for TensorFlow 1 writes it."""

    def hide(scores):
        below = tf.matrix_band_part(tf.ones_like(scores[0]), -1, 0)
        masks = tf.tile(tf.expand_dims(below, 0), [tf.shape(scores)[0], 1, 1])
        return tf.where(tf.equal(masks, 0), tf.ones_like(masks) * (-(2**32) + 1), scores)

    return hide


def _added_to_each(dtype):
    low = tf.constant(np.broadcast_to(np.where(np.tri(LENGTH), 0, -np.inf), (2, LENGTH, LENGTH)), dtype)
    return lambda scores: scores + low


HIDINGS = [
    _banded,
    _added,
    _chosen,
    _hidden,
    _blended_with_ones,
    _chosen_of_one_shape,
    _hidden_by_paddings,
    _added_to_each,
]


def _step(hide, dtype):
    q, k, v = (tf.placeholder(dtype, [2, LENGTH, 4], name=n) for n in "qkv")
    weights = tf.nn.softmax(hide(dtype)(tf.matmul(q, k, transpose_b=True) * 0.5))
    y = tf.matmul(weights, v)
    return (q, k, v), [y, *tf.gradients(tf.sin(y), [q, k, v])]


def _plan(host, fed, fetches, **fields):
    session = tf.Session(config=tf.SessionConfig(**fields), host=host)
    random = np.random.default_rng(3)
    feed = {t: random.standard_normal(t.shape.as_list()) for t in fed}
    with session:
        plan = session.explain(fetches, feed).plan
        return [n.op for n in plan.graph.nodes], plan, session.run(fetches, feed)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("hide", HIDINGS)
@pytest.mark.sampled(2)
def test_a_causal_mask_of_a_long_sequence_is_seen(host, hide, dtype):
    with tf.Graph(host=host).as_default():
        fed, fetches = _step(hide, dtype)
        ops, plan, found = _plan(host, fed, fetches)
        plain, _, expected = _plan(host, fed, fetches, fusion=False)
    assert (ops.count("Attention"), ops.count("AttentionGrad")) == (1, 1) and "Softmax" not in ops, plan.placement.notes
    (node,) = [n for n in plan.graph.nodes if n.op == "Attention"]
    assert node.attrs["causal"] and len(node.inputs) == 3
    large = [n for n in plan.graph.nodes if n.verb == "constant" and n.attrs["value"].nbytes > 4096]
    assert not large and "Softmax" in plain  # what the pattern took the place of is gone, gradients too
    near = 1e-5 if dtype == "float32" else 0.1
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.float32(got), np.float32(want), rtol=near, atol=near)


def test_a_table_that_must_be_of_its_readers_shape_stays_so(host):
    """What reaches the weights by a sum of their own is a summand of their gradient, and AddN broadcasts nothing."""
    with tf.Graph(host=host).as_default():
        scores, v = tf.placeholder(tf.float32, [1, 7, 7]), tf.placeholder(tf.float32, [1, 7, 3])
        weights = tf.nn.softmax(tf.where(scores < 0.5, scores, -1e9))
        y = tf.matmul(weights, v)
        loss = tf.reduce_sum(tf.sin(y)) + tf.reduce_sum(weights * tf.cast(np.tri(7)[None], tf.float32))
        _, plan, _ = _plan(host, [scores, v], [y, weights, *tf.gradients(loss, [scores, v])])
    (total,) = [n for n in plan.graph.nodes if n.op == "AddN"]
    assert [value.shape for value in total.inputs] == [(1, 7, 7)] * 2


def test_a_table_stands_beside_what_it_is_of_where_that_is_read_too(host):
    """Debug mode looks whether names are there once."""
    with tf.Graph(host=host).as_default():
        scores, v = tf.placeholder(tf.float32, [1, 7, 7]), tf.placeholder(tf.float32, [1, 7, 3])
        mask = tf.constant(-1e9 * (1 - np.tri(7, dtype=np.float32)[None]))
        y = tf.matmul(tf.nn.softmax(scores * 0.5 + mask), v)
        _, plan, (_, read) = _plan(host, [scores, v], [y, mask], debug=True)
    assert {v.shape for n in plan.graph.nodes if n.verb == "constant" for v in n.outputs} >= {(7, 7), (1, 7, 7)}
    np.testing.assert_array_equal(read[0] == 0, np.tri(7) == 1)


def test_a_mask_that_differs_from_row_to_row_of_a_batch_stays_as_it_is(host):
    """Two sequences of other lengths: nothing of it is cut off, and it is added."""
    flags = np.arange(LENGTH) < np.array([[[LENGTH // 2]], [[LENGTH]]])

    def hide(dtype):
        seen = tf.constant(np.broadcast_to(flags, (2, LENGTH, LENGTH)))
        return lambda scores: tf.where(seen, scores, tf.fill(tf.shape(scores), -1e9))

    with tf.Graph(host=host).as_default():
        fed, fetches = _step(hide, "float32")
        _, plan, found = _plan(host, fed, fetches)
        expected = _plan(host, fed, fetches, fusion=False)[2]
    assert [n for n in plan.graph.nodes if n.verb == "constant" and n.attrs["value"].shape == (2, LENGTH, LENGTH)]
    assert not any(n.op == "Attention" and n.attrs["causal"] for n in plan.graph.nodes)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dims", [(2, LENGTH, LENGTH), (1, LENGTH, LENGTH)])
def test_ops_whose_inputs_have_one_shape_read_the_whole_table(host, dims):
    slope = np.broadcast_to(np.tri(LENGTH, dtype=np.float32), dims)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, dims)
        y = tf.nn.softmax(apply_op("TanhGrad", y=x, dy=tf.constant(slope) * 2.0))
        _, plan, _ = _plan(host, [x], [y])
    (node,) = [n for n in plan.graph.nodes if n.op == "TanhGrad"]
    assert [v.shape for v in node.inputs] == [dims, dims]


def test_two_tables_of_one_reader_do_not_both_give_its_dims_up(host):
    """What is chosen between has fewer dims than either."""
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [7, 7])
        seen, low = np.tri(7, dtype=bool)[None], -np.arange(49, dtype=np.float32).reshape(1, 7, 7)
        y = tf.nn.softmax(tf.where(tf.constant(seen), x, tf.constant(low)))
        ops, plan, (found,) = _plan(host, [x], [y])
        expected = _plan(host, [x], [y], fusion=False)[2][0]
    (node,) = [n for n in plan.graph.nodes if n.op == "Select"]
    assert max(len(v.shape) for v in node.inputs) == 3 and found.shape == (1, 7, 7)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_zeros_of_two_signs_are_no_number():
    zeros = np.zeros((2, 3, 3), np.float32)
    assert tables._once(zeros, 2).shape == () and tables._once(zeros, 2) == 0
    signed = zeros.copy()
    signed[:, 1] = -0.0
    assert tables._once(signed, 2).shape == (3, 3)
    signed[0, 2] = -0.0
    assert tables._once(signed, 2).shape == (2, 3, 3)


def test_sessions_whose_devices_look_for_none_fold_none(process_host):
    host = Host()
    process_host(host)
    with tf.Graph(host=host).as_default():
        fed, fetches = _step(_banded, "float32")
        ops, plan, _ = _plan(host, fed, fetches)
    assert {"MatrixBandPart", "Softmax"} <= set(ops)
    assert not [n for n in plan.graph.nodes if n.verb == "constant" and n.attrs["value"].nbytes > 1 << 16]


def test_other_large_values_are_computed_in_the_step(host):
    """Zeros that variables begin with, tables of other ranks or of numbers that are whole, and what is larger than the limit."""
    with tf.Graph(host=host).as_default():
        w = tf.Variable(tf.zeros([LENGTH, LENGTH]))
        x = tf.placeholder(tf.float32, [LENGTH, LENGTH])
        y = tf.nn.softmax(x) + tf.cast(tf.fill([LENGTH, LENGTH], 2) * 3 + tf.cast(x, tf.int32), tf.float32)
        z = tf.reshape(y, [-1]) * tf.fill([LENGTH * LENGTH], 1.5)
        ops, plan, _ = _plan(host, [x], [z, w.initializer])
    assert not [n for n in plan.graph.nodes if n.verb == "constant" and n.attrs["value"].nbytes > 1 << 16]
    assert ops.count("Fill") == 3, ops


def test_what_is_larger_than_the_limit_stays(host, monkeypatch):
    monkeypatch.setattr(tables, "MOST", 4 * LENGTH * LENGTH - 1)
    with tf.Graph(host=host).as_default():
        fed, fetches = _step(_banded, "float32")
        ops, _, _ = _plan(host, fed, fetches)
    assert "Attention" not in ops and {"MatrixBandPart", "Softmax"} <= set(ops)


def test_a_host_keeps_few_graphs_with_large_constants(host, monkeypatch):
    monkeypatch.setattr(pattern_graphs, "_LARGE", 1 << 14)
    monkeypatch.setattr(pattern_graphs, "_KEPT_LARGE", 2)
    with tf.Graph(host=host).as_default():
        fed, fetches = _step(_banded, "float32")
        ops, _, _ = _plan(host, fed, fetches)
    kept = [g for g in host.shared["fusion"].values() if g.large]
    assert "Attention" in ops and 0 < len(kept) <= 2
