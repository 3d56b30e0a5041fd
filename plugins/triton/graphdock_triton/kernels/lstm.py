"""The cell of a long short-term memory behind its matrix product, forward and backward. Imports triton.

Hochreiter and Schmidhuber, 1997; Gers, Schmidhuber and Cummins, "Learning to forget", 2000. Gates are in the order of
tf.nn.rnn_cell.BasicLSTMCell: input, new value, forget, output. The gradient computes them anew; nothing is kept but c.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from graphdock_triton.kernels.functions import sigmoid, tanh
from graphdock_triton.kernels.spec import FLOATS, Config, Kernel, Problem, Stage, cdiv, dim, tensor, value

__all__ = ["KERNELS", "lstm_cell", "lstm_cell_grad"]


@triton.jit
def _gates(gates, bias, at, column, units, mask, forget_bias):
    """The four gates of some columns of units, activated, in float32."""
    i = tl.load(gates + at, mask, other=0.0).to(tl.float32)
    j = tl.load(gates + at + units, mask, other=0.0).to(tl.float32)
    f = tl.load(gates + at + 2 * units, mask, other=0.0).to(tl.float32) + forget_bias
    o = tl.load(gates + at + 3 * units, mask, other=0.0).to(tl.float32)
    if bias is not None:
        inside = column < units
        i += tl.load(bias + column, inside, other=0.0).to(tl.float32)
        j += tl.load(bias + column + units, inside, other=0.0).to(tl.float32)
        f += tl.load(bias + column + 2 * units, inside, other=0.0).to(tl.float32)
        o += tl.load(bias + column + 3 * units, inside, other=0.0).to(tl.float32)
    return sigmoid(i), tanh(j), sigmoid(f), sigmoid(o)


@triton.jit
def lstm_forward(gates, bias, c, new_c, new_h, units, forget_bias, BLOCK: tl.constexpr):
    """new_c = c f + i j and new_h = tanh(new_c) o, of a block of a row."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < units
    i, j, f, o = _gates(gates, bias, row * 4 * units + column, column, units, mask, forget_bias)
    state = tl.load(c + row * units + column, mask, other=0.0).to(tl.float32) * f + i * j
    tl.store(new_c + row * units + column, state.to(new_c.dtype.element_ty), mask)
    tl.store(new_h + row * units + column, (tanh(state) * o).to(new_h.dtype.element_ty), mask)


@triton.jit
def lstm_backward(gates, bias, c, new_c, dh, dnew_c, dgates, dc, units, forget_bias, BLOCK: tl.constexpr):
    """The gradients by gates and c, of those by new_h and new_c."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < units
    at = row * units + column
    to = row * 4 * units + column
    i, j, f, o = _gates(gates, bias, to, column, units, mask, forget_bias)
    old = tl.load(c + at, mask, other=0.0).to(tl.float32)
    out = tanh(tl.load(new_c + at, mask, other=0.0).to(tl.float32))
    up = tl.load(dh + at, mask, other=0.0).to(tl.float32)
    state = up * o * (1.0 - out * out)
    if dnew_c is not None:
        state += tl.load(dnew_c + at, mask, other=0.0).to(tl.float32)
    tl.store(dgates + to, (state * j * i * (1.0 - i)).to(dgates.dtype.element_ty), mask)
    tl.store(dgates + to + units, (state * i * (1.0 - j * j)).to(dgates.dtype.element_ty), mask)
    tl.store(dgates + to + 2 * units, (state * old * f * (1.0 - f)).to(dgates.dtype.element_ty), mask)
    tl.store(dgates + to + 3 * units, (up * out * o * (1.0 - o)).to(dgates.dtype.element_ty), mask)
    tl.store(dc + at, (state * f).to(dc.dtype.element_ty), mask)


def _configs(p: Problem) -> Sequence[Config]:
    return [Config({"BLOCK": b}, w) for b, w in ((256, 2), (512, 4), (128, 1)) if b <= max(2 * p.dims["units"], 128)]


def _grid(p: Problem, c: Config) -> tuple[int, ...]:
    return p.dims["rows"], cdiv(p.dims["units"], c["BLOCK"])


_OPERANDS = (
    tensor("gates", "T", "in", "[rows, 4 units]: input, new value, forget and output, before their activations"),
    tensor("bias", "T", "in", "[4 units]: added to gates", optional=True),
    tensor("c", "T", "in", "[rows, units]: the state before"),
)
_SIZES = (dim("rows"), dim("units"), value("forget_bias", "added to the forget gate"))

lstm_cell = Kernel(
    name="lstm_cell",
    doc=__doc__,
    types={"T": FLOATS},
    arguments=(
        *_OPERANDS,
        tensor("new_c", "T", "out", "[rows, units]"),
        tensor("new_h", "T", "out", "[rows, units]"),
        *_SIZES,
    ),
    stages=(Stage(lstm_forward, _grid),),
    configs=_configs,
)

lstm_cell_grad = Kernel(
    name="lstm_cell_grad",
    doc=__doc__,
    types={"T": FLOATS},
    arguments=(
        *_OPERANDS,
        tensor("new_c", "T", "in", "[rows, units]: the state after"),
        tensor("dh", "T", "in", "[rows, units]"),
        tensor("dnew_c", "T", "in", "[rows, units]", optional=True),
        tensor("dgates", "T", "out", "[rows, 4 units]"),
        tensor("dc", "T", "out", "[rows, units]"),
        *_SIZES,
    ),
    stages=(Stage(lstm_backward, _grid),),
    configs=_configs,
)

KERNELS = (lstm_cell, lstm_cell_grad)
