"""A linear layer whose result is the logits of a loss: found as people write it, when it is large, with the same training."""

from __future__ import annotations

import dataclasses
import types

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.contracts import hookimpl
from graphdock.plugin.host import Host
from graphdock_std.patterns import linear_cross_entropy
from graphdock_std.patterns.linear_cross_entropy import linear_cross_entropies

OP = "LinearSparseSoftmaxCrossEntropy"
ROWS, INNER, CLASSES = 6, 4, 5


@pytest.fixture(scope="module")
def host():
    """Patterns that cpus do without are looked for here as well."""
    made = Host()
    everywhere = [dataclasses.replace(p, not_on=()) for p in linear_cross_entropies()]
    hook = hookimpl(specname="register_patterns")(lambda: everywhere)
    made.register("lab", types.SimpleNamespace(__name__="lab", register_patterns=hook))
    made.backend("lab")
    return made


@pytest.fixture
def small(monkeypatch):
    """However few the logits are."""
    monkeypatch.setattr(linear_cross_entropy, "LEAST_BYTES", 0)
    monkeypatch.setattr(linear_cross_entropy, "LEAST_CLASSES", 0)


def both(host, fetches, feed):
    """The plan with patterns, and the results of a step with them and of one without."""
    found = []
    for fusion in (True, False):
        with tf.Session(config=tf.SessionConfig(fusion=fusion), host=host) as session:
            session.run(tf.global_variables_initializer())
            if fusion:
                plan = session.explain(fetches, feed).plan
            found.append(tf.nest.flatten(session.run(fetches, feed)))
    return plan, found


def cases():
    """A way to write it after another, and each dtype; the other pairs are exhaustive."""
    for number, pattern in enumerate(linear_cross_entropies()):
        yield pytest.param(pattern, id=pattern.name, marks=[pytest.mark.exhaustive] if number % 23 else [])


@pytest.mark.parametrize("pattern", list(cases()))
def test_a_pattern_finds_itself(host, process_host, small, pattern):
    process_host(host)
    random = np.random.default_rng(7)
    shapes = {"x": (ROWS, INNER), "w": (INNER, CLASSES), "bias": (CLASSES,)}
    shapes["w"] = shapes["w"][:: -1 if "turned" in pattern.name else 1]
    shapes["labels"] = (ROWS,) if pattern.rank == 1 else (2, 2) if "_next" in pattern.name else (2, 3)
    constants = dict.fromkeys(("cut", "there"), [2, 3, CLASSES])
    constants |= {"shape": [2, 3, CLASSES] if pattern.rank == 2 else [ROWS, CLASSES]}
    kind = tf.as_dtype(pattern.inputs["x"].dtype or pattern.dtypes[-1])
    with tf.Graph(host=host).as_default():
        given, feed = {}, {}
        for name, operand in pattern.inputs.items():
            if operand.constant:
                given[name] = constants[name]
                continue
            labels = name == "labels"
            given[name] = tf.placeholder(tf.int32 if labels else kind, shapes[name])
            drawn = random.integers(0, CLASSES, shapes[name]) if labels else random.standard_normal(shapes[name])
            feed[given[name]] = drawn
        loss = pattern.pattern(**given, Tlabels=tf.int32)
        smooth = [t for name, t in given.items() if name in ("x", "w", "bias")]
        plan, results = both(host, [loss, *tf.gradients(tf.square(loss), smooth)], feed)
    made = [n.op for n in plan.graph.nodes]
    assert (made.count(OP), made.count(f"{OP}Grad"), made.count("MatMul")) == (1, 1, 0), plan.placement.notes
    exact = 1e-5 if kind is tf.float32 else 0.02 if kind is tf.float16 else 0.2
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=exact, atol=exact)


