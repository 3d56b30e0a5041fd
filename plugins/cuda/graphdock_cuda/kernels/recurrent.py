"""Cells of recurrent networks, behind their matrix product, a thread per unit. Narrow floats are computed in float32."""

from __future__ import annotations

from graphdock.contracts import KernelDef

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.launch import f64, i64
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
_MODES = ("planned", "fresh", "inplace")


def _over_units(w: Work, entry: str, gates: Operand, c: Operand, *outputs: Operand) -> None:
    if c.size:
        made = source("complex.cuh", "scalar.cuh", "lstm_gates.cuh", TYPE=w.ctype(c))
        bits = 32 if gates.size < 1 << 31 else 64
        sizes = (i64(c.size), i64(c.shape[1]), f64(w.attr("forget_bias")))
        w.launch(made, f"{entry}_{bits}", blocks(c.size), 256, *w.inputs, *outputs, *sizes)


@kernel("LSTMGates", inplace={"new_c": ("c",)}, modes=_MODES)
def lstm_gates(w: Work) -> None:
    """``(gates, c) -> (h, new c)``."""
    gates, c = w.inputs
    _over_units(w, "lstm_gates", gates, c, w.output(c.shape), w.output(c.shape, 1))


@kernel("LSTMGatesGrad", inplace={"gates_backprop": ("gates",), "c_backprop": ("new_c_backprop", "c")}, modes=_MODES)
def lstm_gates_grad(w: Work) -> None:
    """``(dh, d new c, gates, c, new c) -> (dgates, dc)``."""
    gates, c = w.input("gates"), w.input("c")
    _over_units(w, "lstm_gates_grad", gates, c, w.output(gates.shape), w.output(c.shape, 1))
