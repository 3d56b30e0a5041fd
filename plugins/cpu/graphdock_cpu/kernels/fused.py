"""Kernels of fused ops: attention with the weights in scratch memory, products and convolutions with a bias and an activation.

Narrow floats are computed in float32. Whole matrices of weights are held: what this saves is what would be allocated between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, Scratch, dtypes

from graphdock_cpu.kernels.conv import FORWARD, maker
from graphdock_cpu.kernels.random import Philox
from graphdock_cpu.kernels.shaped import Made, Shape, bind
from graphdock_cpu.kernels.sliding import slide_of

__all__ = ["KERNELS"]

_LOG_2 = math.log(2.0)
_ROOT = math.sqrt(2.0 / math.pi)


def _wide(ctx: BuildContext) -> dtypes.DType:
    return dtypes.float64 if ctx.inputs[0].dtype is dtypes.float64 else dtypes.float32


class _Scores:
    """Weights of attention into a buffer [batch, queries, keys]. A bias, where there is one, is the last input."""

    def __init__(self, ctx: BuildContext, query: Shape, key: Shape) -> None:
        self.dtype = _wide(ctx).np
        self.scores = (*query[:-1], key[-2])
        self.batch = math.prod(query[:-2])
        self.queries, self.keys = query[-2], key[-2]
        self.scale, self.low = (self.dtype.type(ctx.attr(name)) for name in ("scale", "hidden"))
        self.masked = ctx.inputs[-1].dtype is dtypes.bool_
        self.hidden: Any = None
        if ctx.attr("causal"):
            rows, columns = np.arange(self.queries)[:, None], np.arange(self.keys)
            self.hidden = columns > rows + self.keys - self.queries

    @property
    def scratch(self) -> Scratch:
        return Scratch(dtypes.as_dtype(self.dtype), (self.batch, self.queries, self.keys))

    def cube(self, x: Any) -> Any:
        """A tensor as a batch of matrices, in which is computed."""
        return x.reshape(self.batch, *x.shape[-2:]).astype(self.dtype, copy=False)

    def hide(self, scores: Any, bias: Sequence[Any], low: Any) -> None:
        """Write ``low`` wherever a query does not see a key."""
        if self.masked:
            np.copyto(scores.reshape(self.scores), low, where=~bias[0])
        if self.hidden is not None:
            np.copyto(scores, low, where=self.hidden)

    def weigh(self, query: Any, key: Any, bias: Sequence[Any], weights: Any) -> Any:
        """Fill ``weights``; the base 2 logarithm of each row's sum. ``bias``: one, or none."""
        np.matmul(self.cube(query), self.cube(key).transpose(0, 2, 1), out=weights)
        np.multiply(weights, self.scale, out=weights)
        for added in () if self.masked else bias:
            scores = weights.reshape(self.scores)
            np.add(scores, added.astype(self.dtype, copy=False), out=scores)
        self.hide(weights, bias, self.low)
        with np.errstate(invalid="ignore", divide="ignore"):
            high = weights.max(-1, keepdims=True, initial=-np.inf)
            np.subtract(weights, high, out=weights)
            np.exp(weights, out=weights)
            total = weights.sum(-1, keepdims=True)
            np.divide(weights, total, out=weights)
            return (high + np.log(total)) / _LOG_2

    def slopes(self, toward: Any, bias: Sequence[Any], weights: Any) -> None:
        """From what reaches the weights to the gradient of the products, in place."""
        toward -= np.einsum("bmn,bmn->bm", toward, weights)[..., None]
        toward *= weights
        toward *= self.scale
        self.hide(toward, bias, 0)


