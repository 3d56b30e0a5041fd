"""Parts, angle, size and conjugate of complex numbers."""

from __future__ import annotations

from graphdock.contracts import KernelDef

from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.elementwise import broadcast_shape, mapped
from graphdock_cuda.work import Work

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: Op -> expression of C++.
_BODIES = {
    "Angle": "angle(x0)",
    "Complex": "from_compute<TO>(complex_t<double>{x0, x1})",
    "ComplexAbs": "abs(x0)",
    "Conj": "conj(x0)",
    "Imag": "x0.im",
    "Real": "x0.re",
}


@kernel(*_BODIES)
def parts(w: Work) -> None:
    out = w.output(broadcast_shape([x.shape for x in w.inputs]))
    mapped(w, w.node.op.lower(), _BODIES[w.node.op], w.inputs, out)
