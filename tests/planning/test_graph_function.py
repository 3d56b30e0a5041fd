"""Function attributes of kernels: functions of arrays that a kernel calls when it likes, from any thread."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import ArgDef, AttrDef, KernelDef, OpDef, ResourceKind
from graphdock.graph.body import BodyGraph
from graphdock.plugin.host import Host


class Lab:
    """An op ``Map`` of rows, whose kernel calls its function for each row of its first input."""

    def __init__(self):
        self.host = Host()
        self.contexts = []
        rows, others = ArgDef("x", "float32", None), ArgDef("captured", "float32", None, "many", count="N")
        attrs = (AttrDef("f", "func"), AttrDef("N", "int"))
        made = (ArgDef("y", "float32", None),)
        effects = frozenset({"waits"})
        self.map = OpDef("lab.Map", inputs=(rows, others), outputs=made, attrs=attrs, effects=effects, package="lab")
        self.host.ops.add(self.map, "lab")
        self.host.kernels.add(KernelDef("lab.Map", "cpu", self._build, modes=("fresh",)), "user", "lab")

    def _build(self, ctx):
        function, count = ctx.function("f"), ctx.attr("N")
        self.contexts.append(function)

        def compute(x, *rest):
            return np.stack([function(row, *rest[:count])[0] for row in x])

        return compute

    def __call__(self, x, function, dims=None):
        graph = tf.get_default_graph()
        body = BodyGraph("function", graph)
        with body.as_default():
            element = body.add_parameter("x", tf.float32, dims)
            body.outputs = [tf.convert_to_tensor(function(element))]
        captured = [t for t in body.captures if t.dtype.name != "resource"]
        attrs = {"f": body, "N": len(captured)}
        return graph.add_op(self.map, [x, *captured], attrs, None, (1, len(captured))).outputs[0]


@pytest.fixture
def lab():
    with tf.Graph().as_default():
        made = Lab()
        yield made
        made.host.close()


def test_a_kernel_calls_a_function_for_each_row_with_what_it_captures(lab):
    x, scale = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [])
    y = lab(x, lambda row: tf.reduce_sum(row) * scale + 1.0, (2,))
    with tf.Session(host=lab.host) as sess:
        for rows in (np.ones((3, 2), np.float32), np.arange(4, dtype=np.float32).reshape(2, 2)):
            np.testing.assert_array_equal(sess.run(y, {x: rows, scale: 3.0}), rows.sum(1) * 3 + 1)


def test_a_function_reads_the_variable_of_outside_and_takes_its_lock_for_itself(lab):
    v = tf.Variable([10.0, 20.0])
    x = tf.placeholder(tf.float32, [None, 2])
    y = lab(x, lambda row: row + v.read_value(), (2,))
    more = v.assign_add([1.0, 1.0])
    with tf.Session(host=lab.host) as sess:
        with pytest.raises(tf.errors.FailedPreconditionError):
            sess.run(y, {x: [[0.0, 0.0]]})
        sess.run(v.initializer)
        assert sess.run(y, {x: [[1.0, 2.0], [3.0, 4.0]]}).tolist() == [[11.0, 22.0], [13.0, 24.0]]
        sess.run(more)
        assert sess.run(y, {x: [[0.0, 0.0]]}).tolist() == [[11.0, 21.0]]


def test_it_is_called_from_many_threads_for_many_shapes(lab):
    x = tf.placeholder(tf.float32, None)
    y = lab(x, lambda row: tf.cumsum(row) * 2.0)
    with tf.Session(host=lab.host) as sess:
        sess.run(y, {x: np.ones((1, 2), np.float32)})
        function, wrong = lab.contexts[0], []

        def work(seed):
            rng = np.random.default_rng(seed)
            for _ in range(40):
                row = rng.integers(0, 9, rng.integers(1, 14)).astype(np.float32)
                (got,) = function(row)
                if not np.array_equal(got, np.cumsum(row) * 2):
                    wrong.append((row, got))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not wrong and len(function._plans) <= 9


def test_results_are_arrays_at_rank_0_and_of_strings_too(lab):
    x = tf.placeholder(tf.float32, [None, 2])
    lengths = lab(x, lambda row: tf.cast(tf.size(tf.as_string(row)), tf.float32), (2,))
    with tf.Session(host=lab.host) as sess:
        sess.run(lengths, {x: [[1.0, 2.0]]})
        (made,) = lab.contexts[0](np.float32([1, 2]))
    assert isinstance(made, np.ndarray) and made.shape == ()
    graph = tf.get_default_graph()
    body = BodyGraph("words", graph)
    with body.as_default():
        body.outputs = [tf.as_string(body.add_parameter("n", tf.int32, ()))]
    with tf.Session(host=lab.host) as sess:
        (word,) = sess._planner.function(body)(np.int32(7))
    assert isinstance(word, np.ndarray) and word.dtype == object and word[()] == b"7"


def test_arguments_that_do_not_fit_and_errors_within_are_told(lab):
    x = tf.placeholder(tf.float32, [None, 2])
    y = lab(x, lambda row: tf.check_numerics(row, "a bad row"), (2,))
    with tf.Session(host=lab.host) as sess:
        sess.run(y, {x: [[1.0, 2.0]]})
        function = lab.contexts[0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="function takes 1 arrays"):
            function()
        with pytest.raises(tf.errors.OpError, match="wrong dtype for x:0"):
            function(np.zeros(2))
        with pytest.raises(tf.errors.InvalidArgumentError, match="a bad row") as caught:
            sess.run(y, {x: [[np.nan, 0.0]]})
        assert "test_graph_function.py" in caught.value.site


def test_a_resource_of_its_own_kind_is_the_one_of_outside(lab):
    """What the function touches through a captured handle is what the kernel of the step would touch."""
    counters = ResourceKind("lab.Counter", lambda request: [0], lock="own")
    lab.host.resource_kinds.add(counters.name, counters, "lab")
    handle = OpDef(
        "lab.Counter",
        outputs=(ArgDef("handle", "resource", "[]"),),
        attrs=(AttrDef("container", "string", ""), AttrDef("shared_name", "string", "")),
        executes="handle",
        resource=counters.name,
        traits=frozenset({"stateful"}),
        package="lab",
    )
    count = OpDef(
        "lab.Count",
        inputs=(
            ArgDef("counter", "resource", "[]", access="uses", resource=counters.name),
            ArgDef("x", "float32", "[*S]"),
        ),
        outputs=(ArgDef("y", "float32", "[*S]"),),
        package="lab",
    )

    def build(ctx):
        def compute(counter, x):
            counter[0] += 1
            return x + np.float32(counter[0])

        return compute

    for opdef in (handle, count):
        lab.host.ops.add(opdef, "lab")
    lab.host.kernels.add(KernelDef("lab.Count", "cpu", build, modes=("fresh",)), "user", "lab")
    graph = tf.get_default_graph()
    counter = graph.create_op("lab.Counter", [], op_def=handle).outputs[0]
    x = tf.placeholder(tf.float32, [None, 1])
    y = lab(x, lambda row: tf.get_default_graph().create_op("lab.Count", [counter, row], op_def=count).outputs[0], (1,))
    outside = graph.create_op("lab.Count", [counter, tf.zeros([])], op_def=count).outputs[0]
    with tf.Session(host=lab.host) as sess:
        assert sess.run(y, {x: [[0.0], [0.0]]}).tolist() == [[1.0], [2.0]]
        assert sess.run(outside) == 3.0


def test_a_kernel_outside_of_a_session_has_no_functions(lab):
    from graphdock.contracts import BuildContext, PlanNode

    node = PlanNode("lab.Map", "m", lab.map, {"f": None}, [])
    with pytest.raises(tf.errors.InternalError, match="outside of a session"):
        BuildContext(node, (), (), None).function("f")
