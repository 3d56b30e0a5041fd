"""An op whose spec says that it keeps 0 is a function of one element, and 0 of 0 in every dtype that it takes."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import dtypes

KEEPING = [name for name in tf.default_host().ops.names() if "keeps_zero" in tf.default_host().ops.get(name).traits]


def test_some_do():
    assert len(KEEPING) >= 7


@pytest.mark.parametrize("op_type", KEEPING)
def test_zero_of_zero(op_type):
    opdef = tf.default_host().ops.get(op_type)
    (arg,) = opdef.inputs
    assert "elementwise" in opdef.traits or opdef.identity == arg.name
    assert len(opdef.outputs) == 1 and arg.arity == "one"
    with tf.Graph().as_default(), tf.Session() as sess:
        for name in {*opdef.types[0].allow} - {"string", "resource", "variant"}:
            zeros = np.zeros(3, dtypes.as_dtype(name).np)
            assert np.array_equal(sess.run(tf.ops.apply_op(op_type, **{arg.name: zeros})), zeros), name
