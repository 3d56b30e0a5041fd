"""Plans whose nodes stand in another order: any that inputs, control and order edges allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import PlanGraph, PlanNode

Edges = Callable[[PlanNode], list[PlanNode]]


def edges(node: PlanNode) -> list[PlanNode]:
    """The nodes that must stand before ``node``."""
    return [*(v.node for v in node.inputs if v.node is not None), *node.control, *node.order]


def reorder(graph: PlanGraph, rng: np.random.Generator, before: Edges = edges) -> None:
    """Bring the nodes of every level into a random order that keeps the edges."""
    for level in graph.all_graphs():
        waiting: dict[PlanNode, int] = {}
        followers: dict[PlanNode, list[PlanNode]] = {}
        for node in level.nodes:
            needs = set(before(node))
            waiting[node] = len(needs)
            for other in needs:
                followers.setdefault(other, []).append(node)
        ready = [n for n in level.nodes if not waiting[n]]
        found: list[PlanNode] = []
        while ready:
            at = int(rng.integers(len(ready)))
            ready[at], ready[-1] = ready[-1], ready[at]
            node = ready.pop()
            found.append(node)
            for follower in followers.get(node, ()):
                waiting[follower] -= 1
                if not waiting[follower]:
                    ready.append(follower)
        assert len(found) == len(level.nodes), f"the edges of {level.name} make a cycle"
        level.nodes[:] = found


class Shuffle:
    """While it is installed, planning has one stage more, in which every plan's nodes take another order before they are sealed.

    Attributes:
      seed: of the next plan's order; it counts up. ``before``: the edges that are kept.
      moved: how many plans had another order than the planner's.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.before: Edges = edges
        self.moved = 0

    def install(self, monkeypatch: Any) -> None:
        from graphdock.planning import planner

        stages = dict(planner.STAGES)
        at = list(stages).index("seal")
        names = [*list(stages)[:at], "shuffle", *list(stages)[at:]]
        stages["shuffle"] = self.run
        monkeypatch.setattr(planner, "STAGES", {name: stages[name] for name in names})

    def run(self, draft: Any) -> None:
        before = [list(level.nodes) for level in draft.graph.all_graphs()]
        reorder(draft.graph, np.random.default_rng(self.seed), self.before)
        self.seed += 1
        self.moved += [list(level.nodes) for level in draft.graph.all_graphs()] != before
