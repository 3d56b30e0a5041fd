"""Every pattern of std: found where it is written as it says, with its gradients, and the same numbers by other kernels."""

from __future__ import annotations

import dataclasses
import types

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.contracts import hookimpl
from graphdock.plugin.host import Host
from graphdock_std.patterns import PATTERNS

SIZES = {
    "x": (2, 3, 4, 5),
    "gamma": (5,),
    "beta": (5,),
    "a": (4, 6),
    "b": (6, 5),
    "bias": (5,),
    "input": (2, 4, 3, 2),
    "filter": (3, 2, 2, 5),
    "gates": (3, 20),
    "c": (3, 5),
}
#: Rank -> biases of scores [2, 2, 4, 4] or [2, 4, 4].
BIASES = {2: (4, 4), 3: (2, 1, 4), 4: (2, 1, 1, 4)}
#: Rank -> heads; ranks of heads and angles -> angles, of positions in the dim before the last or the one before it.
HEADS = {3: (4, 5, 6), 4: (2, 4, 5, 6)}
ANGLES = {(3, 2): (5, 3), (3, 3): (4, 1, 3), (4, 2): (5, 3), (4, 3): (4, 1, 3), (4, 4): (1, 1, 5, 3)}
WINDOW = {
    "strides": (1, 2, 1, 1),
    "padding": "SAME",
    "explicit_paddings": (),
    "dilations": (1,) * 4,
    "data_format": "NHWC",
}
NUMBERS = {"epsilon": 1e-3, "scale": 0.6, "forget_bias": 1.0, "rate": 0.3, "factor": 1.4}


@pytest.fixture(scope="module")
def host():
    """Patterns that cpus do without are looked for here as well."""
    made = Host()
    everywhere = [dataclasses.replace(p, not_on=()) for p in PATTERNS if p.not_on]
    hook = hookimpl(specname="register_patterns")(lambda: everywhere)
    made.register("lab", types.SimpleNamespace(__name__="lab", register_patterns=hook))
    made.backend("lab")
    return made


def arguments(pattern, random):
    """What enters a pattern, small: placeholders, arrays for them, and numbers that stand in the graph."""
    given, feed = {}, {}
    for name, operand in pattern.inputs.items():
        rank = len(operand.shape)
        if name in ("cos", "sin"):
            table = random.standard_normal(ANGLES[len(pattern.inputs["x"].shape), rank]).astype(np.float32)
            given[name] = tf.constant(np.concatenate([table, table], -1) if operand.constant else table)
        elif name in ("cut", "shape") and "cos" in given:
            dims = HEADS[len(pattern.inputs["x"].shape)]
            given[name] = dims if name == "shape" else (*dims[:-1], 3, 2)
        elif name == "x" and "cos" in pattern.inputs:
            given[name] = tf.placeholder(tf.float32, (None, *HEADS[rank][1:]), name=name)
            feed[given[name]] = random.standard_normal(HEADS[rank]).astype(np.float32)
        elif name == "shape":
            given[name] = [2, 2, 5]
        elif operand.dtype == "bool":
            flags = np.tri(4, dtype=bool) == (name == "seen")
            if operand.constant:
                given[name] = tf.constant(flags)
            else:
                given[name] = tf.placeholder(tf.bool, BIASES[rank], name=name)
                feed[given[name]] = np.broadcast_to(flags if rank == 2 else flags[-2:-1], BIASES[rank])
        elif name == "seen":
            given[name] = np.tri(4, dtype=np.float32)
        elif name == "low" and not operand.shape:
            given[name] = np.float32(-1e9)
        elif name == "low":
            hidden = np.where(np.tri(4), np.float32(0), np.float32(1e9))
            given[name] = hidden if "seen" in pattern.inputs else -hidden * np.where(np.tri(4), 1, np.float32(np.inf))
        elif operand.drawn:
            given[name] = tf.random_uniform((2, 2, 4, 4)[-rank:], seed=3)
        elif operand.constant or name in ("rate", "factor"):
            given[name] = np.float32(NUMBERS[name])
        else:
            size = SIZES.get(name, (2, 2, 4, 3))[-rank:]
            if name == "bias" and "query" in pattern.inputs:
                size = BIASES[rank]
            wide = rank > 2 and name != "filter"
            given[name] = tf.placeholder(tf.float32, (None, *size[1:]) if wide else size, name=name)
            large = 3.0 if name == "filter" else 1.0  # past 6, where relu6 ends
            feed[given[name]] = (large * random.standard_normal(size)).astype(np.float32)
    return given, feed


