"""Order edges: which nodes conflict, what is laid, what the printer shows, what the checker proves.

Handles of a plan: which op made them, through aliases and bodies, and that ops get the kinds they take.
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import ArgDef, Builder, OpDef, PlanNode, check, print_node
from graphdock.contracts.effects import check_handles, effects_of, handle_of, lay_order, only_reads, resource_name
from graphdock.contracts.ir_check import check_order
from graphdock.contracts.opdef import BodyDef
from graphdock.dtypes import ALL, bool_, float32, resource
from graphdock.errors import InvalidArgumentError, PlanError
from graphdock.planning.translate import translate

HANDLE = OpDef("Handle", executes="handle")
R, W, U = (
    OpDef(n, inputs=(ArgDef("h", "resource", access=a),)) for n, a in (("R", "reads"), ("W", "writes"), ("U", "uses"))
)
BOTH = OpDef("Both", inputs=(ArgDef("a", "resource", access="reads"), ArgDef("b", "resource", access="writes")))
TALK = OpDef("Talk", effects=frozenset({"io"}))


class Plan:
    """A builder of plans over handles."""

    def __init__(self) -> None:
        self.builder = Builder()

    def handle(self, name: str, shared: str = "") -> Any:
        attrs = {"container": "", "shared_name": shared}
        return self.builder.node(HANDLE, name, [], attrs, [(resource, ())])[0]

    def add(self, opdef: OpDef, name: str, *inputs: Any) -> PlanNode:
        outputs = [(float32, (2,))] if opdef is R else []
        self.builder.node(opdef, name, inputs, {}, outputs)
        return self.builder.graph.nodes[-1]

    def laid(self) -> dict[str, list[str]]:
        lay_order(self.builder.graph)
        return {n.name: [b.name for b in n.order] for n in self.builder.graph.nodes if n.order}


def test_reads_follow_the_last_write_and_writes_the_reads_since() -> None:
    p = Plan()
    h = p.handle("v")
    for name in ("r0", "r1", "w0", "r2", "r3", "w1", "w2"):
        p.add(R if name[0] == "r" else W, name, h)
    assert p.laid() == {
        "w0": ["r0", "r1"],
        "r2": ["w0"],
        "r3": ["w0"],
        "w1": ["w0", "r2", "r3"],
        "w2": ["w1"],
    }


def test_resources_are_apart_and_a_node_of_two_follows_both() -> None:
    p = Plan()
    a, b = p.handle("a"), p.handle("b")
    p.add(W, "wa", a)
    p.add(W, "wb", b)
    p.add(BOTH, "both", a, b)
    p.add(R, "rb", b)
    assert p.laid() == {"both": ["wa", "wb"], "rb": ["both"]}


def test_handles_of_one_name_are_one_resource_and_so_is_an_alias() -> None:
    p = Plan()
    a, b, c = p.handle("a", "v"), p.handle("b", "v"), p.handle("c")
    (other,) = p.builder.node(OpDef("Same", executes="alias"), "same", [b], {}, [(resource, ())])
    p.add(W, "first", a)
    p.add(R, "second", other)
    p.add(R, "apart", c)
    assert p.laid() == {"second": ["first"]}


def test_uses_order_nothing_and_the_world_is_a_chain() -> None:
    p = Plan()
    h = p.handle("q")
    for i in range(3):
        p.add(U, f"u{i}", h)
        p.add(TALK, f"t{i}")
    assert p.laid() == {"t1": ["t0"], "t2": ["t1"]}


def test_an_op_that_is_only_said_to_be_stateful_keeps_its_place() -> None:
    p = Plan()
    p.add(OpDef("Odd", traits=frozenset({"stateful"})), "odd")
    p.add(TALK, "talk")
    p.add(OpDef("Draw", effects=frozenset({"random"}), traits=frozenset({"stateful"})), "draw")
    assert p.laid() == {"talk": ["odd"]}


def test_the_number_of_edges_is_linear() -> None:
    p = Plan()
    h = p.handle("v")
    for i in range(300):
        p.add(W if i % 50 == 0 else R, f"n{i}", h)
    assert sum(len(before) for before in p.laid().values()) <= 2 * 300


def nested(depth: int) -> Any:
    """A read and an update, and between them loops in one another around an update of ``v`` and a read of ``w``."""

    def body(i: Any, x: Any, left: int) -> Any:
        if left == 0:
            with tf.control_dependencies([v.assign_add(x, read_value=False)]):
                return i + 1, x + w
        return i + 1, tf.while_loop(lambda j, y: j < 2, lambda j, y: body(j, y, left - 1), [0, x])[1]

    with tf.Graph().as_default():
        v, w = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="w")
        before = tf.identity(v.read_value(), name="before")
        loop = tf.while_loop(lambda i, x: i < 2, lambda i, x: body(i, x, depth), [0, 3.0], name="loop")[1]
        after = v.assign(0.0, read_value=False)
        change = w.assign(9.0, read_value=False)
        return translate([before, loop], [after, change], [])


@pytest.mark.parametrize("depth", [0, 1, 12])
def test_a_node_with_bodies_does_what_its_bodies_do(depth: int) -> None:
    graph = nested(depth)
    (loop,) = (n for n in graph.nodes if n.bodies)
    (read,) = (n.name for n in graph.nodes if n.verb == "read")
    v, w = (n.name for n in graph.nodes if n.verb == "assign")
    laid = {n.name: [b.name for b in n.order] for n in graph.nodes if n.order}
    assert laid == {loop.name: [read], v: [loop.name], w: [loop.name]}
    touched = effects_of(graph)[0][1][loop]
    assert sorted((h.node.origin, writes) for h, writes in touched.resources.items()) == [("v", True), ("w", False)]


def test_each_body_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import graphdock.contracts.effects as module

    graph = nested(12)
    seen = []
    union = module._union
    monkeypatch.setattr(module, "_union", lambda parts: seen.append(1) or union(parts))
    effects_of(graph)
    bodies = sum(1 for _ in graph.all_graphs())
    assert len(seen) <= 2 * bodies


def test_the_printer_writes_order_edges() -> None:
    p = Plan()
    h = p.handle("v")
    p.add(W, "w", h)
    last = p.add(R, "r", h)
    p.laid()
    assert print_node(last) == "%r: float32[2] = R(%v) ordered after w"


def test_the_checker_wants_the_earlier_node_before() -> None:
    p = Plan()
    h = p.handle("v")
    first, second = p.add(W, "first", h), p.add(W, "second", h)
    first.order = (second,)
    with pytest.raises(PlanError, match="is ordered after second, which does not stand before it"):
        check(p.builder.graph)


def test_the_checker_names_both_nodes_the_variable_and_the_pass() -> None:
    with tf.Graph().as_default():
        v = tf.Variable([1.0], name="weights")
        read, update = tf.identity(v.read_value()), v.assign([2.0], read_value=False)
        graph = translate([read], [update], [])
    check_order(graph, "translation")
    (node,) = (n for n in graph.nodes if n.verb == "assign")
    (reader,) = node.order
    node.order = ()
    with pytest.raises(PlanError) as caught:
        check_order(graph, "the pass cse")
    message = str(caught.value)
    for part in (reader.name, node.name, "both touch weights", "changed last by the pass cse"):
        assert part in message
    assert caught.value.op_name == node.name and "test_effects.py" in str(caught.value.site)


def test_a_path_over_other_nodes_is_as_good_as_an_edge() -> None:
    with tf.Graph().as_default():
        v = tf.Variable([1.0])
        read = v.read_value()
        update = v.assign(tf.tanh(read) * 2.0, read_value=False)
        graph = translate([read], [update], [])
    for node in graph.nodes:
        node.order = ()
    check_order(graph, "nothing")


def test_the_checker_looks_at_bodies_too() -> None:
    def body(i: Any, x: Any) -> Any:
        read = v.read_value()
        with tf.control_dependencies([v.assign_add(1.0, read_value=False)]):
            return i + 1, read

    with tf.Graph().as_default():
        v = tf.Variable(1.0)
        graph = translate(tf.while_loop(lambda i, x: i < 2, body, [0, 3.0]), [], [])
    check_order(graph, "translation")
    (inner,) = (level for level in graph.all_graphs() if any(n.order for n in level.nodes))
    assert inner is not graph
    for node in inner.nodes:
        node.order = ()
    with pytest.raises(PlanError, match=f"graph {inner.name}: nothing orders"):
        check_order(graph, "a test")


def test_which_ops_only_read() -> None:
    assert only_reads(R)
    assert not any(only_reads(d) for d in (W, U, BOTH, TALK, HANDLE))
    assert not only_reads(OpDef("Draws", inputs=R.inputs, effects=frozenset({"random"})))


RESOURCE = ALL["resource"]
COUNTERS = (ArgDef("h", "resource", "[]"),)
MAKE = {kind: OpDef(f"lab.{kind}", outputs=COUNTERS, executes="handle", resource=kind) for kind in ("variable", "Box")}
ALIAS = OpDef("lab.Alias", inputs=COUNTERS, outputs=(ArgDef("again", "resource", "[]"),), executes="alias")
READ = OpDef(
    "lab.Read", inputs=(ArgDef("h", "resource", "[]", access="reads"),), outputs=(ArgDef("y", "float32", "[]"),)
)
OPEN = OpDef("lab.Open", inputs=(ArgDef("h", "resource", "[]", access="writes", resource="Box"),))
BRANCH = OpDef(
    "Cond",
    inputs=(ArgDef("pred", "bool", "[]"), ArgDef("inputs", "resource", arity="many")),
    executes="branch",
    bodies=(BodyDef("then_branch", "inputs"), BodyDef("else_branch", "inputs")),
)


def make(builder, kind, name, **attrs):
    (handle,) = builder.node(MAKE[kind], name, [], attrs, [(RESOURCE, ())])
    return handle


def test_a_resource_has_its_shared_name_or_that_of_the_operation():
    builder = Builder("step")
    nodes = [
        make(builder, "Box", "a").node,
        make(builder, "Box", "b", container="box", shared_name="").node,
        make(builder, "Box", "c", container="", shared_name="shared").node,
    ]
    assert [resource_name(n) for n in nodes] == [("", "a"), ("box", "b"), ("", "shared")]


def test_handles_of_one_resource_are_one_and_kinds_keep_apart():
    builder = Builder("step")
    first = make(builder, "Box", "a", container="", shared_name="t")
    again = make(builder, "Box", "b", container="", shared_name="t")
    other = make(builder, "Box", "c", container="elsewhere", shared_name="t")
    variable = make(builder, "variable", "d", container="", shared_name="t")
    assert handle_of(builder.graph) == {first: first, again: first, other: other, variable: variable}


def test_a_handle_is_followed_through_aliases_and_bodies():
    builder = Builder("step")
    handle = make(builder, "Box", "a")
    (alias,) = builder.node(ALIAS, "alias", [handle], {}, [(RESOURCE, ())])
    pred = builder.input("pred", bool_, ())
    bodies = []
    for name in ("then", "else"):
        inner = Builder(name)
        parameter = inner.input(f"{name}_h", RESOURCE, ())
        inner.node(OPEN, f"open_{name}", [parameter], {}, [])
        bodies.append(inner.graph)
    builder.node(BRANCH, "cond", [pred, alias], {}, [], bodies=bodies)
    found = handle_of(builder.graph)
    assert found[alias] is handle
    assert [found[b.inputs[0]] for b in bodies] == [handle, handle]
    check_handles(builder.graph)


def test_a_handle_of_another_kind_is_refused_wherever_it_stands():
    builder = Builder("step")
    box = make(builder, "Box", "a_box")
    pred = builder.input("pred", bool_, ())
    inner = Builder("then")
    inner.node(READ, "read", [inner.input("h", RESOURCE, ())], {}, [(float32, ())])
    otherwise = Builder("else")
    otherwise.input("h2", RESOURCE, ())
    builder.node(BRANCH, "cond", [pred, box], {}, [], bodies=[inner.graph, otherwise.graph])
    with pytest.raises(InvalidArgumentError, match="lab.Read takes a handle to a variable") as caught:
        check_handles(builder.graph)
    assert (caught.value.op_name, caught.value.got) == ("read", "a_box, a handle to a Box")


def test_a_handle_that_nobody_made_is_refused():
    builder = Builder("step")
    fed = builder.input("fed", RESOURCE, ())
    builder.node(OPEN, "open", [fed], {}, [])
    with pytest.raises(InvalidArgumentError, match="takes a handle to a Box, and fed is fed") as caught:
        check_handles(builder.graph)
    assert caught.value.op_name == "open"
    assert "only ops that execute as handle" in caught.value.hint


def test_tensors_are_none_of_its_business():
    builder = Builder("step")
    x = builder.input("x", float32, (2,))
    double = OpDef("lab.Double", inputs=(ArgDef("x", "float32", "[*S]"),), outputs=(ArgDef("y", "float32", "[*S]"),))
    builder.node(double, "y", [x], {"factor": np.float32(2)}, [(float32, (2,))])
    check_handles(builder.graph)
    assert handle_of(builder.graph) == {}
