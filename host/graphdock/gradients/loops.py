"""The gradient of While: a loop from the last iteration to the first, over histories of what its iterations need.

``gradients`` lets the forward loop return, as further outputs, a history of every value that the way back reads; the forward body
runs once, and random or stateful ops keep the value they had. The way back scans the histories, so it runs as often as the loop
did. It is a loop like any other: the gradient by a history that it scans is a history that it makes, and so it has a gradient
itself. Graphs and plans made before stay as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdock.contracts.bodies import carried, scanned
from graphdock.control_flow.trace import add_while, body_scope
from graphdock.dtypes import variant
from graphdock.gradients.deferred_accumulation import DeferredAccumulation, defer_accumulation
from graphdock.gradients.flow import UnsummedGradient
from graphdock.gradients.gradient_body import GradientBody, value_dims, zeros, zeros_of
from graphdock.gradients.indexed_slices import IndexedSlices, dense
from graphdock.graph.body import BodyGraph, captured
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import constant
from graphdock.ops.core import apply_operator
from graphdock.ops.core import shape as shape_of

__all__ = ["while_loop"]


def while_loop(op: Operation, *grads: Any) -> list[Any]:
    """Gradients by the loop variables' first values, by the histories that the loop scans and by what its bodies capture.

    None for what is not floating, or does not depend on it; an UnsummedGradient for a history.
    """
    graph = get_default_graph()
    with graph.name_scope("while") as scope:
        back = GradientBody(f"{scope}body", graph, op, op.bodies[1])
        way = _WayBack(op, back, grads)
        with body_scope(back):
            way.trace()
        if not way.found:
            return [None] * len(op.inputs)
        histories = way.histories(graph)
        start = [_start(op, grads, k, graph) for k in way.variables]
        start += [zeros_of(op.inputs[j], graph) for j in way.summed]
        test = BodyGraph(f"{scope}cond", graph)
        for parameter in back.parameters[: len(start)]:
            test.add_parameter(parameter.op.name, parameter.dtype, parameter._dims)
        with body_scope(test):
            test.outputs = [constant(True)]
        shapes = [t._dims for t in test.parameters]
        node = add_while(graph, scope, test, back, start, shapes, op.get_attr("parallel_iterations"), histories)
    return way.result(node)


def _start(op: Operation, grads: Sequence[Any], index: int, graph: Graph) -> Tensor:
    """The gradient by a loop variable after the last iteration."""
    if grads[index] is None:
        return zeros_of(op.outputs[index], graph)
    return _sum_of(grads[index])


def _sum_of(grad: Any) -> Tensor:
    """The gradient by a list as one list, that by a tensor itself."""
    parts = grad.parts if isinstance(grad, UnsummedGradient) else (grad,)
    found: Tensor = parts[0] if len(parts) == 1 else apply_op("AddLists", inputs=list(parts))
    return found


class _WayBack:
    """One iteration of the way back, built in ``back``.

    Attributes:
      variables: numbers of the loop variables that have a gradient, each a variable of the way back too.
      summed: numbers of the captured inputs whose gradients the way back sums up.
      found: whether any input has a gradient.
    """

    def __init__(self, op: Operation, back: GradientBody, grads: Sequence[Any]) -> None:
        self.op = op
        self.back = back
        self.step: BodyGraph = op.bodies[1]
        self.count = carried(op.op_def, op.node_attrs)
        self.grads = grads
        self.variables = self._reached()
        self.summed: list[int] = []
        self.found = False
        #: history of a gradient, in the graph of the way back; its element
        self._scans: list[tuple[Tensor, Tensor]] = []
        #: number of a history of the forward loop -> outputs of the body
        self._stacks: dict[int, list[int]] = {}
        #: number of a captured input -> what is kept instead of the sum
        self._deferred: dict[int, DeferredAccumulation] = {}

    def _reached(self) -> list[int]:
        """The loop variables, floating or lists, that what has a gradient depends on, within an iteration or over several."""
        numbers = {
            t: i
            for i, t in enumerate(self.step.parameters[: self.count])
            if t.dtype.is_differentiable or t.dtype is variant
        }
        with_gradient = [k for k, grad in enumerate(self.grads) if grad is not None]
        found = {k for k in with_gradient if k < self.count}
        stack = [self.step.outputs[k] for k in with_gradient]
        seen: set[Operation] = set()
        while stack:
            tensor = stack.pop()
            if tensor in numbers and numbers[tensor] not in found:
                found.add(numbers[tensor])
                stack.append(self.step.outputs[numbers[tensor]])
            if tensor.op not in seen:
                seen.add(tensor.op)
                stack.extend(tensor.op.inputs)
        return sorted(found)

    def trace(self) -> None:
        """Build the gradients of one iteration."""
        from graphdock.gradients.backprop import continue_gradients

        op, back, step = self.op, self.back, self.step
        invariants = op.get_attr("output_shapes")
        ys = [step.outputs[k] for k in self.variables]
        cotangents = [
            back.add_parameter(f"grad_{k}", y.dtype, invariants[k]) for k, y in zip(self.variables, ys, strict=True)
        ]
        for k in range(self.count, len(self.grads)):
            for part in () if self.grads[k] is None else self.grads[k].parts:
                y = step.outputs[k]
                ys.append(y)
                cotangents.append(back._placeholder(f"grad_{k}", y.dtype, y._dims))
                self._scans.append((part, cotangents[-1]))
        elements = range(self.count, self.count + scanned(op.op_def, op.node_attrs))
        captured = range(elements.stop, len(op.inputs))
        inside = {j: step.parameters[j] for j in (*self.variables, *elements)}
        inside.update((j, step.captures[op.inputs[j]]) for j in captured)
        inside = {j: t for j, t in inside.items() if t.dtype.is_differentiable or t.dtype.kind in "RV"}
        found = dict(zip(inside, continue_gradients(back, ys, list(inside.values()), cotangents), strict=True))
        self.found = bool(self.variables) or any(g is not None for g in found.values())
        for k in self.variables:
            grad = self._whole(found[k])
            back.outputs.append(self._nothing(k) if grad is None else grad)
        for j in captured:
            self._sum(j, found.get(j))
        for j in elements:
            grads = found.get(j)
            if grads is not None:
                parts = (
                    [back.capture(p) for p in grads.parts]
                    if isinstance(grads, UnsummedGradient)
                    else [self._whole(grads)]
                )
                self._stacks[j] = list(range(len(back.outputs), len(back.outputs) + len(parts)))
                back.outputs += [p for p in parts if p is not None]
        for kept in self._deferred.values():
            back.outputs += [back.capture(t) for t in kept.tensors]

    def _whole(self, grad: Any) -> Tensor | None:
        if grad is None:
            return None
        return self.back.capture(dense(grad) if isinstance(grad, IndexedSlices) else _sum_of(grad))

    def _nothing(self, k: int) -> Tensor:
        """Zeros of the shape that a loop variable had when the iteration began; its next value may have another."""
        value = self.step.parameters[k]
        if value.dtype is variant:
            return zeros_of(value, self.back)
        if value._dims is not None and None not in value._dims:
            return zeros(value._dims, value.dtype)
        import graphdock as tf

        with body_scope(self.step):
            dims = shape_of(value)
        made: Tensor = tf.zeros(self.back.capture(dims), value.dtype)
        made._dims = value._dims
        return made

    def _sum(self, j: int, grad: Any) -> None:
        """Add the gradient by a captured input to those of the iterations before, or keep what makes the sum later."""
        if grad is None:
            return
        kept = None if isinstance(grad, UnsummedGradient) else defer_accumulation(grad, self.op.inputs[j], self.back)
        if kept is not None:
            self._deferred[j] = kept
            return
        whole = self._whole(grad)
        assert whole is not None
        total = self.back.add_parameter(f"sum_{j}", whole.dtype, value_dims(self.op.inputs[j]))
        summed = apply_operator("__add__", total, whole) if total.dtype is not variant else None
        self.back.outputs.append(_sum_of(UnsummedGradient((total, whole))) if summed is None else summed)
        self.summed.append(j)

    def histories(self, graph: Graph) -> list[Tensor]:
        """The histories, in ``graph``, that the way back scans; their elements become parameters of ``back``."""
        op, back = self.op, self.back
        tensors = list(back.needed)
        if not tensors and not self._scans:
            empty = next((t for t in self.step.outputs[self.count :] if t.op.verb == "none"), None)
            if empty is None:
                with body_scope(self.step):
                    empty = apply_op("OptionalNone")
            tensors = [empty]
            back.needed[empty] = back._placeholder("iteration", variant, ())
        scans = list(self._scans)
        for place, element in zip(_stack(op, tensors), back.needed.values(), strict=True):
            history = op.outputs[place]
            scans.append((captured(graph, history), element))
        back.parameters += [element for _, element in scans]
        return [history for history, _ in scans]

    def result(self, node: Operation) -> list[Any]:
        result: list[Any] = [None] * len(self.op.inputs)
        for j, tensor in zip([*self.variables, *self.summed], node.outputs, strict=False):
            result[j] = tensor
        for j, places in self._stacks.items():
            result[j] = UnsummedGradient(tuple([node.outputs[k] for k in places]))
        at = len(self.back.outputs) - sum(len(kept.tensors) for kept in self._deferred.values())
        for j, kept in self._deferred.items():
            result[j] = kept.total(node.outputs[at : at + len(kept.tensors)])
            at += len(kept.tensors)
        return result


def _stack(op: Operation, tensors: Sequence[Tensor]) -> list[int]:
    """The numbers of the outputs in which a While returns histories of tensors of its body; new ones are appended."""
    step: BodyGraph = op.bodies[1]
    count = carried(op.op_def, op.node_attrs)
    with op.graph._lock:
        known: dict[Tensor, int] = {}
        for k in range(count, len(step.outputs)):
            known.setdefault(step.outputs[k], k)
        missing = [t for t in tensors if t not in known]
        for tensor in missing:
            known[tensor] = len(step.outputs)
            step.outputs.append(tensor)
            op.outputs.append(Tensor(op, known[tensor], variant, ()))
        if missing:
            op.node_attrs = {**op.node_attrs, "Tout": tuple(t.dtype for t in op.outputs)}
            op._output_lengths = (len(op.outputs),)
    return [known[t] for t in tensors]
