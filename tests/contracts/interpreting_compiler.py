"""Skeleton (c): a region compiler that interprets its region, with NumPy, in one kernel.

It claims the largest connected run of elementwise nodes of known shapes; intermediate values live in scratch buffers that the host
plans, so that a step allocates nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import (
    Bound,
    BuildContext,
    Claim,
    In,
    Out,
    PlanNode,
    Refusal,
    Region,
    RegionCompiler,
    Scratch,
    Value,
)

#: Op type -> ufunc.
UFUNCS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Tanh": np.tanh,
    "Maximum": np.maximum,
}


def _takes(node: PlanNode) -> bool:
    return node.op in UFUNCS and all(v.shape is not None and None not in v.shape for v in (*node.inputs, *node.outputs))


class InterpretingCompiler(RegionCompiler):
    """For the cpu. ``built`` counts regions."""

    name = "interpreter"
    device_type = "cpu"

    def __init__(self) -> None:
        self.built = 0

    def claim(self, candidate: Region) -> Claim | Refusal:
        nodes = [n for n in candidate.graph.nodes if _takes(n)]
        best = max(_connected(nodes), key=len, default=[])
        if len(best) < 2:
            others = sorted({n.op for n in candidate.graph.nodes if n.op != "Const"} - UFUNCS.keys())
            what = f"no kernel for {', '.join(others)}" if others else "nothing to fuse"
            return Refusal(f"fewer than two nodes that can be fused: {what}")
        return Claim(tuple(best), cost_us=0.1 * len(best))

    def build(self, region: Region, ctx: BuildContext) -> Bound:
        self.built += 1
        graph = region.graph
        place: dict[Value, In | Out | Any] = {v: In(i) for i, v in enumerate(graph.inputs)}
        place.update({v: Out(i) for i, v in enumerate(graph.outputs)})
        scratch: list[Scratch] = []
        program: list[tuple[Callable[..., Any], tuple[Value, ...]]] = []
        for node in graph.nodes:
            if node.op == "Const":
                place[node.outputs[0]] = node.attrs["value"]
                continue
            (made,) = node.outputs
            if made not in place:
                place[made] = Out(len(graph.outputs) + len(scratch))
                scratch.append(Scratch(made.dtype, tuple(d or 0 for d in made.shape or ())))
            program.append((UFUNCS[node.op], (*node.inputs, made)))
        count = len(graph.inputs)

        def compute(*buffers: Any) -> None:
            def at(value: Value) -> Any:
                where = place[value]
                if isinstance(where, In):
                    return buffers[where.index]
                return buffers[count + where.index] if isinstance(where, Out) else where

            for ufunc, (*inputs, made) in program:
                ufunc(*map(at, inputs), out=at(made))

        return Bound(compute, scratch=tuple(scratch))


def _connected(nodes: list[PlanNode]) -> list[list[PlanNode]]:
    """Runs of nodes joined by values, each convex: a node joins its producers' run unless something else lies between."""
    run_of: dict[PlanNode, list[PlanNode]] = {}
    for node in nodes:
        makers = [v.node for v in node.inputs if v.node in run_of]
        run = run_of[makers[0]] if makers and makers[0] is not None else []
        joined = {id(run_of[m]) for m in makers if m is not None}
        if len(joined) > 1 or _returns(node, run):
            run = []
        run.append(node)
        run_of[node] = run
    unique = {id(run): run for run in run_of.values()}
    return list(unique.values())


def _returns(node: PlanNode, run: list[PlanNode]) -> bool:
    """Whether a path from the run to ``node`` leads over a node that is not in it."""
    members = set(run)
    stack = [v.node for v in node.inputs if v.node is not None and v.node not in members]
    seen: set[PlanNode] = set()
    while stack:
        current = stack.pop()
        if current in members:
            return True
        if current not in seen:
            seen.add(current)
            stack.extend(v.node for v in current.inputs if v.node is not None)
    return False
