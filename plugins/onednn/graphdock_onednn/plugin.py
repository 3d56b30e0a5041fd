"""Entry point of the ``onednn`` plugin. It looks for no library."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import KernelModule, PatternLibrary, hookimpl

__all__ = ["register_kernels", "register_patterns"]

#: Modules of ``graphdock_onednn.kernels``; each holds a list ``KERNELS``.
FAMILIES = ("conv", "matmul", "pool")


@hookimpl
def register_kernels() -> Iterable[KernelModule]:
    return [KernelModule(f"graphdock_onednn.kernels.{family}") for family in FAMILIES]


@hookimpl
def register_patterns() -> Iterable[PatternLibrary]:
    return [PatternLibrary("graphdock_onednn.patterns:PATTERNS", ("Conv2D", "MatMul"), listed=True)]
