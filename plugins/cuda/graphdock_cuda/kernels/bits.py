"""Integers as rows of bits, and bytes read as another type of elements."""

from __future__ import annotations

from graphdock.contracts import KernelDef, errors

from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.elementwise import broadcast_shape, mapped
from graphdock_cuda.work import Work

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
_MODES = ("planned", "fresh", "inplace")

#: Op -> expression of C++; see ``source/bits.cuh``.
_BODIES = {
    "BitwiseAnd": "static_cast<C>(x0 & x1)",
    "BitwiseOr": "static_cast<C>(x0 | x1)",
    "BitwiseXor": "static_cast<C>(x0 ^ x1)",
    "Invert": "static_cast<C>(~x0)",
    "LeftShift": "shifted_left(x0, x1)",
    "PopulationCount": "count_bits(x0)",
    "RightShift": "shifted_right(x0, x1)",
}


def _by_body(w: Work) -> None:
    out = w.output(broadcast_shape([x.shape for x in w.inputs]))
    mapped(w, w.node.op.lower(), _BODIES[w.node.op], w.inputs, out, parts=("bits.cuh",))


kernel("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift", inplace={"z": ("x", "y")}, modes=_MODES)(
    _by_body
)
kernel("Invert", inplace={"y": ("x",)}, modes=_MODES)(_by_body)
kernel("PopulationCount")(_by_body)


@kernel("Bitcast")
def bitcast(w: Work) -> None:
    x = w.input(0)
    have, want, shape = x.dtype.size, w.out_dtype().size, x.shape
    if have > want:
        shape = (*shape, have // want)
    elif have < want:
        if not shape or shape[-1] * have != want:
            raise errors.InvalidArgumentError(f"Bitcast: the last dim of {list(shape)} must be {want // have}")
        shape = shape[:-1]
    w.copy(w.output(shape), x)
