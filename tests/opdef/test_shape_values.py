"""The evaluator of known integers: plugins' rules, its memo, and what it does with what a rule may not return."""

from __future__ import annotations

import gc
import weakref

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts.opdef import ArgDef, OpDef, TypeVarDef
from graphdock.errors import InternalError, InvalidArgumentError
from graphdock.opdef import shape_values
from graphdock.opdef.shape_values import KnownIntegers, Origin, is_known


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


CALLS = []


def doubled(ctx):
    CALLS.append(ctx)
    value = ctx.value(0)
    return tuple(2 * v if isinstance(v, int) else None for v in value) if isinstance(value, tuple) else None


def halves(ctx):
    value = ctx.value(0)
    return None if value is None else [value[: len(value) // 2], value[len(value) // 2 :]]


def broken(ctx):
    return (1.5,)


def short(ctx):
    return [(1,)]


def op(rule, outputs=1):
    outs = tuple(ArgDef(f"y{i}", "T", "[_]") for i in range(outputs))
    name = f"t.{rule.title()}"
    return OpDef(
        name,
        inputs=(ArgDef("x", "T", "[_]"),),
        outputs=outs,
        types=(TypeVarDef("T"),),
        evaluate=f"{__name__}:{rule}",
        package="someones",
    )


def add(opdef, x):
    return tf.get_default_graph().add_op(opdef, [x], {"T": x.dtype}).outputs


def test_a_plugins_rule_is_asked_and_its_result_wraps_around_in_the_outputs_dtype():
    (y,) = add(op("doubled"), tf.constant([3, 100], tf.int8))
    assert tf.zeros(tf.cast(y, tf.int32) + 60).shape == [66, 4]
    context = CALLS[-1]
    assert (context.inputs, context.outputs, context.dims(0), context.opdef.package) == (1, 1, (2,), "someones")
    assert context.dtype(0) is context.output_dtype() is tf.int8 and context.limit == 1024


def test_a_rule_of_several_outputs_returns_a_list():
    first, second = add(op("halves", 2), tf.constant([4, 5, 6, 7]))
    assert tf.zeros(first).shape == [4, 5] and tf.zeros(second).shape == [6, 7]


@pytest.mark.parametrize(("rule", "outputs", "what"), [("broken", 1, "element 1.5"), ("short", 2, "1 results for 2")])
def test_a_rule_that_breaks_its_contract_is_named_with_its_package(rule, outputs, what):
    made = add(op(rule, outputs), tf.constant([1, 2]))
    with pytest.raises(InternalError, match=f"{rule} of t.{rule.title()} of package someones returned.*{what}"):
        tf.zeros(made[0])


def test_results_beyond_the_limit_are_not_kept():
    many = tf.constant(np.zeros(shape_values.LIMIT, np.int32))
    assert is_known(tf.get_default_graph()._known(many))
    assert tf.get_default_graph()._known(tf.concat([many, many], 0)) is None
    assert tf.get_default_graph()._known(tf.fill([shape_values.LIMIT + 1], 0)) is None


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.exhaustive)])
def test_a_long_chain_of_operations_is_evaluated_without_recursion_and_each_once(count):
    CALLS.clear()
    opdef, x = op("doubled"), tf.constant([1])
    for i in range(count):
        (x,) = add(opdef, x)
        if i >= 40 and i % 1000 == 0:
            tf.zeros(x + i)
    assert tf.zeros(x + 2).shape == [2]  # doubled 32 times it is 0
    assert len(CALLS) == count


def test_a_memo_holds_a_bounded_number_of_elements_and_a_chain_stays_linear():
    counts = []

    def origin_of(n):
        opdef = OpDef("Link", evaluate=f"{__name__}:link")
        return Origin(n, opdef, {"n": n, "ran": counts}, [Link(n - 1)] if n else [], [n], 0)

    class Link(int):
        dtype = tf.int32

    memo = KnownIntegers(origin_of, lambda n: (8,), budget=500)
    for end in (2000, *range(2001, 2200)):
        assert memo.value(Link(end)) == (end,) * 8
        assert memo._held <= 500
    assert len(counts) == 2200


def link(ctx):
    ctx.attrs["ran"].append(ctx.attrs["n"])
    return tuple(v + 1 for v in ctx.value(0)) if ctx.inputs else (0,) * 8


def test_a_memo_goes_with_its_graph():
    graph = tf.Graph()
    with graph.as_default():
        tf.zeros(tf.shape(tf.placeholder(tf.float32, [3, None]))[:1] + 1)
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None


def test_what_set_shape_adds_is_known_to_whatever_depends_on_it():
    x, y = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32)
    h = tf.shape(x)
    for _ in range(3):
        h = h * 2
    assert tf.reshape(y, h).shape == [None, None]
    x.set_shape([None, 5])
    assert tf.reshape(y, h).shape == [None, 40]
    x.set_shape([3, 5])
    assert tf.reshape(y, h).shape == [24, 40]


def test_a_dim_that_the_output_type_does_not_hold_is_refused_by_the_step():
    big = np.zeros((3 << 30, 0), np.float32)
    static, loose = tf.placeholder(tf.float32, [3 << 30, 0]), tf.placeholder(tf.float32)
    for policy in ("exact", "generic"):
        with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess:
            for x in (static, loose):
                with pytest.raises(InvalidArgumentError, match="3221225472.*int32 does not hold"):
                    sess.run(tf.shape(x), {x: big})
                assert sess.run(tf.shape(x, out_type=tf.int64), {x: big}).tolist() == [3 << 30, 0]
                assert sess.run(tf.size(x), {x: big}) == 0


def test_a_shape_of_many_branches_is_evaluated_once():
    x = tf.placeholder(tf.float32, [None, 7])
    h = tf.shape(x)[1]
    for _ in range(200):
        h = (h + h) // 2
    assert tf.zeros(tf.stack([h, h])).shape == [7, 7]
