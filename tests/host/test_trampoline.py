"""Recursive visits that do not deepen the stack."""

import pytest
from graphdock.trampoline import trampoline


def test_a_deep_visit_returns_its_result():
    def depth_of(nested):
        found = 0
        for item in nested:
            found = max(found, (yield depth_of(item)))
        return found + 1

    nested = []
    for _ in range(20_000):
        nested = [nested]
    assert trampoline(depth_of(nested)) == 20_001
    while nested:
        nested = nested[0]  # taken apart from outside: freeing it at once would recurse


def test_an_error_goes_through_every_visit_around_it():
    seen = []

    def visit(n):
        try:
            if n == 0:
                raise ValueError("at the bottom")
            yield visit(n - 1)
        finally:
            seen.append(n)

    with pytest.raises(ValueError, match="at the bottom"):
        trampoline(visit(3))
    assert seen == [0, 1, 2, 3]


def test_a_visit_may_handle_the_error_of_an_inner_one():
    def failing():
        raise KeyError("inner")
        yield

    def visit():
        try:
            yield failing()
        except KeyError:
            return (yield fine())

    def fine():
        return 7
        yield

    assert trampoline(visit()) == 7


def test_an_interrupt_leaves_what_was_entered_innermost_first():
    left = []

    def visit(n):
        try:
            if n == 0:
                raise KeyboardInterrupt
            yield visit(n - 1)
        finally:
            left.append(n)

    with pytest.raises(KeyboardInterrupt):
        trampoline(visit(3))
    assert left == [0, 1, 2, 3]
