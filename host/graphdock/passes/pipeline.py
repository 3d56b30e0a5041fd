"""The passes: one table, in the order of running."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from graphdock_fusion.passes.batch_matmuls import products
from graphdock_fusion.passes.flatten_sums import sums
from graphdock_fusion.passes.prune_control_edges import gates

from graphdock.contracts.ir import PlanGraph
from graphdock.contracts.ir_check import check, check_order
from graphdock.errors import ConfigError, did_you_mean
from graphdock.passes.captures import captures
from graphdock.passes.dead_code import drop_unneeded
from graphdock.passes.powers import powers
from graphdock.passes.rewrite import Tools, prune
from graphdock.passes.simplify import algebra, cse, fold, identities, known_integers

__all__ = ["PASSES", "Pass", "PassReport", "check_switches", "run_passes"]


@dataclass(frozen=True, slots=True)
class Pass:
    """One row of the table.

    Attributes:
      name: what ``passes = {name = false}`` switches off.
      summary: what it does, in a few words.
      run: changes one level of a plan through a Rewriter; the pipeline visits the bodies, outer levels first. Idempotent.
      on: whether it runs when nothing is said.
    """

    name: str
    summary: str
    run: Callable[[PlanGraph, Tools], None]
    on: bool = True


_ALL = (
    Pass("captures", "moves constants into the bodies that capture them", captures),
    Pass("gates", "drops waits between what only computes", gates),
    Pass("identities", "forwards what changes nothing", identities),
    Pass("shapes", "makes constants of integers that are known from shapes", known_integers),
    Pass("cse", "merges nodes that compute the same, and reads with no write between them", cse),
    Pass("fold", "computes what depends on constants only", fold),
    Pass("algebra", "drops multiplications by one", algebra),
    Pass("powers", "makes other ops of one with a constant, where its op says which", powers),
    Pass("sums", "makes one operation of a sum of many, where its op says how", sums),
    Pass("products", "makes one product of many by one matrix, whose rows don't wait for one another", products),
)

#: Name -> pass, in the order of running. The configuration, ``explain`` and the docs are read from it.
PASSES: Mapping[str, Pass] = {p.name: p for p in _ALL}


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


def run_passes(graph: PlanGraph, switches: Mapping[str, bool], tools: Tools, verify: bool = False) -> list[PassReport]:
    """Drop what nobody needs, then run every pass that is on over the graph and all its bodies.

    Args:
      switches: pass name -> whether it runs; a pass that it does not name runs if it does by default.
      verify: check grammar and order after every pass.
    """
    drop_unneeded(graph)
    if verify:
        check_order(graph, "pruning")
    reports = []
    after = _count(graph)
    for name, each in PASSES.items():
        if not switches.get(name, each.on):
            continue
        start, before = time.perf_counter(), after
        for level in graph.all_graphs():
            nodes = level.nodes
            each.run(level, tools)
            if level.nodes is not nodes:  # a Rewriter that changes anything leaves another list
                prune(level)
        after = _count(graph)
        reports.append(PassReport(name, before, after, (time.perf_counter() - start) * 1e3))
        if verify:
            check(graph)
            check_order(graph, f"the pass {name}")
    return reports


def _count(graph: PlanGraph) -> int:
    return sum(len(g.nodes) for g in graph.all_graphs())
