"""The expression language of specs: Python's integers for what is known, None for what depends on something unknown."""

from __future__ import annotations

import itertools
import random

import pytest
from graphdock.errors import OpSpecError
from graphdock.opdef.expression import DIMS, Language, compile_expression


@pytest.mark.parametrize(
    ("text", "value"), [("7 // 2", 3), ("-7 // 2", -4), ("7 % 4", 3), ("2 if 1 > 2 else 5", 5), ("max(1, 3) - 1", 2)]
)
def test_dim_expressions_stay_integers(text, value):
    found = compile_expression(text)[0]({})
    assert found == value and isinstance(found, int)


def random_expression(rng, depth=3):
    if depth == 0:
        return rng.choice(["a", "b", "c", str(rng.randrange(1, 9))])
    part = lambda: random_expression(rng, depth - 1)  # noqa: E731
    kind = rng.randrange(6)
    if kind == 0:
        return f"({part()} {rng.choice(['+', '-', '*'])} {part()})"
    if kind == 1:
        return f"({part()} // {rng.randrange(1, 9)})"
    if kind == 2:
        return f"(-{part()})"
    if kind == 3:
        return f"({part()} if {part()} {rng.choice(['<', '<=', '==', '!=', '>', '>='])} {part()} else {part()})"
    if kind == 4:
        return f"{rng.choice(['min', 'max'])}({part()}, {part()})"
    return f"({part()} % {rng.randrange(1, 9)})"


def test_known_values_give_what_python_gives():
    rng = random.Random(7)
    for _ in range(400):
        text = random_expression(rng)
        env = {name: rng.randrange(0, 20) for name in "abc"}
        evaluate, names = compile_expression(text)
        assert evaluate(env) == eval(text, {"min": min, "max": max}, env), text
        assert names == {n for n in "abc" if n in text.replace("max", "")}, text


def test_an_unknown_value_is_never_a_wrong_one():
    """With some names unknown the result is None, or what it is whatever those names stand for."""
    rng = random.Random(8)
    for _ in range(300):
        text = random_expression(rng, 2)
        env = {"a": rng.randrange(0, 6), "b": None, "c": rng.randrange(0, 6)}
        evaluate, _ = compile_expression(text)
        found = evaluate(env)
        if found is not None:
            assert {evaluate({**env, "b": b}) for b in range(12)} == {found}, text


@pytest.mark.parametrize(("a", "b"), list(itertools.product([True, False, None], repeat=2)))
def test_and_and_or_are_decided_as_soon_as_they_can_be(a, b):
    env = {"a": a, "b": b}
    both = compile_expression("a and b")[0](env)
    either = compile_expression("a or b")[0](env)
    assert both is (False if False in (a, b) else (None if None in (a, b) else True))
    assert either is (True if True in (a, b) else (None if None in (a, b) else False))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("broadcast(S, R)", (2, 3)),
        ("prod(S)", 3),
        ("rank(R)", 2),
        ("len(R)", 2),
        ("prod(U)", None),
        ("rank(U)", None),
        ("min(1, x)", None),
        ("mode == 'up'", True),
        ("not (mode == 'up')", False),
    ],
)
def test_runs_and_attributes(text, value):
    env = {"S": (3,), "R": (2, 1), "U": None, "x": None, "mode": "up"}
    assert compile_expression(text)[0](env) == value


@pytest.mark.parametrize(
    "text",
    ["", "a +", "a.b", "a[0]", "f(a)", "__import__('os')", "lambda: 1", "[a]", "a < b < c", "1.5", "a / b", "max(a=1)"],
)
def test_what_is_not_in_the_language_is_refused(text):
    with pytest.raises(OpSpecError):
        compile_expression(text)


def test_another_language_has_other_words():
    import ast
    import operator

    more = Language(
        {**DIMS.binary, ast.Div: operator.truediv},
        {"twice": lambda v: 2 * v},
        (int, float),
        {"name": lambda n: lambda env: n},
    )
    assert compile_expression("twice(a / 2) + 0.5", more)[0]({"a": 3}) == 3.5
    assert compile_expression("name(a)", more)[0]({}) == "a"
    with pytest.raises(OpSpecError):
        compile_expression("max(a, 1)", more)
