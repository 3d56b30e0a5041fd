"""Conditions of a plan against shapes worked out by hand."""

from __future__ import annotations

import pytest
from graphdock.contracts import Conditions

X, Y = (0, 0), (1, 1)


@pytest.mark.parametrize(
    ("conditions", "shapes", "holds"),
    [
        (Conditions(), [(), (3,)], True),
        (Conditions(proven=False), [], False),
        (Conditions(equal=((X, Y),)), [(4,), (2, 4)], True),
        (Conditions(equal=((X, Y),)), [(4,), (4, 2)], False),
        (Conditions(equal=((X, 7),)), [(7,)], True),
        (Conditions(equal=((X, 7), (X, 8))), [(7,)], False),
        (Conditions(one_or_equal=((X, Y),)), [(1,), (0, 5)], True),
        (Conditions(one_or_equal=((X, Y),)), [(5,), (0, 5)], True),
        (Conditions(one_or_equal=((X, Y),)), [(5,), (0, 1)], False),
        (Conditions(one_or_equal=((X, 3),)), [(0,)], False),
        (Conditions(at_least=((Y, 2),)), [(), (0, 2)], True),
        (Conditions(at_least=((Y, 2),)), [(), (9, 1)], False),
    ],
)
def test_conditions_are_conjunctions_over_the_feeds_dims(conditions, shapes, holds):
    assert conditions.hold(shapes) is holds
