"""Device functions that kernels share: activations and their derivatives, products of tiles. Imports triton."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["ACTIVATIONS", "activation", "activation_grad", "product", "report", "sigmoid", "tanh"]

#: What :func:`activation` knows.
ACTIVATIONS = ("none", "relu", "relu6", "gelu_tanh", "gelu_erf", "silu", "tanh", "sigmoid")


@triton.jit
def tanh(x):
    """By exp, and near zero, where that loses digits, by the series."""
    e = tl.exp(-2.0 * tl.abs(x))
    size = (1.0 - e) / (1.0 + e)
    square = x * x
    series = x + x * square * (-0.33333333 + square * (0.13333333 + square * (-0.05396825 + square * 0.02186949)))
    return tl.where(tl.abs(x) < 0.25, series, tl.where(x < 0.0, -size, size))


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x)), without infinity in between."""
    e = tl.exp(-tl.abs(x))
    return tl.where(x < 0.0, e, 1.0) / (1.0 + e)


@triton.jit
def activation(x, NAME: tl.constexpr):
    """Of a float32 tensor. GELU: Hendrycks and Gimpel, 2016; SiLU is x sigmoid(x)."""
    if NAME == "relu":
        x = tl.where(x < 0.0, 0.0, x)  # NaN stays
    elif NAME == "relu6":
        x = tl.where(x < 0.0, 0.0, tl.where(x > 6.0, 6.0, x))
    elif NAME == "gelu_tanh":
        x = x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
    elif NAME == "gelu_erf":
        x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    elif NAME == "silu":
        x = x * sigmoid(x)
    elif NAME == "tanh":
        x = tanh(x)
    elif NAME == "sigmoid":
        x = sigmoid(x)
    return x


@triton.jit
def activation_grad(x, NAME: tl.constexpr):
    """The derivative: of relu, relu6, tanh and sigmoid by their result, of others by what they were applied to."""
    if NAME == "relu":
        d = tl.where(x > 0.0, 1.0, 0.0)
    elif NAME == "relu6":
        d = tl.where((x > 0.0) & (x < 6.0), 1.0, 0.0)
    elif NAME == "gelu_tanh":
        s = sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
        d = s + x * s * (1.0 - s) * (1.5957691216057308 + 0.2140644488202087 * x * x)
    elif NAME == "gelu_erf":
        d = 0.5 * (1.0 + tl.erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * tl.exp(-0.5 * x * x)
    elif NAME == "silu":
        s = sigmoid(x)
        d = s * (1.0 + x * (1.0 - s))
    elif NAME == "tanh":
        d = 1.0 - x * x
    elif NAME == "sigmoid":
        d = x * (1.0 - x)
    else:
        d = tl.full(x.shape, 1.0, tl.float32)
    return d


@triton.jit
def product(a, b, sums, PRECISION: tl.constexpr, UPCAST: tl.constexpr):
    """sums plus a matrix product in float32. PRECISION: of float32 operands. UPCAST: for the interpreter, which has no bfloat16."""
    if UPCAST:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, sums, input_precision=PRECISION)


@triton.jit
def report(fault, code, number, place):
    """Make the step raise: int64 ``number``, ``place`` and then ``code``, whoever sees it reads them after."""
    tl.store(fault, number.to(tl.int64))
    tl.store(fault + 1, place.to(tl.int64))
    tl.debug_barrier()
    tl.atomic_xchg(fault + 2, code, sem="release", scope="sys")