def cases():
    """Each spelling; of those for several ranks, all but rank 3 when there is time. Late ones are of what others leave; losses have
    tests of their own."""
    for pattern in PATTERNS:
        if pattern.late or "labels" in pattern.inputs:
            continue
        operand = pattern.inputs.get("x", pattern.inputs.get("query"))
        rare = operand is not None and len(operand.shape) != 3
        rare = rare or (pattern.anchor == "Select" and "attention_after" not in pattern.name)
        yield pytest.param(pattern, id=pattern.name, marks=[pytest.mark.exhaustive] if rare else [])


@pytest.mark.parametrize("pattern", list(cases()))
@pytest.mark.sampled(12)
def test_a_pattern_finds_itself(host, process_host, pattern):
    process_host(host)
    random = np.random.default_rng(7)
    with tf.Graph(host=host).as_default():
        given, feed = arguments(pattern, random)
        made = pattern.pattern(**given, **{name: WINDOW[name] for name in pattern.attrs})
        values = list(made) if isinstance(made, tuple) else [made]
        slopes = tf.gradients([tf.sin(y) for y in values], [t for t in feed if t.dtype.is_floating])
        results = []
        for fusion in (True, False):
            with tf.Session(config=tf.SessionConfig(fusion=fusion), host=host) as session:
                if fusion:
                    plan = session.explain([*values, *slopes], feed).plan
                results.append(session.run([*values, *slopes], feed))
    assert [n.claimed > 0 for n in plan.placement.notes][-1:] == [True], plan.placement.notes
    names = ("LayerNorm", "RMSNorm", "Attention", "DroppedAttention", "LSTMGates")
    stands = {name: f"{name}Grad" for name in names} | {name: name for name in ("FusedMatMul", "FusedConv2D", "Rotary")}
    ops = [n.op for n in plan.graph.nodes]
    found = [op for op in stands if op in ops]
    assert ops.count("Rotary") in (0, 2)
    gone = "Softmax" if pattern.anchor == "Select" else pattern.anchor  # of flags a bias is chosen
    assert len(found) == 1 and stands[found[0]] in ops and gone not in ops[: ops.index(found[0])]
    if pattern.name.startswith("conv2d"):
        assert {"Conv2DBackpropInput", "Conv2DBackpropFilter"} <= set(ops)
        assert plan.placement.notes[-1].compiler.endswith(f".{pattern.name}")
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16])
@pytest.mark.parametrize("low", np.array([-1e9, -np.inf, -1e4, 3.0]))
def test_what_is_hidden_does_not_matter_and_a_row_that_sees_nothing_has_the_weights_that_it_had(
    host, process_host, low, dtype
):
    """Hidden products are infinite or no numbers, others are of any size; the scores of such a row are all alike."""
    process_host(host)
    random = np.random.default_rng(2)
    with tf.Graph(host=host).as_default():
        q, k, v = (tf.placeholder(dtype, [2, 3, 4, 5]) for _ in range(3))
        seen = tf.placeholder(tf.bool, [2, 1, 1, 4])
        scores = tf.matmul(q, k, transpose_b=True) * 0.5
        y = tf.matmul(tf.nn.softmax(tf.where(seen, scores, tf.cast(low, dtype))), v)
        fetches = [y, *tf.gradients(y, [q, k, v])]
        feed = {t: random.standard_normal((2, 3, 4, 5)) for t in (q, k, v)}
        feed[q] *= 20.0
        feed[k][:, 0, 1] *= 100.0
        feed[seen] = np.array([True, False, True, False, False, False, False, False]).reshape(2, 1, 1, 4)
        bad = {t: np.array(a) for t, a in feed.items()}
        bad[k][0, 1, 1], bad[k][0, 2, 3] = np.inf, np.nan
        for given in (feed, bad):
            found = []
            for fusion in (True, False):
                with tf.Session(config=tf.SessionConfig(fusion=fusion), host=host) as session:
                    ops = [n.op for n in session.explain(fetches, given).plan.graph.nodes]
                    assert fusion is ("Attention" in ops) is ("AttentionGrad" in ops)
                    found.append(session.run(fetches, given))
            near = 1e-4 if dtype is tf.float32 else 2e-2
            for got, want in zip(*found, strict=True):
                np.testing.assert_allclose(np.float64(got), np.float64(want), rtol=near, atol=near)
            assert np.isfinite(found[0][0][0]).all() and np.isnan(found[0][0][1]).all() == bool(
                np.isinf(low.astype(dtype.np))
            )


