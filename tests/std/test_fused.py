"""Gradients of products and convolutions with activations, first and second, against those of the ops that users write."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock_std.fused import activate

SHAPES = (3, 4), (4, 5), (5,)


@pytest.mark.parametrize("activation", ["none", "relu", "tanh", "sigmoid", "gelu", "gelu_tanh"])
def test_gradients_of_a_product(activation):
    kinds = check_gradients(
        SHAPES,
        lambda a, b, bias: ops.apply_op("FusedMatMul", a=a, b=b, bias=bias, activation=activation)[0],
        lambda a, b, bias: activate(tf.matmul(a, b) + bias, activation),
    )
    single = {"relu": "ReluGrad", "tanh": "TanhGrad", "sigmoid": "SigmoidGrad"}  # one launch each
    assert single.get(activation, "MatMul") in kinds


@pytest.mark.parametrize(("activation", "data_format"), [("relu6", "NHWC"), ("sigmoid", "NCHW"), ("gelu", "NHWC")])
def test_gradients_of_a_convolution(activation, data_format):
    steps = (1, 2, 1, 1) if data_format == "NHWC" else (1, 1, 2, 1)
    window = {"strides": steps, "padding": "SAME", "data_format": data_format}
    kinds = check_gradients(
        ((2, 4, 3, 2) if data_format == "NHWC" else (2, 2, 4, 3), (3, 2, 2, 5), (5,)),
        lambda x, w, bias: ops.apply_op("FusedConv2D", input=x, filter=w, bias=bias, activation=activation, **window)[
            0
        ],
        lambda x, w, bias: activate(tf.nn.bias_add(tf.nn.conv2d(x, w, **window), bias, data_format), activation),
        scale=4.0,  # past 6
    )
    assert {"Conv2DBackpropInput", "Conv2DBackpropFilter", "BiasAddGrad"} <= kinds


def check_gradients(shapes, fuse, compose, scale=1.0):
    """First and second gradients of both; the types of the ops of the fused one's."""
    random = np.random.default_rng(0)
    with tf.Graph().as_default() as graph:
        fed = [tf.placeholder(tf.float64, shape) for shape in shapes]
        fused = fuse(*fed)
        first = tf.gradients(tf.reduce_sum(fused * fused), fed)
        kinds = {op.type for op in graph.get_operations()}
        parts = compose(*fed)
        wanted = tf.gradients(tf.reduce_sum(parts * parts), fed)
        twice = [tf.gradients(tf.add_n([tf.reduce_sum(g * g) for g in gs]), fed) for gs in (first, wanted)]
        with tf.Session() as session:
            got, want = session.run(
                [[first, twice[0]], [wanted, twice[1]]],
                {x: scale * random.standard_normal(shape) for x, shape in zip(fed, shapes, strict=True)},
            )
    for mine, theirs in zip(got[0] + got[1], want[0] + want[1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)
    return kinds
