"""Entry point of the ``planner`` plugin."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import Placer, hookimpl


@hookimpl
def register_placers() -> Iterable[Placer]:
    from graphdock_planner.simulated import Simulated

    return [Simulated()]
