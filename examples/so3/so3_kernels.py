"""NumPy kernels of the SO(3) tensor product, registered without a package."""

from __future__ import annotations

import math

import numpy as np
from graphdock import ops


def clebsch_gordan(l1: int, l2: int, l: int) -> np.ndarray:
    """Coefficients C[m1, m2, m] = <l1 m1 l2 m2 | l m>, each index from -l upwards, by Racah's formula (1942)."""
    f = math.factorial
    out = np.zeros((2 * l1 + 1, 2 * l2 + 1, 2 * l + 1))
    scale = (2 * l + 1) * f(l + l1 - l2) * f(l - l1 + l2) * f(l1 + l2 - l) / f(l1 + l2 + l + 1)
    for m1 in range(-l1, l1 + 1):
        for m2 in range(-l2, l2 + 1):
            m = m1 + m2
            if abs(m) > l:
                continue
            root = math.sqrt(scale * f(l + m) * f(l - m) * f(l1 - m1) * f(l1 + m1) * f(l2 - m2) * f(l2 + m2))
            total = 0.0
            for k in range(l1 + l2 - l + 1):
                parts = (l1 - m1 - k, l2 + m2 - k, l - l2 + m1 + k, l - l1 - m2 + k)
                if min(parts) >= 0:
                    total += (-1) ** k / (f(k) * f(l1 + l2 - l - k) * math.prod(f(p) for p in parts))
            out[m1 + l1, m2 + l2, m + l] = root * total
    return out


def couplings(degree: int, dtype: np.dtype) -> list[tuple[int, int, int, np.ndarray]]:
    return [
        (l1, l2, l, clebsch_gordan(l1, l2, l).astype(dtype))
        for l1 in range(degree + 1)
        for l2 in range(degree + 1)
        for l in range(abs(l1 - l2), min(l1 + l2, degree) + 1)
    ]


@ops.RegisterKernel("so3.TensorProduct", device="cpu", modes=("planned",))
def tensor_product(ctx):
    n = ctx.attr("L") + 1
    table = couplings(n - 1, ctx.inputs[0].dtype.np)

    def compute(*args):
        v1, v2, outs = args[:n], args[n : 2 * n], args[2 * n :]
        for out in outs:
            out.fill(0)
        for l1, l2, l, c in table:
            np.add(outs[l], np.einsum("xyz,bxc,byc->bzc", c, v1[l1], v2[l2]), outs[l])

    return compute


@ops.RegisterKernel("so3.TensorProductGrad", device="cpu", modes=("planned",))
def tensor_product_grad(ctx):
    n = ctx.attr("L") + 1
    table = couplings(n - 1, ctx.inputs[0].dtype.np)

    def compute(*args):
        g, v1, v2, outs = args[:n], args[n : 2 * n], args[2 * n : 3 * n], args[3 * n :]
        for out in outs:
            out.fill(0)
        for l1, l2, l, c in table:
            np.add(outs[l1], np.einsum("xyz,bzc,byc->bxc", c, g[l], v2[l2]), outs[l1])
            np.add(outs[n + l2], np.einsum("xyz,bzc,bxc->byc", c, g[l], v1[l1]), outs[n + l2])

    return compute
