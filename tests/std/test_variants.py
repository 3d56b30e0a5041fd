"""Variants of one body: each has its own name and documentation, and the body's signature, types and errors."""

from __future__ import annotations

import inspect
import pickle
import typing

import graphdock as tf
import pytest
from graphdock_std.variants import variants


@variants
def _power(own: str, exponent: int, base: int, plus: int = 0, *, times: int = 1) -> str:
    return f"{own} {times * base**exponent + plus:d}"


square = _power("square", 2, "The square.")
cube = _power("cube", 3, "The cube.")


def test_a_variant_shows_the_signature_of_the_body_and_its_own_name() -> None:
    assert str(inspect.signature(cube)) == "(base: 'int', plus: 'int' = 0, *, times: 'int' = 1) -> 'str'"
    assert typing.get_type_hints(cube) == {"base": int, "plus": int, "times": int, "return": str}
    assert (cube.__name__, cube.__doc__, cube.__module__) == ("cube", "The cube.", __name__)
    assert pickle.loads(pickle.dumps(cube)) is cube


def test_a_variant_knows_what_it_differs_in() -> None:
    assert square(3) == "square 9" and cube(3, 1, times=2) == "cube 55"


@pytest.mark.parametrize(("arguments", "named"), [((), {}), ((1,), {"minus": 1}), ((1, 2, 3), {})])
def test_a_call_that_does_not_fit_is_told_by_the_variants_name(
    arguments: tuple[int, ...], named: dict[str, int]
) -> None:
    with pytest.raises(TypeError, match=r"^square\(\) "):
        square(*arguments, **named)  # type: ignore[arg-type]


def test_a_type_error_of_the_body_stays_as_it_is() -> None:
    with pytest.raises(TypeError, match="unsupported operand") as caught:
        square("a")  # type: ignore[arg-type]
    assert caught.traceback[-1].name == "_power"


def test_public_variants_can_be_told_apart() -> None:
    assert inspect.signature(tf.reduce_max) == inspect.signature(tf.reduce_min)
    assert tf.reduce_max.__doc__ != tf.reduce_min.__doc__ and tf.assert_less.__name__ == "assert_less"
