"""Forms: computed once per op and kernel, from what the two declare; never shared where attributes tell nodes apart."""

from __future__ import annotations

import pytest
from graphdock.contracts import ArgDef, AttrDef, KernelDef, OpDef, ViewRule
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.rewriter import Builder
from graphdock.dtypes import float32
from graphdock_executor.lower.modes import form_of

PAIR = OpDef(
    "lab.Pair",
    inputs=(ArgDef("x", "float32"), ArgDef("y", "float32"), ArgDef("axis", "int32", memory="host")),
    outputs=(ArgDef("sum", "float32"), ArgDef("part", "float32")),
    effects=frozenset({"random"}),
)
LISTS = OpDef(
    "lab.Lists",
    inputs=(ArgDef("a", "float32", arity="many", count="N"), ArgDef("b", "float32", arity="many", count="M")),
    outputs=(ArgDef("y", "float32", arity="many", count="N"),),
    attrs=(AttrDef("N", "int"), AttrDef("M", "int")),
)


def kernel(op: OpDef, **facts: object) -> KernelDef:
    return KernelDef(op.name, "cpu", lambda ctx: print, **facts)  # type: ignore[arg-type]


def node(op: OpDef, inputs: int, outputs: int, **attrs: object) -> PlanNode:
    builder = Builder()
    values = [builder.input(f"x{i}", float32, (2,)) for i in range(inputs)]
    builder.node(op, "n", values, attrs, [(float32, (2,))] * outputs)
    return builder.graph.nodes[0]


def test_it_says_what_op_and_kernel_declare() -> None:
    form = form_of(node(PAIR, 3, 2), kernel(PAIR, inplace={"part": ("y", "x")}), {})
    assert [a.name for a in form.args] == ["x", "y", "axis"] and form.outputs == ("sum", "part")
    assert form.steered and form.random and form.plans
    assert form.inplace == ((), (1, 0)) and form.views == ()


@pytest.mark.parametrize("viewed", [("sum",), ("sum", "part")])
def test_a_node_has_views_only_where_every_output_may_be_one(viewed: tuple[str, ...]) -> None:
    rule = ViewRule("y", needs_contiguous=True)
    form = form_of(node(PAIR, 3, 2), kernel(PAIR, views=dict.fromkeys(viewed, rule), modes=("fresh",)), {})
    assert form.views == (((1, rule),) * 2 if len(viewed) == 2 else ())
    assert not form.plans


def test_nodes_of_one_op_and_kernel_share_it_and_others_do_not() -> None:
    known: dict[tuple[int, ...], object] = {}
    first, second = kernel(PAIR), kernel(PAIR, inplace={"sum": ("x",)})
    one = form_of(node(PAIR, 3, 2), first, known)  # type: ignore[arg-type]
    assert form_of(node(PAIR, 3, 2), first, known) is one  # type: ignore[arg-type]
    assert form_of(node(PAIR, 3, 2), second, known).inplace == ((0,), ())  # type: ignore[arg-type]


def test_lists_are_told_apart_by_attributes() -> None:
    known: dict[tuple[int, ...], object] = {}
    lists = kernel(LISTS)
    forms = [form_of(node(LISTS, 3, n, N=n, M=3 - n), lists, known) for n in (1, 2)]  # type: ignore[arg-type]
    assert [[a.name for a in f.args] for f in forms] == [["a", "b", "b"], ["a", "a", "b"]]
    assert [f.outputs for f in forms] == [("y",), ("y", "y")]


def test_a_kernel_of_mode_whole_is_told_from_one_that_plans() -> None:
    form = form_of(node(PAIR, 3, 2), kernel(PAIR, modes=("fresh", "all_or_nothing")), {})
    assert form.all_or_nothing and not form.plans
