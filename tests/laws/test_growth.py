"""Cost grows with the size of the work: what is counted here are calls of functions, not seconds."""

import json
import sys

import graphdock as tf
import lab
import numpy as np
import pytest
from graphdock.contracts import Cutter, DeviceSpec
from graphdock.locks import collector_paused
from graphdock.plugin.host import Host
from graphdock_tensorflow.plain_data.format import to_json
from graphdock_tensorflow.plain_data.writing import as_data

# -- what invalidates plans


def stays_cached(change):
    x = tf.placeholder(tf.float32, [None])
    y = x * 2.0
    with tf.Session() as sess:
        sess.run(y, {x: [1.0, 2.0]})
        change(x, y)
        metadata = tf.RunMetadata()
        assert sess.run(y, {x: [1.0, 2.0]}, run_metadata=metadata).tolist() == [2.0, 4.0]
        return metadata.cached


CHANGES = {
    "an op": lambda x, y: tf.identity(y),
    "a range": lambda x, y: tf.range(0.0, 1.0, 0.5),
    "a set_shape elsewhere": lambda x, y: tf.identity(y).set_shape([2]),
    "a set_shape here": lambda x, y: y.set_shape([2]),
    "a gradient of concat": lambda x, y: tf.gradients(tf.concat([y, y], 0), x),
    "a gradient of tile": lambda x, y: tf.gradients(tf.tile(y, [2]), x),
    "a loop and its gradient": lambda x, y: tf.gradients(
        tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * y), [0, y])[1], x
    ),
    "a variable": lambda x, y: tf.Variable([1.0]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_growth_of_the_graph_leaves_plans_valid(name):
    assert stays_cached(CHANGES[name])


@pytest.mark.parametrize("name", ["a control input", "a device"])
def test_late_changes_of_operations_do_not(name):
    late = {
        "a control input": lambda x, y: y.op._add_control_input(tf.no_op()),
        "a device": lambda x, y: y.op._set_device("/device:cpu:0"),
    }
    assert not stays_cached(late[name])


def test_what_set_shape_says_holds_for_shapes_that_are_new():
    x = tf.placeholder(tf.float32, [None])
    y = x * 2.0
    with tf.Session() as sess:
        assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [2.0, 4.0]
        x.set_shape([2])
        assert sess.run(y, {x: [3.0, 4.0]}).tolist() == [6.0, 8.0]
        with pytest.raises(tf.errors.ShapeError, match="has the wrong shape"):
            sess.run(y, {x: [1.0, 2.0, 3.0]})
        assert sess.run(y, {x: [3.0, 4.0]}).tolist() == [6.0, 8.0]


# -- gradients


def test_planning_the_gradient_of_a_loop_is_linear_in_the_size_of_its_body(monkeypatch):
    lab.show_scans(monkeypatch)

    def build(size):
        def body(i, a):
            for _ in range(size):
                a = tf.tanh(a)
            return i + 1, a

        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [2])
            y = tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]
            (slope,) = tf.gradients(y, x)
        sess = tf.Session(graph=graph)
        return lambda: sess.run(slope, {x: [1.0, 2.0]})

    lab.check_growth(build, 50, 200, 1.2)


# -- the plan cache


def test_hundreds_of_variables_fetched_in_turn_are_planned_once():
    variables = [tf.Variable(float(i)) for i in range(300)]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for v in variables:
            sess.run(v)
        planned = 0
        for i, v in enumerate(variables):
            metadata = tf.RunMetadata()
            assert sess.run(v, run_metadata=metadata) == i
            planned += not metadata.cached
        assert planned == 0


# -- importing


def test_importing_an_operation_before_its_inputs_is_linear_in_their_number():
    def build(count):
        leaf = {"op": "Placeholder", "attrs": {"dtype": {"type": "float32"}, "shape": {"shape": []}}}
        leaves = [{"name": f"x{i}", **leaf} for i in range(count)]
        total = {"name": "y", "op": "AddN", "inputs": [leaf["name"] for leaf in leaves]}
        data = {"graphdock_graph": 1, "nodes": [total, *leaves]}

        def load():
            with tf.Graph().as_default():
                tf.import_graph_def(data, name="")

        return load

    lab.check_growth(build, 100, 400, 1.2)


