"""Kernels of the gates of recurrent cells. Narrow floats are computed in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch
from numpy import add, copyto, multiply, subtract, tanh

from graphdock_cpu.kernels.shaped import Made, Shape, bind

__all__ = ["KERNELS"]


class _Cell:
    """The four gates of rows, activated in scratch memory: input, new value, forget and output."""

    def __init__(self, ctx: BuildContext, state: Shape) -> None:
        self.dtype = ctx.outputs[0].dtype.accumulator
        self.shape, self.units = state, state[1]
        self.forget_bias = self.dtype.np.type(ctx.attr("forget_bias"))
        self.one = self.dtype.np.type(1)
        self.gates = Scratch(self.dtype, (state[0], 4 * self.units))
        self.state = Scratch(self.dtype, state)

    def parts(self, x: Any) -> tuple[Any, Any, Any, Any]:
        u = self.units
        return x[:, :u], x[:, u : 2 * u], x[:, 2 * u : 3 * u], x[:, 3 * u :]

    def activate(self, gates: Any, into: Any) -> tuple[Any, Any, Any, Any]:
        """Fill ``into``: sigmoid of all but the new values, which are their tanh."""
        i, j, f, o = self.parts(into)
        np.negative(gates, into, casting="same_kind")
        np.subtract(f, self.forget_bias, f)
        np.exp(into, into)
        np.add(into, self.one, into)
        np.reciprocal(into, into)
        np.tanh(self.parts(gates)[1], j, casting="same_kind", dtype=self.dtype.np)
        return i, j, f, o


def _lstm_gates(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    cell = _Cell(ctx, shapes[1])

    def compute(gates: Any, c: Any, h: Any, new_c: Any, active: Any, state: Any, spare: Any) -> None:
        i, j, f, o = cell.activate(gates, active)
        multiply(c, f, state)
        multiply(i, j, spare)
        add(state, spare, state)
        copyto(new_c, state, "same_kind")
        tanh(state, spare)
        multiply(spare, o, h, casting="same_kind")

    return compute, (cell.gates, cell.state, cell.state)


def _lstm_gates_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    cell, one = _Cell(ctx, shapes[3]), ctx.outputs[0].dtype.accumulator.np.type(1)

    def compute(
        dh: Any,
        dc: Any,
        gates: Any,
        c: Any,
        new_c: Any,
        to_gates: Any,
        to_c: Any,
        active: Any,
        out: Any,
        s: Any,
        t: Any,
    ) -> None:
        i, j, f, o = cell.activate(gates, active)
        to_i, to_j, to_f, to_o = cell.parts(to_gates)
        tanh(new_c, out, dtype=cell.dtype.np)
        # s: the gradient of the state after
        multiply(out, out, s)
        subtract(one, s, s)
        multiply(s, o, s)
        multiply(s, dh, s)
        add(s, dc, s)
        multiply(s, f, to_c, casting="same_kind")
        # of the output gate
        multiply(dh, out, out)
        _through(out, o, t, to_o)
        multiply(s, c, out)
        _through(out, f, t, to_f)
        multiply(s, j, out)
        _through(out, i, t, to_i)
        multiply(s, i, out)
        multiply(j, j, t)
        subtract(one, t, t)
        multiply(out, t, to_j, casting="same_kind")

    def _through(slope: Any, gate: Any, work: Any, to: Any) -> None:
        """A gradient through a sigmoid."""
        subtract(one, gate, work)
        multiply(work, gate, work)
        multiply(work, slope, to, casting="same_kind")

    return compute, (cell.gates, *(cell.state,) * 3)


KERNELS = [
    KernelDef("LSTMGates", "cpu", bind(_lstm_gates, lambda ctx, shapes: [shapes[1]] * 2)),
    KernelDef("LSTMGatesGrad", "cpu", bind(_lstm_gates_grad, lambda ctx, shapes: list(shapes[2:4]))),
]
