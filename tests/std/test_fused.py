"""Gradients of products with activations, first and second, against those of the ops that users write."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock_std.fused import activate

SHAPES = (3, 4), (4, 5), (5,)


@pytest.mark.parametrize("activation", ["none", "relu", "tanh", "sigmoid", "gelu", "gelu_tanh"])
def test_gradients(activation):
    random = np.random.default_rng(0)
    with tf.Graph().as_default() as graph:
        fed = [tf.placeholder(tf.float64, shape) for shape in SHAPES]
        fused = ops.apply_op("FusedMatMul", **dict(zip(("a", "b", "bias"), fed, strict=True)), activation=activation)[0]
        first = tf.gradients(tf.reduce_sum(fused * fused), fed)
        kinds = {op.type for op in graph.get_operations()}
        parts = activate(tf.matmul(fed[0], fed[1]) + fed[2], activation)
        wanted = tf.gradients(tf.reduce_sum(parts * parts), fed)
        twice = [tf.gradients(tf.add_n([tf.reduce_sum(g * g) for g in gs]), fed) for gs in (first, wanted)]
        with tf.Session() as session:
            got, want = session.run(
                [[first, twice[0]], [wanted, twice[1]]],
                {x: random.standard_normal(shape) for x, shape in zip(fed, SHAPES, strict=True)},
            )
    for mine, theirs in zip(got[0] + got[1], want[0] + want[1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)
    single = {"relu": "ReluGrad", "tanh": "TanhGrad", "sigmoid": "SigmoidGrad"}  # one launch each
    assert single.get(activation, "MatMul") in kinds
