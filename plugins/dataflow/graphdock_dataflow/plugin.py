"""Entry point of the ``dataflow`` plugin: the executor for steps that wait."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import Executor, hookimpl


@hookimpl
def register_executors() -> Iterable[Executor]:
    from graphdock_dataflow.executor import Dataflow

    return [Dataflow()]
