"""Products with a bias and an activation: the matrix library's epilogues where it has them, else one launch behind the product.

What the activation is applied to, which gradients of GELU read, is one more result of the epilogue.
"""

from __future__ import annotations

from graphdock.contracts import KernelDef

from graphdock_cuda.kernel import FLOATS, family
from graphdock_cuda.kernels.elementwise import elementwise
from graphdock_cuda.kernels.matmul import Product, gemm_of, multiply, product_of
from graphdock_cuda.work import Operand, Work

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: Activation of the op -> as products have it.
_EPILOGUES = {"none": "none", "relu": "relu", "gelu_tanh": "gelu"}
#: Activation -> formula, for a launch of its own.
_FORMULAS = {
    "relu": "maximum(x, 0)",
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
    a, b, bias = w.inputs
    product = product_of(a.shape, b.shape, bool(w.attr("transpose_a")), bool(w.attr("transpose_b")))
    y, before = w.output(product.out), w.output(product.out, 1)
    if not y.size:
        return
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
    if activation != "none":
        elementwise(w, _FORMULAS[activation], [("x", first)], y)
    elif both:
        w.copy(y, before)


def _library(w: Work, d: Operand, product: Product, activation: str, aux: Operand | None = None) -> bool:
    """``d = activation(op(a) op(b) + bias)`` by the matrix library; False where it has no such product."""
    a, b, bias = w.inputs
    gemm = gemm_of(w, product, d.dtype.name, bias=True, activation=activation)
    return gemm is not None and w.gemm(gemm, a, b, d, bias, aux)
