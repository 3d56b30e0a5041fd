"""The gradient of While: the loop once more, keeping what the way back needs, and then a loop from the last iteration to the first.

The replay has as further loop variables a counter and, for each value of an iteration that gradients need, its history: values of
static shape stacked along a new first axis, others as flat runs beside their shapes. What no iteration changes (weights that are
read in the body) is not stacked. The replay runs the body a second time, so bodies that write, draw random numbers or call Python
are refused; where an update of a variable that the body reads was added between the loop and its gradient, a warning says so.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from graphdock.control_flow.trace import add_node, body_scope, shared_captures
from graphdock.dtypes import DType, int32
from graphdock.errors import GradientError
from graphdock.gradients.gradient_body import GradientBody, zeros, zeros_of
from graphdock.gradients.indexed_slices import IndexedSlices, dense
from graphdock.graph.body import BodyGraph
from graphdock.graph.copy_body import copy_body, copy_operation
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import constant
from graphdock.ops.core import shape as shape_of
from graphdock.ops.operators import apply_operator
from graphdock.shape import Dims

__all__ = ["check_replay", "while_loop"]

_log = logging.getLogger("graphdock")


def _may_run_twice(op: Operation) -> bool:
    opdef = op.op_def
    acts = any(a.access in ("writes", "uses") for a in opdef.inputs) or (opdef.outputs and "io" in opdef.effects)
    return not acts and "random" not in opdef.effects


def check_replay(op: Operation) -> None:
    """Raise GradientError when a body of the loop, or one inside it, has an op that must not run twice."""
    bodies = list(op.bodies)
    while bodies:
        body = bodies.pop()
        for inner in body.get_operations():
            if not _may_run_twice(inner):
                raise GradientError(
                    f"{op.name} (While) has no gradient: its body runs {inner.name} ({inner.type}), made at {inner.site}, and "
                    "the gradient of a loop runs its body a second time",
                    op=op.name,
                    site=op.site,
                    hint="make random numbers and updates outside of the loop, or wrap the loop in tf.stop_gradient",
                )
            bodies.extend(inner.bodies)


class _History:
    """Where the values of one tensor of the loop's body are kept, iteration by iteration.

    Attributes:
      stores: placeholders in the gradient's body for what the replay returns.
    """

    def __init__(self, tensor: Tensor, stores: Sequence[Tensor]) -> None:
        self.tensor = tensor
        self.stores = list(stores)

    @property
    def is_stacked(self) -> bool:
        return len(self.stores) == 1


def _is_static(dims: Dims) -> bool:
    return dims is not None and None not in dims


class _BackwardBody(GradientBody):
    """One iteration of the way back. Values of the forward iteration come from histories, or are computed again."""

    def __init__(self, name: str, outer: Graph, forward: BodyGraph) -> None:
        super().__init__(name, outer, forward)
        self.counter = self.add_parameter("iteration", int32, ())
        self.histories: list[_History] = []
        self._varying: set[Operation] = set()
        moving = set(forward.parameters)
        for op in forward.get_operations():
            if op.bodies or any(t in moving or t.op in self._varying for t in op.inputs):
                self._varying.add(op)

    def _fetch(self, tensor: Tensor) -> Tensor:
        if tensor.op.verb != "feed" and tensor.op not in self._varying:
            return self._again(tensor)
        with self.as_default(), self.control_dependencies(None):
            return self._recall(tensor)

    def _again(self, tensor: Tensor) -> Tensor:
        """Compute what no iteration changes once more, from captures and constants."""
        ops: set[Operation] = set()
        stack = [tensor.op]
        while stack:
            op = stack.pop()
            if op not in ops:
                ops.add(op)
                stack.extend(t.op for t in op.inputs if t not in self._outer_of)
        for op in sorted(ops, key=lambda o: o._id):
            if op.outputs[0] not in self._here and op.verb != "constant":
                became = {t: self.capture(t) for t in op.inputs}
                copy = copy_operation(op, self, became, op.name.rpartition("/")[2])
                self._here.update(zip(op.outputs, copy.outputs, strict=True))
        return self.capture(tensor)

    def _recall(self, tensor: Tensor) -> Tensor:
        import graphdock as tf

        dims, label = tensor._dims, tensor.op.name.rpartition("/")[2]
        if _is_static(dims):
            store = self._placeholder(label, tensor.dtype, (None, *(dims or ())))
            self.histories.append(_History(tensor, [store]))
            value: Tensor = tf.gather(store, self.counter)
        else:
            if dims is None:
                raise GradientError(
                    f"the gradient of a loop needs the rank of {tensor.name}, which is not known",
                    op=tensor.op.name,
                    site=tensor.op.site,
                    hint="call set_shape on it in the body",
                )
            flat = self._placeholder(label, tensor.dtype, (None,))
            shapes = self._placeholder(label + "_shape", int32, (None, len(dims)))
            self.histories.append(_History(tensor, [flat, shapes]))
            sizes = tf.reduce_prod(shapes, 1)
            begin = tf.reduce_sum(tf.slice(sizes, [0], [self.counter]))
            piece = tf.slice(flat, [begin], [tf.gather(sizes, self.counter)])
            value = tf.reshape(piece, tf.gather(shapes, self.counter))
        value._dims = dims
        return value


def while_loop(op: Operation, *grads: Any) -> list[Any]:
    """Gradients by the loop variables' first values and by what the bodies capture; None for what is not floating."""
    check_replay(op)
    graph = get_default_graph()
    count = len(op.get_attr("output_shapes"))
    step = op.bodies[1]
    floats = [k for k in range(count) if op.outputs[k].dtype.is_floating]
    invariants = op.get_attr("output_shapes")
    with graph.name_scope("while") as scope:
        back = _BackwardBody(f"{scope}body", graph, step)
        with body_scope(back):
            arriving = [back.add_parameter(f"grad_{k}", op.outputs[k].dtype, invariants[k]) for k in floats]
            summed = _trace(op, back, floats, arriving)
        replay = _replay(op, back, graph, f"{scope}replay/")
        _warn_of_updates(op, replay)
        inputs: list[Tensor] = [apply_operator("__sub__", replay.outputs[count], 1)]
        inputs += [zeros_of(_here(op.outputs[k], graph)) if grads[k] is None else grads[k] for k in floats]
        inputs += [zeros_of(_here(op.inputs[j], graph)) for j in summed]
        test = BodyGraph(f"{scope}cond", graph)
        for parameter in back.parameters:
            test.add_parameter(parameter.op.name, parameter.dtype, parameter._dims)
        with body_scope(test):
            test.outputs = [apply_operator("__ge__", test.parameters[0], 0)]
        shapes = [t._dims for t in back.parameters]
        node = _node(graph, inputs, test, back, shapes, op, scope)
    result: list[Any] = [None] * len(op.inputs)
    for j, tensor in zip([*floats, *summed], node.outputs[1:], strict=True):
        result[j] = tensor
    return result