def test_a_mask_that_is_not_causal_is_added(host, process_host):
    """What is larger than the scores, and gives them dims, stays."""
    process_host(host)
    with tf.Graph(host=host).as_default():
        q, k, v = (tf.placeholder(tf.float32, [1, 4, 3]) for _ in range(3))
        low = np.zeros((2, 4, 4), np.float32)
        low[:, 2, 1] = -1e9
        scores = tf.matmul(q, k, transpose_b=True) * 0.5
        feed = {t: np.random.default_rng(2).standard_normal(t.shape.as_list()) for t in (q, k, v)}
        with tf.Session(host=host) as session:
            wide = session.explain(tf.matmul(tf.nn.softmax(scores + low), v), feed)
            y = tf.matmul(tf.nn.softmax(scores + low[0]), v[:1])
            explained = session.explain(y, feed)
            got, want = session.run([y, tf.matmul(tf.exp(tf.nn.log_softmax(scores + low[0])), v[:1])], feed)
    assert {n.what for n in wide.plan.placement.notes} == {"the mask is larger than the scores"}
    assert explained.kernels()["cpu.attention"] == 1
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def _norm_times_root(x, m, v, g, b):
    return (x - m) * tf.rsqrt(v + 1e-5) * g + b


def _norm_over_root(x, m, v, g, b):
    return g * (x - m) / tf.sqrt(v + 1e-5) + b


@pytest.mark.parametrize("norm", [_norm_times_root, _norm_over_root])
@pytest.mark.parametrize("variance", ["square", "moments"])
def test_a_layer_norm_whose_difference_is_written_twice_trains_by_one_op_each_way(host, process_host, norm, variance):
    """A plan has the difference once, and its gradient in as many parts as it is written."""
    process_host(host)
    random, found = np.random.default_rng(4), []
    with tf.Graph(host=host).as_default():
        x, g, b = (tf.placeholder(tf.float32, s) for s in ([2, 3, 6], [6], [6]))
        m = tf.reduce_mean(x, -1, keepdims=True)
        v = tf.reduce_mean(tf.square(x - m), -1, keepdims=True)
        if variance == "moments":
            m, v = tf.nn.moments(x, [-1], keep_dims=True)
        y = norm(x, m, v, g, b)
        fetches = [y, *tf.gradients(tf.sin(y), [x, g, b])]
        feed = {t: random.standard_normal(t.shape.as_list()) for t in (x, g, b)}
        for fusion in (True, False):
            with tf.Session(config=tf.SessionConfig(fusion=fusion), host=host) as session:
                if fusion:
                    ops = [n.op for n in session.explain(fetches, feed).plan.graph.nodes]
                found.append(session.run(fetches, feed))
    assert (ops.count("LayerNorm"), ops.count("LayerNormGrad")) == (1, 1)
    assert {"Rsqrt", "Sqrt", "Square", "Mean", "RealDiv"}.isdisjoint(ops)
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


def test_spellings_that_say_the_same_of_one_place_say_it_once(host, process_host):
    process_host(host)
    with tf.Graph(host=host).as_default():
        x, one, row = (tf.placeholder(tf.float32, s) for s in ([4, 6], [1], [6]))
        d = x - tf.reduce_mean(x, -1, keepdims=True)
        y = d / tf.sqrt(tf.reduce_mean(d * d, -1, keepdims=True) + 1e-5) * one + row
        with tf.Session(host=host) as session:
            notes = session.explain(y, {x: np.ones((4, 6)), one: [2.0], row: np.zeros(6)}).plan.placement.notes
    assert len({n.what for n in notes}) == len(notes) == 2


