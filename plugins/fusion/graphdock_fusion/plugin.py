"""Entry point of the ``fusion`` plugin: the passes that join nodes, or repeat them. Each is imported when a plan needs it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from graphdock.contracts import LoopWriter, Pass, PlanContext, PlanGraph, PlanNode, hookimpl


def _unroll(graph: PlanGraph, context: PlanContext) -> LoopWriter | None:
    if not context.records:
        return None
    from graphdock_fusion.unroll import Unrolling

    return Unrolling(context.opdef)


def _tables(graph: PlanGraph, context: PlanContext) -> None:
    if not context.switches.get("fold", True):
        return
    looking = [
        r.pattern for r in context.patterns(graph) if any(o.constant and o.shape for o in r.pattern.inputs.values())
    ]
    if looking:
        from graphdock_fusion.patterns.tables import tables

        tables(graph, context, looking)


def _patterns(late: bool, graph: PlanGraph, context: PlanContext) -> None:
    known = [r for r in context.patterns(graph) if r.pattern.late is late]
    if known:
        from graphdock_fusion.patterns.patterns import patterns

        patterns(graph, context, known)


def _regions(graph: PlanGraph, context: PlanContext) -> None:
    if context.compilers:
        from graphdock_fusion.regions.fuse import fuse

        fuse(graph, context)


def _recompute(graph: PlanGraph, context: PlanContext) -> None:
    if context.memory_budget:
        from graphdock_fusion.memory_budget import recompute

        recompute(graph, context)


def _swap(graph: PlanGraph, context: PlanContext) -> None:
    if context.memory_budget:
        from graphdock_fusion.memory_budget import swap

        swap(graph, context)


def _schedule(graph: PlanGraph, context: PlanContext) -> None:
    if context.memory_budget:
        from graphdock_fusion.schedule import schedule

        schedule(graph, context)


def _is_decided(node: PlanNode) -> bool:
    return node.verb == "branch" and node.constant(0) is not None


def _loops(node: PlanNode) -> bool:
    return node.verb == "loop"


def _waits(node: PlanNode) -> bool:
    return bool(node.control)


def _adds(node: PlanNode) -> bool:
    return "aggregate" in node.opdef.traits


def _multiplies(node: PlanNode) -> bool:
    return bool(node.opdef.joint)


_PASSES = (
    Pass(
        "gates",
        "simplify",
        20,
        "drops waits between what only computes",
        "graphdock_fusion.passes.prune_control_edges:prune_control_edges",
        _waits,
    ),
    Pass(
        "branches",
        "simplify",
        65,
        "takes the branch that a constant decides",
        "graphdock_fusion.passes.dead_branches:dead_branches",
        _is_decided,
    ),
    Pass(
        "sums",
        "simplify",
        90,
        "makes one operation of a sum of many, where its op says how",
        "graphdock_fusion.passes.flatten_sums:flatten_sums",
        _adds,
    ),
    Pass(
        "products",
        "simplify",
        100,
        "makes one product of many by one matrix, whose rows don't wait for one another",
        "graphdock_fusion.passes.batch_matmuls:batch_matmuls",
        _multiplies,
    ),
    Pass("unroll", "translate", 10, "writes loops out whose length is known, where a device records", _unroll),
    Pass("tables", "rewrite", 20, "computes the large constants that patterns look at", _tables),
    Pass("patterns", "rewrite", 30, "makes one op of what is written in several", partial(_patterns, False)),
    Pass("late_patterns", "rewrite", 40, "does so with what other patterns have left", partial(_patterns, True)),
    Pass(
        "invariants",
        "rewrite",
        45,
        "computes before a loop what its iterations compute alike",
        "graphdock_fusion.passes.loop_invariants:loop_invariants",
        _loops,
    ),
    Pass("regions", "chosen", 10, "makes one node of what a region compiler claims", _regions),
    Pass("schedule", "chosen", 85, "orders nodes so that less is alive at once, for a memory_budget", _schedule),
    Pass("recompute", "chosen", 90, "computes again what would be kept, for a memory_budget", _recompute),
    Pass("swap", "chosen", 95, "keeps in the host's memory for a while what is read late, for a memory_budget", _swap),
)


@hookimpl
def register_passes() -> Iterable[Pass]:
    return _PASSES