def _here(tensor: Tensor, graph: Graph) -> Tensor:
    return graph.capture(tensor) if isinstance(graph, BodyGraph) else tensor


def _trace(op: Operation, back: _BackwardBody, floats: Sequence[int], arriving: Sequence[Tensor]) -> list[int]:
    """Build one iteration of the way back. Returns the numbers of the captured inputs whose gradients are summed up."""
    from graphdock.gradients.backprop import continue_gradients

    step, count = op.bodies[1], len(op.get_attr("output_shapes"))
    captured = [(j, step.captures[op.inputs[j]]) for j in range(count, len(op.inputs))]
    captured = [(j, t) for j, t in captured if t.dtype.is_floating or t.dtype.name == "resource"]
    xs = [*(step.parameters[k] for k in floats), *(t for _, t in captured)]
    found = continue_gradients(back, [step.outputs[k] for k in floats], xs, arriving)
    whole = [None if g is None else back.capture(dense(g) if isinstance(g, IndexedSlices) else g) for g in found]
    outputs = [apply_operator("__sub__", back.counter, 1)]
    for grad, parameter in zip(whole, arriving, strict=False):
        outputs.append(zeros_of(parameter) if grad is None else grad)
    summed = []
    for (j, _), grad in zip(captured, whole[len(floats) :], strict=True):
        if grad is not None:
            total = back.add_parameter(f"sum_{j}", grad.dtype, _value_dims(op.inputs[j]))
            outputs.append(apply_operator("__add__", total, grad))
            summed.append(j)
    back.outputs = outputs
    return summed


