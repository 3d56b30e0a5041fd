"""Shape functions of plugins, with symbols and without: a plan for any shape refuses what they refuse.

What shape rules assume about dims that a plan does not know: of the feeds as conditions, of others of the node.
"""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import ArgDef, Bound, Conditions, KernelDef, OpDef, hookimpl
from graphdock.errors import ShapeError
from graphdock.opdef.shape_context import Assumptions, ShapeContext, symbolic
from graphdock.plugin.host import Host
from graphdock.shape import Symbol


def even(ctx):
    """Knows no symbols."""
    x = ctx.shape("x")
    if x is not None and x[0] is not None and x[0] % 2:
        raise ctx.fail(f"{x[0]} rows are odd")
    return [x]


@symbolic
def paired(ctx):
    x, y = ctx.shape("x"), ctx.shape("y")
    if x is None or y is None:
        return [x]
    ctx.at_least(x[0], 2, "x has too few rows")
    ctx.one_or_equal(y[0], x[0], "y does not fit x")
    return [(ctx.equal(x[0], 2 * y[0] if isinstance(y[0], int) else ctx.derived("twice", y[0]), "y is not half of x"),)]


@symbolic
def twins(ctx):
    return [(ctx.equal(ctx.shape("x")[0], ctx.shape("y")[0], f"{ctx.shape('x')} and {ctx.shape('y')} differ"),)]


OPS = {"Even": (even, "x"), "Twins": (twins, "xy")}


@pytest.fixture
def host():
    host = Host()
    defs = [
        OpDef(
            f"ctx.{name}",
            inputs=tuple(ArgDef(n, "float64", "[_]") for n in names),
            outputs=(ArgDef("z", "float64"),),
            shape_fn=f"{__name__}:{rule.__name__}",
            package="ctx",
        )
        for name, (rule, names) in OPS.items()
    ]
    for opdef in defs:
        host.ops.add(opdef, "ctx")

    class Plugin:
        __name__ = "ctx"

        @hookimpl
        def register_kernels(self):
            return [
                KernelDef(d.name, "cpu", lambda ctx: Bound(lambda x, *rest: x.copy()), modes=("fresh",)) for d in defs
            ]

    host.register("ctx", Plugin())
    return host


def add(host, name, *inputs):
    opdef = host.ops.get(f"ctx.{name}")
    return tf.get_default_graph().add_op(opdef, inputs, {}).outputs[0]


def refused(session, fetch, feeds):
    try:
        session.run(fetch, feeds)
    except ShapeError as error:
        return error.message
    return None


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("policy", ["exact", "generic"])
def test_a_function_that_knows_no_symbols_is_asked_again(host, policy, late):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float64, [None])
        rows = tf.gather(x, tf.cast(tf.where(x > 0.0)[:, 0], tf.int32)) if late else x
        y = add(host, "Even", rows)
        with tf.Session(config=tf.SessionConfig(shape_policy=policy), host=host) as session:
            for count in (2, 3, 4, 3, 5, 2):
                message = refused(session, y, {x: np.ones(count)})
                assert (message is None) == (count % 2 == 0)
                assert message is None or message.startswith(f"ctx.Even: {count} rows are odd")


@pytest.mark.parametrize("late", [False, True])
def test_a_function_that_knows_symbols_says_what_it_could_not_check(host, late):
    with tf.Graph().as_default():
        x, y = (tf.placeholder(tf.float64, [None]) for _ in range(2))
        rows = tf.gather(x, tf.cast(tf.where(x > 0.0)[:, 0], tf.int32)) if late else x
        z = add(host, "Twins", rows, y)
        with tf.Session(config=tf.SessionConfig(shape_policy="generic"), host=host) as session:
            plan = session.plan(z)
            assert plan.graph.conditions.proven
            assert [n.op for n in plan.graph.nodes if n.guard] == (["ctx.Twins"] if late else [])
            assert plan.graph.conditions.equal == (() if late else (((0, 0), (1, 0)),))
            for a, b in ((2, 2), (2, 3), (3, 3), (1, 2)):
                message = refused(session, z, {x: np.ones(a), y: np.ones(b)})
                assert (message is None) == (a == b)
                assert message is None or f"({a},) and ({b},) differ" in message


def context(*shapes):
    opdef = OpDef("Test", inputs=tuple(ArgDef(n, "T") for n in "xy"))
    return ShapeContext(opdef, {}, [[s] for s in shapes], lambda i: None)


@pytest.mark.parametrize(
    ("x", "y", "refusal"),
    [
        ((4,), (2,), "y does not fit x"),
        ((2,), (1,), None),
        ((4,), (1,), "y is not half of x"),
        ((1,), (1,), "too few rows"),
        ((None,), (2,), None),
        (None, (2,), None),
    ],
)
def test_at_construction_what_is_known_is_checked_and_the_rest_is_none(x, y, refusal):
    if refusal is None:
        made = paired(context(x, y))
        assert made == [None if x is None else (2 * y[0],)]
    else:
        with pytest.raises(ShapeError, match=refusal):
            paired(context(x, y))


def test_a_context_without_symbols_derives_nothing():
    ctx = context((None,), (None,))
    assert ctx.derived("twice", 2) is None and ctx.canonical(3) == 3 and ctx.equal(None, None, "") is None
    ctx.unproven()
    assert "input shapes: x [?], y [?]" in ctx.fail("no").message


def fed(feed, axis=0):
    return Symbol(True, (feed, axis))


def late():
    return Symbol(False)


@pytest.fixture
def facts():
    return Assumptions()


