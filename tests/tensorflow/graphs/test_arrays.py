"""Frozen graphs with TensorArrays, as ``tf.compat.v1`` of TensorFlow 2.21 wrote them (``arrays/*.pbtxt``), and what it computed."""

from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, UnknownOpError
from graphdock_tensorflow.graphs.files import graph_of

FOLDER = Path(__file__).parent / "arrays"
#: File -> what it is fed, and what TensorFlow gave.
GRAPHS = {
    # tf.map_fn(lambda r: r * r + 1, x)
    "map_fn": ({"x:0": [[1, 2], [3, 4], [5, 6]]}, [[2, 5], [10, 17], [26, 37]]),
    # the same with control flow of TensorFlow 2: a While of functions, which carry lists
    "map_fn_v2": ({"x:0": [[1, 2], [3, 4], [5, 6]]}, [[2, 5], [10, 17], [26, 37]]),
    # tf.nn.dynamic_rnn(BasicRNNCell(2), x, sequence_length=n), and the last state behind it
    "dynamic_rnn": (
        {"x:0": np.arange(12).reshape(2, 2, 3) / 10, "n:0": [2, 1]},
        [
            [[-0.08902889, -0.04443295], [0.04473152, -0.4947812], [0.04473152, -0.4947812]],
            [[0.20497285, -0.6803535], [0, 0], [0.20497285, -0.6803535]],
        ],
    ),
    # elements of several lengths, written in branches of a loop, joined; the size; one of them
    "ragged": ({"x:0": [1, 2, 3, 4]}, [1, -2, 1, 2, 3, -4, 4, 1]),
    # an array of parts, and one that a loop in a loop writes, which is closed
    "nested": ({"x:0": [1, 2, 3, 4]}, [1, 2, 3, 4, 0, 1, 10, 11, 20, 21]),
}


def of(name):
    return graph_of(str(FOLDER / f"{name}.pbtxt"))[1]


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_frozen_graph_runs(name, executor):
    feeds, expected = GRAPHS[name]
    with tf.Graph().as_default() as graph:
        (y,) = tf.import_graph_def(of(name), return_elements=["y:0"], name="")
        assert "While" in {op.type for op in graph.get_operations()}
        with tf.Session(config=tf.SessionConfig(executor=executor)) as session:
            np.testing.assert_allclose(session.run(y, feeds), expected, rtol=1e-5, atol=1e-6)


def test_a_frozen_network_has_gradients():
    """The loop of an exported dynamic_rnn is a loop like any other."""
    feeds, _ = GRAPHS["dynamic_rnn"]
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.import_graph_def(of("dynamic_rnn"), return_elements=["x:0", "y:0"], name="")
        (slope,) = tf.gradients(y, x)
        at = np.array(feeds["x:0"], np.float32)
        found = session.run(slope, {**feeds, "x:0": at})
        for place in ((0, 0, 0), (0, 1, 2), (1, 0, 1), (1, 1, 1)):
            step = np.zeros_like(at)
            step[place] = 1e-2
            sums = [session.run(y, {**feeds, "x:0": at + s}).sum(dtype=np.float64) for s in (step, -step)]
            np.testing.assert_allclose(found[place], (sums[0] - sums[1]) / 2e-2, rtol=2e-2, atol=1e-3)


def test_what_only_gradients_have_is_listed_with_its_reason(made):
    made.const("n", np.int32(4))
    made.node("rows", "TensorArrayV3", "n", dtype=tf.float32)
    made.node("grad", "TensorArrayGradV3", "rows", "rows:1", source="gradients")
    made.node("old", "TensorArrayV2", "n", dtype=tf.float32)
    with pytest.raises(UnknownOpError) as error:
        tf.import_graph_def(made.message)
    assert "TensorArrayGradV3 (gradients of TensorFlow's arrays; tf.gradients makes them anew): grad" in str(
        error.value
    )
    assert "TensorArrayV2 (of an older form" in str(error.value)


@pytest.mark.parametrize("op", ["Write", "Read", "Gather", "Scatter", "Concat", "Split", "Size", "Close"])
def test_one_that_lacks_inputs_is_no_array(op, made):
    made.const("n", np.int32(4))
    made.node("rows", "TensorArrayV3", "n", dtype=tf.float32)
    made.node("wrong", f"TensorArray{op}V3", *(["rows"] if op != "Close" else []), dtype=tf.float32, T=tf.float32)
    with pytest.raises(InvalidArgumentError, match=f"'wrong' is no TensorArray{op}V3: it lacks inputs"):
        tf.import_graph_def(made.message)


def test_what_is_written_as_lists_comes_back(tmp_path):
    """A graph with a TensorArray of our own, as TensorFlow's file: with the TensorList ops of TensorFlow 2."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [3], name="x")
        made = tf.TensorArray(tf.float32, 3)
        _, made = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, x[i] * 2.0)), [0, made])
        tf.identity(made.stack(), name="y")
        tf.train.write_graph(graph, str(tmp_path), "g.pb", as_text=False)
    with tf.Graph().as_default(), tf.Session() as session:
        (y,) = tf.import_graph_def(graph_of(str(tmp_path / "g.pb"))[1], return_elements=["y:0"], name="")
        assert session.run(y, {"x:0": [1, 2, 3]}).tolist() == [2, 4, 6]
