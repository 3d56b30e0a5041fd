"""Entry point of the ``llvm`` plugin. It imports no llvmlite."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import RegionCompiler, hookimpl

__all__ = ["register_region_compilers"]


@hookimpl
def register_region_compilers() -> Iterable[RegionCompiler]:
    from graphdock_llvm.compiler import VectorRegions

    return [VectorRegions()]
