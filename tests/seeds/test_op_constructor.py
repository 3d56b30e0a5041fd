"""The internals slides' op constructor: a wrapper, apply_op, and Graph.create_op beneath them."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock import ops


def test_a_wrapper_is_one_apply_op():
    def _zeros_like(x, name=None):
        return ops.apply_op("ZerosLike", x=x, name=name)

    with tf.Graph().as_default():
        tensor = tf.constant([1, 2], name="n1")
        zeros = _zeros_like(tensor, name="n2")
        assert (zeros.name, zeros.op.type, zeros.op.inputs[0].name) == ("n2:0", "ZerosLike", "n1:0")
        with tf.Session() as sess:
            assert sess.run(zeros).tolist() == [0, 0]


def test_create_op_is_what_apply_op_calls():
    with tf.Graph().as_default() as graph:
        a, b = tf.constant([[1.0, 2.0]]), tf.constant([[3.0], [4.0]])
        with ops.name_scope("product") as scope:
            op = graph.create_op(
                "MatMul", [a, b], [tf.float32], name=scope, input_types=[tf.float32, tf.float32], attrs={}
            )
        assert op.name == "product" and op.get_attr("T") is tf.float32 and op.outputs[0].shape == [1, 1]
        with tf.Session() as sess:
            assert sess.run(op.outputs[0]).tolist() == [[11.0]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="output types do not agree"):
            graph.create_op("MatMul", [a, b], [tf.float64])
