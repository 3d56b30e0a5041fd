"""form_fusion_groups: connected nodes of one device, and groups that can all become one node each without a cycle."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import Builder, Cutter, DeviceSpec, OpDef, PlanNode
from graphdock.dtypes import float32
from graphdock_fusion.regions.groups import SHORT, ByDevice, form_fusion_groups, without

F = (float32, (2,))
DEVICES = [DeviceSpec.parse("/device:cpu:0"), DeviceSpec.parse("/device:cpu:1")]
BY_DEVICE = ByDevice(lambda n: n.device)
OP, CONST = OpDef("Op"), OpDef("Const", executes="constant")


def random_level(seed):
    """A graph with data and control edges, each node on one of two devices or in no group."""
    rng = np.random.default_rng(seed)
    b = Builder()
    values = [b.input("x", *F)]
    for i in range(60):
        nodes = b.graph.nodes
        recent = values[-10:]
        inputs = [recent[int(j)] for j in rng.integers(0, len(recent), int(rng.integers(1, 3)))]
        control = [nodes[int(rng.integers(len(nodes)))]] if nodes and rng.random() < 0.15 else []
        values += b.node(OP, f"n{i}", inputs, {}, [F], control)
        b.graph.nodes[-1].device = DEVICES[int(rng.integers(2))] if rng.random() < 0.75 else None
    return b.finish(values[-3:])


def groups_of(graph):
    return form_fusion_groups(graph.nodes, BY_DEVICE)


@pytest.mark.parametrize("seed", range(40))
def test_all_groups_of_a_random_level_can_be_one_node_each(seed):
    graph = random_level(seed)
    groups = groups_of(graph)
    assert groups
    cutter, seen = Cutter(graph), set()
    for members in groups:
        assert len(members) > 1 and len({n.device for n in members}) == 1 and members[0].device is not None
        assert seen.isdisjoint(members)
        seen.update(members)
        cutter.cut(members, members[0].device)  # raises where it is not convex, or a cycle with those before
        cutter.take(members)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_left_of_a_group_can_be_one_node_each_too(seed):
    graph = random_level(seed)
    rng = np.random.default_rng(seed)
    for members in groups_of(graph):
        cutter = Cutter(graph)
        at = int(rng.integers(len(members)))
        gone = members[at : at + 1 + int(rng.integers(len(members) - at))]
        cutter.cut(gone, members[0].device)  # what stands side by side in a group is convex
        cutter.take(gone)
        for rest in without(members, gone, BY_DEVICE):
            assert set(rest).isdisjoint(gone)
            cutter.cut(rest, rest[0].device)
            cutter.take(rest)


def test_a_chain_is_one_group_and_another_device_parts_it():
    b = Builder()
    value = b.input("x", *F)
    for i in range(6):
        (value,) = b.node(OP, f"n{i}", [value], {}, [F])
        b.graph.nodes[-1].device = DEVICES[0] if i != 3 else DEVICES[1]
    graph = b.finish([value])
    assert [[n.name for n in g] for g in groups_of(graph)] == [["n0", "n1", "n2"], ["n4", "n5"]]


@pytest.mark.parametrize("size", [1, 8, 9])
def test_a_short_group_that_nothing_follows_waits_for_what_stands_behind_other_devices(size):
    b = Builder()
    x = b.input("x", *F)
    first = x
    for i in range(size):
        (first,) = b.node(OP, f"first{i}", [first], {}, [F])
        b.graph.nodes[-1].device = DEVICES[0]
    (far,) = b.node(OP, "far", [x], {}, [F])
    b.graph.nodes[-1].device = DEVICES[1]
    (second,) = b.node(OP, "second", [far], {}, [F])
    b.graph.nodes[-1].device = DEVICES[0]
    (both,) = b.node(OP, "both", [first, second], {}, [F])
    b.graph.nodes[-1].device = DEVICES[0]
    graph = b.finish([both])
    early, late = [f"first{i}" for i in range(size)], ["second", "both"]
    assert [[n.name for n in g] for g in groups_of(graph)] == ([early + late] if size <= SHORT else [early, late])


def test_a_group_that_another_device_follows_does_not_wait():
    b = Builder()
    x = b.input("x", *F)
    (first,) = b.node(OP, "first", [x], {}, [F])
    b.graph.nodes[-1].device = DEVICES[0]
    (far,) = b.node(OP, "far", [first], {}, [F])
    b.graph.nodes[-1].device = DEVICES[1]
    (second,) = b.node(OP, "second", [far], {}, [F])
    b.graph.nodes[-1].device = DEVICES[0]
    (both,) = b.node(OP, "both", [first, second], {}, [F])
    b.graph.nodes[-1].device = DEVICES[0]
    assert [[n.name for n in g] for g in groups_of(b.finish([both]))] == [["second", "both"]]


def test_a_constant_parts_nothing_and_joins_nothing():
    b = Builder()
    x = b.input("x", *F)
    (c,) = b.node(CONST, "c", [], {"value": np.zeros(2, np.float32)}, [F])
    for i in range(2):
        b.node(OP, f"n{i}", [x, c], {}, [F])
        b.graph.nodes[-1].device = DEVICES[0]
    assert groups_of(b.finish()) == []


def chain(size) -> list[PlanNode]:
    b = Builder()
    value = b.input("x", *F)
    for i in range(size):
        (value,) = b.node(OP, f"n{i}", [value], {}, [F])
        b.graph.nodes[-1].device = DEVICES[0]
    return b.finish([value]).nodes


def test_a_long_chain_is_offered_in_parts():
    nodes = chain(2 * 512 + 5)
    assert [len(g) for g in form_fusion_groups(nodes, BY_DEVICE)] == [512, 512, 5]
    assert [len(g) for g in form_fusion_groups(nodes, BY_DEVICE, 1000)] == [1000, 29]
