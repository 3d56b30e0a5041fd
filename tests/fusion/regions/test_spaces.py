"""Groups of nodes of one space: every one can be one node, and every one is a program."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import Builder, Cutter, DeviceSpec, PlanNode
from graphdock.dtypes import float32, int32
from graphdock.plugin.host import default_host
from graphdock_fusion.regions.groups import form_fusion_groups, without
from graphdock_fusion.regions.lowering import lower_region
from graphdock_fusion.regions.spaces import BySpace

DEVICES = [DeviceSpec.parse("/device:cpu:0"), DeviceSpec.parse("/device:cpu:1")]
SHAPES = [(3, 4), (3, 1), (4,), (3,), (), (1, 4), (4, 4), (2, 3, 4)]


def random_level(seed):
    """A level of elementwise operations, reductions, reshapes and what is in no region, on two devices, with control edges."""
    rng = np.random.default_rng(seed)
    ops = default_host().ops
    b = Builder()
    values = [b.input(f"x{i}", float32, SHAPES[i]) for i in range(len(SHAPES))]
    t = {"T": float32}
    for i in range(50):
        x = values[-1 - int(min(rng.exponential(4), len(values) - 1))]
        same = [v for v in values if v.shape == x.shape]
        y = same[int(rng.integers(len(same)))]
        nodes = b.graph.nodes
        control = [nodes[int(rng.integers(len(nodes)))]] if nodes and rng.random() < 0.1 else []
        roll = rng.random()
        if roll < 0.4:
            wide = [v for v in values if fits(v.shape, x.shape)]
            y = wide[int(rng.integers(len(wide)))]
            shape = np.broadcast_shapes(x.shape, y.shape)
            values += b.node(ops.get("Add"), f"n{i}", [x, y], t, [(float32, shape)], control)
        elif roll < 0.55:
            values += b.node(ops.get("Tanh"), f"n{i}", [x], t, [(float32, x.shape)], control)
        elif roll < 0.75 and x.shape:
            axis, keep = int(rng.integers(len(x.shape))), bool(rng.random() < 0.5)
            made = np.sum(np.zeros(x.shape), axis, keepdims=keep).shape
            constant = np.array([axis], np.int32)
            (a,) = b.node(ops.get("Const"), f"a{i}", [], {"value": constant, "dtype": int32}, [(int32, (1,))])
            values += b.node(
                ops.get("Sum"), f"n{i}", [x, a], {**t, "Tidx": int32, "keep_dims": keep}, [(float32, made)], control
            )
        elif roll < 0.85:
            to = tuple(d for d in x.shape if d != 1) if rng.random() < 0.5 else (*x.shape, 1)
            constant = np.array(to, np.int32)
            (a,) = b.node(ops.get("Const"), f"a{i}", [], {"value": constant, "dtype": int32}, [(int32, (len(to),))])
            values += b.node(ops.get("Reshape"), f"n{i}", [x, a], {**t, "Tshape": int32}, [(float32, to)], control)
        else:
            values += b.node(ops.get("Cumsum"), f"n{i}", [x, y], t, [(float32, x.shape)], control)
        b.graph.nodes[-1].device = DEVICES[int(rng.random() < 0.2)]
    return b.finish(values[-4:])


def fits(a, b):
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def check(seed):
    """Cut, take and lower every group; returns the sizes of the groups."""
    graph = random_level(seed)
    kinds = BySpace(lambda n: n.device)
    groups = form_fusion_groups(graph.nodes, kinds)
    cutter, seen, rng = Cutter(graph), set[PlanNode](), np.random.default_rng(seed)
    for members in groups:
        assert len(members) > 1 and len({n.device for n in members}) == 1 and seen.isdisjoint(members)
        seen.update(members)
        lower_region(cutter.cut(members, members[0].device))  # neither a path that comes back, nor two spaces
        gone = {members[int(rng.integers(len(members)))]}
        for rest in without(members, gone, kinds):
            lower_region(cutter.cut(rest, rest[0].device))
        cutter.take(members)
    return [len(m) for m in groups]


@pytest.mark.parametrize("start", range(0, 160, 40))
@pytest.mark.sampled(2)
def test_groups_of_random_levels_are_programs_and_can_each_be_one_node(start):
    sizes = [size for seed in range(start, start + 40) for size in check(seed)]
    assert len(sizes) > 100 and max(sizes) > 8


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", range(160, 4160, 250))
def test_groups_of_four_thousand_levels(start):
    for seed in range(start, start + 250):
        check(seed)
