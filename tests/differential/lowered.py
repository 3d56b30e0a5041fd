"""Lowering of branches and loops to dataflow's primitives, as TensorFlow 1 made them: for tests, which compare both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as tf

__all__ = ["lower"]


def lower(graph: Any, tensors: Sequence[Any]) -> list[Any]:
    """Those tensors of a graph in the default graph, in which each Cond and While became primitives."""
    return _Lowering(graph).run(tensors)


class _Lowering:
    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.frames = 0

    def run(self, tensors: Sequence[Any]) -> list[Any]:
        made: dict[Any, Any] = {}
        self._level(self.graph, made, None)
        return [made[t] for t in tensors]

    def op(self, kind: str, *inputs: Any, **attrs: Any) -> Any:
        return tf.get_default_graph().create_op(kind, list(inputs), attrs=attrs)

    def _level(self, graph: Any, made: dict[Any, Any], pivot: Any) -> None:
        """The operations of a graph or body. ``pivot``: what those follow that read nothing."""
        operations: dict[Any, Any] = {}
        for op in graph.get_operations():
            if op.outputs and all(t in made for t in op.outputs):  # a parameter or a capture
                continue
            inputs = [made[t] for t in op.inputs]
            control = [operations[c] for c in op.control_inputs if c in operations]
            if not inputs and not control and pivot is not None:
                control = [pivot.op]
            with tf.control_dependencies(control):
                if op.type == "Cond":
                    outputs = self._branch(op, inputs)
                elif op.type == "While":
                    outputs = self._loop(op, inputs)
                else:
                    attrs = {n: v for n, v in op.node_attrs.items() if not n.startswith("_")}
                    full, lengths = attrs, op._input_lengths
                    copy = tf.get_default_graph().add_op(op.op_def, inputs, full, None, lengths, op.bodies)
                    outputs = copy.outputs
                    operations[op] = copy
            if outputs:
                operations.setdefault(op, outputs[0].op)
            made.update(zip(op.outputs, outputs, strict=True))

    def _branch(self, op: Any, inputs: list[Any]) -> list[Any]:
        pred, *captured = inputs
        outer = op.inputs[1:]
        pivots = self.op("Switch", pred, pred).outputs
        ends = [self.op("Switch", t, pred).outputs for t in captured]
        sides = []
        for which, body in ((1, op.bodies[0]), (0, op.bodies[1])):
            made = {body.captures[t]: e[which] for t, e in zip(outer, ends, strict=True)}
            pivot = tf.identity(pivots[which])
            self._level(body, made, pivot)
            results = []
            for t in body.outputs:
                with tf.control_dependencies([pivot]):
                    results.append(tf.identity(made[t]))
            sides.append(results)
        return [self.op("Merge", a, b).outputs[0] for b, a in zip(*sides, strict=True)]

    def _loop(self, op: Any, inputs: list[Any]) -> list[Any]:
        self.frames += 1
        facts = {"frame_name": f"frame{self.frames}", "parallel_iterations": op.node_attrs["parallel_iterations"]}
        cond, body = op.bodies
        count = len(op.outputs)
        enters = [self.op("Enter", t, is_constant=False, **facts).outputs[0] for t in inputs[:count]]
        captured = [self.op("Enter", t, is_constant=True, **facts).outputs[0] for t in inputs[count:]]
        merges = [self._merge(e, dims) for e, dims in zip(enters, op.node_attrs["output_shapes"], strict=True)]
        variables = [m.outputs[0] for m in merges]
        outer = op.inputs[count:]

        def inner(graph: Any, given: Sequence[Any]) -> dict[Any, Any]:
            found = dict(zip(graph.parameters, given, strict=True))
            return {
                **found,
                **{graph.captures[t]: e for t, e in zip(outer, captured, strict=True) if t in graph.captures},
            }

        made = inner(cond, variables)
        self._level(cond, made, variables[0])
        going = self.op("LoopCond", made[cond.outputs[0]]).outputs[0]
        switches = [self.op("Switch", v, going).outputs for v in variables]
        made = inner(body, [s[1] for s in switches])
        self._level(body, made, tf.identity(switches[0][1]))
        for merge, t in zip(merges, body.outputs, strict=True):
            merge._add_later(self.op("NextIteration", made[t]).outputs[0])
        return [self.op("Exit", s[0]).outputs[0] for s in switches]

    def _merge(self, enter: Any, dims: Any) -> Any:
        merge = self.op("Merge", enter, later=1)
        merge.outputs[0].set_shape(dims)
        return merge
