"""Cells of recurrent networks, behind their matrix product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.contracts import CONSTANT, Found, Operand, Pattern

from graphdock_std.patterns.operands import PARTS, any_of


def _cell(gates: Any, c: Any, forget_bias: Any = None) -> tuple[Any, Any]:
    """As BasicLSTMCell and LSTMCell have it."""
    i, j, f, o = _tf.split(gates, 4, 1)
    if forget_bias is not None:
        f = f + forget_bias
    state = c * _tf.sigmoid(f) + _tf.sigmoid(i) * _tf.tanh(j)
    return _tf.tanh(state) * _tf.sigmoid(o), state


def _gates(gates: Any, c: Any, forget_bias: Any = 0.0) -> tuple[Any, Any]:
    h, state = _ops.apply_op("LSTMGates", gates=gates, c=c, forget_bias=float(forget_bias))
    return h, state


def lstms() -> Iterator[Pattern]:
    """The output and the state after, of the product with its bias and the state before."""
    for name, bias in (("", {"forget_bias": CONSTANT}), ("_unbiased", {})):
        inputs: dict[str, Operand] = {"gates": any_of(2), "c": any_of(2)} | bias
        yield Pattern(f"lstm{name}", "Split", inputs, _cell, _gates, not_on=PARTS, rank=2, check=_four_each)


def _four_each(found: Found) -> str | None:
    rows, units = found.shapes["c"]
    if found.shapes["gates"] != (rows, 4 * units):
        return "gates are not four times as wide as the state"
    return None
