"""Entry point of the ``llvm`` plugin. It imports no llvmlite."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import KernelModule, RegionCompiler, hookimpl

__all__ = ["register_kernels", "register_region_compilers"]

#: Modules of ``graphdock_llvm.kernels``; each holds a list ``KERNELS``.
FAMILIES = ("conv", "gather", "joins", "losses", "matmul", "norms", "row_updates", "segments", "sparse", "windows")


@hookimpl
def register_kernels() -> Iterable[KernelModule]:
    return [KernelModule(f"graphdock_llvm.kernels.{family}") for family in FAMILIES]


@hookimpl
def register_region_compilers() -> Iterable[RegionCompiler]:
    from graphdock_llvm.compiler import VectorRegions

    return [VectorRegions()]
