"""The gradient of Cond: a Cond over the gradients of its branches.

What a branch's gradient needs of the branch's own values leaves the forward Cond as further outputs, appended to it; the other
branch fills those with zeros. So nothing is computed twice and random or stateful ops keep the value they had. Graphs and plans
made before stay as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdock.control_flow.trace import add_node, body_scope, shared_captures
from graphdock.errors import InternalError
from graphdock.gradients.gradient_body import GradientBody, zeros, zeros_of
from graphdock.gradients.indexed_slices import IndexedSlices, dense
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor

__all__ = ["cond"]


def cond(op: Operation, *grads: Any) -> list[Any]:
    """Gradients by what a Cond captures: one per input after the predicate, None where no branch has one."""
    graph = get_default_graph()
    with graph.name_scope("cond") as scope:
        sides = [
            _side(op, branch, grads, GradientBody(f"{scope}{label}", graph, branch))
            for label, branch in zip(("then", "else"), op.bodies, strict=True)
        ]
        count = len(op.inputs) - 1
        wanted = [i for i in range(count) if any(found[i] is not None for _, found in sides)]
        if not wanted:
            return [None] * count
        for body, found in sides:
            with body_scope(body):
                for i in wanted:
                    grad = found[i]
                    body.outputs.append(body.capture(zeros_of(op.inputs[1 + i]) if grad is None else grad))
        for index, (body, _) in enumerate(sides):
            _connect(op, index, body, graph)
        bodies = tuple(body for body, _ in sides)
        captures = shared_captures(bodies)
        pred = op.inputs[0]
        if pred.graph is not graph and isinstance(graph, BodyGraph):
            pred = graph.capture(pred)
        attrs = {
            "Tin": tuple(t.dtype for t in captures),
            "Tout": tuple(t.dtype for t in bodies[0].outputs),
            "then_branch": bodies[0],
            "else_branch": bodies[1],
        }
        node = add_node(graph, "Cond", [pred, *captures], attrs, scope, (1, len(captures)), bodies)
    result: list[Any] = [None] * count
    for i, tensor in zip(wanted, node.outputs, strict=True):
        result[i] = tensor
    return result


def _side(
    op: Operation, branch: BodyGraph, grads: Sequence[Any], body: GradientBody
) -> tuple[GradientBody, list[Tensor | None]]:
    """Build one branch of the gradient: the gradient by each capture, None where the branch does not depend on it."""
    from graphdock.gradients.backprop import continue_gradients

    placeholders = [branch.captures[t] for t in op.inputs[1:]]
    wanted = [t for t in placeholders if t.dtype.is_floating or t.dtype.name == "resource"]
    ys = [y for y, g in zip(branch.outputs, grads, strict=True) if g is not None]
    with body_scope(body):
        arrived = [body.capture(g) for g in grads if g is not None]
        found = dict(zip(wanted, continue_gradients(body, ys, wanted, arrived), strict=True))
        whole = {t: dense(g) if isinstance(g, IndexedSlices) else g for t, g in found.items()}
    return body, [whole.get(t) for t in placeholders]


def _connect(op: Operation, index: int, body: GradientBody, graph: Graph) -> None:
    """Let the forward Cond return what ``body`` needs of its branch ``index``, and ``body`` capture it."""
    branch, other = op.bodies[index], op.bodies[1 - index]
    for tensor, placeholder in body.needed.items():
        at = next((k for k, t in enumerate(branch.outputs) if t is tensor), None)
        if at is None:
            at = _append_output(op, branch, other, tensor)
        outer = op.outputs[at]
        if outer.graph is not graph:
            if not isinstance(graph, BodyGraph):
                raise InternalError(f"the gradient of {op.name} is built outside of its graph", op=op.name)
            outer = graph.capture(outer)
        if outer in body.captures:
            body.replace(placeholder, body.captures[outer])
        else:
            body.captures[outer] = placeholder


def _append_output(op: Operation, branch: BodyGraph, other: BodyGraph, tensor: Tensor) -> int:
    """One more output of a Cond: ``tensor`` of ``branch``, zeros from the other; returns its number."""
    with op.graph._lock:
        with body_scope(other):
            filler = zeros(tensor._dims, tensor.dtype)
        branch.outputs.append(tensor)
        other.outputs.append(filler)
        at = len(op.outputs)
        op.outputs.append(Tensor(op, at, tensor.dtype, tensor._dims))
        op.node_attrs = {**op.node_attrs, "Tout": tuple(t.dtype for t in op.outputs)}
        op._output_lengths = (len(op.outputs),)
    return at
