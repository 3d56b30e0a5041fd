"""Forms and kinds: computed once, never shared where attributes tell nodes apart; kernels are where they hold nothing of a node."""

from __future__ import annotations

import functools

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import ArgDef, AttrDef, Bound, In, KernelDef, Lit, OpDef, Out, ViewRule
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.rewriter import Builder
from graphdock.dtypes import float32
from graphdock_executor.lower.modes import attributes_of, form_of, is_shareable

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


OP = OpDef("lab.One", inputs=(ArgDef("x", "float32"),), outputs=(ArgDef("y", "float32"),))


def one(**attrs: object) -> PlanNode:
    builder = Builder()
    x = builder.input("x", float32, (2,))
    builder.node(OP, "n", [x], attrs, [(float32, (2,))])
    return builder.graph.nodes[0]


def closure(held: object):  # type: ignore[no-untyped-def]
    def compute(x: object, y: object) -> object:
        return held, x, y

    return compute


def fixed(value: float) -> np.ndarray:
    array = np.array(value)
    array.flags.writeable = False
    return array


PLAIN = closure(2)


@pytest.mark.parametrize(
    "held",
    [3, 2.5, np.tanh, np.dot, float32, fixed(1.0), (slice(2), ...), len, PLAIN, functools.partial(PLAIN, 2), "ok"],
)
def test_what_never_changes_is_shared(held) -> None:
    assert is_shareable(Bound(closure(held)), one(mode="ok"))


@pytest.mark.parametrize(
    "held", [[3], {}, np.zeros(()), np.zeros(2)[:1], object(), "n", [].append, (1, [2]), closure([])]
)
def test_what_may_be_state_or_a_name_is_not(held) -> None:
    assert not is_shareable(Bound(closure(held)), one(mode="ok"))
    assert not is_shareable(Bound(np.dot, args=(In(0), Lit(held), Out(0))), one(mode="ok"))


def test_attributes_are_told_apart_as_kernels_tell_them() -> None:
    assert attributes_of(one(a=0.0)) != attributes_of(one(a=-0.0))
    assert attributes_of(one(a=1, _host="x")) == attributes_of(one(a=1, _host="y"))
    assert attributes_of(one(a=[1])) is None


def test_nodes_alike_share_a_kernel_and_each_is_told_of_itself() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, other = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [4])
        y = tf.sigmoid(tf.sigmoid(tf.sigmoid(x))) + tf.sigmoid(other)[:3]
        plan = session._planner.plan([y], [], [(x, (3,)), (other, (4,))])
        builds = [b for b in plan.program._builder.builds if b.node.op == "Sigmoid"]
        assert len(builds) == 4 and all(b.ctx.node is b.node for b in builds)
        assert len({id(b.told) for b in builds}) == 3  # one is written over what the one before gave, as the next is