def test_gamma_that_is_no_row_stays(host, process_host):
    """One factor for all columns broadcasts as a row does, and is none."""
    process_host(host)
    with tf.Graph(host=host).as_default():
        x, one, row = (tf.placeholder(tf.float32, s) for s in ([4, 6], [1], [6]))
        d = x - tf.reduce_mean(x, -1, keepdims=True)
        y = d * tf.rsqrt(tf.reduce_mean(tf.square(d), -1, keepdims=True) + 1e-5) * one + row
        feed = {x: np.ones((4, 6)), one: [2.0], row: np.zeros(6)}
        with tf.Session(host=host) as session:
            notes = session.explain(y, feed).plan.placement.notes
    assert [(n.claimed, n.what) for n in notes] == [(0, "gamma and beta are no rows of x"), (0, "gamma is no row of x")]


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_an_rms_norm_of_halves_that_is_read_within_stays_and_is_found_otherwise(host, process_host, dtype):
    process_host(host)
    with tf.Graph(host=host).as_default():
        x, gamma = tf.placeholder(dtype, [None, None, 6]), tf.placeholder(dtype, [6])
        inverse = tf.rsqrt(1e-3 + tf.reduce_mean(x * x, [2], keepdims=True))
        y = gamma * (inverse * x)
        feed = {x: np.random.default_rng(3).standard_normal((2, 4, 6)), gamma: np.linspace(0.5, 2.0, 6)}
        with tf.Session(host=host) as session:
            for fetches, claimed in ([y, inverse], False), ([y, *tf.gradients(tf.sin(y), [x, gamma])], True):
                (note,) = session.explain(fetches, feed).plan.placement.notes
                assert (note.claimed > 0) == claimed and (
                    claimed or note.what == "Rsqrt, which lies within, is fetched"
                )
            got = session.run(fetches, feed)
    with tf.Session(config=tf.SessionConfig(fusion=False), graph=y.graph, host=host) as session:
        for a, b in zip(got, session.run(fetches, feed), strict=True):
            np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=0.06, atol=0.06)


@pytest.mark.parametrize("cell", [tf.nn.rnn_cell.BasicLSTMCell, tf.nn.rnn_cell.LSTMCell])
def test_a_network_of_lstm_cells_trains_by_one_op_each_way(host, process_host, cell):
    """The first state is a constant, and the last has no gradient."""
    process_host(host)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [None, 3, 5])
        weights = tf.random_uniform_initializer(-0.5, 0.5, seed=3)
        with tf.variable_scope("net", initializer=weights):
            cells = tf.nn.rnn_cell.MultiRNNCell([cell(n, forget_bias=0.7) for n in (4, 6)])
            outputs, last = tf.nn.static_rnn(cells, tf.unstack(x, 3, axis=1), dtype=tf.float32)
        tf.set_random_seed(1)
        fetches = [*outputs, last, *tf.gradients([tf.sin(v) for v in outputs], [x, *tf.trainable_variables()])]
        feed, found = {x: np.random.default_rng(5).standard_normal((2, 3, 5))}, []
        for fusion in (True, False):
            with tf.Session(config=tf.SessionConfig(fusion=fusion), host=host) as session:
                session.run(tf.global_variables_initializer())
                if fusion:
                    ops = [n.op for n in session.explain(fetches, feed).plan.graph.nodes]
                found.append(tf.nest.flatten(session.run(fetches, feed)))
    assert (ops.count("LSTMGates"), ops.count("LSTMGatesGrad")) == (6, 6)
    assert {"Sigmoid", "Tanh", "Split", "TanhGrad"}.isdisjoint(ops)
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


def test_gates_that_are_cut_otherwise_stay(host, process_host):
    """Cut by rows, or of another order: a state of the same rank, and other numbers."""
    process_host(host)
    for axis, order in ((0, (0, 1, 2, 3)), (1, (1, 0, 2, 3))):
        with tf.Graph(host=host).as_default():
            gates, c = tf.placeholder(tf.float32, [4, 4]), tf.placeholder(tf.float32, [4, 1] if axis else [1, 4])
            parts = tf.split(gates, 4, axis)
            i, j, f, o = (parts[n] for n in order)
            state = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            feed = {gates: np.ones((4, 4)), c: np.ones(c.shape.as_list())}
            with tf.Session(host=host) as session:
                assert not session.explain([tf.tanh(state) * tf.sigmoid(o), state], feed).plan.placement.notes


def test_angles_that_are_not_of_positions_stay(host, process_host):
    """Angles of each head, and a table whose halves differ."""
    process_host(host)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [2, 4, 5, 6])
        a, b = tf.split(x, 2, -1)
        cos, sin = (tf.constant(np.ones((4, 5, 3), np.float32)) for _ in range(2))
        table = tf.constant(np.arange(30, dtype=np.float32).reshape(5, 6))
        plain = tf.concat([a * cos - b * sin, b * cos + a * sin], -1)
        p, q = tf.split(tf.sin(x), 2, -1)
        with tf.Session(host=host) as session:
            fetches = [plain, tf.sin(x) * table + tf.concat([-q, p], -1) * table]
            notes = session.explain(fetches, {x: np.ones((2, 4, 5, 6))}).plan.placement.notes
    assert [(n.claimed, n.what) for n in notes] == [
        (0, "the angles do not stand twice, side by side"),
    ]


