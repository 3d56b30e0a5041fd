"""In debug mode a C kernel is held to buffers that are made at the call, and to its constants."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Scratch
from graphdock_native.watch import Margins

SOURCE = """
GRAPHDOCK_KERNEL(kernel) {
    const int64_t n = call->inputs[0].size;
    float *x = (float *)call->inputs[0].data, *y = (float *)call->outputs[0].data;
    float *room = (float *)call->scratch[0].data, *table = (float *)call->constants[0].data;
    for (int64_t i = 0; i < n; i++) y[i] = (room[i] = table[0] * x[i]);
    FAULT
    return GD_OK;
}
"""


def run(lab, fault, shape, debug=True):
    config = lab.pin(
        SOURCE.replace("FAULT", fault),
        "lab.Twice",
        scratch=lambda shapes: [Scratch(tf.float32, shapes[0])],
        constants=[np.array([2.0, 5.0], np.float32)],
    )
    policy = "exact" if shape == [2] else "generic"
    with tf.Graph().as_default(), tf.Session(config=config.replace(debug=debug, shape_policy=policy)) as session:
        x = tf.placeholder(tf.float32, shape)
        y = lab.ops.twice(x)
        return [session.run(y, {x: value}).tolist() for value in ([1.0, 2.0], [3.0, 4.0])]


@pytest.mark.parametrize("shape", [[2], [None], None], ids=str)
@pytest.mark.parametrize("debug", [True, False])
def test_what_is_right_passes(lab, shape, debug):
    assert run(lab, "", shape, debug) == [[2.0, 4.0], [6.0, 8.0]]


@pytest.mark.parametrize("shape", [[2], [None], None], ids=str)
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("y[n] = 1;", "beside its output 'y'\n.*got up to 4 bytes behind its end"),
        ("y[-2] = 1;", "beside its output 'y'\n.*got up to 8 bytes before its beginning"),
        ("room[n + 1] = 1;", "beside (a )?scratch buffer.*\n.*got up to 8 bytes behind its end"),
        ("table[1] += 1;", "changed its constant 0\n  expected constants as they were"),
    ],
    ids=["behind", "before", "scratch", "constant"],
)
def test_what_reaches_too_far_is_said(lab, fault, message, shape):
    with pytest.raises(tf.errors.InternalError, match=message):
        run(lab, fault, shape)


def test_buffers_of_every_shape_have_margins():
    class Node:
        op = "Op"

    margins = Margins("symbol", Node)
    for shape in [(), (0,), (3,), (2, 0), (2, 3)]:
        for dtype in (np.dtype("float64"), tf.bfloat16.np, np.dtype("bool")):
            made = margins.new("it", shape, dtype)
            assert made.shape == shape and made.dtype == dtype and made.flags.c_contiguous
    margins.check()
    margins.new("it", (2,), np.dtype("int8")).base[-1] = 0
    with pytest.raises(tf.errors.InternalError, match="symbol of Op wrote beside it\n.*up to 64 bytes behind"):
        margins.check()
    margins.check()
