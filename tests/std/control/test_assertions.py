"""Assertions hold or fail as TensorFlow 1's do: while the step runs, or at once between constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def holds(assertion: Any, *args: Any, **kwargs: Any) -> bool:
    """Whether an assertion about fed values holds."""
    holders = [tf.placeholder(np.asarray(a).dtype, None) for a in args]
    with tf.control_dependencies([assertion(*holders, **kwargs)]):
        after = tf.constant(1)
    with tf.Session() as session:
        try:
            session.run(after, dict(zip(holders, args, strict=True)))
        except tf.errors.InvalidArgumentError:
            return False
    return True


ONE_TWO, TWO_TWO = np.array([1, 2], np.int32), np.array([2, 2], np.int32)


@pytest.mark.parametrize(
    ("name", "x", "y", "expected"),
    [
        ("equal", ONE_TWO, ONE_TWO, True),
        ("equal", ONE_TWO, TWO_TWO, False),
        ("none_equal", ONE_TWO, ONE_TWO + 1, True),
        ("none_equal", ONE_TWO, TWO_TWO, False),
        ("less", ONE_TWO, np.int32(3), True),
        ("less", ONE_TWO, TWO_TWO, False),
        ("less_equal", ONE_TWO, TWO_TWO, True),
        ("less_equal", TWO_TWO, ONE_TWO, False),
        ("greater", ONE_TWO, np.int32(0), True),
        ("greater", TWO_TWO, ONE_TWO, False),
        ("greater_equal", TWO_TWO, ONE_TWO, True),
        ("greater_equal", ONE_TWO, TWO_TWO, False),
        ("equal", np.zeros(0, np.float32), np.float32(1), True),
    ],
)
def test_comparisons(name: str, x: Any, y: Any, expected: bool) -> None:
    assertion = getattr(tf, f"assert_{name}")
    assert getattr(tf.debugging, f"assert_{name}") is assertion
    assert holds(assertion, x, y) is expected
    if expected:
        assert isinstance(assertion(tf.constant(x), tf.constant(y)), tf.Operation)
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="for my reasons"):
            assertion(tf.constant(x), tf.constant(y), message="for my reasons")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("negative", [-1.0, -2.0], [-1.0, 0.0]),
        ("positive", [1.0, 2.0], [1.0, 0.0]),
        ("non_negative", [0.0, 2.0], [0.0, -1.0]),
        ("non_positive", [0.0, -2.0], [0.0, 1.0]),
    ],
)
def test_signs(name: str, good: list[float], bad: list[float]) -> None:
    assertion = getattr(tf, f"assert_{name}")
    assert holds(assertion, np.float32(good)) and not holds(assertion, np.float32(bad))
    assert not holds(assertion, np.float32([np.nan]))


def test_near() -> None:
    x = np.float32([1.0, 100.0])
    assert holds(tf.assert_near, x, x * np.float32(1 + 1e-7))
    assert not holds(tf.assert_near, x, x + np.float32(1e-4))
    assert holds(tf.assert_near, x, x + np.float32(1e-4), atol=1e-3)
    assert holds(tf.assert_near, x, x * np.float32(1.01), rtol=0.02)
    assert not holds(tf.assert_near, np.float32([np.nan]), np.float32([np.nan]))


def test_the_error_shows_the_data() -> None:
    x = tf.placeholder(tf.int32, [None], name="lengths")
    with tf.control_dependencies([tf.assert_positive(x, message="no empty rows", summarize=5)]):
        after = tf.identity(x)
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"no empty rows.*lengths:0.*\[3 0\]"):
            session.run(after, {x: [3, 0]})
        assert session.run(after, {x: [3, 1]}).tolist() == [3, 1]
    with tf.control_dependencies([tf.assert_positive(x, data=["given", x])]), tf.Session() as session:
        after = tf.identity(x)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"given.*\[0\]"):
            session.run(after, {x: [0]})


def test_orders() -> None:
    with tf.Session() as session:
        for values, rising, strictly in [
            ([1, 2, 2], 1, 0),
            ([1, 2, 3], 1, 1),
            ([2, 1], 0, 0),
            ([7], 1, 1),
            ([[1, 3], [2, 4]], 0, 0),
        ]:
            x = tf.constant(values)
            assert session.run([tf.is_non_decreasing(x), tf.is_strictly_increasing(x)]) == [rising, strictly]
    with pytest.raises(TypeError, match="order"):
        tf.is_non_decreasing(tf.constant(["a"]))


def test_what_is_a_tensor_of_numbers() -> None:
    assert tf.is_numeric_tensor(tf.constant(1.0)) and tf.debugging.is_numeric_tensor(tf.Variable(1))
    assert not any(tf.is_numeric_tensor(v) for v in (tf.constant("a"), tf.constant(True), np.ones(2), 1.0))


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("positive", ([-1.0],), "Condition x > 0 did not hold"),
        ("non_negative", ([-1.0],), "Condition x >= 0 did not hold"),
        ("less", ([1.0], [0.0]), "Condition x < y did not hold element-wise"),
        ("equal", ([1.0], [0.0]), "Condition x == y did not hold element-wise"),
        ("near", ([1.0], [0.0]), "x and y not equal to tolerance"),
    ],
)
@pytest.mark.parametrize("known", [False, True])
def test_words_that_programs_look_for(name: str, args: Any, words: str, known: bool) -> None:
    """TensorFlow's, and the message of one's own before them."""
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"mine.*{words}"), tf.Session() as session:
        given = [tf.constant(a) if known else tf.placeholder_with_default(np.float32(a), [1]) for a in args]
        session.run(getattr(tf, f"assert_{name}")(*given, message="mine"))
