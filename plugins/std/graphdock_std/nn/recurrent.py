"""The gates of recurrent cells in other ops: for devices without a kernel of them, and for gradients of their gradients."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_std.grad_support import apart


def _activated(gates: Any, forget_bias: float) -> list[Any]:
    """Input, new value, forget and output, in float32 at least."""
    i, j, f, o = _tf.split(_ops.cast(gates, gates.dtype.accumulator), 4, 1)
    return [_tf.sigmoid(i), _tf.tanh(j), _tf.sigmoid(f + forget_bias), _tf.sigmoid(o)]


def _state(gates: Any, c: Any, forget_bias: float) -> tuple[Any, Any]:
    """The state after, and the output gate."""
    i, j, f, o = _activated(gates, forget_bias)
    return _ops.cast(c, i.dtype) * f + i * j, o


def lstm_state(gates: Any, c: Any, forget_bias: float) -> Any:
    """LSTMGates' second output."""
    return _ops.cast(_state(gates, c, forget_bias)[0], c.dtype)


def lstm_output(gates: Any, c: Any, forget_bias: float) -> Any:
    """Its first."""
    state, o = _state(gates, c, forget_bias)
    return _ops.cast(_tf.tanh(state) * o, c.dtype)


def lstm_gates_slope(dh: Any, dc: Any, gates: Any, c: Any, new_c: Any, forget_bias: float) -> Any:
    """LSTMGatesGrad's first output."""
    i, j, f, o = _activated(gates, forget_bias)
    through, out = _through(dh, dc, o, new_c)
    parts = [
        through * j * i * (1.0 - i),
        through * i * (1.0 - j * j),
        through * _ops.cast(c, i.dtype) * f * (1.0 - f),
        _ops.cast(dh, i.dtype) * out * o * (1.0 - o),
    ]
    return _ops.cast(_tf.concat(parts, 1), c.dtype)


def lstm_state_slope(dh: Any, dc: Any, gates: Any, c: Any, new_c: Any, forget_bias: float) -> Any:
    """Its second."""
    _, _, f, o = _activated(gates, forget_bias)
    return _ops.cast(_through(dh, dc, o, new_c)[0] * f, c.dtype)


def _through(dh: Any, dc: Any, o: Any, new_c: Any) -> tuple[Any, Any]:
    """The whole gradient of the state after, and its tanh."""
    out = _tf.tanh(_ops.cast(new_c, o.dtype))
    return _ops.cast(dc, o.dtype) + _ops.cast(dh, o.dtype) * o * (1.0 - out * out), out


def lstm_gates_gradient(op: Any, grad_h: Any, grad_c: Any) -> list[Any]:
    """By gates and the state before."""
    (gates, c), new_c = op.inputs, op.outputs[1]
    return list(
        _ops.apply_op(
            "LSTMGatesGrad",
            h_backprop=_ops.zeros_like(new_c) if grad_h is None else grad_h,
            new_c_backprop=_ops.zeros_like(new_c) if grad_c is None else grad_c,
            gates=gates,
            c=c,
            new_c=new_c,
            forget_bias=op.get_attr("forget_bias"),
        )
    )


def lstm_gates_grad_gradient(op: Any, *grads: Any) -> list[Any]:
    """By all inputs: the gradient, built of other ops, is differentiated as it is."""
    inputs, bias = apart(*op.inputs), op.get_attr("forget_bias")
    built = [slope(*inputs, bias) for slope in (lstm_gates_slope, lstm_state_slope)]
    pairs = [(y, g) for y, g in zip(built, grads, strict=True) if g is not None]
    return list(_tf.gradients([y for y, _ in pairs], inputs, [g for _, g in pairs]))
