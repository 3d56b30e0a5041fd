"""Rewriter: what each change does to readers, control, order, origins and outputs; nothing is half applied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphdock.contracts import ArgDef, Builder, OpDef, PlanGraph, PlanNode, check, print_graph
from graphdock.contracts.effects import lay_order
from graphdock.contracts.ir import make_node
from graphdock.contracts.ir_check import check_order
from graphdock.contracts.rewriter import Rewriter
from graphdock.dtypes import float32, resource
from graphdock.errors import PlanError

F = (float32, (2,))
ONE, TWO = OpDef("One", inputs=(ArgDef("x", "float32"),)), OpDef("Two")
HANDLE = OpDef("Handle", executes="handle")
R = OpDef("R", inputs=(ArgDef("h", "resource", access="reads"),))
W = OpDef("W", inputs=(ArgDef("h", "resource", access="writes"),))


class Plan:
    def __init__(self, *inputs: str) -> None:
        self.builder = Builder()
        self.values = {name: self.builder.input(name, *F) for name in inputs}
        self.nodes: dict[str, PlanNode] = {}

    def add(self, name: str, *inputs: str, after: Any = (), order: Any = (), opdef: OpDef = ONE) -> PlanNode:
        """A node; ``after`` and ``order`` name nodes."""
        made = self.builder.node(
            opdef,
            name,
            [self.values[i] for i in inputs],
            {},
            [F],
            [self.nodes[n] for n in after],
            order=[self.nodes[n] for n in order],
        )
        self.values[name] = made[0]
        self.nodes[name] = self.builder.graph.nodes[-1]
        return self.nodes[name]

    def finish(self, outputs: Any = (), targets: Any = ()) -> PlanGraph:
        return self.builder.finish([self.values[o] for o in outputs], [self.nodes[t] for t in targets])


def new(name: str, *inputs: Any, opdef: OpDef = ONE, order: Any = ()) -> PlanNode:
    return make_node(opdef, name, inputs, {}, [F], order=order)


def lines(graph: PlanGraph) -> list[str]:
    check(graph)
    return [line.strip().replace(": float32[2]", "") for line in print_graph(graph).splitlines()[1:-1]]


def chain() -> tuple[Plan, PlanGraph]:
    """a <- x, b <- a, c <- b; c returned."""
    p = Plan("x")
    p.add("a", "x")
    p.add("b", "a")
    p.add("c", "b")
    return p, p.finish(["c"])


def test_what_is_inserted_stands_before_its_node_or_at_the_end() -> None:
    p, graph = chain()
    with Rewriter(graph) as change:
        change.insert(new("m", p.values["a"]), before=p.nodes["b"])
        change.insert(new("n", p.values["a"]), before=p.nodes["b"])
        change.insert(new("z", p.values["c"]))
    assert [n.name for n in graph.nodes] == ["a", "m", "n", "b", "c", "z"]
    check(graph)


def test_readers_outputs_and_targets_follow_a_replacement() -> None:
    p = Plan("x")
    p.add("a", "x")
    p.add("b", "a")
    p.add("waits", "x", after=["b"])
    graph = p.finish(["b"], ["b"])
    with Rewriter(graph) as change:
        made = change.insert(new("m", p.values["x"]), before=p.nodes["b"])
        change.replace(p.nodes["b"], made.outputs)
    assert lines(graph) == ["%a = One(%x)", "%m = One(%x)", "%waits = One(%x) after m", "return %m"]
    assert graph.targets == [made]
    assert made.origins == ("m", "b")


def test_chains_of_replacements_are_followed() -> None:
    p = Plan("x")
    for i in range(6):
        p.add(f"n{i}", f"n{i - 1}" if i else "x")
    p.add("last", "n5", after=["n3"])
    graph = p.finish(["last", "n5"])
    with Rewriter(graph) as change:
        for i in range(1, 6):
            change.replace(p.nodes[f"n{i}"], [p.values[f"n{i - 1}"]])
        assert change.value(p.values["n5"]) is p.values["n0"]
        assert change.seen(p.nodes["last"]).inputs == [p.values["n0"]]
        assert p.nodes["last"].inputs == [p.values["n5"]]
    assert lines(graph) == ["%n0 = One(%x)", "%last = One(%n0) after n0", "return %last, %n0"]
    assert p.nodes["n0"].origins == tuple(f"n{i}" for i in range(6))


def test_who_read_a_replaced_node_waits_for_what_it_waited_for() -> None:
    p = Plan("x")
    p.add("update", "x")
    p.add("same", "x", after=["update"])
    p.add("reader", "same")
    graph = p.finish(["reader", "same"])
    with Rewriter(graph) as change:
        change.replace(p.nodes["same"], [p.values["x"]])
    assert lines(graph) == ["%update = One(%x)", "%reader = One(%x) after update", "return %reader, %x"]
    assert graph.targets == [p.nodes["update"]]


def test_who_followed_an_erased_node_follows_what_it_followed() -> None:
    p = Plan("x")
    p.add("a", "x")
    p.add("o", "x")
    p.add("b", "x", after=["a"], order=["o"])
    p.add("c", "x", after=["b"], order=["b"])
    graph = p.finish(["c"])
    with Rewriter(graph) as change:
        change.erase(p.nodes["b"])
    assert lines(graph)[2] == "%c = One(%x) after a ordered after o"


def test_what_is_read_cannot_be_erased_and_then_nothing_changes() -> None:
    p, graph = chain()
    before = print_graph(graph)
    with pytest.raises(PlanError, match=r"c \(One\) reads %b, which is erased"), Rewriter(graph) as change:
        change.insert(new("m", p.values["x"]))
        change.replace(p.nodes["a"], [p.values["x"]])
        change.rebind(p.nodes["c"], attrs={"changed": True})
        change.erase(p.nodes["b"])
    assert print_graph(graph) == before
    with pytest.raises(PlanError, match="returns %c, which is erased"), Rewriter(graph) as change:
        change.replace(p.nodes["a"], [p.values["x"]])
        change.erase(p.nodes["c"])
    assert print_graph(graph) == before


def test_an_exception_leaves_the_level_as_it_was() -> None:
    p, graph = chain()
    before = print_graph(graph)
    with pytest.raises(ZeroDivisionError), Rewriter(graph) as change:
        change.insert(new("m", p.values["x"]), before=p.nodes["a"])
        change.replace(p.nodes["a"], [p.values["x"]])
        change.rebind(p.nodes["c"], inputs=[p.values["x"]])
        change.keep([p.nodes["b"]])
        change.returns([p.values["b"]])
        raise ZeroDivisionError
    assert print_graph(graph) == before


@pytest.mark.parametrize("what", ["insert", "erase"])
def test_a_node_of_another_level_is_refused(what: str) -> None:
    p, graph = chain()
    other = new("other", p.values["x"])
    with pytest.raises(PlanError, match="that it does not hold"), Rewriter(graph) as change:
        change.insert(new("m", p.values["x"]), before=other) if what == "insert" else change.erase(other)


def test_rebinding_changes_a_node_in_place() -> None:
    p = Plan("x", "y")
    (one, two) = p.builder.node(TWO, "t", [p.values["x"]], {"k": 1}, [F, F])
    node = p.builder.graph.nodes[-1]
    graph = p.builder.finish([two])
    with Rewriter(graph) as change:
        change.rebind(node, inputs=[p.values["y"]], attrs={"k": 2})
        change.rebind(node, outputs=[1])
    assert node.outputs == [two] and two.index == 0
    assert lines(graph) == ["%t:1 = Two(%y) {k=2}", "return %t:1"]
    del one


def test_rebound_inputs_are_replaced_too() -> None:
    p, graph = chain()
    with Rewriter(graph) as change:
        change.rebind(p.nodes["c"], inputs=[p.values["a"]])
        change.replace(p.nodes["a"], [p.values["x"]])
        change.erase(p.nodes["b"])
    assert lines(graph) == ["%c = One(%x)", "return %c"]


def test_inputs_of_a_level_may_change_and_a_value_be_redirected() -> None:
    p, graph = chain()
    with Rewriter(graph) as change:
        made = change.insert(new("made"), before=p.nodes["a"])
        change.redirect(p.values["x"], made.outputs[0])
        change.takes([])
    assert lines(graph)[:2] == ["%made = One()", "%a = One(%made)"]
    assert graph.inputs == []


# -- splicing


def parts(*, touch: bool = False) -> PlanGraph:
    """Two nodes over one input; the second returned."""
    b = Builder("parts")
    x = b.input("in", *F)
    (y,) = b.node(ONE, "first", [x], {}, [F])
    if touch:
        (h,) = b.node(HANDLE, "h", [], {"container": "", "shared_name": "v"}, [(resource, ())])
        b.node(W, "write", [h], {}, [])
    return b.finish(b.node(ONE, "second", [y], {}, [F]))


def test_a_node_becomes_the_nodes_of_a_graph() -> None:
    p = Plan("x")
    p.add("before", "x")
    p.add("n", "x", after=["before"])
    p.add("reads", "n")
    p.add("follows", "x", after=["n"])
    graph = p.finish(["reads", "follows"])
    with Rewriter(graph) as change:
        change.splice(p.nodes["n"], parts())
    assert lines(graph) == [
        "%before = One(%x)",
        "%n/first = One(%x) after before",
        "%n/second = One(%n/first)",
        "%reads = One(%n/second)",
        "%follows = One(%x) after n/second",
        "return %reads, %follows",
    ]
    assert [n.origins for n in graph.nodes if n.name.startswith("n/")] == [("n",), ("n",)]


def test_neighbours_may_be_spliced_at_once() -> None:
    p, graph = chain()
    with Rewriter(graph) as change:
        for name in "abc":
            change.splice(p.nodes[name], parts())
    assert [n.name for n in graph.nodes] == [f"{a}/{b}" for a in "abc" for b in ("first", "second")]
    assert lines(graph)[2] == "%b/first = One(%a/second)" and lines(graph)[-1] == "return %c/second"


def test_a_graph_that_returns_its_input_leaves_nothing() -> None:
    b = Builder("same")
    x = b.input("in", *F)
    same = b.finish([x])
    p, graph = chain()
    with Rewriter(graph) as change:
        change.splice(p.nodes["b"], same)
    assert lines(graph) == ["%a = One(%x)", "%c = One(%a)", "return %c"]


def test_nodes_of_one_name_in_several_bodies_are_numbered() -> None:
    def body() -> PlanGraph:
        b = Builder("body")
        (one,) = b.node(ONE, "a", [b.input("in", *F)], {}, [F])
        return b.finish([one])

    p = Plan("x")
    for name, given in (("m", "x"), ("n", "m"), ("a", "n")):
        p.add(name, given)
    graph = p.finish(["a"])
    with Rewriter(graph) as change:
        for name in ("m", "n"):
            change.splice(p.nodes[name], body(), own_names=True)
    assert lines(graph) == ["%a_1 = One(%x)", "%a_2 = One(%a_1)", "%a = One(%a_2)", "return %a"]
    check(graph)


def test_order_leads_to_and_from_the_spliced_nodes_that_touch_something() -> None:
    p = Plan("x")
    p.add("w0", "x", opdef=TWO)
    p.add("n", "x", order=["w0"])
    p.add("w1", "x", order=["n"], opdef=TWO)
    graph = p.finish(["n"], ["w0", "w1"])
    with Rewriter(graph) as change:
        change.splice(p.nodes["n"], parts(touch=True), own_names=True)
    order = {n.name: [b.name for b in n.order] for n in graph.nodes if n.order}
    assert order == {"write": ["w0"], "w1": ["write"]}
    assert {n.origins for n in graph.nodes} >= {("first",), ("write",), ("second",)}


def test_a_read_that_follows_is_ordered_after_the_write_before_the_spliced_reads() -> None:
    b = Builder("body")
    (y,) = b.node(ONE, "y", [b.input("in", *F)], {}, [F])
    (h,) = b.node(HANDLE, "h", [], {"container": "", "shared_name": "v"}, [(resource, ())])
    b.node(W, "write", [h], {}, [])
    b.node(R, "read", [h], {}, [], order=[b.graph.nodes[-1]])
    p = Plan("other", "x")
    p.add("n", "other", "x")
    (handle,) = p.builder.node(HANDLE, "v", [], {"container": "", "shared_name": "v"}, [(resource, ())])
    for name, opdef in (("r", R), ("w", W)):
        p.builder.node(opdef, name, [handle], {}, [], order=[p.nodes["n"]])
    graph, body = p.finish(["n"]), b.finish([y])
    with Rewriter(graph) as change:
        change.splice(p.nodes["n"], body, own_names=True, given=[p.values["x"]])
    order = {n.name: [b.name for b in n.order] for n in graph.nodes if n.order}
    assert order == {"read": ["write"], "r": ["write"], "w": ["write", "read"]}
    assert lines(graph)[0] == "%y = One(%x)" and not body.nodes


# -- a node for several, and order


def test_one_node_may_stand_for_several_and_the_level_is_sorted_again() -> None:
    """between needs a, and b needs other: the new node comes before the one and after the other."""
    p = Plan("x")
    p.add("a", "x")
    p.add("between", "a")
    p.add("other", "x")
    p.add("b", "a", "other", opdef=TWO)
    graph = p.finish(["between", "b"])
    with Rewriter(graph) as change:
        made = change.insert(new("both", p.values["x"], p.values["other"], opdef=TWO), before=p.nodes["b"])
        made.outputs.append(type(made.outputs[0])("both:1", *F, made, 1))
        change.replace(p.nodes["a"], [made.outputs[0]], by=made)
        change.replace(p.nodes["b"], [made.outputs[1]], by=made)
    assert [n.name for n in graph.nodes] == ["other", "both", "between"]
    assert lines(graph)[-1] == "return %between, %both:1"
    assert made.origins == ("both", "a", "b")


def test_a_cycle_is_found_and_nothing_changes() -> None:
    p, graph = chain()
    before = print_graph(graph)
    with pytest.raises(PlanError, match="would wait for each other"), Rewriter(graph) as change:
        made = change.insert(new("both", p.values["x"], p.values["b"], opdef=TWO), before=p.nodes["c"])
        change.replace(p.nodes["a"], [made.outputs[0]], by=made)
        change.replace(p.nodes["c"], [made.outputs[0]], by=made)
    assert print_graph(graph) == before


def test_nodes_may_be_arranged_as_far_as_edges_allow() -> None:
    p = Plan("x")
    for name, before in (("a", "x"), ("b", "x"), ("c", "b"), ("d", "x")):
        p.add(name, before)
    graph = p.finish(["c"])
    with Rewriter(graph) as change:
        change.arrange([p.nodes[n] for n in "dcba"])
    assert [n.name for n in graph.nodes] == ["d", "b", "c", "a"]


def accesses(rng: np.random.Generator, count: int) -> tuple[PlanGraph, list[PlanNode]]:
    b = Builder()
    handles = [b.node(HANDLE, f"v{i}", [], {"container": "", "shared_name": ""}, [(resource, ())])[0] for i in range(3)]
    nodes = []
    for i in range(count):
        b.node(R if rng.random() < 0.6 else W, f"n{i}", [handles[int(rng.integers(3))]], {}, [])
        nodes.append(b.graph.nodes[-1])
    graph = b.finish([], nodes)
    lay_order(graph)
    return graph, nodes


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_erased_conflicting_accesses_stay_ordered(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, nodes = accesses(rng, 60)
    while len(nodes) > 5:
        gone = {n for n in nodes if rng.random() < 0.25}
        with Rewriter(graph) as change:
            for node in gone:
                change.erase(node)
        nodes = [n for n in nodes if n not in gone]
        check(graph)
        check_order(graph, "a test")
        assert len(graph.nodes) == len(nodes) + 3


@pytest.mark.parametrize("seed", range(40))
def test_random_changes_leave_results_as_they_were(seed: int) -> None:
    """Nodes of a random graph are replaced by equal ones, spliced, merged and forwarded, many at once."""
    rng = np.random.default_rng(seed)
    add = OpDef("Add")
    b = Builder()
    values = [b.input(f"x{i}", *F) for i in range(3)]
    for i in range(40):
        picked = [values[int(j)] for j in rng.integers(max(0, len(values) - 8), len(values), 2)]
        values.append(b.node(add, f"n{i}", picked, {}, [F])[0])
    graph = b.finish([values[int(j)] for j in rng.integers(0, len(values), 5)])
    arrays = {v: rng.integers(-9, 9, 2) for v in graph.inputs}

    def run() -> list[list[int]]:
        check(graph)
        known = dict(arrays)
        for node in graph.nodes:
            known[node.outputs[0]] = sum((known[v] for v in node.inputs), np.zeros(2, int))
        return [known[v].tolist() for v in graph.outputs]

    expected = run()
    for turn in range(4):
        seen: dict[Any, PlanNode] = {}
        with Rewriter(graph) as change:
            for node in list(graph.nodes):
                kind = rng.random()
                if kind < 0.2:
                    made = new(f"{node.name}/{turn}", *reversed(node.inputs), opdef=add)
                    change.replace(node, change.insert(made, before=node).outputs)
                elif kind < 0.4:
                    inner = Builder("parts")
                    ins = [inner.input(f"i{k}", *F) for k in range(len(node.inputs))]
                    zero = inner.node(add, "zero", [], {}, [F])
                    change.splice(node, inner.finish(inner.node(add, f"sum{turn}", [*ins, *zero], {}, [F])))
                elif kind < 0.5 and len(node.inputs) == 1:
                    change.replace(node, [node.inputs[0]])
                elif (first := seen.setdefault(tuple(change.inputs(node)), node)) is not node:
                    change.replace(node, first.outputs)
                elif kind > 0.9:
                    change.rebind(node, inputs=list(reversed(change.inputs(node))))
        assert run() == expected


def test_a_change_costs_one_way_over_the_level() -> None:
    """A thousand replaced nodes in a chain, each read by the next: every value is looked up a bounded number of times."""
    p = Plan("x")
    for i in range(1000):
        p.add(f"n{i}", f"n{i - 1}" if i else "x")
    p.add("last", "n999")
    graph = p.finish(["last"])
    looked = 0

    class Counting(dict):  # type: ignore[type-arg]
        def __getitem__(self, key: Any) -> Any:
            nonlocal looked
            looked += 1
            return super().__getitem__(key)

    change = Rewriter(graph)
    change._values = Counting()
    for i in range(1000):
        change.replace(p.nodes[f"n{i}"], [p.values[f"n{i - 1}"] if i else p.values["x"]])
        change.value(p.values[f"n{i}"])
    change.apply()
    assert lines(graph) == ["%last = One(%x)", "return %last"]
    assert looked < 10_000