def _mean(labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def _sum(labels, logits):
    return tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def _masked(labels, logits):
    weights = tf.cast(labels > 1, tf.float32)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_sum(loss * weights) / tf.reduce_sum(weights)


@pytest.mark.parametrize("loss", [_mean, _sum, _masked, tf.losses.sparse_softmax_cross_entropy])
@pytest.mark.parametrize("dims", [1, 2])
def test_training_is_the_same(host, process_host, small, loss, dims):
    """A dense layer, of rows or of a batch of them; the gradient of a mean is a constant, that of a sum 1."""
    process_host(host)
    lead = (ROWS,) if dims == 1 else (2, 3)
    random = np.random.default_rng(3)
    with tf.Graph(host=host).as_default():
        x, labels = tf.placeholder(tf.float32, [None, *lead[1:], 3]), tf.placeholder(tf.int64, [None, *lead[1:]])
        drawn = tf.random_uniform_initializer(-1.0, 1.0, seed=3)
        with tf.variable_scope("net", initializer=drawn):
            logits = tf.layers.dense(tf.layers.dense(x, INNER, tf.tanh), CLASSES, bias_initializer=drawn)
        cost = loss(labels, logits)
        step = tf.train.AdamOptimizer(0.1).minimize(cost)
        feed = {x: random.standard_normal((*lead, 3)), labels: random.integers(0, CLASSES, lead)}
        found = []
        for fusion in (True, False):
            with tf.Session(config=tf.SessionConfig(fusion=fusion), host=host) as session:
                session.run(tf.global_variables_initializer())
                if fusion:
                    made = [n.op for n in session.explain([cost, step], feed).plan.graph.nodes]
                costs = [session.run([cost, step], feed)[0] for _ in range(3)]
                found.append([np.array(costs), *session.run(tf.trainable_variables())])
    assert (made.count(OP), made.count(f"{OP}Grad")) == (1, 1)
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def _ptb(x, w, bias, tokens):
    """As the tutorial on recurrent networks has it: logits of a batch, which the loss flattens."""
    logits = tf.reshape(tf.nn.xw_plus_b(tf.reshape(x, [-1, INNER]), w, bias), [2, 3, CLASSES])
    return tf.contrib.seq2seq.sequence_loss(logits, tokens, tf.ones([2, 3]))


def _gpt_2(x, w, bias, tokens):
    """Each token is predicted from those before it; embeddings are the weights."""
    embeddings = tf.transpose(w) + bias[:, tf.newaxis]
    logits = tf.reshape(tf.matmul(tf.reshape(x, [-1, INNER]), embeddings, transpose_b=True), [2, 3, CLASSES])
    return _mean(tokens[:, 1:], logits[:, :-1])


def _mixed(x, w, bias, tokens):
    """A product in half precision, whose result is cast before it is cut into sequences."""
    rows, embeddings = (
        tf.cast(tf.reshape(x, [-1, INNER]), tf.float16),
        tf.cast(tf.transpose(w) + bias[:, None], tf.float16),
    )
    logits = tf.reshape(tf.cast(tf.matmul(rows, embeddings, transpose_b=True), tf.float32), [2, 3, CLASSES])
    return tf.contrib.seq2seq.sequence_loss(logits, tokens, tf.ones([2, 3]))


@pytest.mark.parametrize("program", [_ptb, _gpt_2, _mixed])
def test_losses_of_sequences(host, process_host, small, program):
    process_host(host)
    random = np.random.default_rng(5)
    with tf.Graph(host=host).as_default():
        x, w, bias = (tf.placeholder(tf.float32, s) for s in ([2, 3, INNER], [INNER, CLASSES], [CLASSES]))
        tokens = tf.placeholder(tf.int32, [2, 3])
        loss = program(x, w, bias, tokens)
        feed = {t: random.standard_normal(t.shape.as_list()) for t in (x, w, bias)}
        feed[tokens] = random.integers(0, CLASSES, (2, 3))
        plan, results = both(host, [loss, *tf.gradients(loss, [x, w, bias])], feed)
    made = [n.op for n in plan.graph.nodes]
    assert (made.count(OP), made.count(f"{OP}Grad"), made.count("MatMul")) == (1, 1, 0), plan.placement.notes
    near = 1e-6 if program is not _mixed else 5e-3
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=10 * near, atol=near)


def test_what_is_small_or_read_elsewhere_or_of_unknown_size_stays(host, process_host, monkeypatch):
    process_host(host)
    with tf.Graph(host=host).as_default():
        x, labels = tf.placeholder(tf.float32, [None, INNER]), tf.placeholder(tf.int32, [None])
        logits = tf.matmul(x, tf.ones([INNER, 1000]))
        loss = _mean(labels, logits)
        right = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))
        feed = {x: np.ones((250, INNER)), labels: np.zeros(250)}

        def why(fetches, fed=None):
            with tf.Session(host=host) as session:
                notes = session.explain(fetches, fed).plan.placement.notes
            return [n.what for n in notes if "linear" in n.compiler]

        assert why(loss, feed) == ["logits of 0.954 MiB are held, fewer than 64"]
        monkeypatch.setattr(linear_cross_entropy, "LEAST_BYTES", 10**6)
        assert why(loss, feed) == ["logits of 1000 classes are held"]
        monkeypatch.setattr(linear_cross_entropy, "LEAST_CLASSES", 1000)
        assert why([loss, right], feed) == ["InTopKV2 reads MatMul, which lies within"]
        assert why(loss) == ["the shape of x is known only when it runs"]
        assert "became LinearSparse" in why(loss, feed)[0]


def test_a_bias_that_is_one_number_stays(host, process_host, small):
    process_host(host)
    with tf.Graph(host=host).as_default():
        x, w, bias = (tf.placeholder(tf.float32, s) for s in ([ROWS, INNER], [INNER, CLASSES], [1]))
        loss = _mean(np.zeros(ROWS, np.int32), tf.matmul(x, w) + bias)
        with tf.Session(host=host) as session:
            (note,) = session.explain(loss).plan.placement.notes
    assert (note.claimed, note.what) == (0, "the bias is not a number per class")


def test_gradients_of_the_gradient():
    """Against those of the ops that it stands for."""
    random = np.random.default_rng(2)
    with tf.Graph().as_default():
        x, w = (tf.placeholder(tf.float64, s) for s in ([ROWS, INNER], [CLASSES, INNER]))
        labels = tf.constant([0, 4, 2, 1, 1, 3], tf.int64)
        loss = ops.apply_op(OP, x=x, w=w, labels=labels, transpose_w=True, U=tf.float64)[0]
        plain = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(x, w, transpose_b=True))
        fetches = []
        for y in (loss, plain):
            slopes = tf.gradients(tf.square(y), [x, w])
            fetches.append([y, *slopes, *tf.gradients([tf.sin(s) for s in slopes], [x, w])])
        feed = {x: random.standard_normal((ROWS, INNER)), w: random.standard_normal((CLASSES, INNER))}
        with tf.Session() as session:
            for got, want in zip(*session.run(fetches, feed), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)
