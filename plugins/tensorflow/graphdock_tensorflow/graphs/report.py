"""What an import has made of a graph: how many nodes it has, what is missing, and what could not be imported without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["ImportReport", "Missing"]


@dataclass(frozen=True, slots=True)
class Missing:
    """Nodes that can't be imported for one reason.

    Attributes:
      op: their op in the file. ``why``: empty where graphdock has no such op.
      nodes: their names.
    """

    op: str
    why: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        shown = ", ".join(self.nodes[:3]) + (f" and {len(self.nodes) - 3} more" if len(self.nodes) > 3 else "")
        return f"{self.op}{f' ({self.why})' if self.why else ''}: {shown}"


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import has made of a graph.

    Attributes:
      nodes: how many nodes the file has. ``ops``: op of the file -> how many nodes of it were imported.
      missing: what graphdock does not have. ``left_out``: the nodes that need any of those.
    """

    nodes: int = 0
    ops: dict[str, int] = field(default_factory=dict)
    missing: Sequence[Missing] = ()
    left_out: frozenset[str] = frozenset()

    @property
    def complete(self) -> bool:
        """Whether everything was imported."""
        return not self.missing

    def __str__(self) -> str:
        """What is missing, a line each."""
        if self.complete:
            return f"{self.nodes} nodes, all imported"
        lines = [f"  {m}" for m in self.missing]
        others = len(self.left_out) - sum(len(m.nodes) for m in self.missing)
        return "\n".join([f"{self.nodes} nodes; graphdock lacks", *lines, f"  and {others} nodes need one of these"])
