"""Entry point of the ``triton`` plugin. It imports no triton, and touches no driver."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import KernelModule, RegionCompiler, hookimpl

__all__ = ["register_kernels", "register_region_compilers"]


@hookimpl
def register_region_compilers() -> Iterable[RegionCompiler]:
    from graphdock_triton.regions.compiler import TritonRegions

    return [TritonRegions()]


@hookimpl
def register_kernels() -> Iterable[KernelModule]:
    return [KernelModule("graphdock_triton.operations.launching")]
