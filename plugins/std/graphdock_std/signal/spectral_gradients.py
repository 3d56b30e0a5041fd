"""Gradients of Fourier transforms: the transform the other way, of what arrives.

A transform is linear, so the gradient is its adjoint: the inverse without its factor.
"""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_std.grad_support import static_shape

_AXES = {"": 1, "2D": 2, "3D": 3}


def forward(op: Any, grad: Any) -> Any:
    """The inverse transform times the number of elements transformed."""
    return _ops.apply_op("I" + op.type, input=grad) * _count(_ops.shape(grad)[-_rank(op) :], grad.dtype)


def inverse(op: Any, grad: Any) -> Any:
    """The transform divided by the number of elements transformed."""
    return _ops.apply_op(op.type[1:], input=grad) / _count(_ops.shape(grad)[-_rank(op) :], grad.dtype)


def forward_real(op: Any, grad: Any) -> Any:
    """The real part of the transform back, of the half that arrives and zeros for the other one."""
    x, lengths = op.inputs
    whole = _fitted(grad, lengths, _rank(op))
    back = _ops.apply_op("I" + op.type.replace("RFFT", "FFT"), input=whole)
    total = _tf.real(back) * _count(lengths, x.dtype)
    return _fitted(total, _ops.shape(x)[-_rank(op) :], _rank(op), x)


def inverse_real(op: Any, grad: Any) -> Any:
    """The half spectrum of what arrives; numbers whose conjugates were left out count twice."""
    x, lengths = op.inputs
    half = _ops.apply_op(op.type[1:], input=grad, fft_length=lengths, Tout=x.dtype)
    last = lengths[-1]
    along = _tf.range(_tf.floordiv(last, 2) + 1)
    single = _tf.logical_or(_tf.equal(along, 0), _tf.equal(along * 2, last))
    weights = _ops.cast(_tf.select(single, 1.0, 2.0), x.dtype) / _count(lengths, x.dtype)
    return _fitted(half * weights, _ops.shape(x)[-_rank(op) :], _rank(op), x)


def _rank(op: Any) -> int:
    return _AXES[op.type.partition("FFT")[2]]


def _count(lengths: Any, dtype: Any) -> Any:
    return _ops.cast(_tf.reduce_prod(lengths), dtype)


def _fitted(value: Any, sizes: Any, rank: int, like: Any = None) -> Any:
    """``value`` cut or filled up with zeros to ``sizes`` along its last axes."""
    dims = static_shape(value)
    have = _ops.shape(value)
    if like is not None and dims is not None and dims == static_shape(like) and None not in dims:
        return value
    batch = have[: len(dims) - rank] if dims is not None else have[: _tf.size(have) - rank]
    kept = _tf.concat([batch, _tf.minimum(have[-rank:], sizes)], 0)
    value = _tf.slice(value, _ops.zeros_like(kept), kept)
    after = _tf.concat([_ops.zeros_like(batch), sizes - kept[-rank:]], 0)
    padded = _tf.pad(value, _tf.stack([_ops.zeros_like(after), after], 1))
    if like is not None:
        padded.set_shape(like.shape)
    return padded
