"""Kernels of special functions: computed in float64, block by block, and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef

from graphdock_cpu.kernels import bessel, gamma, incomplete

__all__ = ["KERNELS"]

#: Elements of a block; the working arrays of one stay in cache.
BLOCK = 8192


def _elementwise(function: Callable[..., np.ndarray]) -> Callable[[BuildContext], Callable[..., Any]]:
    """A kernel of a function of float64 vectors of one length, whose inputs broadcast."""

    def build(ctx: BuildContext) -> Callable[..., Any]:
        count, dtype = len(ctx.inputs), ctx.outputs[0].dtype.np

        def compute(*args: Any) -> Any:
            inputs, planned = args[:count], args[count:]
            shape = np.broadcast_shapes(*(x.shape for x in inputs))
            out = planned[0] if planned else np.empty(shape, dtype)
            flat = [np.broadcast_to(x, shape).reshape(-1) for x in inputs]
            result = out.reshape(-1)
            for start in range(0, math.prod(shape), BLOCK):
                piece = slice(start, start + BLOCK)
                np.copyto(result[piece], function(*(x[piece].astype(np.float64) for x in flat)), "unsafe")
            return None if planned else out

        return compute

    return build


_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "BesselI0e": bessel.i0e,
    "BesselI1e": bessel.i1e,
    "Betainc": incomplete.betainc,
    "Digamma": gamma.digamma,
    "Erfinv": bessel.erfinv,
    "Igamma": incomplete.igamma,
    "IgammaGradA": incomplete.igamma_grad_a,
    "Igammac": incomplete.igammac,
    "Lgamma": gamma.lgamma,
    "Ndtri": bessel.ndtri,
    "Polygamma": gamma.polygamma,
    "Zeta": gamma.zeta,
}

KERNELS = [KernelDef(op, "cpu", _elementwise(function)) for op, function in _FUNCTIONS.items()]
