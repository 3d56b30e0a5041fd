"""Region compilers: a plugin takes a connected region of a placed plan and returns one kernel for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from graphdock.contracts.ir import PlanNode, Region
from graphdock.contracts.kernel import Bound, BuildContext

__all__ = ["Claim", "Refusal", "RegionCompiler"]


@dataclass(frozen=True, slots=True)
class Claim:
    """The compiler takes these nodes (a connected subset of the candidate), at this estimated cost in microseconds."""

    nodes: tuple[PlanNode, ...]
    cost_us: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """The compiler does not take the region; ``reason`` is printed by ``explain``."""

    reason: str


class RegionCompiler(ABC):
    """Compiles regions for one device type. ``claim`` runs after placement; ``build`` yields the same Bound as a kernel."""

    device_type: str

    @abstractmethod
    def claim(self, candidate: Region) -> Claim | Refusal:
        """What of the candidate this compiler would take. Must not change the candidate."""

    @abstractmethod
    def build(self, region: Region, ctx: BuildContext) -> Bound:
        """A Bound for the claimed region; ``ctx`` describes the region as if it were one node."""