@pytest.mark.parametrize("order", ["file", "reverse"])
def test_importing_a_long_chain_is_linear_in_its_length(order):
    def build(count):
        nodes = [{"name": "n0", "op": "NoOp"}]
        nodes += [{"name": f"n{i}", "op": "NoOp", "inputs": [f"^n{i - 1}"]} for i in range(1, count)]
        data = {"graphdock_graph": 1, "nodes": nodes if order == "file" else nodes[::-1]}

        def load():
            with tf.Graph().as_default() as graph:
                tf.import_graph_def(data, name="")
                assert len(graph.get_operations()) == count

        return load

    lab.check_growth(build, 100, 400, 1.2)


@pytest.mark.parametrize("what", ["control inputs", "fetched operations"])
def test_many_operations_are_collected_in_linear_time(monkeypatch, what):
    lab.show_scans(monkeypatch)

    def build(count):
        with tf.Graph().as_default() as graph:
            ops = [tf.no_op() for _ in range(count)]
        if what == "control inputs":

            def collect():
                with graph.as_default(), graph.control_dependencies(ops):
                    tf.no_op()

            return collect
        sess = tf.Session(graph=graph)
        return lambda: sess.run(ops)

    lab.check_growth(build, 50, 200, 1.3)


# -- explain


@pytest.mark.parametrize("what", ["explain", "plan"])
def test_explaining_a_step_takes_no_memory(what):
    v = tf.Variable(tf.zeros([1 << 18]))
    y = tf.tanh(v) * 2.0
    with tf.Session() as sess:
        step = getattr(sess, what)
        assert lab.calls_of(("allocate", "empty"), lambda: str(step(y))) == 0


def test_explaining_is_linear_in_the_number_of_nodes(monkeypatch):
    lab.show_scans(monkeypatch)

    def build(size):
        with tf.Graph().as_default() as graph:
            y = x = tf.placeholder(tf.float32, [2])
            for _ in range(size):
                y = tf.tanh(y)
        with tf.Session(graph=graph) as sess:
            explanation = sess.explain(y, {x: [1.0, 2.0]})
        return lambda: (str(explanation), explanation.to_json())

    lab.check_growth(build, 50, 200, 1.3)


def least(count, size):
    """The count of a run in which no class meets the instance that has its methods compiled."""
    return min(count(size) for _ in range(3))


# -- placers


def test_looking_at_a_placers_answer_is_linear_in_the_number_of_nodes():
    def build(size):
        host = Host()  # others may have opened cpus over one memory
        with tf.Graph(host).as_default() as graph:
            rows = [tf.placeholder(tf.float32, [2]) for _ in range(2)]
            feed = dict.fromkeys(rows, [1.0, 2.0])
            for _ in range(size):
                rows = [tf.tanh(row) for row in rows]
        config = tf.SessionConfig(
            placer="simulated", device_count={"cpu": 2}, options={"cpu": {"memories": "apart"}}, fusion=False
        )
        return lambda: tf.Session(graph=graph, config=config, host=host).run(rows, feed)

    lab.check_growth(build, 25, 100, 1.2, instructions_of_looking)


def instructions_of_looking(function, limit=float("inf")):
    """The number of Python's instructions that a call of ``function`` runs where the host looks at what a placer returned."""
    count = 0

    def hook(frame, event, arg):
        nonlocal count
        code = frame.f_code
        if not code.co_filename.endswith("placement/problem.py") or not code.co_qualname.startswith("_checked"):
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return hook

    with collector_paused():
        sys.settrace(hook)
        try:
            function()
        finally:
            sys.settrace(None)
    assert 0 < count <= limit
    return count


# -- translation


