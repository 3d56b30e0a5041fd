"""Rematerializable nodes stand in every group that reads them; each group gets its own, and can then be one node."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import Builder, Cutter, DeviceSpec, OpDef
from graphdock.contracts.ir_check import check
from graphdock.dtypes import float32
from graphdock_fusion.regions.groups import ByDevice, form_fusion_groups, without
from graphdock_fusion.regions.rematerializable import apart, duplicate_into_groups

F, ONE = (float32, (2,)), (float32, ())
DEVICE = DeviceSpec.parse("/device:cpu:0")
OP = OpDef("Op")


def random_level(seed):
    """A graph of groups and of nodes in none, with single numbers among them, and with chains that can be computed again."""
    rng = np.random.default_rng(seed)
    b = Builder()

    def pick(some):
        return some[int(rng.integers(len(some)))]

    values, numbers, drawn = [b.input("x", *F)], [b.input("n", *ONE)], []
    kinds = ByDevice(lambda n: n.device)
    kinds.rematerializable = set()
    for i in range(60):
        roll, recent, fits = rng.random(), values[-10:], False
        if roll < 0.15:
            reads = [pick(some) for some in (drawn, numbers) if some and rng.random() < 0.6]
            drawn += b.node(OP, f"n{i}", reads, {}, [F])
            kinds.rematerializable.add(b.graph.nodes[-1])
        elif roll < 0.25:
            numbers += b.node(OP, f"n{i}", [pick(recent)], {}, [ONE])
        else:
            fits = bool(drawn) and rng.random() < 0.4
            values += b.node(OP, f"n{i}", [pick(recent), pick(drawn if fits else recent)], {}, [F])
        b.graph.nodes[-1].device = DEVICE if fits or roll < 0.15 or rng.random() < 0.75 else None
    read = set(values[-3:])
    for node in reversed(b.graph.nodes):
        if node not in kinds.rematerializable or read.intersection(node.outputs):
            read.update(node.inputs)
    b.graph.nodes = [n for n in b.graph.nodes if n not in kinds.rematerializable or read.intersection(n.outputs)]
    kinds.rematerializable.intersection_update(b.graph.nodes)
    return b.finish(values[-3:]), kinds


@pytest.mark.parametrize("seed", range(60))
def test_groups_of_a_random_level_with_floating_nodes_can_be_one_node_each(seed):
    graph, kinds = random_level(seed)
    before = len(graph.nodes)
    kernels = dict.fromkeys(graph.nodes, "kernel")
    groups = duplicate_into_groups(graph, form_fusion_groups(graph.nodes, kinds), kinds.rematerializable, kernels)
    check(graph)
    assert kernels.keys() == set(graph.nodes) and len({n.name for n in graph.nodes}) == len(graph.nodes) >= before
    cutter, seen = Cutter(graph), set()
    for members in groups:
        assert seen.isdisjoint(members)
        seen.update(members)
        region = cutter.cut(members, DEVICE)  # raises where it is not convex, or a cycle with those before
        cutter.take(members)
        assert not [v for v in region.leaving if v.node in kinds.rematerializable]
        assert not [v for v in region.entering if v.node in kinds.rematerializable]


@pytest.mark.parametrize("seed", range(60))
def test_what_is_left_of_a_group_can_be_one_node_each_too(seed):
    graph, kinds = random_level(seed)
    for members in duplicate_into_groups(
        graph, form_fusion_groups(graph.nodes, kinds), kinds.rematerializable, dict.fromkeys(graph.nodes)
    ):
        cutter = Cutter(graph)
        gone = members[: 1 + seed % len(members)]
        cutter.cut(gone, DEVICE)
        cutter.take(gone)
        for rest in apart(without(members, gone, kinds), kinds.rematerializable):
            assert set(rest) <= set(members)
            cutter.cut(rest, DEVICE)  # raises where it can not be one node
            cutter.take(rest)
