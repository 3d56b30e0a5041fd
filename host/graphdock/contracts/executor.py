"""Executors run the part of a plan that belongs to one task; session factories open sessions on a target.

Both are contracts for engines that come from plugins. The straight-line executor of the host is the first implementation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanGraph
from graphdock.contracts.rendezvous import Rendezvous

__all__ = ["Executor", "Partition", "SessionFactory"]


class Partition(ABC):
    """A compiled part of a plan; immutable. ``run`` may be called from many threads at once."""

    @abstractmethod
    def run(self, feeds: Sequence[Any], rendezvous: Rendezvous | None = None) -> list[Any]:
        """Run one step: ``feeds`` in the order of the graph's inputs, as host arrays; returns its outputs as host arrays."""


class Executor(ABC):
    """Compiles placed graphs. ``name`` is what ``executor=`` in the configuration says."""

    name: str

    @abstractmethod
    def compile(self, graph: PlanGraph, devices: Mapping[str, Device]) -> Partition:
        """Compile a graph whose nodes are all placed on the given devices (keyed by short name, ``cpu:0``)."""


class SessionFactory(ABC):
    """Opens sessions for targets of one scheme, as ``ray://`` or the empty scheme of local sessions."""

    scheme: str

    @abstractmethod
    def open(self, target: str, graph: Any, config: Any) -> Any:
        """A session on ``target``. Raises UnavailableError when the target can't be reached."""
