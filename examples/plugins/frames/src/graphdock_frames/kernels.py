"""Kernels of frames, in NumPy."""

import numpy as np
from graphdock.contracts import Bound, KernelDef, Scratch
from numpy.lib.stride_tricks import sliding_window_view

__all__ = ["KERNELS"]


def writes(make):
    """A build for ``make(ctx) -> function(*inputs, out)``, with ``shape(*inputs)`` of the output beside it."""

    def build(ctx):
        function, shape = make(ctx)
        if not ctx.fresh:
            return function

        def fresh(*inputs):
            out = np.empty(shape(*inputs), ctx.outputs[0].dtype.np)
            function(*inputs, out)
            return out

        return fresh

    return build


def _frame(ctx):
    length, step = ctx.attr("length"), ctx.attr("step")

    def windows(x):
        return sliding_window_view(x, length, -1)[..., ::step, :]

    return lambda x, out: np.copyto(out, windows(x)), lambda x: windows(x).shape


def _frame_grad(ctx):
    length, step = ctx.attr("length"), ctx.attr("step")

    def add_up(x, grad, out):
        out.fill(0)
        for i in range(grad.shape[-2]):
            out[..., i * step : i * step + length] += grad[..., i, :]

    return add_up, lambda x, grad: x.shape


WINDOWS = {"hann": np.hanning, "hamming": np.hamming, "none": np.ones}


def _taper(ctx):
    window = WINDOWS[ctx.attr("window")]
    size = (ctx.inputs[0].shape or [None])[-1]
    known = None if size is None else window(size).astype(ctx.inputs[0].dtype.np)

    def weigh(x, out):
        np.multiply(x, window(x.shape[-1]).astype(x.dtype) if known is None else known, out)

    return weigh, lambda x: x.shape


def _energy(ctx):
    keep = ctx.attr("keep_dims")
    if ctx.fresh:
        return lambda x: np.sum(x * x, -1, keepdims=keep)

    def total(x, out, squares):
        np.multiply(x, x, squares)
        np.add.reduce(squares, -1, None, out, keep)

    x = ctx.inputs[0]
    if x.shape is None or None in x.shape:  # the output may be known where the input is not
        return lambda x, out: np.add.reduce(x * x, -1, None, out, keep)
    return Bound(total, scratch=(Scratch(x.dtype, tuple(x.shape)),))


def _mix(ctx):
    def add_up(*args):
        *tracks, weights, out = args
        np.multiply(tracks[0], weights[0], out)
        for track, weight in zip(tracks[1:], weights[1:], strict=True):
            out += track * weight

    return add_up, lambda *inputs: inputs[0].shape


KERNELS = [
    KernelDef("frames.Frame", "cpu", writes(_frame), layout="strided"),
    KernelDef("frames.FrameGrad", "cpu", writes(_frame_grad), layout="strided"),
    KernelDef("frames.Taper", "cpu", writes(_taper), layout="strided", inplace={"y": ("x",)}),
    KernelDef("frames.Energy", "cpu", _energy, layout="strided"),
    KernelDef("frames.Mix", "cpu", writes(_mix), layout="strided"),
]
