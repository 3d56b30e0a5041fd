"""Work around a run of a plan: a trace of it, and the operation of an error."""

from __future__ import annotations

from typing import Any

from graphdock.contracts.step import TraceLevel
from graphdock.errors import GraphdockError
from graphdock.graph.graph import Graph
from graphdock.planning.plan import Plan
from graphdock.session.run_options import RunMetadata

__all__ = ["name_operation", "traced"]


def name_operation(error: GraphdockError, graph: Graph) -> None:
    """Put the Operation itself, where the graph has it, in the place of its name, as TensorFlow's errors carry it."""
    if isinstance(error.op, str):
        operation = graph._by_name.get(error.op)
        if operation is not None:
            error.op, error.node_def = operation, operation.node_def


def traced(plan: Plan, step: Any, values: Any, level: TraceLevel, run_metadata: RunMetadata | None) -> Any:
    """Run a step that reports what it does."""
    clock = step.services.clock
    with plan.program.trace(step, level):
        start = clock()
        try:
            return plan.run(step, values)
        finally:
            if run_metadata is not None:
                run_metadata.ran(start, clock())
