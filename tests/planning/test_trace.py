"""Functions of ops as plan graphs: inputs in the order in which they were made, shapes as fed, gradients where there are any."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import GraphdockError
from graphdock.planning.decompose import trace


def test_inputs_stand_in_order_and_have_the_shapes_that_are_fed():
    seen = []

    def build(tracing):
        a = tracing.input(tf.float32, (None,), (3,))
        b = tracing.like(a, (3,))
        c = tracing.constant(np.ones(3), tf.float32)
        y = tf.exp(a) * b + c
        seen.append(
            (a.shape.as_list(), b.shape.as_list(), tracing.shapes([y]), tracing.is_tensor(y), tracing.is_tensor(1))
        )
        slopes = tracing.gradients([y], [a, b, c], [b])
        return [y, *slopes]

    graph = trace(tf.default_host(), build)
    assert seen == [([None], [None], [(3,)], True, False)]
    assert [v.shape for v in graph.inputs] == [(3,), (3,)] and [v.shape for v in graph.outputs] == [(3,)] * 4


def test_the_graph_of_the_caller_stays_as_it_is_and_errors_pass_through():
    with tf.Graph().as_default() as graph:
        trace(tf.default_host(), lambda tracing: [tf.exp(tracing.input(tf.float32, (2,), (2,)))])
        with pytest.raises(GraphdockError):
            trace(tf.default_host(), lambda tracing: [tf.matmul(tracing.constant(np.ones(3), tf.float32), 1.0)])
        assert not graph.get_operations()
