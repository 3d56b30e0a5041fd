"""GraphDef: round trips, hand-written files, the schema, and files that are wrong in every way."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest
from graphdock.errors import DTypeError, GraphdockError, InvalidArgumentError, NotFoundError, ShapeError, UnknownOpError
from graphdock_tensorflow.plain_data import order, reading
from graphdock_tensorflow.plain_data.format import parse, to_json
from graphdock_tensorflow.plain_data.writing import DEEPEST, as_data


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def everything():
    """A graph with a bit of all: variables, nested bodies, controls, devices, colocation, lists, all kinds of constants."""
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    p = tf.placeholder(tf.bool, [], name="p")
    w = tf.Variable(np.full((3, 2), 0.1, np.float32), name="w")
    with tf.device("cpu:0"):
        y = tf.matmul(x, w, name="y")
    with tf.control_dependencies([w.initializer]), tf.colocate_with(y):
        z = tf.cond(p, lambda: y + w.value(), lambda: tf.zeros_like(y), name="z")
    step = lambda i, a: (i + 1, tf.cond(p, lambda: a * 2.0, lambda: a + y))  # noqa: E731
    tf.while_loop(lambda i, a: i < 10, step, [0, z], name="loop", shape_invariants=[[], None])
    tf.concat([y, z, y], axis=0, name="joined")
    tf.constant([np.nan, np.inf, -np.inf, -0.0, 0.1, 1e300], tf.float64, name="floats")
    tf.constant(np.array([1.1, 1e-8, 3e38], ml_dtypes.bfloat16), name="half")
    tf.constant([b"text", b"\xff\x00", "ö".encode()], name="strings")
    tf.constant(np.arange(1000, dtype=np.int64) - 2**62, name="large")
    tf.placeholder(tf.float32, None, name="loose").set_shape([None, 7])
    tf.Variable(w.value() * 2.0, name="double")


def test_round_trip_is_the_same_bytes(graph):
    everything()
    text = to_json(graph)
    with tf.Graph().as_default() as other:
        assert tf.import_graph_def(text, name="") is None
    assert to_json(other) == text
    assert [op.name for op in other.get_operations()] == [op.name for op in graph.get_operations()]
    for mine, theirs in zip(graph.get_operations(), other.get_operations(), strict=True):
        assert [(t.dtype, t.shape) for t in mine.outputs] == [(t.dtype, t.shape) for t in theirs.outputs]
    assert to_json(parse(text)) == text and as_data(graph) == parse(text)


def test_imported_graphs_compute_the_same(graph):
    everything()
    text = to_json(graph)
    feed = {"x:0": np.arange(9).reshape(3, 3), "p:0": True}
    with tf.Session() as sess:
        want = sess.run(["w/Assign", "loop:1", "floats:0", "strings:0", "half:0"], feed)
    with tf.Graph().as_default() as other:
        tf.import_graph_def(text, name="")
    with tf.Session(graph=other) as sess:
        got = sess.run(["w/Assign", "loop:1", "floats:0", "strings:0", "half:0"], feed)
    for a, b in zip(want[1:], got[1:], strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_it_looks_like(graph):
    a = tf.placeholder(tf.float32, [2], name="a")
    with tf.control_dependencies([tf.no_op(name="first")]):
        tf.add(a, 1.5, name="sum")
    data = as_data(graph)
    assert data["graphdock_graph"] == 1 and data["packages"] == ["graphdock", "graphdock_std"]
    by_name = {node["name"]: node for node in data["nodes"]}
    assert by_name["a"] == {
        "name": "a",
        "op": "Placeholder",
        "version": 1,
        "attrs": {"dtype": {"type": "float32"}, "shape": {"shape": [2]}},
    }
    assert by_name["sum"]["inputs"] == ["a:0", "sum/y:0", "^first"]
    assert by_name["sum/y"]["attrs"]["value"] == {"tensor": {"dtype": "float32", "shape": [], "data": [1.5]}}
    assert max(len(line) for line in to_json(graph).splitlines()) <= 140


def test_a_file_written_by_hand_in_any_order():
    text = """{"graphdock_graph": 1, "nodes": [
      {"name": "y", "op": "Add", "inputs": ["x", "one:0"]},
      {"name": "one", "op": "Const",
       "attrs": {"value": {"tensor": {"dtype": "float32", "shape": [], "data": [1]}}, "dtype": {"type": "float32"}}},
      {"name": "x", "op": "Placeholder", "attrs": {"dtype": {"type": "float32"}, "shape": {"shape": [null]}}}]}"""
    x, y = tf.import_graph_def(text, return_elements=["x:0", "y"])
    assert x.name == "import/x:0" and y.name == "import/y" and y.outputs[0].shape == [None]
    with tf.Session() as sess:
        assert sess.run(y.outputs[0], {x: [1, 2]}).tolist() == [2, 3]


def test_input_map_return_elements_and_names(graph):
    a = tf.placeholder(tf.float32, [2], name="a")
    tf.square(a + 1.0, name="y")
    data = as_data(graph)
    with tf.Graph().as_default() as other:
        mine = tf.constant([1.0, 2.0])
        (y,) = tf.import_graph_def(data, input_map={"a": mine}, return_elements=["y:0"], name="copy")
        (again,) = tf.import_graph_def(data, input_map={"a:0": [3.0, 4.0]}, return_elements=["y:0"], name="copy")
        assert (y.name, again.name) == ("copy/y:0", "copy_1/y:0")
        with tf.Session() as sess:
            assert [v.tolist() for v in sess.run([y, again])] == [[4, 9], [16, 25]]
        whole = tf.constant([1, 2])
        count = other.version
        with pytest.raises(NotFoundError, match="input_map names 'b'"):
            tf.import_graph_def(data, input_map={"b": mine})
        with pytest.raises(NotFoundError, match="return_elements names 'z'"):
            tf.import_graph_def(data, return_elements=["z"])
        with pytest.raises(DTypeError):
            tf.import_graph_def(data, input_map={"a": whole})
        assert other.version == count


def test_two_captures_may_become_one(graph):
    p = tf.placeholder(tf.bool, [], name="p")
    a, b = tf.placeholder(tf.float32, [], name="a"), tf.placeholder(tf.float32, [], name="b")
    tf.cond(p, lambda: a - 2.0 * b, lambda: b, name="out")
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        (out,) = tf.import_graph_def(as_data(graph), {"a": x, "b": x}, ["out:0"], name="")
        with tf.Session() as sess:
            assert sess.run([out, out], {x: 3.0, "p:0": True}) == [-3.0, -3.0]


def test_python_functions_are_refused(graph):
    tf.py_func(lambda v: v, [tf.constant(1.0)], tf.float32, name="call")
    with pytest.raises(InvalidArgumentError, match="operation call .PyFunc. holds a Python function"):
        as_data(graph)


def test_op_versions():
    node = {"name": "n", "op": "NoOp", "version": 2}
    data = {"graphdock_graph": 1, "nodes": [node]}
    with pytest.raises(InvalidArgumentError, match="newer NoOp"):
        tf.import_graph_def(data)
    node["version"] = 0
    with pytest.raises(InvalidArgumentError, match="nothing brings it to version 1"):
        tf.import_graph_def(data)
    reading.register_upgrade("NoOp", 0, lambda old: {**old, "name": old["name"]})
    try:
        (op,) = tf.import_graph_def(data, return_elements=["n"])
        assert op.type == "NoOp"
    finally:
        del reading._upgrades["NoOp", 0]


CONST = {"name": "c", "op": "Const", "attrs": {"dtype": {"type": "int32"}}}


def const(**tensor):
    return {**CONST, "attrs": {**CONST["attrs"], "value": {"tensor": tensor}}}


@pytest.mark.parametrize(
    ("nodes", "kind", "message"),
    [
        ([{"name": "a", "op": "Identity", "inputs": ["b"]}], NotFoundError, "input 'b' of node 'a' does not exist"),
        ([{"name": "a", "op": "Nope"}], UnknownOpError, "no op named 'Nope'"),
        ([{"name": "a", "op": "NoOp", "input": []}], InvalidArgumentError, "unknown key 'input'"),
        ([{"name": "a", "op": "NoOp"}, {"name": "a", "op": "NoOp"}], InvalidArgumentError, "two nodes are named 'a'"),
        ([{"name": "a", "op": "NoOp", "inputs": ["^a"]}], InvalidArgumentError, "cycle"),
        ([{"name": "a", "op": "NoOp", "attrs": {"T": {"int": 1}}}], InvalidArgumentError, "has no attribute 'T'"),
        ([{"name": "a b", "op": "NoOp"}], InvalidArgumentError, "not a valid name"),
        ([{"name": "a", "op": "NoOp", "device": "cpu:x"}], InvalidArgumentError, "cpu:x"),
        ([{"name": 1, "op": "NoOp"}], InvalidArgumentError, "nodes.0.: name"),
        ([CONST], InvalidArgumentError, "needs attribute 'value'"),
        ([const(dtype="int32", shape=[2], data=[1])], InvalidArgumentError, "expected 2 elements, got 1"),
        ([const(dtype="int8", shape=[1], data=[300])], InvalidArgumentError, "does not fit into int8"),
        ([const(dtype="int32", shape=[1], base64="AA==")], InvalidArgumentError, "wrong length"),
        ([const(dtype="int32", shape=[1], base64="!")], InvalidArgumentError, "not base64"),
        ([const(dtype="float32", shape=[], data=[1])], InvalidArgumentError, "'dtype' is not the dtype of its value"),
        ([const(dtype="flout32", shape=[], data=[1])], InvalidArgumentError, "flout32"),
        ("nodes", InvalidArgumentError, "expected a list"),
    ],
)
def test_wrong_nodes_are_named(graph, nodes, kind, message):
    with pytest.raises(kind) as info:
        tf.import_graph_def({"graphdock_graph": 1, "nodes": nodes})
    text = str(info.value)
    assert re.search(message, text), text
    assert graph.version == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1, column 2"),
        ("[]", "expected an object"),
        ("{}", "graphdock_graph"),
        ('{"graphdock_graph": 2, "nodes": []}', "expected 1, got 2"),
        ('{"graphdock_graph": 1, "nodes": [NaN]}', "NaN is not JSON"),
        ("[" * 100_000, "nested too deep"),
        (b"\xff\xfe\xff", "GraphDef"),
    ],
)
def test_wrong_texts_are_explained(text, message):
    with pytest.raises(InvalidArgumentError, match=message):
        tf.import_graph_def(text)


def test_shapes_that_contradict(graph):
    data = {
        "graphdock_graph": 1,
        "nodes": [
            {
                "name": "x",
                "op": "Placeholder",
                "attrs": {"dtype": {"type": "float32"}, "shape": {"shape": [2]}},
                "output_shapes": [[3]],
            }
        ],
    }
    with pytest.raises(ShapeError):
        tf.import_graph_def(data)


def test_fuzzed_files_give_clear_errors_and_leave_the_graph_alone(graph):
    everything()
    text = to_json(graph)
    rnd = random.Random(20)
    values = [
        None,
        0,
        1,
        -1,
        2**70,
        1e400,
        "x",
        "^x",
        "x:0",
        "x:9",
        ":",
        "",
        [],
        {},
        [1],
        [None],
        True,
        {"int": 1},
        "float64",
    ]
    outcomes = {"loaded": 0, "refused": 0}
    for k in range(1200):
        if k % 2:
            at = rnd.randrange(len(text))
            cut = at + rnd.randrange(4)
            data = text[:at] + "".join(rnd.choice('"{}[],:019a-^\\') for _ in range(rnd.randrange(4))) + text[cut:]
        else:
            data = json.loads(text)
            place, key = data, "nodes"
            while isinstance(place[key], (dict, list)) and place[key] and (key == "nodes" or rnd.random() < 0.85):
                place = place[key]
                key = rnd.choice(list(place)) if isinstance(place, dict) else rnd.randrange(len(place))
            if rnd.random() < 0.2:
                del place[key]
            else:
                place[key] = rnd.choice(values)
        with tf.Graph().as_default() as other:
            try:
                tf.import_graph_def(data)
                outcomes["loaded"] += 1
            except GraphdockError as error:
                assert str(error)
                assert other.version == 0
                outcomes["refused"] += 1
    assert outcomes["refused"] > 500 and outcomes["loaded"] > 50


def test_the_schema_has_every_key_that_is_written(graph):
    everything()
    schema = json.loads((Path(reading.__file__).parent / "graph_def.schema.json").read_text())
    known = {name: set(schema["$defs"][name]["properties"]) for name in ("node", "attr", "tensor", "body")}
    assert known["node"] == set(order.NODE_KEYS) and known["body"] == set(reading._BODY_KEYS)

    def walk(nodes):
        for node in nodes:
            assert set(node) <= known["node"]
            for value in node.get("attrs", {}).values():
                assert len(value) == 1 and set(value) <= known["attr"]
                if "tensor" in value:
                    assert set(value["tensor"]) <= known["tensor"]
                if "func" in value:
                    assert set(value["func"]) | {"targets"} == known["body"]
                    walk(value["func"]["nodes"])

    data = as_data(graph)
    assert set(data) == set(schema["properties"])
    walk(data["nodes"])
    try:
        import jsonschema
    except ModuleNotFoundError:
        return
    jsonschema.validate(data, schema)


def test_graphs_with_gradients_of_conds_and_loops_round_trip(graph):
    x, p = tf.placeholder(tf.float64, [2], name="x"), tf.placeholder(tf.bool, [], name="p")
    w = tf.Variable(np.array([0.5, -0.25]), name="w")
    y = tf.cond(p, lambda: tf.exp(tf.tanh(x) * w), lambda: tf.square(x))
    _, z = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.sin(a) * w), [0, y])
    grads = tf.gradients(z, [x, w])
    text = to_json(graph)
    with tf.Graph().as_default() as other:
        copies = tf.import_graph_def(text, return_elements=[g.name for g in grads], name="")
    assert to_json(other) == text
    values = []
    for g, fetches in ((graph, grads), (other, copies)):
        with tf.Session(graph=g) as sess:
            sess.run("w/Assign")
            values.append(sess.run(fetches, {"x:0": [0.3, 0.7], "p:0": True}))
    np.testing.assert_array_equal(values[0], values[1])


# -- trust: a file is data


def constant(name="c", **tensor):
    tensor = {"dtype": "float32", "shape": [], "data": [1.0], **tensor}
    return {
        "name": name,
        "op": "Const",
        "attrs": {"dtype": {"type": tensor["dtype"]}, "value": {"tensor": tensor}},
    }


def file(*nodes):
    return {"graphdock_graph": 1, "nodes": list(nodes)}


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        ({"shape": [0, 10**30], "data": []}, "does not fit into 64 bits"),
        ({"shape": [0, 2**62], "data": []}, "is of no array"),
        ({"shape": [1] * 65}, "is of no array: maximum supported dimension"),
        ({"shape": [1] * 300}, "rank 300 is above the limit"),
        ({"shape": [10**4000, 10**4000], "data": []}, "does not fit into 64 bits"),
        ({"shape": [2**62] * 200, "data": []}, "does not fill its shape"),
        ({"shape": [2**62] * 200, "data": [], "base64": ""}, "needs either"),
        ({"data": [10**400]}, "too large for a number"),
        ({"data": [[[[[[[[1]]]]]]]]}, "expected a number, got "),
        ({"dtype": "int32", "data": [10**4000]}, "does not fit into int32"),
    ],
)
def test_a_constant_of_no_array_is_refused(graph, tensor, message):
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        tf.import_graph_def(file(constant(**tensor)), name="")
    assert caught.value.op == "c" and len(str(caught.value)) < 500
    assert graph.get_operations() == []


def test_a_bool_is_true_or_false():
    data = file({**constant(dtype="bool", shape=[2], base64="AQI=")})
    del data["nodes"][0]["attrs"]["value"]["tensor"]["data"]
    with pytest.raises(InvalidArgumentError, match="neither true nor false"):
        tf.import_graph_def(data, name="")


@pytest.mark.parametrize("name", ["a/", "a\nimport os/", "/", "", "a:0", "^a", "a b", "\ud800"])
def test_a_name_of_a_file_is_a_name(graph, name):
    with pytest.raises(InvalidArgumentError, match="is not a valid name"):
        tf.import_graph_def(file(constant(name)), name="")
    everything()
    text = to_json(graph).replace('"name": "z/then"', '"name": "z\\nthen"')
    with pytest.raises(InvalidArgumentError, match="is not a valid name"):
        tf.import_graph_def(text, name="again")


def test_what_is_deep_is_refused_before_it_is_walked():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for data in (file({"name": deep}), file({"name": "a", "op": "NoOp", "attrs": {"x": deep}}), deep, {"a": deep}):
        with pytest.raises(InvalidArgumentError) as caught:
            tf.import_graph_def(data)
        assert len(str(caught.value)) < 300
    while deep:
        deep = deep.pop()  # freed step by step


def test_a_failed_import_takes_no_names(graph):
    tf.constant(1.0, name="before")
    bad = file(constant("a"), constant("before"), {"name": "b", "op": "Nope"})
    for name in ("x", "", None):
        with pytest.raises(UnknownOpError):
            tf.import_graph_def(bad, name=name)
    assert [op.name for op in graph.get_operations()] == ["before"]
    assert graph.unique_name("x", mark_as_used=False) == "x" and graph.unique_name("before") == "before_1"
    assert tf.constant(1.0, name="a").name == "a:0"
    tf.import_graph_def(file(constant("a")), name="x")
    assert graph.get_operation_by_name("x/a")


def nested(depth, p, x):
    return tf.cond(p, lambda: nested(depth - 1, p, x) if depth > 1 else x + 1.0, lambda: x)


def test_what_is_written_is_read_and_what_is_too_deep_is_not_written(graph):
    x, p = tf.placeholder(tf.float32, [], name="x"), tf.placeholder(tf.bool, [], name="p")
    y = nested(DEEPEST, p, x)
    text = to_json(graph)
    with tf.Graph().as_default() as other:
        tf.import_graph_def(text, name="")
        with tf.Session() as sess:
            assert sess.run(y.name, {"x:0": 1.0, "p:0": True}) == 2.0
    assert to_json(other) == text
    nested(DEEPEST + 1, p, x)
    with pytest.raises(InvalidArgumentError, match="nested deeper than 64"):
        as_data(graph)


def test_a_case_of_many_branches_goes_through_a_file(graph):
    x = tf.placeholder(tf.int32, [], name="x")
    pairs = [(tf.equal(x, i), lambda i=i: tf.constant(10 * i)) for i in range(400)]
    y = tf.case(pairs, default=lambda: tf.constant(-1))
    text = to_json(graph)
    with tf.Graph().as_default() as other:
        tf.import_graph_def(text, name="")
    for g in (graph, other):
        with tf.Session(graph=g) as sess:
            assert [int(sess.run(y.name, {"x:0": v})) for v in (0, 1, 199, 200, 399, 400)] == [
                0,
                10,
                1990,
                2000,
                3990,
                -1,
            ]


@pytest.mark.parametrize(
    ("op", "attrs"),
    [("Split", {"num_split": 10**9}), ("Unpack", {"num": 10**9}), ("DynamicPartition", {"num_partitions": 2**62})],
)
def test_an_attribute_asks_for_no_more_tensors_than_a_node_may_have(graph, op, attrs):
    """A few bytes of a file would otherwise take all memory while they are read."""
    inputs = {"Split": ["axis", "x"], "Unpack": ["x"], "DynamicPartition": ["x", "axis"]}[op]
    node = {"name": "n", "op": op, "inputs": inputs, "attrs": {name: {"int": value} for name, value in attrs.items()}}
    axis = constant("axis", dtype="int32", data=[0])
    if op == "DynamicPartition":
        axis = constant("axis", dtype="int32", shape=[2], data=[0, 1])
    with pytest.raises(ShapeError, match="would have [0-9]+ tensors as") as caught:
        tf.import_graph_def(file(axis, constant("x", shape=[2], data=[0.0, 1.0]), node), name="")
    assert caught.value.op == "n" and "65536" in caught.value.expected and graph.get_operations() == []
