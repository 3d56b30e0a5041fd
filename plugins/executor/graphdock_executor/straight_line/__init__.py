"""The straight-line executor: all local devices share one generated function, in one order. The host's own."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import Executor, hookimpl

from graphdock_executor.straight_line.executor import StraightLine

__all__ = ["StraightLine", "register_executors"]


@hookimpl
def register_executors() -> Iterable[Executor]:
    return [StraightLine()]
