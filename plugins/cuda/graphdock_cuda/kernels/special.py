"""Special functions: computed in float64 and rounded once."""

from __future__ import annotations

from graphdock.contracts import KernelDef

from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.elementwise import broadcast_shape, mapped
from graphdock_cuda.work import Work

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: Op -> function of doubles, and the files of ``source`` that have it.
_FUNCTIONS = {
    "BesselI0e": ("bessel_i0e", ("gamma.cuh", "bessel.cuh")),
    "BesselI1e": ("bessel_i1e", ("gamma.cuh", "bessel.cuh")),
    "Betainc": ("betainc", ("gamma.cuh", "incomplete.cuh")),
    "Digamma": ("digamma", ("gamma.cuh",)),
    "Erfinv": ("inverse_erf", ("gamma.cuh", "quantile.cuh")),
    "Igamma": ("incomplete_gamma<0>", ("gamma.cuh", "incomplete.cuh")),
    "IgammaGradA": ("incomplete_gamma<2>", ("gamma.cuh", "incomplete.cuh")),
    "Igammac": ("incomplete_gamma<1>", ("gamma.cuh", "incomplete.cuh")),
    "Lgamma": ("log_gamma", ("gamma.cuh",)),
    "Ndtri": ("normal_quantile", ("gamma.cuh", "quantile.cuh")),
    "Polygamma": ("polygamma", ("gamma.cuh",)),
    "Zeta": ("zeta", ("gamma.cuh",)),
}


@kernel(*_FUNCTIONS)
def special(w: Work) -> None:
    function, parts = _FUNCTIONS[w.node.op]
    arguments = ", ".join(f"static_cast<double>(x{i})" for i in range(len(w.inputs)))
    out = w.output(broadcast_shape([x.shape for x in w.inputs]))
    mapped(w, w.node.op.lower(), f"{function}({arguments})", w.inputs, out, parts=parts)
