"""Graphs and tensors as notebooks show them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphdock.contracts import html

if TYPE_CHECKING:
    from graphdock.graph.graph import Graph
    from graphdock.graph.operation import Operation
    from graphdock.graph.tensor import Tensor

__all__ = ["graph_html", "tensor_html"]

#: Operations of the picture of a tensor: those nearest to it.
_NEAR = 40


def graph_html(graph: Graph) -> str:
    """A picture of a graph, and a table of its operations."""
    ops = graph.get_operations()
    rows = [
        (op.name, op.type, ", ".join(f"{t.dtype.name}{t.shape}" for t in op.outputs), op.device, op.site) for op in ops
    ]
    table = html.table(("operation", "type", "outputs", "device", "made at"), rows)
    return html.section(f"Graph of {len(ops)} operations", html.picture(_boxes(ops)), table)


def tensor_html(tensor: Tensor) -> str:
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