def test_equal_dims_of_feeds_are_one_from_then_on(facts):
    a, b, c = fed(0), fed(1), fed(2)
    facts.begin([(a, b, c)])
    assert facts.equal(a, b) is facts.equal(b, a)
    facts.equal(b, c)
    assert facts.is_same(a, c) and facts.is_same((a, 3), (c, 3)) and not facts.is_same((a, 3), (c, 4))
    assert facts.conditions() == Conditions(equal=(((0, 0), (1, 0)), ((0, 0), (2, 0))))
    assert not facts.late


def test_a_number_says_more_than_a_symbol(facts):
    a = fed(0, 1)
    assert facts.equal(a, 784) == 784 and facts.equal(784, a) == 784
    assert facts.conditions().equal == (((0, 1), 784), (784, (0, 1)))
    assert facts.equal(a, a) is a


def test_a_long_chain_of_equal_dims_is_found_without_recursion(facts):
    dims = [fed(i) for i in range(20_000)]
    facts.begin([])
    for a, b in zip(dims, dims[1:], strict=False):
        facts.equal(b, a)
    assert facts.is_same(dims[0], dims[-1])


def test_what_only_a_step_knows_is_the_nodes_and_proves_nothing_later(facts):
    a, b = late(), fed(0)
    facts.begin([(a,), (b,)])
    assert facts.equal(a, b) is b and facts.late
    assert facts.conditions() == Conditions()
    facts.begin([(a,), (b,)])
    assert not facts.late and not facts.is_same(a, b)


def test_a_fed_symbol_that_is_no_feeds_dim_leaves_the_conditions_unproven(facts):
    a, b = fed(0), fed(1)
    facts.begin([(a, b)])
    half = facts.derived("half", a)
    assert half.fed and facts.derived("half", a) is half and facts.derived("half", b) is not half
    facts.equal(half, b)
    assert not facts.conditions().proven and not facts.late


def test_derived_symbols_of_equal_dims_are_the_same(facts):
    a, b = fed(0), fed(1)
    facts.equal(a, b)
    assert facts.derived("sum", a, 1) is facts.derived("sum", b, 1)
    assert not facts.derived("sum", a, late()).fed


def test_broadcasting_symbols(facts):
    a, b, d = fed(0), fed(1), late()
    facts.begin([(a,), (b,), (d,)])
    assert facts.broadcast((a, 3), (3,)) == (a, 3)
    assert facts.broadcast((a,), (1,), ()) == (a,)
    assert facts.conditions() == Conditions()
    assert facts.broadcast((a,), (5,)) == (5,)
    assert facts.conditions() == Conditions(one_or_equal=(((0, 0), 5),))
    assert facts.broadcast((a,), (b,)) == (
        a,
    )  # as if they were equal; where they are not, the whole graph is looked at
    assert facts.conditions().equal == (((0, 0), (1, 0)),) and not facts.late
    assert facts.broadcast((d,), (1,)) == (d,) and not facts.late
    (mixed,) = facts.broadcast((d,), (a,))
    assert facts.late and not mixed.fed and facts.broadcast((a,), (d,)) == (mixed,)
    with pytest.raises(ShapeError, match=r"\[\?,2\] and \[3\] cannot be broadcast"):
        facts.broadcast((a, 2), (3,))


def test_broadcasting_dims_that_follow_from_feeds_makes_a_symbol_of_its_own(facts):
    """One of them may be 1 after all, so that neither says what the result is."""
    a, b = fed(0), fed(1)
    facts.begin([(a,), (b,)])
    half, third = facts.derived("half", a), facts.derived("third", b)
    (both,) = facts.broadcast((half,), (b,))
    assert both.fed and both not in (half, b) and facts.broadcast((b,), (half,)) == (both,)
    assert not facts.conditions().proven and not facts.is_same(half, b)
    assert facts.broadcast((half,), (third,)) not in ((half,), (third,), (both,))
    assert facts.broadcast((half,), (half, half)) == (half, half) and not facts.late


def test_extents_are_renamed_to_the_symbol_that_stands_for_all(facts):
    a, b, other = fed(0), fed(1), fed(2)
    assert facts.canonical((a, b, 3)) == (a, b, 3)
    facts.broadcast((a,), (b,))
    assert facts.canonical((a, b, other, 3)) == (a, a, other, 3) and facts.canonical(None) is None


def test_broadcasting_an_unknown_rank(facts):
    rank = Symbol(True)
    facts.begin([rank])
    assert facts.broadcast(rank, (), rank) is rank and facts.conditions().proven
    assert facts.broadcast(rank, (3,)) is None and not facts.conditions().proven


def test_bounds_of_dims(facts):
    a, element = fed(0), Symbol(True, dim=False)
    facts.begin([(a,)])
    facts.at_least(a, 0)
    assert facts.conditions() == Conditions()
    facts.at_least(a, 2)
    facts.at_least(a, 1)
    facts.one_or_equal(a, a)
    assert facts.conditions() == Conditions(at_least=(((0, 0), 2),))
    facts.at_least(element, 0)
    assert not facts.conditions().proven


def test_elements_that_only_a_step_knows_are_the_kernels_to_check(facts):
    facts.begin([(3,)])
    facts.read((2, late()))
    facts.read(None)
    facts.unproven()
    assert not facts.late and facts.conditions().proven and not facts.fed
    facts.unknowing()
    assert facts.late
    facts.begin([(fed(0),)])
    facts.read((Symbol(True),))
    assert facts.fed
    facts.unproven()
    assert not facts.late and not facts.conditions().proven
