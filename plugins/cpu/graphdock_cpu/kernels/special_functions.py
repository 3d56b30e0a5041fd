"""Special functions: SciPy's where they are as good and as fast as ours were, the rest in blocks of float64 (ADR 69).

A plan loads this module, and SciPy with it, when it chooses one of these kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef
from scipy import special

from graphdock_cpu.kernels.common import Body, body_kernel
from graphdock_cpu.kernels.incomplete import igamma_grad_a
from graphdock_cpu.kernels.zeta import digamma, polygamma, zeta

__all__ = ["KERNELS"]

#: Elements of a block; the working arrays of one stay in cache.
BLOCK = 8192
#: Below it the gamma function is 1 / x to the last bit, and SciPy's overflows.
_SMALL = 1e-290


def _lgamma(x: np.ndarray, y: np.ndarray, **wide: Any) -> None:
    endless, small = np.isinf(x), np.abs(x) < _SMALL
    logs = np.log(np.abs(x[small], dtype=np.float64)) if small.any() else None
    special.gammaln(x, y, **wide)
    np.copyto(y, np.inf, where=endless)
    if logs is not None:
        y[small] = -logs


def _betainc(a: np.ndarray, b: np.ndarray, x: np.ndarray, z: np.ndarray, **wide: Any) -> None:
    """NaN, where SciPy takes the limit, for parameters that are 0 or infinite."""
    special.betainc(a, b, x, z, **wide)
    for parameter in (a, b):
        np.copyto(z, np.nan, where=(parameter == 0) | np.isinf(parameter))


def _in_blocks(function: Callable[..., np.ndarray]) -> Callable[[BuildContext], Callable[..., Any]]:
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


def _scipys(op: str, function: Body, weight: float, **kwargs: Any) -> KernelDef:
    """In float64 whatever the dtype, and rounded once: SciPy's float32 form of betainc is wrong by 1 in 1000."""
    body = partial(function, dtype=np.float64, casting="unsafe")
    return body_kernel(op, lambda dtype: body, widen=False, weight=weight, **kwargs)


_X = {"y": ("x",)}

#: The weight is the time of an element in cheap passes.
KERNELS = [
    _scipys("BesselI0e", special.i0e, 80, inplace=_X),
    _scipys("BesselI1e", special.i1e, 80, inplace=_X),
    _scipys("Betainc", _betainc, 1000),
    _scipys("Erfc", special.erfc, 40, inplace=_X),
    _scipys("Erfinv", special.erfinv, 60, inplace=_X),
    _scipys("Igamma", special.gammainc, 300),
    _scipys("Igammac", special.gammaincc, 300),
    _scipys("Lgamma", _lgamma, 60, inplace=_X),
    _scipys("Ndtri", special.ndtri, 40, inplace=_X),
    KernelDef("Digamma", "cpu", _in_blocks(digamma)),
    KernelDef("IgammaGradA", "cpu", _in_blocks(igamma_grad_a)),
    KernelDef("Polygamma", "cpu", _in_blocks(polygamma)),
    KernelDef("Zeta", "cpu", _in_blocks(zeta)),
]
