"""Entry point of the ``executor`` plugin: the straight-line executor."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import Executor, hookimpl


@hookimpl
def register_executors() -> Iterable[Executor]:
    from graphdock_executor.straight_line.executor import StraightLine

    return [StraightLine()]
