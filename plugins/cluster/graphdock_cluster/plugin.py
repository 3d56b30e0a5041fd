"""Entry point of the ``cluster`` plugin: sessions on targets, and the ops that tasks exchange tensors by."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import KernelModule, OpLibrary, SessionFactory, hookimpl


@hookimpl
def register_ops() -> Iterable[OpLibrary]:
    return [OpLibrary("graphdock_cluster._gen.opdefs", specs="graphdock_cluster")]


@hookimpl
def register_kernels() -> Iterable[KernelModule]:
    return [KernelModule("graphdock_cluster.kernels.exchange")]


@hookimpl
def register_session_factories() -> Iterable[SessionFactory]:
    from graphdock_cluster.master import ServerSessions

    return [ServerSessions()]