def _value_dims(tensor: Tensor) -> Dims:
    """Static shape of a tensor, or of the value of the variable behind a handle."""
    if tensor.dtype.name != "resource":
        return tensor._dims
    dims: Dims = (tensor.op._original or tensor.op).node_attrs["shape"]
    return dims


def _replay(op: Operation, back: _BackwardBody, graph: Graph, scope: str) -> Operation:
    """The loop once more, with a counter and the histories that ``back`` reads, which it is connected to."""
    count = len(op.get_attr("output_shapes"))

    def around(tensor: Tensor) -> Tensor:
        return _here(tensor, graph)

    test, _ = copy_body(op.bodies[0], f"{scope}cond", graph, around)
    step, became = copy_body(op.bodies[1], f"{scope}body", graph, around)
    extra: list[tuple[str, DType, Dims]] = [("iteration", int32, ())]
    for history in back.histories:
        extra += [(store.op.name, store.dtype, store._dims) for store in history.stores]
    parameters = []
    for name, dtype, dims in extra:
        parameters.append(step.add_parameter(name, dtype, dims))
        test.add_parameter(name, dtype, dims)
    with body_scope(step):
        step.outputs = [*step.outputs[:count], apply_operator("__add__", parameters[0], 1)]
        stores = iter(parameters[1:])
        for history in back.histories:
            _record(step, history, [next(stores) for _ in history.stores], became[history.tensor])
    inputs = [around(t) for t in op.inputs[:count]]
    with graph.name_scope(scope):
        inputs += [constant(0, int32, name="counter"), *(zeros(dims, dtype) for _, dtype, dims in extra[1:])]
        shapes = [*op.get_attr("output_shapes"), *(dims for _, _, dims in extra)]
        with graph.control_dependencies(op.control_inputs if op.graph is graph else []):
            node = _node(graph, inputs, test, step, shapes, op, scope + "while/")
    placeholders = [store for history in back.histories for store in history.stores]
    for tensor, placeholder in zip(node.outputs[count + 1 :], placeholders, strict=True):
        back.captures[tensor] = placeholder
    return node


def _warn_of_updates(op: Operation, replay: Operation) -> None:
    """Log each update between the loop and its replay that, in a step which runs both, changes what the replay reads."""
    handles = {t for t in replay.inputs if t.dtype.name == "resource"}
    if not handles or op.graph is not replay.graph:
        return
    for other in op.graph.get_operations()[op._id + 1 : replay._id]:
        for tensor, mutated in zip(other.inputs, _mutated(other), strict=True):
            if mutated and tensor in handles and other.name != f"{tensor.op.name}/Assign":
                _log.warning(
                    "the gradient of %s reads %s again, which %s (%s), made in between, updates: in a step that runs both, "
                    "order the update after the gradient with tf.control_dependencies, or add it after tf.gradients",
                    op.name,
                    tensor.op.name,
                    other.name,
                    other.site,
                )


def _mutated(op: Operation) -> list[bool]:
    """For each input, whether the operation writes through it."""
    lengths = op._input_lengths or (1,) * len(op.op_def.inputs)
    return [arg.mutates for arg, length in zip(op.op_def.inputs, lengths, strict=True) for _ in range(length)]


def _record(step: BodyGraph, history: _History, stores: Sequence[Tensor], value: Tensor) -> None:
    """Append this iteration's value to its history."""
    import graphdock as tf

    if history.is_stacked:
        step.outputs.append(tf.concat([stores[0], tf.expand_dims(value, 0)], 0))
        return
    step.outputs.append(tf.concat([stores[0], tf.reshape(value, [-1])], 0))
    step.outputs.append(tf.concat([stores[1], tf.expand_dims(shape_of(value), 0)], 0))


def _node(
    graph: Graph,
    start: Sequence[Tensor],
    test: BodyGraph,
    step: BodyGraph,
    shapes: Sequence[Dims],
    op: Operation,
    name: str,
) -> Operation:
    captures = shared_captures([test, step])
    inputs = [*start, *captures]
    attrs = {
        "Tin": tuple(t.dtype for t in inputs),
        "Tout": tuple(t.dtype for t in start),
        "cond": test,
        "body": step,
        "output_shapes": tuple(shapes),
        "maximum_iterations": op.get_attr("maximum_iterations"),
        "parallel_iterations": op.get_attr("parallel_iterations"),
    }
    return add_node(graph, "While", inputs, attrs, name, (len(inputs),), (test, step))
