"""The grammar of the plan IR: a graph that breaks a rule is refused with the node's name."""

from __future__ import annotations

import pytest
from graphdock import dtypes
from graphdock.contracts.ir import PlanGraph, PlanNode
from graphdock.contracts.ir_check import check
from graphdock.contracts.opdef import OpDef
from graphdock.contracts.rewriter import Builder
from graphdock.errors import PlanError

NEG = OpDef("Neg")


def test_a_plan_that_breaks_the_grammar_is_refused():
    b = Builder()
    x = b.input("x", dtypes.float32, (2,))
    (y,) = b.node(NEG, "y", [x], {}, [(dtypes.float32, (2,))])
    (z,) = b.node(NEG, "z", [y], {}, [(dtypes.float32, (2,))])
    graph = b.finish([z])
    first, second = graph.nodes

    def refused(match: str) -> None:
        with pytest.raises(PlanError, match=match):
            check(graph)

    graph.nodes = [second, first]
    refused("reads .* before it is defined")
    graph.nodes = [first, second, second]
    refused("stands in the graph twice")
    graph.nodes = [first, second]
    first.control = (second,)
    refused("must run after z, which does not stand before it")
    first.control = ()
    z.name = "y"
    refused("defines %y, which is defined already")
    z.name = "z"
    graph.targets = [PlanNode("Neg", "elsewhere", NEG, {}, [])]
    refused("must run elsewhere, which it does not hold")
    graph.targets = []
    check(graph)


def test_a_level_knows_its_nodes_with_bodies_however_its_nodes_are_set():
    body, around = PlanGraph("body"), PlanGraph("around")
    plain, holder = PlanNode("Neg", "plain", NEG, {}, []), PlanNode("Call", "holder", NEG, {}, [], bodies=[body])
    around.add(plain)
    around.add(holder)
    assert around.holders == [holder] and list(around.all_graphs()) == [around, body]
    around.nodes = [plain]
    assert around.holders == [] and list(around.all_graphs()) == [around]
    check(around)
    around.nodes.append(holder)  # not the way to change a plan
    with pytest.raises(PlanError, match="was changed in place"):
        check(around)
