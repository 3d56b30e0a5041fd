"""The assertions of ``tf.test.TestCase`` hold and fail as TensorFlow's do."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

from tests.tf1.testing.assertion_cases import CASES, answers

#: The answers of TensorFlow 2.21.0, in the order of the cases.
TENSORFLOW = """
holds AssertionError holds holds AssertionError AssertionError holds AssertionError holds AssertionError holds
holds AssertionError AssertionError holds AssertionError ValueError holds AssertionError AssertionError holds
AssertionError holds AssertionError holds AssertionError holds holds AssertionError holds AssertionError
AssertionError holds holds AssertionError holds AssertionError holds AssertionError holds AssertionError holds
AssertionError holds AssertionError holds AssertionError AssertionError AssertionError holds AssertionError
holds AssertionError holds holds AssertionError holds AssertionError TypeError
"""


def test_assertions_answer_as_tensorflows() -> None:
    wrong = [
        (case, ours, theirs)
        for case, ours, theirs in zip(CASES, answers(tf.test.TestCase()), TENSORFLOW.split(), strict=True)
        if ours != theirs
    ]
    assert wrong == []


def test_tensors_are_evaluated() -> None:
    case = tf.test.TestCase()
    case.setUp()
    with case.session():
        case.assertAllEqual(tf.constant([1, 2]), [1, 2])
        case.assertAllClose({"a": tf.constant(1.0), "b": [tf.constant([2.0]), 3.0]}, {"a": 1.0, "b": [[2.0], 3.0]})
        case.assertShapeEqual(np.zeros([2, 3]), tf.zeros([2, 3]))
        with pytest.raises(AssertionError):
            case.assertAllClose([tf.constant(1.0), 2.0], [1.0, 2.5])
        with pytest.raises(AssertionError):
            case.assertShapeEqual(np.zeros([2, 3]), tf.zeros([3, 2]))
        with pytest.raises(TypeError, match="tf_tensor must be a Tensor"):
            case.assertShapeEqual(np.zeros([2, 3]), np.zeros([2, 3]))


def test_messages_equal_their_texts() -> None:
    case = tf.test.TestCase()
    node = tf.NodeDef(name="a", op="Const")
    case.assertProtoEquals("name: 'a' op: 'Const'", node)
    case.assertProtoEquals(tf.NodeDef(name="a", op="Const"), node)
    with pytest.raises(AssertionError):
        case.assertProtoEquals("name: 'b' op: 'Const'", node)
    with pytest.raises(AssertionError, match="Can't compare protos"):
        case.assertProtoEquals(tf.GraphDef(), node)


def test_names_that_python_dropped_are_there() -> None:
    case = tf.test.TestCase()
    case.assertEquals(1, 1)
    case.assertRegexpMatches("abc", "b")
    with case.assertRaisesRegexp(ValueError, "x"):
        raise ValueError("x")