def dropped(query, noise=None, rate=0.4, draws=None):
    """Attention of a tensor to itself, whose weights are dropped."""
    weights = tf.nn.softmax(tf.matmul(query, query, transpose_b=True) * 0.5)
    if draws is None:
        return tf.matmul(tf.nn.dropout(weights, rate=rate, noise_shape=noise, seed=5), query)
    return tf.matmul(weights * 2.5 * tf.cast(draws >= rate, tf.float32), query)


def both(host, fetches, feed, steps=3, first=()):
    """Results of some steps with patterns and without, and the explanation of the first. ``first``: fetched in a step before."""
    results = []
    for fusion in (True, False):
        with tf.Session(config=tf.SessionConfig(fusion=fusion), host=host) as session:
            session.run(list(first), feed)
            results.append([session.run(fetches, feed) for _ in range(steps)])
            if fusion:
                explained = session.explain(fetches, feed)
    for want, got in zip(*results, strict=True):
        for a, b in zip(want, got, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    assert np.any(results[0][0][0] != results[0][1][0]), "each step draws anew"
    return explained


def test_dropped_weights_are_those_of_the_op_that_draws_in_steps_loops_and_beside_it(host, process_host):
    process_host(host)
    with tf.Graph(host=host).as_default():
        x, rate = tf.placeholder(tf.float32, [2, 4, 3]), tf.placeholder(tf.float32, [])
        feed = {x: np.random.default_rng(2).standard_normal((2, 4, 3)), rate: 0.3}
        y = dropped(x, rate=rate)
        explained = both(host, [y, *tf.gradients(tf.sin(y), [x])], feed)
        draws = tf.random_uniform([2, 4, 4], seed=9)
        beside = both(host, [dropped(x, draws=draws), draws], feed, first=[draws])
        _, last = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, dropped(a + x)), [0, x])
        looped = both(host, [last], feed)
        both(host, [last, *tf.gradients(last, [x])], feed)
    assert explained.kernels()["cpu.dropped_attention"] == explained.kernels()["cpu.dropped_attention_grad"] == 1
    assert explained.kernels()["cpu.random_stream"] == 1 and "cpu.random_uniform" not in explained.kernels()
    assert {"cpu.random_uniform", "cpu.dropped_attention"} <= beside.kernels().keys()
    assert "DroppedAttention" in str(looped.plan.graph)


def test_numbers_that_are_not_one_for_each_weight_or_not_drawn_stay(host, process_host):
    process_host(host)
    with tf.Graph(host=host).as_default():
        x, given = tf.placeholder(tf.float32, [2, 4, 3]), tf.placeholder(tf.float32, [2, 4, 4])
        feed = {x: np.random.default_rng(2).standard_normal((2, 4, 3)), given: np.full((2, 4, 4), 0.5)}
        together = both(host, [dropped(x, noise=[2, 1, 4])], feed)
        with tf.Session(host=host) as session:
            fed = session.explain([dropped(x, draws=given), tf.random_uniform([2], seed=1)], feed)
    assert "weights are dropped together" in {n.what for n in together.plan.placement.notes}
    assert "draws is not what RandomUniform draws" in {n.what for n in fed.plan.placement.notes}


