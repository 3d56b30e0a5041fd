"""Python operators on tensors: whose dtype the other side takes, and what is said where no library declares one."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import UnknownOpError
from graphdock.ops.operators import apply_operator


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float64", "uint8"])
def test_the_other_side_takes_the_tensors_dtype(dtype):
    x = tf.placeholder(dtype, [2])
    assert {(x + 1).dtype, (1 + x).dtype, (x * np.ones(2, np.int8)).dtype, (2 - x).dtype} == {x.dtype}


def test_a_reflected_operator_keeps_the_order():
    x = tf.constant([2.0, 4.0])
    with tf.Session() as sess:
        got = sess.run([1.0 - x, 8.0 / x, 2.0**x, 9.0 % x, 9.0 // x])
    want = [[-1, -3], [4, 2], [4, 16], [1, 1], [4, 2]]
    assert [g.tolist() for g in got] == want


def test_an_operator_that_no_library_declares(graph):
    with pytest.raises(UnknownOpError, match="declares the operator __rshift__") as caught:
        apply_operator("__rshift__", tf.constant(1), 1)
    assert "std" in caught.value.hint
    with pytest.raises(TypeError):
        _ = tf.constant(1) >> 1
