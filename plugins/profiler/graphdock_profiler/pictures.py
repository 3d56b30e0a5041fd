"""Graphs, tensors and sessions as notebooks show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphdock import Graph, Operation, Tensor

from graphdock_profiler import html
from graphdock_profiler.explanation import Explanation

__all__ = ["as_html"]

#: Operations of the picture of a tensor: those nearest to it.
_NEAR = 40


def as_html(shown: Any, *facts: Any) -> str:
    """A section of HTML about a graph, a tensor, or a session, of which more facts are given: see the functions below."""
    if isinstance(shown, Tensor):
        return _tensor_html(shown)
    return _graph_html(shown) if isinstance(shown, Graph) else _session_html(shown, *facts)


def _session_html(session: Any, state: str, settings: Sequence[tuple[str, str, str]], plan: Any) -> str:
    """A table of settings with their values and origins, and the plan that was made last; before the first one the graph."""
    last = _graph_html(session.graph) if plan is None else Explanation(plan, session.config)._repr_html_()
    return html.section(f"Session, {state}", html.table(("setting", "value", "from"), settings), last)


def _graph_html(graph: Graph) -> str:
    """A picture of a graph, and a table of its operations."""
    ops = graph.get_operations()
    rows = [
        (op.name, op.type, ", ".join(f"{t.dtype.name}{t.shape}" for t in op.outputs), op.device, op.site) for op in ops
    ]
    table = html.table(("operation", "type", "outputs", "device", "made at"), rows)
    return html.section(f"Graph of {len(ops)} operations", html.picture(_boxes(ops)), table)


def _tensor_html(tensor: Tensor) -> str:
    """Return what a tensor is, and a picture of what it is computed from."""
    near = [tensor.op]
    for op in near:  # which grows
        near += [read for read in dict.fromkeys(t.op for t in op.inputs) if read not in near]
        if len(near) >= _NEAR:
            break
    facts = html.table(
        ("dtype", "shape", "operation", "made at"),
        [(tensor.dtype.name, str(tensor.shape), tensor.op.type, tensor.op.site)],
    )
    return html.section(
        f"Tensor {tensor.name}", facts, html.picture(_boxes(sorted(near, key=tensor.graph.get_operations().index)))
    )


def _boxes(ops: Iterable[Operation]) -> list[html.Box]:
    boxes = []
    for op in ops:
        reads = tuple(dict.fromkeys([t.op.name for t in op.inputs] + [c.name for c in op.control_inputs]))
        label = html.label_of(op.name, op.type)
        boxes.append(html.Box(op.name, label, op.device, reads, f"{op.name}: {op.type}"))
    return boxes
