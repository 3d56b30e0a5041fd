"""Kernels: in C, and in NumPy for systems without the library and as the text to read."""

import numpy as np
from graphdock.contracts import KernelDef
from graphdock.native import Launch, NativeLibrary

from graphdock_so3.coefficients import couplings, table

__all__ = ["KERNELS"]

LIBRARY = NativeLibrary("_native/so3", package="graphdock_so3")


def one_dtype(node):
    """The C functions compute in one dtype."""
    names = {value.dtype.name for value in node.inputs}
    return None if len(names) == 1 else f"its inputs have several dtypes: {', '.join(sorted(names))}"


def prepare(ctx):
    """Once per plan: the coefficients that every call reads."""
    return Launch(constants=table(ctx.attr("L")))


def in_numpy(lists, results, add):
    """A build of ``lists`` list arguments and ``results`` list results; ``add`` adds one coupling's share of them."""

    def build(ctx):
        n, dtype = ctx.attr("L") + 1, ctx.inputs[0].dtype.np
        terms = [(l1, l2, l, c.astype(dtype)) for l1, l2, l, c in couplings(n - 1)]

        def compute(*args):
            outs = args[lists * n :] or [np.empty_like(v) for v in args[-results * n :]]
            for out in outs:
                out.fill(0)
            parts = [args[i * n : i * n + n] for i in range(lists)]
            for l1, l2, l, c in terms:
                add(outs, *parts, l1, l2, l, c)
            return tuple(outs) if len(outs) > 1 else outs[0]

        return compute

    return build


def add_product(outs, v1, v2, l1, l2, l, c):
    np.add(outs[l], np.einsum("xyz,bxc,byc->bzc", c, v1[l1], v2[l2]), outs[l])


def add_gradient(outs, g, v1, v2, l1, l2, l, c):
    first, second = outs[l1], outs[len(v1) + l2]
    np.add(first, np.einsum("xyz,bzc,byc->bxc", c, g[l], v2[l2]), first)
    np.add(second, np.einsum("xyz,bzc,bxc->byc", c, g[l], v1[l1]), second)


KERNELS = [
    LIBRARY.kernel("so3.TensorProduct", "so3_tensor_product", prepare=prepare, check=one_dtype, priority=10),
    LIBRARY.kernel("so3.TensorProductGrad", "so3_tensor_product_grad", prepare=prepare, check=one_dtype, priority=10),
    KernelDef("so3.TensorProduct", "cpu", in_numpy(2, 1, add_product), name="tensor_product_numpy"),
    KernelDef("so3.TensorProductGrad", "cpu", in_numpy(3, 2, add_gradient), name="tensor_product_grad_numpy"),
]
