"""Calls of the everyday surface in all forms that TensorFlow documents: shapes, dtypes, values and errors are TensorFlow's."""

from __future__ import annotations

import json
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest

from tests.differences import calls

ANSWERS = json.loads((Path(__file__).parent / "calls.json").read_text(encoding="utf-8"))

#: Reason -> beginnings of calls whose answers differ on purpose.
EXPLAINED = {
    "draws and random initial values are graphdock's own": (
        'tf.get_variable("a", 3)',
        'tf.get_variable("a", [2])',
        'tf.get_variable("a", (2, 3))',
        'tf.get_variable("a", [tf.Dimension',
        'tf.get_variable("a", tf.TensorShape',
        'tf.get_variable("a", x.shape)',
        'tf.get_variable("a", [])',
        'tf.get_variable("a", [2], np.float64)',
        'tf.layers.dense(x, "2")',
    ),
    "a number that would lose something is refused": (
        "tf.zeros([2.0, 3.0])",
        "tf.constant(-1, tf.uint8)",
        "tf.constant(300, tf.uint8)",
        "tf.stack([1, 2.5])",
        "s.run(i, {i: [1.5, 2.5]})",
    ),
    "what no kernel can do is refused when the graph is made": (
        "tf.reshape(x, [-1, -1])",
        "tf.tile(x, [-1, 1])",
        "tf.slice(x, [0, 0], [3, 3])",
        "tf.reduce_sum(x, [0, 0])",
        'tf.cast("1", tf.int32)',
        "tf.map_fn(lambda t: tf.to_float(t), i)",
        'tf.train.GradientDescentOptimizer("0.1")',
        "tf.nn.conv2d(im, tf.ones([2, 2, 1, 1]), [2, 1, 1, 1]",
        "tf.nn.max_pool(im, [1, -2",
        "tf.nn.max_pool(im, [2, 2, 2, 1]",
        "tf.nn.max_pool(im, [1, 2, 2, 1], [2, 2, 2, 1]",
        "tf.nn.avg_pool(im, [1, 0",
    ),
    "newer than TensorFlow 1": (
        "x[x > 2]",
        "tf.linspace(0, 1, 3)",
        'tf.add("a", "b")',
        "tf.nn.softmax_cross_entropy_with_logits(x, x)",
        "tf.nn.sigmoid_cross_entropy_with_logits(x, x)",
        "v.scatter_sub(",
    ),
    "static shapes of values that are computed, or more of them than TensorFlow's": (
        "tf.sequence_mask([1, 3])",
        "tf.sequence_mask(2)",
        "tf.segment_sum(",
        "tf.confusion_matrix([0, 1], [1, 1])",
        "tf.bincount(",
        "tf.sparse_reduce_sum(sp, axis=np",
        "tf.sparse_maximum(",
        "tf.sparse_fill_empty_rows(",
        'tf.get_variable("a", shape=[2], validate_shape=False)',
    ),
    "other Python classes": (
        "x.shape.dims",
        "np.prod(x.shape)",
        "p.shape[0] == None",
        "tf.while_loop(lambda j, a:",
        "tf.get_default_graph().as_graph_element(v)",
        "tf.sparse_placeholder(tf.float32, (None, 3))",
    ),
    "a list, not a tensor; a tensor, not a list": (
        "x[[0, 1]]",
        "tf.stack(x)",
        "tf.stack([])",
        "tf.nn.embedding_lookup((x, x)",
    ),
    "an integer has no gradient": ("tf.gradients(x, 3)",),
    "not part of the surface": ("tf.get_default_graph().is_feedable", "x._shape_as_list()"),
}


def agree(got, wanted):
    """Whether two written answers say the same. What TensorFlow refuses may work here; names are looked at elsewhere."""
    if isinstance(wanted, dict) and "raises" in wanted:
        return True
    if isinstance(wanted, dict):
        return set(got) == set(wanted) and all(
            key in ("tensor", "variable", "operation") or (_close if key == "value" else agree)(got[key], wanted[key])
            for key in wanted
        )
    if isinstance(wanted, list):
        return isinstance(got, list) and len(got) == len(wanted) and all(map(agree, got, wanted))
    return got == wanted


def _close(got, wanted):
    if isinstance(wanted, dict) or wanted is None or got == wanted:
        return got is not None or wanted is None
    (shape, found), (other, expected) = got, wanted
    try:
        numbers = [np.array(a, complex) for a in (found, expected)]
    except ValueError:
        return False
    return shape == other and np.allclose(*numbers, 1e-4, 1e-6, equal_nan=True)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("part", range(40))
def test_calls(part):
    for call in calls.CALLS[part::40]:
        if call.startswith(tuple(c for begins in EXPLAINED.values() for c in begins)):
            continue
        got = json.loads(json.dumps(calls.answer(tf, call, tf.Session)))
        assert agree(got, ANSWERS[call]), f"{call}: {got} instead of {ANSWERS[call]}"


@pytest.mark.sampled(16)
@pytest.mark.parametrize("part", range(40))
def test_what_tensorflow_refuses_is_refused_by_an_error_of_its_own(part):
    for call in calls.CALLS[part::40]:
        got = calls.answer(tf, call, tf.Session)
        if isinstance(got, dict) and "raises" in got:
            assert {"GraphdockError", "TypeError", "AttributeError"} & {*got["raises"]}, call


def test_operations_that_group_have_tensorflows_names():
    with tf.Graph().as_default():
        v = tf.Variable(1.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
        made = (tf.global_variables_initializer(), tf.local_variables_initializer(), tf.variables_initializer([v]))
        assert [op.name for op in made] == ["init", "init_1", "init_2"]
        assert [t.op.name for t in tf.tuple([v.value(), v.value()])] == [
            "tuple/control_dependency",
            "tuple/control_dependency_1",
        ]
        assert tf.group({"a": v.initializer}).name == "group_deps" and tf.tables_initializer().name == "init_all_tables"
