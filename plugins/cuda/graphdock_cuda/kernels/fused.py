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
    """``(a, b, bias) -> (y, before)``."""
    a, b, _ = w.inputs
    product = product_of(a.shape, b.shape, bool(w.attr("transpose_a")), bool(w.attr("transpose_b")))
    y, before = w.output(product.out), w.output(product.out, 1)
    activation = w.attr("activation")
    if not y.size:
        return
    if not w.used(0):
        _dense(w, before, product, "none")
    elif not w.used(1) and activation in _EPILOGUES:
        _dense(w, y, product, _EPILOGUES[activation])
    elif activation == "none":
        _dense(w, y, product, "none")
        w.copy(before, y)
    elif activation != "gelu_tanh" or not _with_aux(w, y, before, product):
        first = before if w.used(1) else y
        _dense(w, first, product, "none")
        elementwise(w, _FORMULAS[activation], [("x", first)], y)


def _with_aux(w: Work, y: Operand, before: Operand, product: Product) -> bool:
    """Both results of GELU in one product; False where the library has none."""
    a, b, bias = w.inputs
    gemm = gemm_of(w, product, y.dtype.name, bias=True, activation="gelu_aux") if not product.n % _ROW else None
    return gemm is not None and w.gemm(gemm, a, b, y, bias, before)


def _dense(w: Work, d: Operand, product: Product, activation: str) -> None:
    """``d = activation(op(a) op(b) + bias)``, by the library or by the own tiles."""
    a, b, bias = w.inputs
    gemm = gemm_of(w, product, d.dtype.name, bias=True, activation=activation)
    if gemm is None or not w.gemm(gemm, a, b, d, bias):
        multiply(w, a, b, d, product, bias, activation)
