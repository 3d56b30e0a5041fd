"""Kernels that threads share give what they give alone: pieces, sums, products, and a network's step through a session."""

from __future__ import annotations

from functools import partial

import graphdock as tf
import numpy as np
import pytest
from graphdock_cpu import blas
from graphdock_cpu import team as teams
from graphdock_cpu.kernels import sharing
from graphdock_testing.conformance import Conformance
from hypothesis import given, settings
from hypothesis import strategies as st

#: Ops that threads share: those of each way of cutting.
OPS = (
    "Add", "Sub", "Mul", "Exp", "Sigmoid", "SigmoidGrad", "Erf", "Erfc", "Pow", "Less", "ClipByValue",
    "MatMul", "MatMulSum", "Softmax", "LogSoftmax", "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits",
    "LayerNorm", "LayerNormGrad", "Relu", "ReluGrad", "Softplus", "BiasAdd", "BiasAddGrad",
    "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2",
    "MaxPool", "AvgPool", "MaxPoolGrad", "MaxPool3D", "MaxPool3DGrad",
    "ResourceApplyAdam", "ResourceApplyMomentum", "ResourceApplyFtrlV2", "Betainc", "Igamma", "Lgamma",
)  # fmt: skip
#: Those of them whose samples have one image, or less than a block.
ONE_PIECE = {
    "MaxPool3D",
    "MaxPoolGrad",
    "MaxPool3DGrad",
    "ResourceApplyAdam",
    "ResourceApplyMomentum",
    "ResourceApplyFtrlV2",
}


@settings(deadline=None)
@given(st.integers(0, 400), st.integers(1, 9), st.sampled_from([1, 4, 16]))
def test_pieces_are_the_whole(extent, count, multiple):
    found = sharing.pieces(extent, count, multiple)
    assert [i for piece in found for i in range(piece.start, piece.stop)] == list(range(extent))
    assert len(found) <= count and all(p.start % multiple == 0 for p in found)
    lengths = [p.stop - p.start for p in found]
    assert not found or max(lengths) - min(lengths[:-1], default=max(lengths)) <= multiple


@pytest.fixture
def always(monkeypatch):
    """Three threads share every kernel that they can share, however small; the number of runs of a team that had parts."""
    ran = []
    run = teams.Team.run
    monkeypatch.setattr(teams.Team, "run", lambda self, parts: (ran.append(len(parts)), run(self, parts))[1])
    monkeypatch.setattr(sharing, "WORTH", 0)
    monkeypatch.setattr(sharing, "LEAST", 1)
    monkeypatch.setattr(blas.OneThread, "holds", True)
    monkeypatch.setattr(blas.OneThread, "held", True)
    monkeypatch.setattr("graphdock.planning.planner.default_threads", lambda: 3)
    return ran


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS)
@pytest.mark.sampled(12)
def test_shared_kernels_conform(always, op):
    """Every sample of the specs, in one dtype each: rank 0, empty, one row, a batch of one, more threads than rows."""
    kit = Conformance("cpu")
    for _, case in {(c.kind, c.index): c for c in kit.cases(op) if c.kind != "gradient"}.items():
        kit.check(case, brief=True)
    if op not in ONE_PIECE:
        assert max(always) > 1


def run(function, *arrays, **config):
    """What a graph of placeholders of these shapes gives."""
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(**config)) as sess:
        fed = [tf.placeholder(a.dtype, a.shape) for a in arrays]
        return sess.run(function(*fed), dict(zip(fed, arrays, strict=True)))


SHAPES = {
    "tall": ((1500, 130), (130, 90), False, False),
    "wide": ((70, 130), (130, 1700), False, False),
    "turned": ((130, 700), (333, 130), True, True),
    "few rows by a transposed one": ((20, 300), (1000, 300), False, True),
    "batch": ((6, 90, 100), (6, 100, 70), False, False),
    "batch of one": ((1, 300, 200), (1, 200, 300), False, False),
    "batch, turned": ((2, 3, 90, 100), (2, 3, 70, 100), False, True),
}


@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_in_blocks(always, case, dtype):
    a, b, ta, tb = SHAPES[case]
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(s).astype(dtype) for s in (a, b))
    found = run(lambda p, q: tf.matmul(p, q, ta, tb), x, y)
    expected = np.matmul(*(v.swapaxes(-1, -2) if t else v for v, t in ((x, ta), (y, tb))))
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert max(always) == (2 if case == "batch, turned" else 3)  # it is cut along its first dim of more than one matrix


