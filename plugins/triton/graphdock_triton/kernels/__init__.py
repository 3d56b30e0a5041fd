"""Kernels written by hand, one family per module. Importing this imports no triton; :func:`library` does."""

from __future__ import annotations

import importlib

from graphdock_triton.kernels.spec import Kernel

__all__ = ["FAMILIES", "library"]

#: Modules of this package that have kernels.
FAMILIES = (
    "norms", "softmax", "cross_entropy", "matmul", "matmul_persistent", "attention", "optimizers", "embedding", "dropout", "rotary",
    "batch_norm", "lstm", "conv",
)  # fmt: skip


def library() -> dict[str, Kernel]:
    """Every kernel by its name. Raises ImportError without triton."""
    modules = (importlib.import_module(f"{__name__}.{family}") for family in FAMILIES)
    return {kernel.name: kernel for module in modules for kernel in module.KERNELS}
