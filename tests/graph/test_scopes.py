"""Names of operations: what is legal, and numbers that make them unique."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.errors import InvalidArgumentError
from graphdock.graph.scopes import NameTable, check_name


def test_numbers_that_were_given_by_name_are_passed_over():
    table = NameTable()
    assert [table.unique(n) for n in ("n", "n_1", "n_2", "n", "n")] == ["n", "n_1", "n_2", "n_3", "n_4"]


def test_names_are_never_given_twice():
    table = NameTable()
    asked = [f"{stem}{end}" for stem in ("a", "b") for end in ("", "_1", "_1_1", "", "_2", "", "_1")] * 3
    given = [table.unique(n) for n in asked]
    assert len(set(given)) == len(given)


def test_a_name_that_is_only_looked_at_is_still_free():
    table = NameTable()
    table.unique("a")
    assert [table.unique("a", mark=False), table.unique("a", mark=False), table.unique("a")] == ["a_1", "a_1", "a_1"]
    assert table.unique("b", mark=False) == "b" == table.unique("b")


@pytest.mark.parametrize("name", ["a", "0", ".x", "A_b.c-d/e", "a>b", "a\\b"])
def test_legal_names(name):
    check_name(name)


@pytest.mark.parametrize("name", ["", "_a", "-a", "a b", "a:0", "ä", "/a", None, 3])
def test_illegal_names(name):
    with pytest.raises(InvalidArgumentError, match="is not a valid name"):
        check_name(name)


def test_below_a_scope_a_name_may_begin_with_an_underscore():
    check_name("_a", inner=True)
    with pytest.raises(InvalidArgumentError):
        check_name("a b", inner=True)


def test_names_that_were_taken_can_be_given_back():
    table = NameTable()
    table.unique("a")
    state = table.state()
    assert [table.unique("a"), table.unique("b")] == ["a_1", "b"]
    table.restore(state)
    assert [table.unique("b"), table.unique("a")] == ["b", "a_1"]


@pytest.mark.parametrize("name", ["x y/", "/", "a\n/", "-a/", "_a/", "//", "a//", "\u00e4/", "a:0/"])
def test_a_slash_at_the_end_makes_no_name_legal(name):
    """Such a name is an operation's whole one, or enters a scope again: it is checked all the same."""
    with tf.Graph().as_default() as graph:
        for use in (
            lambda: tf.constant(1.0, name=name),
            lambda: tf.identity(1.0, name=name),
            lambda: graph.create_op("NoOp", [], name=name),
            lambda: graph.name_scope(name).__enter__(),
        ):
            with pytest.raises(InvalidArgumentError, match="is not a valid name"):
                use()
        assert tf.constant(1.0, name="whole/name/").name == "whole/name:0"
        with graph.name_scope("again/"):
            assert tf.constant(1.0, name="x").name == "again/x:0"
