"""The passes, one for each phase."""

import numpy as np
from graphdock.contracts import (
    ArgDef,
    Candidate,
    Cutter,
    Decision,
    KernelDef,
    LoopNote,
    OpDef,
    Replacement,
    Rewriter,
    shape,
)
from graphdock.contracts.ir import make_node


class KeepLoops:
    """Writes no loop out, and says so of each."""

    def __init__(self):
        self.elements, self.notes = {}, []

    def count(self, op, inputs, ops):
        self.notes.append(LoopNote(op.name, 0, f"its {ops} operations stay in a body"))
        return 0


def keep_loops(graph, context):
    return KeepLoops()


def negations(graph, context):
    with Rewriter(graph) as change:
        for node in graph.nodes:
            inner = node.inputs[0].node if node.op == "Neg" else None
            if inner is not None and inner.op == "Neg" and not node.control and not inner.control:
                change.replace(node, [inner.inputs[0]])


def doublings(graph, context):
    left = context.options["most"]
    for level in list(graph.all_graphs()):
        with Rewriter(level) as change:
            for node in level.nodes:
                factor = node.constant(1) if node.op == "Mul" else None
                if factor is None or factor.shape != () or factor != 2 or node.control or not left:
                    continue
                left -= 1
                value, made = node.inputs[0], node.outputs[0]
                same = make_node(
                    context.opdef("Add"),
                    node.name,
                    [value, value],
                    {"T": made.dtype},
                    [(made.dtype, made.shape)],
                    origins=node.origins,
                )
                change.replace(node, change.insert(same, before=node).outputs)
                context.notes.append(f"{node.origin} adds")


def checked_logs(graph, context):
    for level in list(graph.all_graphs()):
        readers = {node.inputs[0] for node in level.nodes if node.op == "CheckNumerics"}
        with Rewriter(level) as change:
            for node in level.nodes:
                value = node.outputs[0] if node.op == "Log" else None
                if value is None or value in readers:
                    continue
                assert node.device is not None and node in context.kernels
                check = make_node(
                    context.opdef("CheckNumerics"),
                    f"{node.name}/checked",
                    [value],
                    {"T": value.dtype, "message": f"{node.origin} gives no number"},
                    [(value.dtype, value.shape)],
                    requested=node.device,
                    origins=node.origins,
                )
                after = change.graph.nodes.index(node) + 1
                change.insert(check, change.graph.nodes[after] if after < len(change.graph.nodes) else None)
                for other in level.nodes:
                    if value in other.inputs:
                        change.rebind(other, [check.outputs[0] if v is value else v for v in other.inputs])
                change.returns([check.outputs[0] if v is value else v for v in level.outputs])


DECAY = OpDef("tidy.Decay", inputs=(ArgDef("x", "float32"),), outputs=(ArgDef("y", "float32"),))


def decay(ctx):
    def compute(x, out):
        np.negative(x, out=out)
        np.exp(out, out=out)

    return compute


def decays(graph, context):
    for level in list(graph.all_graphs()):
        cutter = Cutter(level)
        with Rewriter(level) as change:
            for node in level.nodes:
                inner = node.inputs[0].node if node.op == "Exp" and node in context.kernels else None
                if inner is None or inner.op != "Neg" or inner not in context.kernels:
                    continue
                alone = sum(inner.outputs[0] in n.inputs for n in level.nodes) == 1
                key = node.name
                if not alone or inner.outputs[0] in level.outputs or node.control or key in context.failed:
                    continue
                region = cutter.cut([inner, node], node.device)
                cutter.take([inner, node])
                types = [(v.dtype, v.shape) for v in node.outputs]
                one = make_node(DECAY, f"{node.name}/decay", inner.inputs, {}, types, origins=node.origins)
                one.device = node.device
                one.decision = Decision(
                    "tidy.decay", "region", "Exp of Neg", (Candidate("tidy.decay", node.device.type),)
                )
                change.insert(one, before=node)
                change.replace(node, one.outputs)
                change.erase(inner)
                context.give(one, KernelDef(DECAY.name, node.device.type, decay, "decay"))
                context.replacements[one] = Replacement(key, region)


def large_first(graph, context):
    def elements(node):
        return max([shape.size(v.shape) or 0 for v in node.outputs], default=0)

    for level in list(graph.all_graphs()):
        with Rewriter(level) as change:
            change.arrange(sorted(level.nodes, key=elements, reverse=True))
