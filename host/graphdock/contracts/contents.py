"""Contents of the values of dtype variant in a plan: whose values a history keeps, and what a taken branch leaves."""

from __future__ import annotations

from collections.abc import Iterator

from graphdock.contracts.bodies import elements, given, stacked
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.errors import PlanError
from graphdock.shape import compatible, show

__all__ = ["Contents", "contents_of", "may_hold"]


def may_hold(node: PlanNode) -> bool:
    """Whether an output of the node may be a variant of which :class:`Contents` knows something."""
    return bool(node.bodies) or node.verb == "alias" or "unstacks" in node.opdef.traits


class Contents:
    """Variant -> one value that stands for all that it holds, of their dtype and shape: an element, or what a branch leaves.

    Filled along the order of the plan: :meth:`enter` before a body, :meth:`leave` after a node.
    """

    def __init__(self) -> None:
        self._of: dict[Value, Value] = {}

    def of(self, value: Value) -> Value | None:
        """Contents of a variant; None where nothing is known to be in it."""
        return self._of.get(value)

    def bind(self, inner: Value, outer: Value | None) -> None:
        """``inner`` is ``outer`` under another name; nothing is kept of what is no variant."""
        held = None if outer is None else self._of.get(outer)
        if held is not None:
            self._of[inner] = held

    def enter(self, node: PlanNode, which: int) -> None:
        """Bind the inputs of body number ``which``."""
        histories = {element: history for history, element in elements(node)}
        for outer, inner in zip(given(node, which), node.bodies[which].inputs, strict=True):
            self.bind(inner, self._of.get(outer) if inner in histories else outer)

    def leave(self, node: PlanNode) -> None:
        """Note what the node's outputs hold; its bodies have been visited."""
        if node.verb == "alias":
            result, source = node.outputs[0], node.inputs[0]
            if source.dtype.kind == "V":
                self.bind(result, source)
            elif result.dtype.kind == "V":
                self._of[result] = source
            return
        if "unstacks" in node.opdef.traits:
            self._of[node.outputs[0]] = _row(node.inputs[0])
            return
        self._of.update(stacked(node))
        if node.verb in ("branch", "call"):
            for i, result in enumerate(node.outputs):
                held = [v for v in (self._of.get(b.outputs[i]) for b in node.bodies) if v is not None]
                if len(held) == 1 or held and all(_alike(v, held[0]) for v in held):
                    self._of[result] = held[0]


def _row(tensor: Value) -> Value:
    """A value that stands for the rows of a tensor."""
    row = Value(f"{tensor.name}/row", tensor.dtype, None if tensor.shape is None else tensor.shape[1:])
    row.extent = tensor.extent[1:] if isinstance(tensor.extent, tuple) else None
    return row


def _alike(a: Value, b: Value) -> bool:
    return a.dtype is b.dtype and a.shape == b.shape


def contents_of(graph: PlanGraph) -> Contents:
    """The contents of every variant of a plan and its bodies, in one pass without recursion.

    Raises:
      PlanError: a loop takes elements of another dtype or shape than the history that it reads was made of.
    """
    found = Contents()
    stack: list[Iterator[PlanGraph]] = [_visit(graph, found)]
    while stack:
        body = next(stack[-1], None)
        if body is None:
            stack.pop()
        else:
            stack.append(_visit(body, found))
    return found


def _visit(graph: PlanGraph, found: Contents) -> Iterator[PlanGraph]:
    """Visit one level; yields each body, to be visited before the level goes on."""
    for node in graph.nodes:
        for history, element in elements(node):
            _check(graph, node, found.of(history), element)
        for which, body in enumerate(node.bodies):
            found.enter(node, which)
            yield body
        if may_hold(node):
            found.leave(node)


def _check(graph: PlanGraph, node: PlanNode, held: Value | None, element: Value) -> None:
    if held is not None and (held.dtype is not element.dtype or not compatible(held.shape, element.shape)):
        raise PlanError(
            f"graph {graph.name}, node {node.name} ({node.op}): reads elements of a history as "
            f"{element.dtype.name}{show(element.shape)}, but they are {held.dtype.name}{show(held.shape)}"
        )
