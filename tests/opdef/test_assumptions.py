"""What shape rules assume about dims that a plan does not know: of the feeds as conditions, of others of the node."""

from __future__ import annotations

import pytest
from graphdock.contracts import Conditions
from graphdock.errors import ShapeError
from graphdock.opdef.assumptions import Assumptions
from graphdock.shape import Symbol


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
