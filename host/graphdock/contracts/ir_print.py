"""Writes a plan graph in the IR's grammar: stable, so that golden tests and ``explain`` may rely on it."""

from __future__ import annotations

from typing import Any

from graphdock.contracts.ir import PlanGraph, PlanNode
from graphdock.dtypes import DType
from graphdock.shape import show

__all__ = ["print_graph", "print_node"]


def print_graph(graph: PlanGraph) -> str:
    """The graph as text, bodies indented beneath their node."""
    lines: list[str] = []
    # (graph, indent) to open, or a finished line to append: an explicit stack, because bodies may nest deeply
    stack: list[tuple[PlanGraph, str] | str] = [(graph, "")]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            lines.append(item)
            continue
        current, indent = item
        lines.append(f"{indent}graph {current.name}({', '.join(map(repr, current.inputs))}) {{")
        todo: list[tuple[PlanGraph, str] | str] = []
        for node in current.nodes:
            todo.append(f"{indent}  {print_node(node)}")
            todo.extend((body, indent + "    ") for body in node.bodies)
        todo.append(f"{indent}  return {', '.join('%' + v.name for v in current.outputs)}".rstrip())
        todo.append(f"{indent}}}")
        stack.extend(reversed(todo))
    return "\n".join(lines)


def print_node(node: PlanNode) -> str:
    """One node on one line, without its bodies."""
    text = f"{', '.join(map(repr, node.outputs))} = " if node.outputs else f"{node.name} "
    text += f"{node.op}({', '.join('%' + v.name for v in node.inputs)})"
    attrs = [f"{k}={_attr(v)}" for k, v in sorted(node.attrs.items())]
    if attrs:
        text += " {" + ", ".join(attrs) + "}"
    if node.control:
        text += " after " + ", ".join(n.name for n in node.control)
    if node.order:
        text += " ordered after " + ", ".join(n.name for n in node.order)
    if node.streams:
        text += " draws from " + ", ".join(s.name for s in node.streams)
    where = node.device or node.requested
    if where:
        text += f" on {where.short()}"
    return text


def _attr(value: Any) -> str:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_attr(v) for v in value) + "]"
    if hasattr(value, "dtype") and hasattr(value, "size"):
        return f"{value.tolist()}" if value.size <= 8 else f"<{value.dtype}{show(value.shape)}>"
    return repr(value)
