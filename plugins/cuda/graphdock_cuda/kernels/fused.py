"""Products and convolutions with a bias and an activation: epilogues, the matrix library's where it has them.

What the library has none for is one launch behind the product. What the activation is applied to, which gradients of GELU read, is
one more result of the library's epilogue; a convolution writes that, and a launch behind it the other. Gradients end in epilogues
too: the sums that a bias wants with the product that its weights want, the slope of GELU with the product that reaches it.
"""

from __future__ import annotations

from graphdock.contracts import KernelDef

from graphdock_cuda.kernel import FLOATS, family
from graphdock_cuda.kernels.activations import FORMULAS
from graphdock_cuda.kernels.conv import convolve
from graphdock_cuda.kernels.elementwise import elementwise
from graphdock_cuda.kernels.matmul import Product, gemm_of, multiply, product_of
from graphdock_cuda.kernels.reduce import reduce_axes, reducer
from graphdock_cuda.kernels.sliding import slide_of
from graphdock_cuda.work import Operand, Work

__all__ = ["KERNELS", "convolved"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: Activation of the op -> as products have it.
_EPILOGUES = {"none": "none", "relu": "relu", "gelu_tanh": "gelu"}
#: Activation -> formula, for a launch of its own.
_FORMULAS = {
    "relu": "maximum(x, 0)",
    "relu6": "minimum(maximum(x, 0), 6)",
    "tanh": "tanh(x)",
    "sigmoid": "sigmoid(x)",
    "gelu": "x * 0.5 * (1 + erf(x * 0.7071067811865476))",
    "gelu_tanh": "x * 0.5 * (1 + tanh((x + x * x * x * 0.044715) * 0.7978845608028654))",
}
#: What the library wants rows of ``before`` to be a multiple of.
_ROW = 8


@kernel("FusedMatMul", types={"T": FLOATS})
def fused_matmul(w: Work) -> None:
    """``(a, b, bias) -> (y, before)``. What the library has no epilogue for takes its bias and a launch, or the own tiles."""
    a, b, _ = w.inputs
    product = product_of(a.shape, b.shape, bool(w.attr("transpose_a")), bool(w.attr("transpose_b")))
    y, before = w.output(product.out), w.output(product.out, 1)
    if y.size:
        _multiplied(w, product, y, before)


@kernel("FusedConv2D", types={"T": FLOATS})
def fused_conv2d(w: Work) -> None:
    """``(input, filter, bias) -> (y, before)``; a window of one element is a product of matrices."""
    x, f, bias = w.inputs
    slide = slide_of(w, x.shape, f.shape)
    shape = slide.shape(slide.out, slide.outputs)
    y, before = w.output(shape), w.output(shape, 1)
    if not y.size:
        return
    if slide.pointwise and not slide.first:
        sizes = (slide.rows, slide.outputs, slide.channels)
        _multiplied(w, Product(*sizes, False, False, (), (), (), sizes[:2]), y, before)
        return
    activation = w.attr("activation") if w.used(0) else "none"
    if not w.used(1):
        convolve(w, x, f, y, slide, bias, convolved(activation))
        return
    convolve(w, x, f, before, slide, bias)
    if w.used(0):
        _activated(w, activation, before, y)


def convolved(activation: str) -> str:
    """The op's activation as tiles have it."""
    return {"gelu": "gelu_erf", "gelu_tanh": "gelu"}.get(activation, activation)


def _multiplied(w: Work, product: Product, y: Operand, before: Operand) -> None:
    """Both results of a product of the first two inputs, as far as they are used; the third is the bias."""
    a, b, bias = w.inputs
    both = w.used(0) and w.used(1)
    activation = w.attr("activation") if w.used(0) else "none"
    first = before if w.used(1) else y
    ends = not both and activation in _EPILOGUES
    if ends and _library(w, first, product, _EPILOGUES[activation]):
        return
    if both and activation == "gelu_tanh" and not product.n % _ROW and _library(w, y, product, "gelu_aux", before):
        return
    if not _library(w, first, product, "none"):
        multiply(w, a, b, first, product, bias, _EPILOGUES[activation] if ends else "none")
        if ends:
            return
    if activation != "none" or both:
        _activated(w, activation, first, y)


def _activated(w: Work, activation: str, before: Operand, y: Operand) -> None:
    """Apply what follows in a launch of its own."""
    if activation == "none":
        w.copy(y, before)
    else:
        elementwise(w, _FORMULAS[activation], [("x", before)], y)


def _library(w: Work, d: Operand, product: Product, activation: str, aux: Operand | None = None) -> bool:
    """``d = activation(op(a) op(b) + bias)`` by the matrix library; False where it has no such product."""
    a, b, bias = w.inputs
    gemm = gemm_of(w, product, d.dtype.name, bias=True, activation=activation)
    return gemm is not None and w.gemm(gemm, a, b, d, bias, aux)


@kernel("MatMulWithSums", types={"T": FLOATS})
def matmul_with_sums(w: Work) -> None:
    """``(a, b) -> (y, sums)``: one product of the library, else a product and a sum."""
    a, b = w.inputs
    left, right, of_a = bool(w.attr("transpose_a")), bool(w.attr("transpose_b")), w.attr("summed") == "a"
    product = product_of(a.shape, b.shape, left, right)
    y, sums = w.output(product.out), w.output((product.m if of_a else product.n,), 1)
    if y.size and w.used(0) and w.used(1):
        gemm = gemm_of(w, product, y.dtype.name, activation="sums_a" if of_a else "sums_b")
        if gemm is not None and w.gemm(gemm, a, b, y, sums):
            return
    if w.used(0):
        _plain(w, y, product)
    if w.used(1):
        matrix, axis = (a, 0 if left else 1) if of_a else (b, 1 if right else 0)
        reduce_axes(w, reducer("sum", matrix.dtype), matrix, [axis], sums)


@kernel("MatMulGeluGrad", types={"T": FLOATS})
def matmul_gelu_grad(w: Work) -> None:
    """``(a, b, x) -> y``: one product of the library where it takes the slope, else a launch behind the product."""
    a, b, x = w.inputs
    product = product_of(a.shape, b.shape, bool(w.attr("transpose_a")), bool(w.attr("transpose_b")))
    y = w.output(product.out)
    if not y.size:
        return
    if not product.n % _ROW:
        gemm = gemm_of(w, product, y.dtype.name, activation="dgelu")
        if gemm is not None and w.gemm(gemm, a, b, y, aux=x):
            return
    _plain(w, y, product)
    elementwise(w, FORMULAS["GeluTanhGrad"], [("x", x), ("dy", y)], y)


def _plain(w: Work, y: Operand, product: Product) -> None:
    """The product of the first two inputs, by the matrix library or by the own tiles."""
    a, b = w.inputs[:2]
    gemm = gemm_of(w, product, y.dtype.name)
    if y.size and (gemm is None or not w.gemm(gemm, a, b, y)):
        multiply(w, a, b, y, product)