def _attention(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    scores = _Scores(ctx, shapes[0], shapes[1])

    def compute(query: Any, key: Any, value: Any, *rest: Any) -> None:
        *bias, output, log_sum, weights = rest
        log_sum[...] = scores.weigh(query, key, bias, weights).reshape(log_sum.shape)
        output[...] = np.matmul(weights, scores.cube(value)).reshape(output.shape)

    return compute, (scores.scratch,)


def _attention_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    scores = _Scores(ctx, shapes[1], shapes[2])

    def compute(grad: Any, query: Any, key: Any, value: Any, _output: Any, _log_sum: Any, *rest: Any) -> None:
        *bias, dq, dk, dv, w, t = rest
        scores.weigh(query, key, bias, w)
        g, q, k, v = (scores.cube(x) for x in (grad, query, key, value))
        dv[...] = np.matmul(w.transpose(0, 2, 1), g).reshape(dv.shape)
        np.matmul(g, v.transpose(0, 2, 1), out=t)
        scores.slopes(t, bias, w)
        dq[...] = np.matmul(t, k).reshape(dq.shape)
        dk[...] = np.matmul(t.transpose(0, 2, 1), q).reshape(dk.shape)

    return compute, (scores.scratch, scores.scratch)


def _kept(philox: Philox, scores: Shape, stream: Any, rate: Any, factor: Any) -> np.ndarray:
    """The factor of each weight: 0 where it is dropped."""
    philox.follow(stream)
    drawn = np.empty(scores, np.float32)
    philox.uniform(None, np.float32, drawn)
    return (drawn >= rate) * factor


def _dropped_attention(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    scores, philox = _Scores(ctx, shapes[0], shapes[1]), Philox()

    def compute(query: Any, key: Any, value: Any, stream: Any, rate: Any, factor: Any, *rest: Any) -> None:
        *bias, output, log_sum, w = rest
        log_sum[...] = scores.weigh(query, key, bias, w).reshape(log_sum.shape)
        w *= _kept(philox, w.shape, stream, rate, scores.dtype.type(factor))
        output[...] = np.matmul(w, scores.cube(value)).reshape(output.shape)

    return compute, (scores.scratch,)


def _dropped_attention_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    scores, philox = _Scores(ctx, shapes[1], shapes[2]), Philox()

    def compute(grad: Any, query: Any, key: Any, value: Any, _output: Any, _log_sum: Any, *rest: Any) -> None:
        stream, rate, factor, *bias, dq, dk, dv, w, t = rest
        scores.weigh(query, key, bias, w)
        kept = _kept(philox, w.shape, stream, rate, scores.dtype.type(factor))
        g, q, k, v = (scores.cube(x) for x in (grad, query, key, value))
        dv[...] = np.matmul((w * kept).transpose(0, 2, 1), g).reshape(dv.shape)
        np.matmul(g, v.transpose(0, 2, 1), out=t)
        t *= kept
        scores.slopes(t, bias, w)
        dq[...] = np.matmul(t, k).reshape(dq.shape)
        dk[...] = np.matmul(t.transpose(0, 2, 1), q).reshape(dk.shape)

    return compute, (scores.scratch, scores.scratch)


def _none(x: Any) -> Any:
    return x


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _relu6(x: Any) -> Any:
    return np.clip(x, 0, 6)


def _sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def _normal(x: Any) -> Any:
    """The normal distribution's function; SciPy is loaded for the first that is computed."""
    from scipy.special import ndtr

    return ndtr(x)


def _gelu(x: Any) -> Any:
    return x * _normal(x)


def _gelu_slope(x: Any) -> Any:
    return _normal(x) + x * np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _inner(x: Any) -> Any:
    return np.tanh(_ROOT * (x + 0.044715 * x * x * x))


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1.0 + _inner(x))


def _gelu_tanh_slope(x: Any) -> Any:
    t = _inner(x)
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * _ROOT * (1.0 + 3 * 0.044715 * x * x)


_ACTIVATIONS = {
    "none": _none, "relu": _relu, "relu6": _relu6, "tanh": np.tanh, "sigmoid": _sigmoid, "gelu": _gelu, "gelu_tanh": _gelu_tanh,
}  # fmt: skip


def _fused_matmul(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    wide, left, right = _wide(ctx).np, ctx.attr("transpose_a"), ctx.attr("transpose_b")
    activation = _ACTIVATIONS[ctx.attr("activation")]

    def compute(a: Any, b: Any, bias: Any, y: Any, before: Any) -> None:
        a, b = (x.astype(wide, copy=False) for x in (a, b))
        product = np.matmul(a.T if left else a, b.T if right else b)
        product += bias
        before[...] = product
        y[...] = activation(product)

    return compute, ()


def _wide_product(ctx: BuildContext, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Both matrices as they are multiplied, and their product, in which is computed."""
    wide = _wide(ctx).np
    left, right = (x.astype(wide, copy=False) for x in (a, b))
    left, right = left.T if ctx.attr("transpose_a") else left, right.T if ctx.attr("transpose_b") else right
    return left, right, np.matmul(left, right)


def _matmul_with_sums(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    of_a = ctx.attr("summed") == "a"

    def compute(a: Any, b: Any, y: Any, sums: Any) -> None:
        left, right, y[...] = _wide_product(ctx, a, b)
        ones = np.ones(len(right), right.dtype)  # as sums over first or last axes go on a cpu
        sums[...] = np.dot(left, ones) if of_a else np.dot(ones, right)

    return compute, ()


def _matmul_gelu_grad(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    def compute(a: Any, b: Any, x: Any, y: Any) -> None:
        product = _wide_product(ctx, a, b)[2]
        y[...] = product * _gelu_tanh_slope(x.astype(product.dtype, copy=False))

    return compute, ()


_SLOPES = {"GeluGrad": _gelu_slope, "GeluTanhGrad": _gelu_tanh_slope}


def _times_slope(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    wide, slope = _wide(ctx).np, _SLOPES[ctx.node.op]

    def compute(x: Any, dy: Any, dx: Any) -> None:
        dx[...] = dy * slope(x.astype(wide, copy=False))

    return compute, ()


def _fused_conv(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    """By the method that a convolution takes, on one thread."""
    wide, activation = _wide(ctx), _ACTIVATIONS[ctx.attr("activation")]
    slide = slide_of(ctx, *shapes[:2])
    method, sizes = maker(FORWARD, slide, 1)(slide, np.dot)
    first = ctx.attr("data_format") == "NCHW"

    def last(x: Any) -> Any:
        return np.moveaxis(x, 1, -1) if first else x

    def compute(x: Any, w: Any, bias: Any, y: Any, before: Any, made: Any, *scratch: Any) -> None:
        method(np.ascontiguousarray(last(x), wide.np), w.astype(wide.np, copy=False), made, *scratch)
        np.add(made, bias, out=made, casting="same_kind")
        last(before)[...] = made
        last(y)[...] = activation(made)

    return compute, tuple([Scratch(wide, s) for s in ((slide.batch, *slide.out, slide.outputs), *sizes)])


def _attention_outputs(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [(*shapes[0][:-1], shapes[2][-1]), shapes[0][:-1]]


def _attention_grad_outputs(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return list(shapes[1:4])


def _fused_matmul_outputs(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    rows = shapes[0][1 if ctx.attr("transpose_a") else 0]
    return [(rows, shapes[2][0])] * 2


def _matmul_with_sums_outputs(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    made = shapes[0][1 if ctx.attr("transpose_a") else 0], shapes[1][0 if ctx.attr("transpose_b") else 1]
    return [made, made[:1] if ctx.attr("summed") == "a" else made[1:]]


def _like_last(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    return [shapes[-1]]


def _fused_conv_outputs(ctx: BuildContext, shapes: Sequence[Shape]) -> Sequence[Shape]:
    slide = slide_of(ctx, *shapes[:2])
    first = ctx.attr("data_format") == "NCHW"
    channels = slide.outputs
    return [(slide.batch, channels, *slide.out) if first else (slide.batch, *slide.out, channels)] * 2


KERNELS = [
    KernelDef("Attention", "cpu", bind(_attention, _attention_outputs)),
    KernelDef("AttentionGrad", "cpu", bind(_attention_grad, _attention_grad_outputs)),
    KernelDef("DroppedAttention", "cpu", bind(_dropped_attention, _attention_outputs)),
    KernelDef("DroppedAttentionGrad", "cpu", bind(_dropped_attention_grad, _attention_grad_outputs)),
    KernelDef("FusedMatMul", "cpu", bind(_fused_matmul, _fused_matmul_outputs)),
    KernelDef("GeluGrad", "cpu", bind(_times_slope, _like_last)),
    KernelDef("GeluTanhGrad", "cpu", bind(_times_slope, _like_last)),
    KernelDef("MatMulGeluGrad", "cpu", bind(_matmul_gelu_grad, _like_last)),
    KernelDef("MatMulWithSums", "cpu", bind(_matmul_with_sums, _matmul_with_sums_outputs)),
    KernelDef("FusedConv2D", "cpu", bind(_fused_conv, _fused_conv_outputs)),
]
