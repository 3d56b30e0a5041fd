"""Graph: names, scopes, lookups, growth from many threads. Names are those TensorFlow 1 documents."""

from __future__ import annotations

import threading

import graphdock as tf
import pytest
from graphdock.errors import DTypeError, FailedPreconditionError, InvalidArgumentError, NotFoundError, UnknownOpError


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_names_are_made_unique():
    assert [tf.constant(1, name="c").name for _ in range(3)] == ["c:0", "c_1:0", "c_2:0"]
    assert tf.constant(1, name="c_1").name == "c_1_1:0"
    assert tf.placeholder(tf.float32).op.name == "Placeholder"


def test_name_scopes_as_documented(graph):
    c = tf.constant(5.0, name="c")
    assert c.op.name == "c"
    with tf.name_scope("nested") as scope:
        assert scope == "nested/"
        nested_c = tf.constant(10.0, name="c")
        assert nested_c.op.name == "nested/c"
        with tf.name_scope("inner"):
            assert tf.constant(1, name="c").op.name == "nested/inner/c"
        with tf.name_scope("inner"):
            assert tf.constant(1, name="c").op.name == "nested/inner_1/c"
            with tf.name_scope(scope):
                assert tf.constant(1, name="d").op.name == "nested/d"
            with graph.name_scope(None):
                assert tf.constant(1, name="out").op.name == "out"
    with tf.name_scope("nested"):
        assert tf.constant(1, name="c").op.name == "nested_1/c"


@pytest.mark.parametrize("name", ["a b", "-x", "_x", "", "é", "x:0", 3])
def test_bad_names_are_refused(name):
    with pytest.raises(InvalidArgumentError, match="not a valid name"):
        tf.constant(1, name=name)


def test_the_stack_of_default_graphs(graph):
    with tf.Graph().as_default() as inner:
        assert tf.get_default_graph() is inner
        a = tf.constant(1)
    assert a.graph is inner and tf.get_default_graph() is graph
    seen = []
    thread = threading.Thread(target=lambda: seen.append(tf.get_default_graph()))
    thread.start()
    thread.join()
    assert seen[0] is not graph


def test_reset_default_graph_inside_a_with_is_refused():
    with pytest.raises(FailedPreconditionError, match="leave it out"):
        tf.reset_default_graph()


def test_finalized_graphs_do_not_grow(graph):
    tf.constant(1)
    graph.finalize()
    for change in (lambda: tf.constant(2), lambda: graph.add_to_collection("k", 1)):
        with pytest.raises(FailedPreconditionError, match="finalized"):
            change()
    assert graph.finalized and graph.version == 1


def test_lookups_suggest_what_is_near(graph):
    a = tf.constant(1, name="alpha")
    assert graph.get_operation_by_name("alpha") is a.op
    assert graph.get_tensor_by_name("alpha:0") is a
    assert graph.as_graph_element("alpha:0") is a and graph.as_graph_element("alpha") is a.op
    with pytest.raises(NotFoundError) as info:
        graph.get_operation_by_name("alhpa")
    assert "alpha" in info.value.hint
    with pytest.raises(NotFoundError, match="has 1 outputs"):
        graph.get_tensor_by_name("alpha:1")
    with pytest.raises(InvalidArgumentError, match="does not name a tensor"):
        graph.get_tensor_by_name("alpha")
    with pytest.raises(InvalidArgumentError, match="is not a Tensor or Operation"):
        graph.as_graph_element(3.0)
    with tf.Graph().as_default():
        other = tf.constant(1)
    with pytest.raises(InvalidArgumentError, match="another graph") as info:
        graph.as_graph_element(other)
    assert info.value.hint == "open the session with tf.Session(graph=...)"


def test_a_python_float_beside_integers_says_what_to_cast(graph):
    with pytest.raises(DTypeError, match="1.5 cannot be int32") as info:
        tf.constant(2) * 1.5
    assert (info.value.expected, info.value.got) == ("int32", "float32")
    assert info.value.hint == "use tf.cast(..., tf.float32) on what it is combined with"


def test_inputs_of_another_graph_are_refused():
    with tf.Graph().as_default():
        other = tf.constant(1.0, name="foreign")
    with pytest.raises(InvalidArgumentError, match="foreign:0 of a new Identity belongs to another graph"):
        tf.identity(other)


def test_control_dependencies_add_up_and_clear():
    a, b, c = (tf.no_op(name=n) for n in "abc")
    with tf.control_dependencies([a]):
        with tf.control_dependencies([b, a]):
            assert tf.no_op().control_inputs == [a, b]
            with tf.control_dependencies(None):
                assert tf.no_op().control_inputs == []
                with tf.control_dependencies([c]):
                    assert tf.no_op().control_inputs == [c]
        assert tf.no_op().control_inputs == [a]
    assert tf.no_op().control_inputs == []
    x = tf.constant(1.0)
    with tf.control_dependencies([x]):
        assert tf.no_op().control_inputs == [x.op]
    with pytest.raises(InvalidArgumentError, match="neither an operation nor a tensor"), tf.control_dependencies([3]):
        pass


