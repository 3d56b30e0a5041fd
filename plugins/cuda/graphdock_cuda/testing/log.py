"""Log of what a fake driver was asked, for tests that count it."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

__all__ = ["Call", "Log"]


class Call(NamedTuple):
    """One call: its name in the protocol, and what it was about, without addresses and handles."""

    name: str
    what: str

    def __str__(self) -> str:
        return f"{self.name} {self.what}".rstrip()


class Log:
    """Calls in their order, and sums of them.

    Attributes:
      calls: every one since the last ``reset``.
      kernels: how often each was launched by name; those of a graph are counted at each launch of it.
      copies: how many, by direction: ``h2d``, ``d2h``, ``d2d``, ``p2p``, ``h2h``; those of graphs too.
      bytes: the same, in bytes.
      fills: how many, those of graphs too.
      nodes: kernels, copies and fills that graphs launched.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all."""
        self.calls: list[Call] = []
        self.kernels: Counter[str] = Counter()
        self.copies: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.fills = 0
        self.nodes = 0

    def add(self, name: str, what: str) -> None:
        """A call was made."""
        self.calls.append(Call(name, what))

    def count(self, name: str) -> int:
        """Return how many calls of that name."""
        return sum(call.name == name for call in self.calls)

    def work(self, kind: str, name: str, nbytes: int = 0, replayed: bool = False) -> None:
        """Work was queued: a ``kernel`` by name, a ``copy`` by its direction, or a ``fill``."""
        self.nodes += replayed
        if kind == "kernel":
            self.kernels[name] += 1
        elif kind == "copy":
            self.copies[name] += 1
            self.bytes[name] += nbytes
        else:
            self.fills += 1

    def table(self) -> dict[str, int]:
        """The sums, for golden tables."""
        return {
            "calls": len(self.calls),
            "launches": self.count("launch"),
            "graph launches": self.count("graph_launch"),
            "kernels": self.kernels.total(),
            "copies": self.copies.total(),
            "bytes": self.bytes.total(),
            "fills": self.fills,
            "nodes": self.nodes,
            "waits": sum(
                self.count(name) for name in ("stream_synchronize", "device_synchronize", "event_synchronize")
            ),
            "allocations": self.count("malloc") + self.count("host_alloc"),
        }
