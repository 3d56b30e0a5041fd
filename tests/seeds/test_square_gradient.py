"""The internals slides' gradient of Square, with its control dependency."""

from __future__ import annotations

import logging

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.gradients import registry


@pytest.fixture
def square_grad():
    before = registry.snapshot()

    @ops.RegisterGradient("Square")
    def SquareGrad(op, grad):
        x = op.inputs[0]
        with ops.control_dependencies([grad.op]):
            return grad * (2.0 * x)

    yield SquareGrad
    registry.restore(before)


def test_the_registered_gradient_is_used_and_logged(square_grad, caplog):
    with caplog.at_level(logging.INFO, logger="graphdock"), tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [3])
        grad = tf.gradients(tf.square(x), [x])[0]
        waiting = [op for op in graph.get_operations() if op.type == "Mul" and op.control_inputs]
        assert waiting, "the gradient's products wait for grad.op, as the listing asks"
        with tf.Session() as sess:
            np.testing.assert_allclose(sess.run(grad, {x: [1.0, -2.0, 0.5]}), [2.0, -4.0, 1.0])
    assert any("Square" in record.message for record in caplog.records)


def test_registering_it_twice_is_an_error(square_grad):
    with pytest.raises(tf.errors.AlreadyExistsError, match="Square"):
        ops.RegisterGradient("Square")(lambda op, grad: grad)
