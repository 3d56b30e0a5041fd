"""The order of the passes, and the switch for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphdock.contracts.ir import PlanGraph, PlanNode
from graphdock.contracts.ir_check import check, check_order
from graphdock.contracts.opdef import OpDef
from graphdock.errors import ConfigError, did_you_mean
from graphdock.passes.captures import captures
from graphdock.passes.rewrite import prune
from graphdock.passes.simplify import algebra, cse, fold, identities, known_integers
from graphdock.passes.unread import drop_unneeded

__all__ = ["PASSES", "PassReport", "check_switches", "run_passes"]

#: Name -> what it does, in the order of running; ``passes = {name = false}`` switches one off.
PASSES: dict[str, str] = {
    "captures": "moves constants into the bodies that capture them",
    "identities": "forwards what changes nothing",
    "shapes": "makes constants of integers that are known from shapes",
    "cse": "merges nodes that compute the same",
    "fold": "computes what depends on constants only",
    "algebra": "drops multiplications by one",
}


@dataclass(frozen=True, slots=True)
class PassReport:
    """What one pass did: nodes before and after (bodies included), and the time in milliseconds."""

    name: str
    before: int
    after: int
    ms: float


def check_switches(switches: Mapping[str, bool]) -> None:
    """Raise ConfigError for a switch of a pass that does not exist."""
    for name in switches:
        if name not in PASSES:
            raise ConfigError(
                f"no pass named {name!r}", expected="one of " + ", ".join(PASSES), hint=did_you_mean(name, PASSES)
            )


def run_passes(
    graph: PlanGraph,
    switches: Mapping[str, bool],
    evaluate: Callable[[PlanNode], Any],
    const: OpDef,
    verify: bool = False,
) -> list[PassReport]:
    """Drop what nobody needs, then run every pass that is on over the graph and all its bodies.

    Args:
      evaluate: computes a node over constants, or returns None (see :func:`graphdock.passes.simplify.fold`).
      const: the OpDef of the Const nodes that passes make.
      verify: check the grammar after every pass.
    """
    table: dict[str, Callable[[PlanGraph], None]] = {
        "captures": captures,
        "identities": identities,
        "shapes": lambda g: known_integers(g, const),
        "cse": cse,
        "fold": lambda g: fold(g, evaluate, const),
        "algebra": algebra,
    }
    drop_unneeded(graph)
    if verify:
        check_order(graph, "pruning")
    reports = []
    for name in PASSES:
        if not switches.get(name, True):
            continue
        start, before = time.perf_counter(), _count(graph)
        for level in graph.all_graphs():
            table[name](level)
            prune(level)
        reports.append(PassReport(name, before, _count(graph), (time.perf_counter() - start) * 1e3))
        if verify:
            check(graph)
            check_order(graph, f"the pass {name}")
    return reports


def _count(graph: PlanGraph) -> int:
    return sum(len(g.nodes) for g in graph.all_graphs())
