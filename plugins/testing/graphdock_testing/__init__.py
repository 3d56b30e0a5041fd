"""For tests of graphs, and of plugins.

conformance, pytest_plugin, report: a backend against the op specs (``pytest --graphdock-backend NAME``).
opcheck: ``graphdock_testing.opcheck(op, args)`` checks one op and its kernels on inputs of one's own.
gradient_check: gradients of a graph against differences. samples, numeric, programs: what both are made of.
fake: a device whose queue runs late. null: a device that does nothing. Virtual cpu devices need neither: ``device_count``.
driver: an asynchronous driver with queues, events, capture, injected faults and a race checker. queued: cpu's kernels on it.
watching: the race checker in a conformance run.

Nothing is imported here: pytest loads this package in every project that has graphdock installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphdock_testing.op_check import opcheck as opcheck

__all__ = ["opcheck"]


def __getattr__(name: str) -> Any:
    if name == "opcheck":
        from graphdock_testing.op_check import opcheck

        return opcheck
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