@pytest.mark.parametrize("rank", [2, 3])
def test_gradients_of_dense_layers_end_in_products(host, process_host, rank):
    """A layer's bias with its weights, and the slope of gelu with the product of the next layer."""
    process_host(host)
    random = np.random.default_rng(6)

    def dense(x, units):
        shape, width = x.shape.as_list(), x.shape.as_list()[-1]
        w, b = (tf.constant(random.standard_normal(s).astype(np.float32) * 0.3) for s in ((width, units), (units,)))
        parameters.extend((w, b))
        y = tf.matmul(tf.reshape(x, [-1, width]) if len(shape) > 2 else x, w) + b
        return tf.reshape(y, [*shape[:-1], units]) if len(shape) > 2 else y

    with tf.Graph(host=host).as_default():
        parameters = []
        x = tf.placeholder(tf.float32, (2, 3, 4)[3 - rank :])
        hidden = dense(x, 6)
        hidden = 0.5 * hidden * (1.0 + tf.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden * hidden * hidden)))
        fetches = tf.gradients(tf.sin(dense(hidden, 5)), [x, *parameters])
        feed, found = {x: random.standard_normal(x.shape.as_list())}, []
        for fusion in (True, False):
            with tf.Session(config=tf.SessionConfig(fusion=fusion), host=host) as session:
                if fusion:
                    explained = session.explain(fetches, feed)
                found.append(session.run(fetches, feed))
    ops = [n.op for n in explained.plan.graph.nodes]
    assert (ops.count("MatMulWithSums"), ops.count("MatMulGeluGrad"), ops.count("MatMul")) == (2, 1, 1)
    assert {"Sum", "GeluTanhGrad", "Tanh"}.isdisjoint(ops)
    assert [n.what.rpartition(" ")[2] for n in explained.plan.placement.notes][2:] == ["MatMulGeluGrad"] + [
        "MatMulWithSums"
    ] * 2
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


def padding(loss):
    """0 for rows that only fill a batch."""
    return tf.cast(tf.not_equal(tf.exp(tf.cast(loss.op.inputs[1], tf.float32)), 1.0), tf.float32)


def masked(loss):
    """The mean of some losses: what arrives at each is known by a sum."""
    return tf.reduce_sum(loss * padding(loss)) / tf.reduce_sum(padding(loss))


#: Rank of the logits, type of the labels, what is done with the losses of the rows, and whether something but ones is known to
#: arrive at them before they are there.
LOSSES = [
    (2, "int64", tf.reduce_mean, True),
    (2, "int32", tf.reduce_sum, False),
    (2, "int64", lambda loss: tf.reduce_mean(loss * tf.placeholder_with_default(np.float32(0.3), [])), True),
    (3, "int32", lambda loss: tf.reduce_mean(loss * np.float32([1, 0, 2])), True),
    (2, "float32", tf.reduce_mean, True),
    (3, "float32", lambda loss: tf.reduce_sum(tf.sin(tf.reduce_mean(loss))), False),
    (2, "int64", masked, True),
    (2, "int64", lambda loss: tf.losses.compute_weighted_loss(loss, padding(loss)), True),
    (2, "int64", lambda loss: tf.losses.compute_weighted_loss(loss, padding(loss), reduction="weighted_mean"), True),
]


@pytest.mark.parametrize(("rank", "labels", "ends", "known"), LOSSES)
def test_a_loss_and_the_gradient_of_its_logits_are_one_op(host, process_host, rank, labels, ends, known):
    process_host(host)
    random, dims = np.random.default_rng(5), (4, 3, 6)[-rank:]
    with tf.Graph(host=host).as_default():
        x, w = tf.placeholder(tf.float32, dims), tf.placeholder(tf.float32, [6])
        logits = x * w
        sparse = labels != "float32"
        y = tf.placeholder(labels, dims[:-1] if sparse else dims)
        function = tf.nn.sparse_softmax_cross_entropy_with_logits if sparse else tf.nn.softmax_cross_entropy_with_logits
        loss = ends(function(labels=y, logits=logits))
        fetches = [loss, *tf.gradients(loss, [x, w])]
        feed = {x: random.standard_normal(dims), w: random.standard_normal(6)}
        feed[y] = random.integers(0, 6, dims[:-1]) if sparse else np.eye(6)[random.integers(0, 6, dims[:-1])]
        found = []
        for fusion in (True, False):
            with tf.Session(config=tf.SessionConfig(fusion=fusion), host=host) as session:
                if fusion:
                    plan = session.explain(fetches, feed).plan
                found.append(session.run(fetches, feed))
    ops = [n.op for n in plan.graph.nodes]
    plain = "SparseSoftmaxCrossEntropyWith" if sparse else "SoftmaxCrossEntropyWith"
    assert (ops.count(f"{plain}Gradient"), ops.count(f"{plain}Logits")) == (known, not known)
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_product_that_is_cut_into_rows_and_back_is_one_with_its_slope(host, process_host):
    process_host(host)
    with tf.Graph(host=host).as_default():
        a, b, x = (tf.placeholder(tf.float32, s) for s in ([6, 2], [4, 2], [6, 4]))
        reached = tf.reshape(tf.reshape(tf.matmul(a, b, transpose_b=True), [2, 3, 4]), [6, 4])
        y = ops.apply_op("GeluTanhGrad", x=x, dy=reached)
        feed = {t: np.ones(t.shape.as_list()) for t in (a, b, x)}
        with tf.Session(host=host) as session:
            assert [row.op for row in session.explain(y, feed).rows] == ["MatMulGeluGrad"]


