"""Ops that are called otherwise in TensorFlow, or are several here, compute what TensorFlow's documentation says."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, NotFoundError, UnknownOpError
from graphdock_tensorflow.graphs.table import ATTRS, NAMES, OUTPUTS, WRITE_AS

F, I, B = tf.float32, tf.int32, tf.bool
X = np.array([[1.0, -2.0, 3.0], [-4.0, 5.0, 0.5]], np.float32)

#: Op -> values of its inputs, attributes, output, and what it should give.
CASES = [
    ("AddV2", (X, X), {"T": F}, 0, X + X),
    ("Div", (X, X), {"T": F}, 0, X / X),
    ("Div", (np.int32(-7), np.int32(2)), {"T": I}, 0, -3),
    ("Gather", (X, np.array([1, 0])), {"Tparams": F, "Tindices": tf.int64}, 0, X[[1, 0]]),
    ("GatherV2", (X, np.int32(2), np.int32(1)), {"Tparams": F, "Tindices": I, "Taxis": I, "batch_dims": 0}, 0, X[:, 2]),
    ("Concat", (np.int32(1), X, X), {"N": 2, "T": F}, 0, np.concatenate([X, X], 1)),
    ("ConcatV2", (X, X, np.int32(0)), {"N": 2, "T": F, "Tidx": I}, 0, np.concatenate([X, X])),
    ("Pad", (X, np.int32([[1, 0], [0, 2]])), {"T": F, "Tpaddings": I}, 0, np.pad(X, [[1, 0], [0, 2]])),
    ("MirrorPad", (X, np.int32([[1, 0], [0, 2]])), {"T": F, "Tpaddings": I, "mode": "REFLECT"}, 0,
     np.pad(X, [[1, 0], [0, 2]], "reflect")),
    ("BatchMatMulV2", (X, X), {"T": F, "adj_x": False, "adj_y": True}, 0, X @ X.T),
    ("Select", (np.array([True, False]), X, -X), {"T": F}, 0, np.where([[True], [False]], X, -X)),
    ("Select", (np.array(True), X, -X), {"T": F}, 0, X),
    ("Select", (X > 0, X, -X), {"T": F}, 0, abs(X)),
    ("SelectV2", (np.array([True, False, True]), X, np.float32(9)), {"T": F}, 0, np.where([True, False, True], X, 9)),
    ("TopK", (X,), {"T": F, "k": 2, "sorted": True}, 0, [[3, 1], [5, 0.5]]),
    ("ShapeN", (X, X[0]), {"T": F, "N": 2, "out_type": I}, 1, [3]),
    ("ConcatOffset", (np.int32(1), np.int32([2, 3]), np.int32([2, 4]), np.int32([2, 1])), {"N": 3}, 2, [0, 7]),
    ("ReciprocalGrad", (1 / X, X), {"T": F}, 0, -X / X**2),
    ("SqrtGrad", (abs(X), X), {"T": F}, 0, X * 0.5 / abs(X)),
    ("RsqrtGrad", (abs(X), X), {"T": F}, 0, -0.5 * X * abs(X) ** 3),
    ("SoftplusGrad", (X, X), {"T": F}, 0, X / (1 + np.exp(-X))),
    ("SoftsignGrad", (X, X), {"T": F}, 0, X / (1 + abs(X)) ** 2),
    ("EluGrad", (X, X), {"T": F}, 0, np.where(X < 0, X * (X + 1), X)),
    ("Relu6Grad", (X, 2.5 * X), {"T": F}, 0, np.where((X > 0) & (2.5 * X < 6), X, 0)),
    ("LeakyReluGrad", (X, -X), {"T": F, "alpha": 0.25}, 0, np.where(X < 0, X, X * 0.25)),
    ("PreventGradient", (X,), {"T": F, "message": "no"}, 0, X),
    ("Squeeze", (X[:, :1],), {"T": F}, 0, X[:, 0]),
    ("OneHot", (np.int32(1), np.int32(3), np.float32(1), np.float32(0)), {"T": F, "TI": I, "axis": -1}, 0, [0, 1, 0]),
    ("Fill", (np.int32([2]), np.float32(3)), {"T": F, "index_type": I}, 0, [3, 3]),
    ("UnsortedSegmentSum", (X, np.int32([1, 1]), np.int32(2)), {"T": F, "Tindices": I, "Tnumsegments": I}, 0,
     [[0, 0, 0], X.sum(0)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "values", "attrs", "port", "expected"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_an_op_of_another_name_or_form(made, op, values, attrs, port, expected):
    for i, value in enumerate(values):
        made.const(f"in{i}", value)
    made.node("y", op, *[f"in{i}" for i in range(len(values))], **attrs)
    np.testing.assert_allclose(made.run(f"y:{port}"), expected, 1e-6)


def test_sums_that_undo_a_broadcast(made):
    made.node("g", "Placeholder", dtype=F, shape=tf.TensorShape(None))
    made.const("s", np.int32([1, 3]))
    made.const("t", np.int32([2, 3]))
    made.node("args", "BroadcastGradientArgs", "s", "t", T=I)
    for i, shape in enumerate("st"):
        made.node(f"sum{i}", "Sum", "g", f"args:{i}" if i else "args", T=F, Tidx=I, keep_dims=bool(i))
        made.node(f"neg{i}", "Neg", f"sum{i}", T=F)
        made.node(f"out{i}", "Reshape", f"neg{i}", shape, T=F, Tshape=I)
    found = made.run(["out0:0", "out1:0"], {"g:0": X})
    np.testing.assert_allclose(found[0], -X.sum(0, keepdims=True))
    np.testing.assert_allclose(found[1], -X)
    made.node("seen", "Reshape", "sum0", "t", T=F, Tshape=I)  # something gives the sum another shape
    with pytest.raises(UnknownOpError, match="BroadcastGradientArgs: args"):
        made.run("out0:0", {"g:0": X})


def test_placeholders_of_old_files_take_any_shape(made):
    made.node("x", "Placeholder", dtype=F, shape=tf.TensorShape([]))
    with pytest.raises(InvalidArgumentError):
        made.run("x:0", {"x:0": X})
    made.message.versions.producer = 21
    assert made.run("x:0", {"x:0": X}).shape == (2, 3)


def test_an_attribute_that_means_something_here_unknown_is_missing(made):
    made.const("x", X)
    made.node("c", "Cast", "x", SrcT=F, DstT=I, Truncate=True)
    with pytest.raises(UnknownOpError, match=r"Cast \(attribute 'Truncate' with another value than False\): c"):
        made.run("c:0")
    made.node("d", "Add", "x", "y:0", T=F)
    with pytest.raises(NotFoundError, match="input 'y:0' of node 'd' does not exist"):
        made.run("c:0")


def test_the_tables_name_ops_and_attributes_that_are_there():
    ops = tf.default_host().ops
    assert [n for n in {*NAMES.values(), *WRITE_AS, *ATTRS} if n not in ops] == []
    for op, renamed in ATTRS.items():
        opdef = ops.get(op)
        known = {a.name for a in opdef.attrs} | {t.name for t in opdef.types}
        assert set(renamed) <= known, op
    assert all(name not in WRITE_AS for name in OUTPUTS)  # it is keyed by TensorFlow's names


@pytest.mark.parametrize("dims", [(1 << 18, 1 << 9), (1 << 40,)], ids=str)
def test_a_large_constant_of_one_number_takes_no_memory_before_it_is_read(dims):
    """The initial value of Adagrad's sums is such a constant, as large as the table of words that it trains."""
    message = tf.GraphDef()
    node = message.node.add(name="c", op="Const")
    node.attr["dtype"].type = node.attr["value"].tensor.dtype = 1
    node.attr["value"].tensor.float_val.append(0.5)
    for dim in dims:
        node.attr["value"].tensor.tensor_shape.dim.add(size=dim)
    with tf.Graph().as_default(), tf.Session() as sess:
        (c,) = tf.import_graph_def(message, return_elements=["c:0"])
        assert c.shape == dims and c.dtype == tf.float32
        part = c[:2, :3] if len(dims) == 2 else tf.shape(c, out_type=tf.int64)
        assert np.array_equal(sess.run(part), np.full((2, 3), 0.5) if len(dims) == 2 else dims)


def test_a_read_of_a_variable_has_the_shape_of_its_handle():
    """GraphDefs say it of the handle alone."""
    with tf.Graph().as_default() as graph:
        v = tf.get_variable("v", [3, 4])
        tf.matmul(v, tf.ones([4, 2]), name="y")
        message = graph.as_graph_def()
    assert all("_output_shapes" not in node.attr for node in message.node)
    with tf.Graph().as_default():
        read, y = tf.import_graph_def(message, return_elements=["v/Read/ReadVariableOp:0", "y:0"], name="")
    assert (read.shape.as_list(), y.shape.as_list()) == ([3, 4], [3, 2])
