"""Convolutions and their gradients by cuDNN, where it is installed. What it refuses is left to the own kernels, with the reason.

Filters lie with the channels of the output last, and cuDNN's engines want them first: a filter is turned before, its gradient
behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphdock.contracts import KernelDef

from graphdock_cuda.driver.api import Convolution, Unsupported
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.elementwise import mapped
from graphdock_cuda.kernels.fused import convolved
from graphdock_cuda.kernels.matmul import ACTIVATIONS
from graphdock_cuda.kernels.sliding import Slide, check_fits, sizes_of, slide_of
from graphdock_cuda.moving import as_bits, move
from graphdock_cuda.work import Operand, Work

__all__ = ["KERNELS", "LEAST"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

TYPES = {"T": ("float16", "bfloat16", "float32")}
#: Products of elements per multiprocessor, below which turning filters costs more than an engine gains. A guess: none was measured.
LEAST = 1 << 15


@kernel("Conv2D", name="conv2d_cudnn", priority=10, types=TYPES, early=True)
@kernel("Conv3D", name="conv3d_cudnn", priority=10, types=TYPES, early=True)
def conv(w: Work) -> None:
    """``(input, filter) -> output``."""
    x, f = w.inputs
    slide = slide_of(w, x.shape, f.shape)
    _by_cudnn(w, "y", slide, x, f, w.output(slide.shape(slide.out, slide.outputs)))


@kernel("FusedConv2D", name="fused_conv2d_cudnn", priority=10, types=TYPES, early=True)
def fused_conv2d(w: Work) -> None:
    """``(input, filter, bias) -> (y, before)``: bias and activation are one launch behind, or one each where both are read."""
    x, f, bias = w.inputs
    slide = slide_of(w, x.shape, f.shape)
    shape = slide.shape(slide.out, slide.outputs)
    y, before = w.output(shape), w.output(shape, 1)
    made = before if w.used(1) else y
    _by_cudnn(w, "y", slide, x, f, made)
    row = bias.reshaped(slide.outputs, 1, 1) if slide.first else bias
    function = f"activated<{ACTIVATIONS[convolved(w.attr('activation'))]}>"
    if w.used(1):
        _after(w, "x0 + x1", [before, row], before)
        if w.used(0):
            _after(w, f"{function}(x0)", [before], y)
    else:
        _after(w, f"{function}(x0 + x1)", [y, row], y)


def _after(w: Work, body: str, given: Sequence[Operand], out: Operand) -> None:
    mapped(w, "bias_and_activation", body, given, out, parts=("gemm.cuh",))


@kernel("Conv2DBackpropInput", name="conv2d_backprop_input_cudnn", priority=10, types=TYPES, early=True)
@kernel("Conv3DBackpropInputV2", name="conv3d_backprop_input_cudnn", priority=10, types=TYPES, early=True)
def conv_backprop_input(w: Work) -> None:
    """``(input_sizes, filter, dy) -> dx``."""
    _, f, dy = w.inputs
    shape = sizes_of(w, "input_sizes", dy.rank)
    slide = slide_of(w, shape, f.shape)
    check_fits(w, slide, f.shape[-2], dy.shape, slide.outputs)
    _by_cudnn(w, "x", slide, w.output(shape), f, dy)


@kernel("Conv2DBackpropFilter", name="conv2d_backprop_filter_cudnn", priority=10, types=TYPES, early=True)
@kernel("Conv3DBackpropFilterV2", name="conv3d_backprop_filter_cudnn", priority=10, types=TYPES, early=True)
def conv_backprop_filter(w: Work) -> None:
    """``(input, filter_sizes, dy) -> dw``."""
    x, _, dy = w.inputs
    shape = sizes_of(w, "filter_sizes", x.rank)
    slide = slide_of(w, x.shape, shape)
    check_fits(w, slide, shape[-2], dy.shape, slide.outputs)
    _by_cudnn(w, "w", slide, x, w.output(shape), dy)


def _by_cudnn(w: Work, makes: str, slide: Slide, x: Operand, f: Operand, y: Operand) -> None:
    """Trace the convolution that makes one of the three operands of the other two. Raises KernelRefused where it is not cuDNN's."""
    reason = _not_worth_it(w, slide)
    if reason:
        raise w.refuse(reason)
    asked = _asked(w, makes, x.dtype.name, slide)
    turned = w.scratch(f.dtype, f.shape)
    if makes != "w":
        _turn(w, slide, f, turned, back=False)
    try:
        w.convolution(asked, x, turned, y)
    except Unsupported as error:
        raise w.refuse(str(error)) from error
    if makes == "w":
        _turn(w, slide, turned, f, back=True)


def _not_worth_it(w: Work, slide: Slide) -> str:
    """Return why a convolution is not cuDNN's, before it is asked; empty where it may be."""
    wanted = w.options.get("cudnn", "auto")
    products = slide.rows * slide.outputs * slide.taps * slide.channels
    if wanted == "never":
        return "the option cudnn is 'never'"
    if not products:
        return "there are no elements"
    if slide.pointwise and not slide.first:
        return "a window of one element is a product of matrices"
    least = LEAST * w.multiprocessors
    if products < least and wanted != "always":
        return f"it has {products} products of elements, and cuDNN is asked from {least} on"
    return ""


def _asked(w: Work, makes: str, dtype: str, slide: Slide) -> Convolution:
    span = [(k - 1) * d + 1 for k, d in zip(slide.window, slide.dilation, strict=True)]
    reached = [(out - 1) * step + s for out, step, s in zip(slide.out, slide.stride, span, strict=True)]
    after = [max(0, r - n - b) for r, n, b in zip(reached, slide.size, slide.before, strict=True)]
    return Convolution(
        makes,
        dtype,
        (slide.batch, slide.channels, *slide.size),
        (slide.outputs, slide.channels, *slide.window),
        (slide.batch, slide.outputs, *slide.out),
        slide.before,
        tuple(after),
        slide.stride,
        slide.dilation,
        last=not slide.first,
        tf32=w.options.get("matmul_precision", "highest") != "highest",
    )


def _turn(w: Work, slide: Slide, origin: Operand, target: Operand, back: bool) -> None:
    """Move a filter from [window, C, O] to [O, window, C], or to [O, C, window] where channels are first; or ``back``."""
    outputs, channels, taps = dims = slide.outputs, slide.channels, slide.taps
    ours = (1, outputs, channels * outputs)
    theirs = (channels * taps, taps, 1) if slide.first else (channels * taps, 1, channels)
    strides = (ours, theirs) if back else (theirs, ours)
    move(w, as_bits(target), as_bits(origin), dims, *strides)