@pytest.mark.parametrize(
    "case", [((40, 1, 50), (30, 1), (40, 30, 50)), ((1, 2000), (1, 1), (1, 2000)), ((7,), (9, 1), (9, 7))]
)
def test_broadcast_operands_are_cut_where_they_have_the_dim(always, case):
    a, b, out = case
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(a), rng.standard_normal(b)
    found = run(tf.multiply, x, y)
    assert found.shape == out and np.array_equal(found, x * y)
    assert max(always) > 1


def convolutions(images):
    """A convolutional network's loss and a training step, large enough to be shared."""
    x = tf.placeholder(tf.float32, [images, 48, 48, 16], name="images")
    rng = np.random.default_rng(5)
    w = tf.Variable(rng.standard_normal([5, 5, 16, 48]).astype(np.float32) * 0.05)
    v = tf.Variable(rng.standard_normal([48, 10]).astype(np.float32) * 0.1)
    hidden = tf.nn.max_pool(tf.nn.relu(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    logits = tf.matmul(tf.reduce_mean(hidden, [1, 2]), v)
    loss = tf.losses.sparse_softmax_cross_entropy(np.arange(images) % 10, logits)
    return loss, tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)


def losses(images, **config):
    data = np.random.default_rng(6).standard_normal([images, 48, 48, 16]).astype(np.float32)
    with tf.Graph().as_default():
        loss, train = convolutions(images)
        with tf.Session(config=tf.SessionConfig(**config)) as sess:
            sess.run(tf.global_variables_initializer())
            return [sess.run([loss, train], {"images:0": data})[0] for _ in range(4)]


def test_every_kernel_of_a_network_shared(always):
    alone = losses(5, intra_op_threads=1)
    assert not always
    np.testing.assert_allclose(losses(5), alone, rtol=1e-4)
    assert len(always) > 40


@pytest.mark.parametrize("optimizer", [tf.train.AdamOptimizer(0.1), tf.train.FtrlOptimizer(0.1)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_updates_in_pieces(always, optimizer, dtype):
    def trained(**config):
        with tf.Graph().as_default():
            v = tf.Variable(np.linspace(-1, 1, 100_000), dtype=dtype)
            train = optimizer.minimize(tf.reduce_sum(v * v * v))
            with tf.Session(config=tf.SessionConfig(**config)) as sess:
                sess.run(tf.global_variables_initializer())
                for _ in range(3):
                    sess.run(train)
                return sess.run(v)

    alone = trained(intra_op_threads=1)
    always.clear()
    assert np.array_equal(trained(), alone)
    assert 3 in always


@pytest.mark.slow
@pytest.mark.parametrize("images", [1, 2, 5])
def test_a_networks_steps_are_the_same_on_any_number_of_threads(images):
    alone, shared = losses(images, intra_op_threads=1), losses(images, intra_op_threads=3)
    np.testing.assert_allclose(shared, alone, rtol=1e-4)
    assert shared == losses(images, intra_op_threads=3)  # the same bits on every run


def test_one_thread_is_one_thread(monkeypatch):
    ran = []
    monkeypatch.setattr(teams.Team, "run", lambda self, parts: (ran.append(self.size), [part() for part in parts]))
    losses(2, intra_op_threads=1)
    assert not ran
    losses(2, intra_op_threads=2)
    assert set(ran) == {2}  # the network is large enough to be shared


@pytest.mark.parametrize("ways", [{}, {"transpose_b": True}])
@pytest.mark.parametrize("rows", [60, 600])
def test_large_products_are_shared_in_any_plan_by_threads_that_do_not_spin(monkeypatch, rows, ways):
    inside, one = [], blas.one_thread()
    shared = teams.Team.run
    monkeypatch.setattr(teams.Team, "run", lambda *args: (inside.append((one.held, len(args[1]))), shared(*args)))
    a, b = np.ones((rows, 600), np.float32), np.ones((600, 600), np.float32)
    assert run(partial(tf.matmul, **ways), a, b, intra_op_threads=2)[0, 0] == 600
    assert inside == [(True, 2)] and not one.held
