"""Contents of variants: followed through loops, branches, captures and histories of histories, and checked where they are read."""

from __future__ import annotations

import pytest
from graphdock import dtypes
from graphdock.contracts.bodies import contents_of
from graphdock.contracts.ir import PlanGraph, Value
from graphdock.contracts.ir_check import check
from graphdock.contracts.opdef import OpDef
from graphdock.contracts.rewriter import Builder
from graphdock.errors import PlanError
from graphdock.plugin.host import default_host

F, B, V = dtypes.float32, dtypes.bool_, dtypes.variant
NEG = OpDef("Neg")
WHILE, COND, LEFT, NONE = map(default_host().ops.get, ("While", "Cond", "OptionalFromValue", "OptionalNone"))


def condition(shape=(3,), captured=()) -> PlanGraph:
    b = Builder("cond")
    b.input("x", F, shape)
    for value in captured:
        b.input(value.name, value.dtype, value.shape)
    (more,) = b.node(NEG, "more", [], {}, [(B, ())])
    return b.finish([more])


def loop(
    b: Builder, name: str, start: Value, kept=(), scanned=(), elements=(), captured=(), body_of=None
) -> list[Value]:
    """A While over one variable. ``kept``: functions of the body's builder and inputs that make what it keeps."""
    inner = Builder(f"{name}/body")
    x = inner.input("x", F, start.shape)
    read = [inner.input(f"e{i}", dtype, shape) for i, (dtype, shape) in enumerate(elements)]
    outer = [inner.input(v.name, v.dtype, v.shape) for v in captured]
    made = [make(inner, x, read, outer) for make in kept]
    (after,) = inner.node(NEG, "after", [x], {}, [(F, x.shape)])
    bodies = [condition(start.shape, captured), inner.finish([after, *made])]
    attrs = {"output_shapes": (start.shape,), "scanned": len(scanned), "maximum_iterations": -1}
    return b.node(
        WHILE, name, [start, *scanned, *captured], attrs, [(F, start.shape), *[(V, ())] * len(kept)], bodies=bodies
    )


def history(b: Builder, name: str, start: Value) -> Value:
    return loop(b, name, start, [lambda inner, x, read, outer: x])[1]


def test_a_history_holds_what_the_body_returns_for_it():
    b = Builder()
    kept = history(b, "w", b.input("x", F, (3,)))
    graph = b.finish([kept])
    assert contents_of(graph).of(kept) is graph.nodes[0].bodies[1].inputs[0]


def test_a_history_of_histories_is_followed_to_its_elements():
    b = Builder()
    x = b.input("x", F, (3,))
    outer = loop(b, "w", x, [lambda inner, x, read, outer: history(inner, "v", x)])[1]
    read = loop(b, "back", x, scanned=[outer], elements=[(V, ())])
    graph = b.finish(read[:1])
    found = contents_of(graph)
    inner = found.of(outer)
    assert inner.dtype is V and found.of(inner).shape == (3,)
    element = graph.nodes[1].bodies[1].inputs[1]
    assert found.of(element) is found.of(inner)


def test_what_a_branch_leaves_is_that_of_the_branch_that_leaves_something():
    b = Builder()
    p, x = b.input("p", B, ()), b.input("x", F, (3,))
    sides = []
    for leaves in (True, False):
        side = Builder("side")
        y = side.input("x", F, (3,))
        op, inputs = (LEFT, [y]) if leaves else (NONE, [])
        sides.append(side.finish(side.node(op, "left", inputs, {}, [(V, ())])))
    (left,) = b.node(COND, "c", [p, x], {}, [(V, ())], bodies=sides)
    assert contents_of(b.finish([left])).of(left) is sides[0].inputs[0]


@pytest.mark.parametrize("element", [(F, (4,)), (dtypes.float64, (3,)), (V, ())])
def test_elements_that_are_something_else_are_refused(element):
    b = Builder()
    x = b.input("x", F, (3,))
    kept = history(b, "w", x)
    (y,) = loop(b, "back", x, scanned=[kept], elements=[element])
    with pytest.raises(
        PlanError, match=r"node back \(While\): reads elements of a history as .*, but they are float32\[3\]"
    ):
        b.finish([y])


def test_the_grammar_of_loops():
    def made() -> tuple[PlanGraph, list[PlanGraph]]:
        b = Builder()
        x, c = b.input("x", F, (3,)), b.input("c", F, (3,))
        kept = history(b, "w", x)
        (y,) = loop(b, "back", x, scanned=[kept], elements=[(F, (3,))], captured=[c])
        return b.finish([y]), b.graph.nodes[1].bodies

    def refused(match: str) -> None:
        with pytest.raises(PlanError, match=match):
            check(graph)

    graph, (cond, body) = made()
    body.inputs.pop()
    refused("takes 2 inputs, and is given 3")
    graph, (cond, body) = made()
    cond.inputs.append(Value("more", F, (3,)))
    refused("takes 3 inputs, and is given 2")
    graph, (cond, body) = made()
    graph.nodes[1].inputs[1] = graph.inputs[0]
    refused("stands where a history must")
    graph, (cond, body) = made()
    body.outputs.append(body.outputs[0])
    refused("returns 2 values for 1 outputs")
    graph, (cond, body) = made()
    graph.nodes[1].attrs = {**graph.nodes[1].attrs, "output_shapes": ((3,),) * 9}
    refused("fewer inputs or outputs than loop variables and histories")
