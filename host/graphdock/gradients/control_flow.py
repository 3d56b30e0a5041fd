"""The gradient of Cond: a Cond over the gradients of its branches.

What a branch's gradient needs of the branch's own values leaves the forward Cond as further outputs, appended to it, which the
other branch leaves empty. So nothing is computed twice and random or stateful ops keep the value they had. Graphs and plans made
before stay as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdock.control_flow.trace import add_cond, body_scope
from graphdock.dtypes import variant
from graphdock.gradients.flow import UnsummedGradient
from graphdock.gradients.gradient_body import GradientBody, zeros_of
from graphdock.gradients.indexed_slices import IndexedSlices, dense
from graphdock.graph.body import BodyGraph, captured
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op

__all__ = ["cond"]


def cond(op: Operation, *grads: Any) -> list[Any]:
    """Gradients by what a Cond captures: one per input after the predicate, None where no branch has one."""
    graph = get_default_graph()
    count = len(op.inputs) - 1
    result: list[Any] = [None] * count
    with graph.name_scope("cond") as scope:
        sides = [
            _side(op, branch, grads, GradientBody(f"{scope}{label}", graph, op, branch))
            for label, branch in zip(("then", "else"), op.bodies, strict=True)
        ]
        bodies = [body for body, _ in sides]
        wanted = [i for i in range(count) if any(found[i] is not None for _, found in sides)]
        if not wanted:
            return result
        places = {i: _return(op.inputs[1 + i], [(body, found[i]) for body, found in sides]) for i in wanted}
        for index, body in enumerate(bodies):
            _connect(op, index, body, graph)
        node = add_cond(graph, scope, captured(graph, op.inputs[0]), *bodies)
    for i, places_of in places.items():
        found = [node.outputs[k] for k in places_of]
        result[i] = UnsummedGradient(tuple(found)) if op.inputs[1 + i].dtype is variant else found[0]
    return result


def _side(
    op: Operation, branch: BodyGraph, grads: Sequence[Any], body: GradientBody
) -> tuple[GradientBody, list[Tensor | UnsummedGradient | None]]:
    """Build one branch of the gradient: the gradient by each capture, None where the branch does not depend on it."""
    from graphdock.gradients.backprop import continue_gradients

    placeholders = [branch.captures[t] for t in op.inputs[1:]]
    wanted = [t for t in placeholders if t.dtype.is_differentiable or t.dtype.kind in "RV"]
    ys: list[Tensor] = []
    arrived: list[Tensor] = []
    for y, grad in zip(branch.outputs, grads, strict=True):
        if grad is not None and y.op.verb != "none":
            parts = grad.parts if isinstance(grad, UnsummedGradient) else (grad,)
            ys += [y] * len(parts)
            arrived += parts
    with body_scope(body):
        found = dict(zip(wanted, continue_gradients(body, ys, wanted, [body.capture(g) for g in arrived]), strict=True))
        whole = {t: dense(g) if isinstance(g, IndexedSlices) else g for t, g in found.items()}
    return body, [whole.get(t) for t in placeholders]


def _return(tensor: Tensor, sides: Sequence[tuple[GradientBody, Any]]) -> list[int]:
    """Let both branches return the gradient by a captured tensor; the numbers of the outputs that are added up."""
    first = len(sides[0][0].outputs)
    if tensor.dtype is variant:
        count = max(0 if found is None else len(found.parts) for _, found in sides)
        for body, found in sides:
            parts = [] if found is None else [body.capture(p) for p in found.parts]
            body.outputs += parts
            with body_scope(body):
                body.outputs += [apply_op("OptionalNone") for _ in range(count - len(parts))]
        return list(range(first, first + count))
    for body, found in sides:
        with body_scope(body):
            body.outputs.append(zeros_of(tensor, body) if found is None else body.capture(found))
    return [first]


def _connect(op: Operation, index: int, body: GradientBody, graph: Graph) -> None:
    """Let the forward Cond leave what ``body`` needs of its branch ``index``, and ``body`` capture it."""
    places = _leave(op, index, list(body.needed))
    for place, slot in zip(places, body.needed.values(), strict=True):
        body.captures[captured(graph, op.outputs[place])] = slot


def _leave(op: Operation, index: int, tensors: Sequence[Tensor]) -> list[int]:
    """The numbers of the outputs in which a Cond leaves tensors of one of its branches; new ones are appended."""
    branch, other = op.bodies[index], op.bodies[1 - index]
    with op.graph._lock:
        known: dict[Tensor, int] = {}
        for k, t in enumerate(branch.outputs):
            if t.dtype is variant:
                made = t.op.verb == "alias" and t.op.inputs[0].dtype is not variant
                known.setdefault(t.op.inputs[0] if made else t, k)
        missing = [t for t in tensors if t not in known]
        for tensor in missing:
            known[tensor] = len(branch.outputs)
            with body_scope(branch):
                branch.outputs.append(tensor if tensor.dtype is variant else apply_op("OptionalFromValue", x=tensor))
            with body_scope(other):
                other.outputs.append(apply_op("OptionalNone"))
            op.outputs.append(Tensor(op, known[tensor], variant, ()))
        if missing:
            op.node_attrs = {**op.node_attrs, "Tout": tuple(t.dtype for t in op.outputs)}
            op._output_lengths = (len(op.outputs),)
    return [known[t] for t in tensors]
