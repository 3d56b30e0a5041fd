"""Gradients of fused ops, first and second, against those of the ops that users write."""

from __future__ import annotations

import math

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock_std.attention.dropped import attend_dropped
from graphdock_std.attention.functions import attend, attend_log_sum
from graphdock_std.nn.fused import activate
from graphdock_std.nn.recurrent import lstm_output
from graphdock_std.reference import fused as oracle

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


def _attention(x, y):
    return {"query": x, "key": tf.tanh(x), "value": x, "bias": tf.matmul(x, y)}


def _dropped(x, y):
    drawn = {"stream": np.array([7, 11, 0, 0, 0], np.uint64), "rate": np.float32(0.4)}
    return {**_attention(x, y), **drawn, "factor": tf.reduce_sum(tf.square(x))}


@pytest.mark.parametrize(
    ("op", "given", "parts"),
    [
        ("Attention", _attention, lambda query, key, value, bias: attend(query, key, value, 0.5, False, bias)),
        (
            "DroppedAttention",
            _dropped,
            lambda query, key, value, stream, rate, factor, bias: attend_dropped(
                query, key, value, tf.constant(stream), tf.constant(rate), factor, 0.5, False, bias
            ),
        ),
    ],
)
def test_gradients_of_attention_whose_inputs_follow_from_one_another(op, given, parts):
    """Each input has its partial derivative, in the second gradient too."""
    attrs = {"scale": 0.5}
    check_gradients(
        ((3, 4), (4, 3)),
        lambda x, y: ops.apply_op(op, **given(x, y), **attrs)[0],
        lambda x, y: parts(**given(x, y)),
        exact=1e-5,  # logarithms of sums are float32
    )


@pytest.mark.parametrize("hidden", [-math.inf, -1e9])
def test_a_row_that_sees_nothing_is_the_same_in_kernel_oracle_and_parts(hidden):
    random = np.random.default_rng(0)
    query, key, value = (random.standard_normal(shape) for shape in ((3, 4), (5, 4), (5, 2)))
    mask = np.ones((3, 5), bool)
    mask[1] = False
    attrs = {"scale": 0.5, "causal": False, "hidden": hidden}
    with tf.Graph().as_default(), tf.Session() as session:
        kernel = ops.apply_op("Attention", query=query, key=key, value=value, bias=mask, **attrs)
        q, k, v = (tf.constant(a) for a in (query, key, value))
        parts = [
            attend(q, k, v, bias=tf.constant(mask), **attrs),
            attend_log_sum(q, k, bias=tf.constant(mask), **attrs),
        ]
        found = session.run([list(kernel), parts])
    for got in found:
        for a, b in zip(got, oracle.attention(query, key, value, bias=mask, **attrs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_gradients_of_gates_whose_inputs_follow_from_one_another():
    def gates(x):
        return {"gates": tf.concat([x, tf.sin(x), 2 * x, x], 1), "c": tf.tanh(x), "forget_bias": 1.0}

    check_gradients(
        ((3, 4),),
        lambda x: ops.apply_op("LSTMGates", **gates(x))[0],
        lambda x: lstm_output(*gates(x).values()),
    )


def check_gradients(shapes, fuse, compose, scale=1.0, exact=1e-8):
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
        np.testing.assert_allclose(mine, theirs, rtol=exact, atol=exact / 10)
    return kinds