def _one_angle(x):
    """The same angle for all numbers of a head."""
    a, b = tf.split(x, 2, -1)
    angle = tf.constant(np.linspace(0, 1, 4, dtype=np.float32)[:, None])
    return x * tf.cos(angle) + tf.concat([-b, a], -1) * tf.sin(angle)


def _by_zero(x):
    return tf.matmul(tf.nn.softmax(tf.matmul(x, x, transpose_b=True) / 0.0), x)


def _never_seen(x):
    low = np.where(np.tri(4) > 0, 0, -np.inf).astype(np.float32)
    return tf.matmul(tf.nn.softmax(tf.matmul(x, x, transpose_b=True) * 0.5 + low), x)


@pytest.mark.parametrize(
    ("build", "op", "refused"),
    [
        (_one_angle, None, "the angles are not as many as numbers of a head"),
        (_by_zero, None, "the scores are multiplied or divided by zero, or by next to nothing"),
        (_never_seen, "Attention", None),
    ],
)
def test_constants_that_are_odd(host, process_host, build, op, refused):
    """One number for many, zero, infinity: a program's numbers are what they are without patterns."""
    process_host(host)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [2, 4, 6])
        y = build(x)
        feed, results = {x: np.random.default_rng(3).standard_normal((2, 4, 6))}, []
        fetches = [y] if op is None else [y, tf.gradients(tf.sin(y), x)[0]]
        for fusion in (True, False):
            with tf.Session(config=tf.SessionConfig(fusion=fusion), host=host) as session:
                plan = session.explain(fetches, feed).plan
                results.append(session.run(fetches, feed))
                if fusion:
                    assert refused is None or refused in {n.what for n in plan.placement.notes}
                    assert op is None or op in {n.op for n in plan.graph.nodes}
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


def _product_and_one(a, b, one):
    return tf.nn.relu(tf.matmul(a, b) + one)


def _convolution_and_one(x, w, one):
    return tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME") + one


def _convolution_and_columns(x, w, row):
    return tf.nn.relu(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME", data_format="NCHW") + row)


def _few_matrices(q, k, v):
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.5), v)


def _one_for_all_rows(features, labels, column):
    made = ops.apply_op("SoftmaxCrossEntropyWithLogits", features=features, labels=labels)
    return [made.loss, made.backprop * column]


@pytest.mark.parametrize(
    ("build", "shapes", "refused"),
    [
        (_product_and_one, [(4, 3), (3, 5), (1,)], "the bias is not a number per column"),
        (_product_and_one, [(4, 3), (3, 1), (5,)], "the bias is not a number per column"),
        (_convolution_and_one, [(2, 4, 4, 3), (3, 3, 3, 5), (1,)], "the bias is not a number per channel"),
        (_convolution_and_columns, [(2, 3, 4, 5), (3, 3, 3, 5), (5,)], "the bias is added along another dim"),
        (_few_matrices, [(2, 4, 3), (1, 5, 3), (2, 5, 3)], "queries, keys and values are not as many matrices"),
        (_one_for_all_rows, [(4, 3), (4, 3), (1, 1)], "what arrives is not a number per row"),
    ],
)
def test_operands_that_are_stretched_stay(host, process_host, build, shapes, refused):
    """The op that would stand for it takes no such shape, or means another dim by it."""
    process_host(host)
    random = np.random.default_rng(4)
    with tf.Graph(host=host).as_default():
        feed = {tf.placeholder(tf.float32, s): random.standard_normal(s) for s in shapes}
        y = build(*feed)
        fetches = [y, *tf.gradients(y, list(feed))] if not isinstance(y, list) else y
        found = []
        for fusion in (True, False):
            with tf.Session(config=tf.SessionConfig(fusion=fusion), host=host) as session:
                notes = session.explain(fetches, feed).plan.placement.notes
                assert not fusion or refused in {n.what for n in notes if not n.claimed}
                found.append(session.run(fetches, feed))
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
