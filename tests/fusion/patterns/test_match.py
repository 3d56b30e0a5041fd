"""Matching small graphs in larger ones, held to how the larger ones were made."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import Builder
from graphdock.dtypes import float32, int32
from graphdock.plugin.host import default_host
from graphdock_fusion.patterns.match import Index, Match, Matcher


def op(name):
    return default_host().ops.get(name)


class Drawn:
    """Builds plans: ``d.add("Mul", a, b)``."""

    def __init__(self):
        self.builder = Builder()
        self.made = 0

    def input(self, shape=(4, 4)):
        self.made += 1
        return self.builder.input(f"in{self.made}", float32, shape)

    def add(self, type_, *values, shape=(4, 4), **attrs):
        self.made += 1
        attrs = {"T": float32, **attrs}
        (out,) = self.builder.node(op(type_), f"n{self.made}", list(values), attrs, [(float32, shape)])
        return out

    def number(self, value, dtype=float32):
        self.made += 1
        array = np.asarray(value, dtype.np)
        array.flags.writeable = False
        attrs = {"value": array, "dtype": dtype}
        (out,) = self.builder.node(op("Const"), f"n{self.made}", [], attrs, [(dtype, array.shape)])
        return out


def polynomial(d, x, y, turned=False):
    """sin(x) * (y + exp(sin(x)))"""
    a = d.add("Sin", x)
    b = d.add("Exp", a)
    c = d.add("Add", b, y) if turned else d.add("Add", y, b)
    return d.add("Mul", c, a) if turned else d.add("Mul", a, c)


@pytest.mark.parametrize("turned", [False, True])
def test_commutative_operands_in_any_order(turned):
    small, large = Drawn(), Drawn()
    sought = polynomial(small, small.input(), small.input())
    p, q = large.input(), large.input()
    around = large.add("Cos", p)
    value = polynomial(large, around, q, turned)
    large.builder.finish([large.add("Neg", value)])
    graph = small.builder.finish([sought])
    found = Matcher(Index(large.builder.graph), graph).extend(Match(), [(sought, value)], [sought])
    assert [found.values[v] for v in graph.inputs] == [around, q]
    assert {n.op for n in found.found.values()} == {"Sin", "Exp", "Add", "Mul"}


def test_readers_lead_on_from_any_node():
    """From a node in the middle both ways: to what it reads, and to who reads it."""
    small, large = Drawn(), Drawn()
    sought = polynomial(small, small.input(), small.input())
    graph = small.builder.finish([sought])
    middle = next(n for n in graph.nodes if n.op == "Exp").outputs[0]
    value = polynomial(large, large.input(), large.input())
    decoy = large.add("Add", large.add("Exp", value), value)
    large.builder.finish([decoy])
    index = Index(large.builder.graph)
    right, wrong = index.by_op["Exp"]
    matcher = Matcher(index, graph)
    assert matcher.extend(Match(), [(middle, right.outputs[0])], [sought]).values[sought] is value
    assert matcher.extend(Match(), [(middle, wrong.outputs[0])], [sought]) is None
    assert Matcher(index, graph, gone=[right]).extend(Match(), [(middle, right.outputs[0])], [sought]) is None


def test_one_tensor_for_two_inputs_and_two_for_one():
    small, large = Drawn(), Drawn()
    x = small.input()
    square = small.builder.finish([small.add("Mul", x, x)])
    a, b = large.input(), large.input()
    same, other = large.add("Mul", a, a), large.add("Mul", a, b)
    large.builder.finish([same, other])
    matcher = Matcher(Index(large.builder.graph), square)
    assert matcher.extend(Match(), [(square.outputs[0], same)]) is not None
    assert matcher.extend(Match(), [(square.outputs[0], other)]) is None


def test_a_sum_at_the_rim_may_have_more_summands():
    small, large = Drawn(), Drawn()
    x = small.input()
    inner = small.add("Sin", x), small.add("Cos", x)
    graph = small.builder.finish([small.add("AddN", *inner, N=2)])
    p, q = large.input(), large.input()
    terms = [large.add("Cos", q), large.add("Cos", p), q, large.add("Sin", p), q]
    total = large.add("AddN", *terms, N=5)
    large.builder.finish([total])
    index = Index(large.builder.graph)
    goals = [(graph.inputs[0], p), (graph.outputs[0], total)]
    found = Matcher(index, graph).extend(Match(), goals, graph.outputs)
    assert found.rest == {graph.outputs[0].node: (terms[0], q, q)}
    # within a graph a sum is the whole sum
    outer = small.add("Neg", graph.outputs[0])
    assert Matcher(index, graph).extend(Match(), [(graph.outputs[0], total)], [outer]) is None


@pytest.mark.parametrize(
    ("mine", "theirs", "same"),
    [
        (-1, 1, True),
        ([-1], 1, True),
        ([0, 1], [1, 0], True),
        ([-1, -2], [0, 1], True),
        (0, 1, False),
        ([0, 1], 1, False),
    ],
)
def test_axes_are_the_same_however_they_are_written(mine, theirs, same):
    graphs = []
    for axis in (mine, theirs):
        d = Drawn()
        total = d.add("Sum", d.input(), d.number(axis, int32), shape=(4,), Tidx=int32, keep_dims=False)
        graphs.append(d.builder.finish([total]))
    found = Matcher(Index(graphs[1]), graphs[0]).extend(Match(), [(graphs[0].outputs[0], graphs[1].outputs[0])])
    assert (found is not None) == same


@pytest.mark.parametrize(
    ("number", "same"),
    [(0.1, True), (0.1 * (1 + 2e-7), True), (0.1 * (1 + 1e-5), False), (np.nan, False), ([0.1], False)],
)
def test_constants_up_to_rounding(number, same):
    graphs = []
    for value in (0.1, number):
        d = Drawn()
        graphs.append(d.builder.finish([d.add("Mul", d.input(), d.number(value))]))
    found = Matcher(Index(graphs[1]), graphs[0]).extend(Match(), [(graphs[0].outputs[0], graphs[1].outputs[0])])
    assert (found is not None) == same


def test_attributes_ranks_and_closed_inputs():
    small = Drawn()
    x, factor = small.input((None, 4)), small.input(())
    graph = small.builder.finish([small.add("Mul", x, factor)])
    for shape, constant, fits in (
        ((3, 4), True, True),
        ((3, 4), False, False),
        ((3, 5), True, False),
        ((3,), True, False),
    ):
        large = Drawn()
        number = large.number(2.0) if constant else large.input(())
        value = large.add("Mul", large.input(shape), number)
        large.builder.finish([value])
        matcher = Matcher(Index(large.builder.graph), graph, closed=[factor])
        assert (matcher.extend(Match(), [(graph.outputs[0], value)]) is not None) == fits


@pytest.mark.parametrize(
    ("columns", "rows", "found"),
    [(0.25, 0.25, True), (0.25, 0.5, False), ([[1.0], [2.0], [3.0], [4.0]], 1.0, False), (np.nan, np.nan, False)],
)
def test_a_view_of_what_is_one_number_everywhere_is_a_constant(columns, rows, found):
    """As the gradient that reaches a mean; all views say the same number."""
    small, large = Drawn(), Drawn()
    g, x = small.input((4,)), small.input()
    down = small.add("ExpandDims", g, small.number(1, int32), shape=(4, 1), Tdim=int32)
    across = small.add("Reshape", g, small.number([1, 4], int32), shape=(1, 4), Tshape=int32)
    graph = small.builder.finish([small.add("Mul", small.add("Mul", down, x), across)])
    p = large.input()
    numbers = large.number(np.broadcast_to(columns, (4, 1))), large.number(np.broadcast_to(rows, (1, 4)))
    value = large.add("Mul", numbers[1], large.add("Mul", p, numbers[0]))
    large.builder.finish([value])
    index, goals = Index(large.builder.graph), [(graph.outputs[0], value)]
    match = Matcher(index, graph, even=[g]).extend(Match(), goals, graph.outputs)
    assert (match is not None) == found
    assert Matcher(index, graph).extend(Match(), goals, graph.outputs) is None
    if match is not None:
        (made,) = match.even.values()
        assert match.values[g] is made.outputs[0] and made.outputs[0].shape == (4,)
        assert made.attrs["value"].tolist() == [0.25] * 4 and match.values[x] is p
        assert {n.op for n in match.found} == {"Mul"}


def test_what_the_fewest_read_leads_on_first():
    """As in a loop that was written out: all its steps read one weight, and each its own value."""
    small, large = Drawn(), Drawn()
    weight, value, arriving = small.input(), small.input(), small.input()
    targets = [small.add("Sub", value, arriving), small.add("Sub", arriving, weight)]
    graph = small.builder.finish(targets)
    shared = large.input()
    steps = [(large.input(), large.input()) for _ in range(50)]
    large.builder.finish([large.add("Sub", *two) for g, x in steps for two in ((g, shared), (x, g))])
    matcher = Matcher(Index(large.builder.graph), graph)
    g, x = steps[-1]
    found = matcher.extend(Match(), [(weight, shared), (value, x)], targets)
    assert found.values[arriving] is g
    assert matcher._tries == 2


def test_a_search_ends():
    """Sums of the same things in a hundred ways: given up, and in little time."""
    small, large = Drawn(), Drawn()
    x = small.input()
    graph = small.builder.finish([small.add("AddN", *[small.add("Sin", small.add("Sin", x)) for _ in range(9)], N=9)])
    p = large.input()
    value = large.add("AddN", *[large.add("Sin", large.add("Sin", large.add("Exp", p))) for _ in range(9)], N=9)
    large.builder.finish([value])
    assert Matcher(Index(large.builder.graph), graph).extend(Match(), [(graph.outputs[0], value)]) is None


def test_tables_lead_on_where_nothing_else_does():
    """Numbers do not: many read the same ones."""
    for array, found in ((np.arange(16.0).reshape(4, 4), True), (np.asarray(3.0), False)):
        small, large = Drawn(), Drawn()
        table, other = small.number(array), small.input()
        forward, back = small.add("Mul", small.input(), table), small.add("Neg", small.add("Mul", other, table))
        small.builder.finish([forward, back])
        wide = large.number(array)
        product = large.add("Mul", large.input(), wide)
        slope = large.add("Neg", large.add("Mul", large.input(), wide))
        large.builder.finish([product, slope])
        matcher = Matcher(Index(large.builder.graph), small.builder.graph)
        match = matcher.extend(Match(), [(forward, product)], [forward])
        longer = matcher.extend(match, targets=[back])
        assert (longer is not None and longer.values[back] is slope) == found
