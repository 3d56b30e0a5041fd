"""Gradients of quantisation with a range that is learnt: what is inside passes straight through, what is outside moves an end."""

from __future__ import annotations

from typing import Any

import graphdock as tf
from graphdock import ops


def _options(op: Any) -> dict[str, Any]:
    return {"num_bits": op.get_attr("num_bits"), "narrow_range": op.get_attr("narrow_range")}


def fake_quant_vars(op: Any, grad: Any) -> Any:
    """Of FakeQuantWithMinMaxVars, and of its form per channel."""
    inputs, low, high = op.inputs
    if grad is None:
        return [None] * 3
    made = ops.apply_op(f"{op.type}Gradient", gradients=grad, inputs=inputs, min=low, max=high, **_options(op))
    return list(made)


def fake_quant_vars_gradient(op: Any, by_input: Any, by_min: Any, by_max: Any) -> Any:
    """Of the gradient, by the gradients it was made of: it is linear in them."""
    gradients, inputs, low, high = op.inputs
    forward = op.type.removesuffix("Gradient")
    quantised = ops.apply_op(forward, inputs=inputs, min=low, max=high, **_options(op))
    ones = tf.ones_like(gradients)
    inside, *_ = ops.apply_op(op.type, gradients=ones, inputs=inputs, min=low, max=high, **_options(op))
    zeros = tf.zeros_like(gradients)
    end = tf.where(inputs < quantised, zeros + _or_zero(by_min), zeros + _or_zero(by_max))
    return inside * _or_zero(by_input) + (1 - inside) * end


def _or_zero(value: Any) -> Any:
    return 0.0 if value is None else value