def test_group_waits_for_all():
    a, b = tf.no_op(name="a"), tf.constant(1.0, name="b")
    assert set(tf.group(a, [b]).control_inputs) == {a, b.op}


def test_device_scopes_merge_and_clear():
    assert tf.constant(1).op.device == ""
    with tf.device("/job:worker/task:1"), tf.device("cpu:2"):
        device = tf.constant(1).op.device
        assert "worker" in device and "2" in device
        with tf.device(None):
            assert tf.constant(1).op.device == ""
    with tf.device(lambda op: "cpu:1" if op.type == "Const" else ""):
        assert "1" in tf.constant(1).op.device
        assert tf.no_op().device == ""


def test_collections_keep_order_and_filter_by_scope(graph):
    with tf.name_scope("a"):
        x = tf.constant(1)
    y = tf.constant(2)
    for v in (x, y):
        graph.add_to_collection("things", v)
    assert graph.get_collection("things") == [x, y]
    assert graph.get_collection("things", scope="a/") == [x]
    graph.get_collection("things").clear()
    assert graph.get_collection("things") == [x, y]
    graph.get_collection_ref("things").clear()
    assert graph.get_collection("things") == []


def test_create_op_is_public(graph):
    x = tf.placeholder(tf.float32, [2, 3])
    op = graph.create_op("MatMul", [x, x], [tf.float32], attrs={"transpose_b": True}, name="xx")
    assert op.name == "xx" and op.outputs[0].shape == [2, 2]
    assert op.get_attr("transpose_a") is False and op.get_attr("T") == tf.float32
    with pytest.raises(UnknownOpError) as info:
        graph.create_op("MatMull", [x, x])
    assert "MatMul" in info.value.hint
    with pytest.raises(InvalidArgumentError, match="does not take 1 inputs"):
        graph.create_op("MatMul", [x])
    with pytest.raises(InvalidArgumentError, match="output types"):
        graph.create_op("MatMul", [x, x], [tf.int32], attrs={"transpose_b": True})
    with pytest.raises(InvalidArgumentError, match="has no attribute 'nope'"):
        op.get_attr("nope")


def test_an_operation_knows_the_users_line():
    x = tf.constant(1.0)
    assert x.op.site.startswith("tests/graph/test_graph.py:") or x.op.site.endswith(tuple("0123456789"))
    assert "test_graph.py" in x.op.site


def test_a_refused_operation_leaves_no_trace(graph):
    a, b = tf.ones([2, 3]), tf.ones([4, 5])
    before = graph.version
    with pytest.raises(InvalidArgumentError):
        tf.matmul(a, b)
    assert graph.version == before


def test_many_threads_add_at_once(graph):
    def work(k):
        with graph.as_default(), tf.name_scope(f"t{k}"):
            x = tf.constant(float(k))
            for _ in range(50):
                x = tf.negative(x)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    ops = graph.get_operations()
    assert len(ops) == 8 * 51 == len({op.name for op in ops})
    assert [op._id for op in ops] == list(range(len(ops)))
    assert all(op.inputs[0].op._id < op._id for op in ops if op.inputs)


def test_tensors_are_symbolic():
    x = tf.constant([1.0, 2.0])
    for use in (bool, list, len, float):
        with pytest.raises(TypeError):
            use(x)
    assert x in {x} and x != tf.constant([1.0, 2.0])
    x.set_shape([2])
    with pytest.raises(InvalidArgumentError, match="set_shape on Const:0"):
        x.set_shape([3])
    assert tf.negative(x).consumers() == [] and [c.type for c in x.consumers()] == ["Neg"]


def test_a_program_may_refuse_feeds_and_fetches():
    """The words of TensorFlow's Graph: a tensor that may not be fed, and an operation that is not fetchable, are ValueErrors."""
    graph = tf.get_default_graph()
    x, y = tf.constant(1.0, name="x"), tf.Variable(2.0, use_resource=True)
    double = tf.multiply(x, 2.0, name="double")
    assert graph.is_feedable(x) and graph.is_fetchable(x) and graph.is_fetchable(x.op)
    assert not graph.is_feedable(y.handle) and not graph.is_fetchable(y.handle) and graph.is_fetchable(y.handle.op)
    with tf.Session() as sess:
        assert sess.run(double, {x: 3.0}) == 6.0
        graph.prevent_feeding(x)
        assert not graph.is_feedable(x) and graph.is_fetchable(x)
        with pytest.raises(ValueError, match="x:0: it may not be fed") as caught:
            sess.run(double, {x: 3.0})
        assert "test_graph.py" in str(caught.value) and sess.run([x, double]) == [1.0, 2.0]
        graph.prevent_fetching(x.op)
        assert not graph.is_fetchable(x) and not graph.is_fetchable(x.op) and graph.is_fetchable(double)
        for fetch in (x, x.op, "x:0", "x", [double, x]):
            with pytest.raises(ValueError, match="marked as not fetchable"):
                sess.run(fetch)
        assert sess.run(double) == 2.0
