"""A function that takes what another one takes."""

from __future__ import annotations

import inspect

import pytest
from graphdock_tf1.signatures import changed, like


def model(a: int, b: str = "b", *, c: float = 1.0) -> float:
    """The one that is written down."""
    return c


@like(model, b="other")
def decorated(a, **more):
    """Its own words."""
    return a, more


def test_it_shows_what_the_model_takes_and_its_own_words():
    assert str(inspect.signature(decorated)) == "(a: 'int', b: 'str' = 'other', *, c: 'float' = 1.0) -> 'float'"
    assert inspect.get_annotations(decorated) == {"a": "int", "b": "str", "c": "float", "return": "float"}
    assert (decorated.__name__, decorated.__doc__) == ("decorated", "Its own words.")


def test_its_body_gets_each_argument_by_its_name():
    assert decorated(1) == (1, {"b": "other", "c": 1.0})
    assert decorated(b=2, a=1, c=3) == (1, {"b": 2, "c": 3})


@pytest.mark.parametrize(
    ("args", "keywords", "says"),
    [((), {}, "missing a required"), ((1, 2, 3), {}, "too many positional"), ((1,), {"d": 2}, "unexpected keyword")],
)
def test_what_it_does_not_take_is_an_error_of_its_name(args, keywords, says):
    with pytest.raises(TypeError, match=rf"^decorated\(\).*{says}"):
        decorated(*args, **keywords)


def test_arguments_may_be_left_out():
    assert list(changed(inspect.signature(model), without=("b",)).parameters) == ["a", "c"]


def test_what_the_model_does_not_take_can_not_be_changed():
    with pytest.raises(TypeError, match="has no d, e"):
        like(model, without=("d",), e=1)
