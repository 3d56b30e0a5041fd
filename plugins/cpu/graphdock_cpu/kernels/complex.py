"""Parts, angle, size and conjugate of complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef

from graphdock_cpu.kernels.common import ufunc_kernel

__all__ = ["KERNELS"]


def _complex(ctx: BuildContext) -> Callable[..., Any]:
    dtype = ctx.outputs[0].dtype.np

    def into(real: np.ndarray, imag: np.ndarray, out: np.ndarray) -> None:
        np.copyto(out.real, real, "same_kind")
        np.copyto(out.imag, imag, "same_kind")

    def fresh(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
        out = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
        into(real, imag, out)
        return out

    return fresh if ctx.fresh else into


def _into_real(write: Callable[[np.ndarray, np.ndarray], Any]) -> Callable[[BuildContext], Bound | Callable[..., Any]]:
    """A kernel of ``write(z, out)``, where ``out`` is real."""

    def build(ctx: BuildContext) -> Bound | Callable[..., Any]:
        dtype = ctx.outputs[0].dtype.np

        def fresh(z: np.ndarray) -> np.ndarray:
            out = np.empty(z.shape, dtype)
            write(z, out)
            return out

        return fresh if ctx.fresh else write

    return build


def _real(z: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, z.real, "same_kind")


def _imag(z: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, z.imag, "same_kind")


def _angle(z: np.ndarray, out: np.ndarray) -> None:
    np.arctan2(z.imag, z.real, out, casting="same_kind")


def _size(z: np.ndarray, out: np.ndarray) -> None:
    np.absolute(z, out, casting="same_kind")


KERNELS = [
    KernelDef("Complex", "cpu", _complex, layout="strided"),
    KernelDef("Real", "cpu", _into_real(_real), layout="strided"),
    KernelDef("Imag", "cpu", _into_real(_imag), layout="strided"),
    KernelDef("Angle", "cpu", _into_real(_angle), layout="strided"),
    KernelDef("ComplexAbs", "cpu", _into_real(_size), layout="strided"),
    ufunc_kernel("Conj", np.conjugate, inplace={"y": ("input",)}),
]
