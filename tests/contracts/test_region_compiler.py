"""A region from a plan graph to a kernel: candidate, claim, cut, build, run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphdock.contracts import (
    HOST_MEMORY,
    PLANNED,
    ArgInfo,
    Bound,
    BuildContext,
    Builder,
    Claim,
    DeviceInfo,
    DeviceSpec,
    OpDef,
    OutInfo,
    PlanGraph,
    PlanNode,
    Refusal,
    Region,
    check,
    cut_region,
    dtypes,
    print_graph,
)
from graphdock.errors import PlanError
from graphdock_cpu.device import CpuDevice
from interpreting_compiler import InterpretingCompiler

F32 = dtypes.float32
CPU = DeviceSpec.parse("/device:cpu:0")


def op(builder: Builder, kind: str, name: str, inputs: list[Any], shape: Any = (4,)) -> Any:
    return builder.node(OpDef(kind), name, inputs, {}, [(F32, shape)])[0]


def const(builder: Builder, name: str, value: Any) -> Any:
    array = np.asarray(value, np.float32)
    return builder.node(OpDef("Const", executes="constant"), name, [], {"value": array}, [(F32, array.shape)])[0]


def plan() -> tuple[PlanGraph, dict[str, PlanNode]]:
    """gelu-like: t = tanh(x * c) ; y = (t + one) * x ; s = Sum(y) ; out = y - s"""
    b = Builder("main")
    x = b.input("x", F32, (4,))
    c, one = const(b, "c", 0.5), const(b, "one", 1.0)
    t = op(b, "Tanh", "t", [op(b, "Mul", "scaled", [x, c])])
    y = op(b, "Mul", "y", [op(b, "Add", "shifted", [t, one]), x])
    s = op(b, "Sum", "s", [y], ())
    out = op(b, "Sub", "out", [y, s])
    graph = b.finish([out, t])
    return graph, {n.name: n for n in graph.nodes}


def candidate(graph: PlanGraph, names: list[str], nodes: dict[str, PlanNode]) -> Region:
    return cut_region(graph, [nodes[n] for n in names], CPU)


def run(bound: Bound, region: Region, *arrays: Any) -> list[np.ndarray]:
    outs = [np.full(v.shape, np.nan, v.dtype.np) for v in region.graph.outputs]
    scratch = [np.full(s.shape, np.nan, s.dtype.np) for s in bound.scratch]
    bound.compute(*arrays, *outs, *scratch)
    return outs


def context(region: Region) -> BuildContext:
    node = PlanNode("Fused", "fused", OpDef("Fused"), {}, list(region.entering))
    return BuildContext(
        node,
        tuple(ArgInfo(v.name, v.dtype, v.shape, HOST_MEMORY) for v in region.graph.inputs),
        tuple(OutInfo(v.name, v.dtype, v.shape, HOST_MEMORY, PLANNED) for v in region.graph.outputs),
        CpuDevice(DeviceInfo("cpu")),
    )


def test_a_cut_is_a_graph_of_its_own() -> None:
    graph, nodes = plan()
    before = print_graph(graph)
    region = candidate(graph, ["scaled", "t", "shifted", "y"], nodes)
    check(region.graph)
    assert print_graph(graph) == before
    assert [v.name for v in region.entering] == ["x"]
    assert [v.name for v in region.leaving] == ["t", "y"]  # t is fetched, y is read by s and out
    assert [n.op for n in region.graph.nodes] == ["Const", "Mul", "Tanh", "Const", "Add", "Mul"]
    assert not set(region.graph.nodes) & set(graph.nodes)


def test_a_path_that_leaves_and_comes_back_is_no_region() -> None:
    graph, nodes = plan()
    with pytest.raises(PlanError, match="a region with out needs s, which depends on the region and is not in it"):
        candidate(graph, ["y", "out"], nodes)


def test_control_dependencies_count_as_paths() -> None:
    b = Builder("main")
    x = b.input("x", F32, (4,))
    first = op(b, "Neg", "first", [x])
    b.node(OpDef("Print"), "between", [first], {}, [])
    b.node(OpDef("Neg"), "last", [first], {}, [(F32, (4,))], control=[b.graph.nodes[-1]])
    graph = b.finish([b.graph.nodes[-1].outputs[0]])
    nodes = {n.name: n for n in graph.nodes}
    with pytest.raises(PlanError, match="needs between"):
        candidate(graph, ["first", "last"], nodes)


def test_a_node_of_another_graph_is_no_part_of_a_region() -> None:
    graph, _ = plan()
    _, others = plan()
    with pytest.raises(PlanError, match="t is no node of graph main"):
        cut_region(graph, [others["t"]], CPU)


def test_claim_cut_build_run() -> None:
    graph, nodes = plan()
    compiler = InterpretingCompiler()
    offered = candidate(graph, ["scaled", "t", "shifted", "y", "s", "out"], nodes)
    claim = compiler.claim(offered)
    assert isinstance(claim, Claim)
    assert [n.name for n in claim.nodes] == ["scaled", "t", "shifted", "y"]
    assert claim.cost_us > 0
    region = cut_region(offered.graph, claim.nodes, offered.device)
    bound = compiler.build(region, context(region))
    assert len(bound.scratch) == 2  # scaled and shifted; t and y leave
    for seed in (0, 1):
        x = np.random.default_rng(seed).standard_normal(4).astype(np.float32)
        t, y = run(bound, region, x)
        np.testing.assert_allclose(t, np.tanh(x * np.float32(0.5)), rtol=1e-6)
        np.testing.assert_allclose(y, (np.tanh(x * np.float32(0.5)) + 1) * x, rtol=1e-6)


def test_refusals_say_why() -> None:
    b = Builder("main")
    x = b.input("x", F32, (4,))
    graph = b.finish([op(b, "Sum", "s", [op(b, "Neg", "n", [x])], ())])
    refusal = InterpretingCompiler().claim(cut_region(graph, graph.nodes, CPU))
    assert refusal == Refusal("fewer than two nodes that can be fused: no kernel for Sum")


def test_unknown_shapes_are_not_claimed() -> None:
    b = Builder("main")
    x = b.input("x", F32, (None,))
    graph = b.finish([op(b, "Neg", "m", [op(b, "Neg", "n", [x], (None,))], (None,))])
    assert isinstance(InterpretingCompiler().claim(cut_region(graph, graph.nodes, CPU)), Refusal)


@pytest.mark.parametrize("seed", range(60))
def test_random_plans_agree_with_numpy(seed: int) -> None:
    """Whatever is claimed of a random plan computes what its nodes compute one by one."""
    rng = np.random.default_rng(seed)
    functions = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Maximum": np.maximum, "Neg": np.negative}
    b = Builder("main")
    values = [b.input(f"x{i}", F32, (3,)) for i in range(2)]
    for i in range(12):
        kind = str(rng.choice([*functions, "Opaque"], p=[0.18] * 5 + [0.1]))
        count = 1 if kind in ("Neg", "Opaque") else 2
        values.append(op(b, kind, f"v{i}", [values[int(j)] for j in rng.integers(0, len(values), count)], (3,)))
    graph = b.finish(values[-2:])
    offered = cut_region(graph, graph.nodes, CPU)
    compiler = InterpretingCompiler()
    claim = compiler.claim(offered)
    if isinstance(claim, Refusal):
        return
    region = cut_region(offered.graph, claim.nodes, CPU)
    arrays = [rng.standard_normal(3).astype(np.float32) for _ in region.graph.inputs]
    known = dict(zip(region.graph.inputs, arrays, strict=True))
    for node in region.graph.nodes:
        known[node.outputs[0]] = functions[node.op](*[known[v] for v in node.inputs])
    for got, value in zip(
        run(compiler.build(region, context(region)), region, *arrays), region.graph.outputs, strict=True
    ):
        assert got.tobytes() == known[value].tobytes()