def test_planning_nested_loops_is_linear_in_their_depth():
    """Each body returns another shape than it is given, so that what its feeds make known holds for one iteration only."""

    def nest(x, depth):
        if depth == 0:
            return tf.tanh(x)

        def body(i, a):
            return i + 1, tf.reshape(nest(a, depth - 1)[:1], [1])

        return tf.while_loop(lambda i, a: i < 1, body, [0, x], [tf.TensorShape([]), tf.TensorShape([None])])[1]

    def build(depth):
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [None])
            y = nest(x, depth)
        sess = tf.Session(graph=graph)
        return lambda: sess.run(y, {x: [1.0, 2.0]})

    lab.check_growth(build, 3, 9, 2.0)


@pytest.mark.parametrize("what", ["variables", "captures"])
@pytest.mark.slow
def test_planning_many_variables_or_captures_is_linear_in_their_number(what):
    def build(count):
        with tf.Graph().as_default() as graph:
            variables = [tf.Variable(float(i)) for i in range(count)]
            if what == "variables":
                fetch = tf.group(*[v.assign_add(1.0, read_value=False) for v in variables])
            else:
                fetch = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, tf.add_n([a, *variables])), [0, 0.0])[1]
            init = tf.global_variables_initializer()
        sess = tf.Session(graph=graph)
        sess.run(init)
        return lambda: sess.run(fetch)

    lab.check_growth(build, 100, 400, 1.1, lab.lines)


def test_cutting_a_region_costs_its_own_size_not_the_graphs(monkeypatch):
    lab.show_scans(monkeypatch)

    def cut(size):
        with tf.Graph().as_default() as graph:
            y = x = tf.placeholder(tf.float32, [2])
            for _ in range(size):
                y = tf.tanh(y)
        with tf.Session(graph=graph) as sess:
            level = sess.plan(y, {x: [1.0, 2.0]}).graph
        nodes = level.nodes[-3:]
        cutter = Cutter(level)  # made once for all regions of a level
        return lab.lines(lambda: cutter.cut(nodes, DeviceSpec.parse("/device:cpu:0")))

    assert least(cut, 400) < 1.5 * least(cut, 40)


# -- nesting


@pytest.mark.parametrize("kind", ["loops", "conds"])
def test_a_deep_nest_is_planned_without_a_deep_stack(kind):
    def nest(x, depth):
        if depth == 0:
            return x + 1.0
        if kind == "loops":
            return tf.while_loop(lambda i, a: i < 1, lambda i, a: (i + 1, nest(a, depth - 1)), [0, x])[1]
        return tf.cond(x[0] > 0.0, lambda: nest(x, depth - 1), lambda: x)

    x = tf.placeholder(tf.float32, [2])
    shallow, deep = nest(x, 2), nest(x, 12)
    sess = tf.Session()
    sess.run(nest(x, 1), {x: np.ones(2)})  # what is imported at first use is
    assert _deepest(lambda: sess.run(deep, {x: np.ones(2)})) <= _deepest(lambda: sess.run(shallow, {x: np.ones(2)})) + 2


@pytest.mark.parametrize("what", ["save", "load", "copy"])
def test_a_deep_nest_is_saved_loaded_and_copied_without_a_deep_stack(what):
    def nest(x, depth):
        if depth == 0:
            return x + 1.0
        return tf.while_loop(lambda i, a: i < 1, lambda i, a: (i + 1, nest(a, depth - 1)), [0, x])[1]

    def deepest(depth):
        with tf.Graph().as_default() as graph:
            y = nest(tf.Variable([1.0, 2.0]) * 2.0, depth)
            if what == "copy":
                return _deepest(lambda: tf.Variable(y))
            text = json.dumps(as_data(graph))
        if what == "save":
            return _deepest(lambda: to_json(graph))
        with tf.Graph().as_default():
            return _deepest(lambda: tf.import_graph_def(text))

    assert least(deepest, 12) <= least(deepest, 2) + 2


def _deepest(function):
    """The deepest stack of Python frames below a call of ``function``."""
    depth = deepest = 0

    def hook(frame, event, arg):
        nonlocal depth, deepest
        depth += {"call": 1, "return": -1}.get(event, 0)
        deepest = max(deepest, depth)

    with collector_paused():  # what other tests left may have finalizers
        sys.setprofile(hook)
        try:
            function()
        finally:
            sys.setprofile(None)
    return deepest
