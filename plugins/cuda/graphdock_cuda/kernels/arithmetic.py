"""Arithmetic that is rounded towards zero or that 0 wins, neighbours of numbers, and cross products."""

from __future__ import annotations

from graphdock.contracts import KernelDef

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.elementwise import broadcast_shape, mapped
from graphdock_cuda.launch import i64
from graphdock_cuda.work import Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: Op -> expression of C++; see ``source/arithmetic.cuh``.
_BODIES = {
    "MulNoNan": "x1 == 0 ? C(0) : x0 * x1",
    "NextAfter": "nextafter(x0, x1)",
    "ReciprocalGrad": "x1 == number<C>(0) ? x1 : -(x1 * conjugate(x0) * conjugate(x0))",
    "RsqrtGrad": "x1 == number<C>(0) ? x1 : x1 * number<C>(-0.5) * conjugate(x0) * conjugate(x0) * conjugate(x0)",
    "SqrtGrad": "x1 == number<C>(0) ? x1 : x1 * number<C>(0.5) / conjugate(x0)",
    "TruncateDiv": "truncated_quotient(x0, x1)",
    "TruncateMod": "truncated_remainder(x0, x1)",
    "Xdivy": "x0 == 0 ? C(0) : x0 / x1",
    "Xlogy": "x0 == 0 ? C(0) : x0 * log(x1)",
}


def _by_body(w: Work) -> None:
    out = w.output(broadcast_shape([x.shape for x in w.inputs]))
    mapped(w, w.node.op.lower(), _BODIES[w.node.op], w.inputs, out, parts=("arithmetic.cuh",))


_XY = {"z": ("x", "y")}
_SLOPES = {"ReciprocalGrad", "RsqrtGrad", "SqrtGrad"}
#: Of complex numbers they are left to the cpu.
_REAL = {"MulNoNan", "Xdivy", "Xlogy"}
kernel(*sorted(_SLOPES), inplace={"dx": ("y", "dy")}, modes=("planned", "fresh", "inplace"))(_by_body)
kernel("TruncateDiv", "TruncateMod", inplace=_XY, modes=("planned", "fresh", "inplace"))(_by_body)
kernel(
    *sorted(_REAL),
    types={"T": ("float16", "bfloat16", "float32", "float64")},
    inplace=_XY,
    modes=("planned", "fresh", "inplace"),
)(_by_body)
kernel("NextAfter")(_by_body)


@kernel("Cross")
def cross(w: Work) -> None:
    a, b = w.inputs
    out = w.output(a.shape)
    if out.size:
        rows = out.size // 3
        kept = source("complex.cuh", "scalar.cuh", "cross.cuh", ELEMENT=w.ctype(out))
        w.launch(kept, "cross", blocks(rows), 256, a, b, out, i64(rows))
