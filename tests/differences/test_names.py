"""Names of operations: those of operators' results, of functions, and of what a ``name`` is given for."""

from __future__ import annotations

import graphdock as tf
import pytest

OPERATORS = {
    "add:0": lambda a: a + a,
    "sub:0": lambda a: a - a,
    "mul:0": lambda a: a * a,
    "truediv:0": lambda a: a / a,
    "floordiv:0": lambda a: a // a,
    "mod:0": lambda a: a % a,
    "pow:0": lambda a: a**a,
    "matmul:0": lambda a: a @ a,
    "Neg:0": lambda a: -a,
    "Abs:0": lambda a: abs(a),
    "Less:0": lambda a: a < a,
    "LessEqual:0": lambda a: a <= a,
    "Greater:0": lambda a: a > a,
    "GreaterEqual:0": lambda a: a >= a,
    "and:0": lambda a: (a > a) & (a > a),
    "or:0": lambda a: (a > a) | (a > a),
    "LogicalNot:0": lambda a: ~(a > a),
    "strided_slice:0": lambda a: a[0],
    "scope/add:0": lambda a: _in_scope(lambda: a + 1.0),
}

FUNCTIONS = {
    "Add:0": lambda a: tf.add(a, a),
    "MatMul:0": lambda a: tf.matmul(a, a),
    "Sum:0": lambda a: tf.reduce_sum(a),
    "transpose:0": lambda a: tf.transpose(a),
    "concat:0": lambda a: tf.concat([a, a], 0),
    "split:0": lambda a: tf.split(a, 2)[0],
    "split:1": lambda a: tf.split(a, [1, 1])[1],
    "stack:0": lambda a: tf.stack([a, a]),
    "unstack:1": lambda a: tf.unstack(a)[1],
    "one_hot:0": lambda a: tf.one_hot([1], 2),
    "range:0": lambda a: tf.range(3),
    "truediv:0": lambda a: tf.truediv(a, a),
    "div:0": lambda a: tf.div(a, a),
    "mul:0": lambda a: tf.scalar_mul(2.0, a),
    "zeros:0": lambda a: tf.zeros([2]),
    "eye:0": lambda a: tf.eye(2),
    "random_normal:0": lambda a: tf.random_normal([2]),
    "truncated_normal:0": lambda a: tf.truncated_normal([2], 1.0, 2.0),
    "random_uniform:0": lambda a: tf.random_uniform([2], 1.0, 3.0),
    "ExpandDims:0": lambda a: tf.expand_dims(a, 0),
    "l2_normalize:0": lambda a: tf.nn.l2_normalize(a, 0),
    "per_image_standardization:0": lambda a: tf.image.per_image_standardization(tf.ones([2, 2, 3])),
    "global_norm/global_norm:0": lambda a: tf.global_norm([a]),
    "xw_plus_b:0": lambda a: tf.nn.xw_plus_b(a, a, [1.0, 2.0]),
    "logistic_loss:0": lambda a: tf.nn.sigmoid_cross_entropy_with_logits(labels=a, logits=a),
}

GIVEN = {
    "tensordot": lambda a: tf.tensordot(a, a, 1, name="mine"),
    "truediv": lambda a: tf.truediv(tf.cast(a, tf.int32), 2, name="mine"),
    "reduce_logsumexp": lambda a: tf.reduce_logsumexp(a, name="mine"),
    "count_nonzero": lambda a: tf.count_nonzero(a, name="mine"),
    "clip_by_norm": lambda a: tf.clip_by_norm(a, 1.0, name="mine"),
    "clip_by_average_norm": lambda a: tf.clip_by_average_norm(a, 1.0, name="mine"),
    "saturate_cast": lambda a: tf.saturate_cast(a, tf.uint8, name="mine"),
    "random_crop": lambda a: tf.random_crop(a, [1, 1], name="mine"),
    "random_uniform of integers": lambda a: tf.random_uniform([2], 0, 3, tf.int32, name="mine"),
    "exponential_decay": lambda a: tf.train.exponential_decay(0.1, 1, 2, 0.9, name="mine"),
    "natural_exp_decay": lambda a: tf.train.natural_exp_decay(0.1, 1, 2, 0.9, name="mine"),
    "inverse_time_decay": lambda a: tf.train.inverse_time_decay(0.1, 1, 2, 0.9, name="mine"),
    "polynomial_decay": lambda a: tf.train.polynomial_decay(0.1, 1, 2, name="mine"),
    "convert_image_dtype": lambda a: tf.image.convert_image_dtype(a, tf.uint8, name="mine"),
    "rgb_to_grayscale": lambda a: tf.image.rgb_to_grayscale(tf.ones([2, 2, 3]), name="mine"),
    "grayscale_to_rgb": lambda a: tf.image.grayscale_to_rgb(tf.ones([2, 2, 1]), name="mine"),
    "sequence_mask": lambda a: tf.sequence_mask([1, 2], 3, name="mine"),
    "diag": lambda a: tf.diag([1.0, 2.0], name="mine"),
    "diag_part": lambda a: tf.diag_part(a, name="mine"),
    "relu_layer": lambda a: tf.nn.relu_layer(a, a, [1.0, 2.0], name="mine"),
    "softmax along another axis": lambda a: tf.nn.softmax(a, 0, name="mine"),
    "zeros that are computed": lambda a: tf.zeros(tf.shape(tf.placeholder(tf.float32)), name="mine"),
    "a list of tensors": lambda a: tf.convert_to_tensor([a, a], name="mine"),
}


def _in_scope(make):
    with tf.name_scope("scope"):
        return make()


@pytest.mark.parametrize("name", [*OPERATORS])
def test_of_operators(session, name):
    assert OPERATORS[name](tf.placeholder(tf.float32, [2, 2])).name == name


@pytest.mark.parametrize("name", [*FUNCTIONS])
def test_of_functions(session, name):
    assert FUNCTIONS[name](tf.placeholder(tf.float32, [2, 2])).name == name


@pytest.mark.parametrize("make", GIVEN.values(), ids=GIVEN)
def test_a_name_that_is_given_is_the_results(session, make):
    assert make(tf.placeholder(tf.float32, [2, 2])).name == "mine:0"


def test_python_values_stand_in_the_scope_of_the_operator(session):
    a = tf.placeholder(tf.float32, [2])
    left, right = 1 - a, a - 1
    assert [t.name for t in left.op.inputs] == ["sub/x:0", "Placeholder:0"]
    assert [t.name for t in right.op.inputs] == ["Placeholder:0", "sub_1/y:0"]


def test_names_that_differ_in_case_are_one(session):
    a = tf.placeholder(tf.float32, [2])
    assert [(a + a).name, tf.add(a, a).name, (a + a).name, tf.constant(1, name="ADD").name] == [
        "add:0",
        "Add_1:0",
        "add_2:0",
        "ADD_3:0",
    ]


def test_an_operand_with_an_operator_of_its_own_is_asked(session):
    class Other:
        def __radd__(self, left):
            return "radd", left.name

        def __rmatmul__(self, left):
            return "rmatmul"

    x = tf.constant(1.0, name="x")
    assert x + Other() == ("radd", "x:0") and x @ Other() == "rmatmul"
    with pytest.raises(TypeError, match="cannot make a tensor"):
        tf.Variable(1.0) - Other()


def test_devices_are_written_as_tensorflow_writes_them(session):
    for asked, written in (
        ("/CPU:0", "/device:CPU:0"),
        ("gpu:1", "/device:GPU:1"),
        ("/job:ps/task:1", "/job:ps/task:1"),
    ):
        with tf.device(asked):
            assert tf.constant(1).device == written
    with tf.device(lambda op: "/cpu:0" if op.type == "Const" else ""):
        a = tf.constant(1)
        b = a + 1
    assert (a.device, b.device) == ("/device:CPU:0", "")


def test_a_function_makes_its_initial_value_on_no_device(session):
    with tf.device("/job:ps"):
        v = tf.Variable(lambda: tf.constant(1.0))
        w = tf.Variable(tf.constant(1.0))
    assert (v.device, v.initial_value.device) == ("/job:ps", "") and w.initial_value.device == "/job:ps"


def test_colocation(session):
    a, c = tf.constant(1, name="a"), tf.constant(2, name="c")
    with tf.colocate_with(a):
        b = tf.constant(2)
        with tf.colocate_with(None, ignore_existing=True):
            free = tf.constant(3, name="free")
        with tf.colocate_with(c):
            both = tf.constant(4)
    found = [t.op.colocation_groups() for t in (a, b, free, both)]
    assert found == [[b"loc:@a"], [b"loc:@a"], [b"loc:@free"], [b"loc:@a", b"loc:@c"]]


def test_facts_of_an_operation(session):
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.control_dependencies([x]), tf.device("cpu:0"):
        op = tf.add(x, x, name="sum").op
    made = op.node_def
    assert (made.name, made.op, made.input, made.device) == ("sum", "Add", ("x", "x", "^x"), "/device:CPU:0")
    assert made.attr["T"] is tf.float32 and op.values() == (op.outputs[0],) and x.consumers() == [op]
    file, line, function, text = op.traceback[-1]
    assert file == __file__ and function == "test_facts_of_an_operation" and "tf.add" in text and line > 1


def test_collections_are_searched_by_a_regular_expression(session):
    for name in ("layer1/w", "layer2/w", "other/w"):
        tf.get_variable(name, [1])
    tf.add_to_collection("things", object())
    names = lambda found: [v.op.name for v in found]  # noqa: E731
    assert names(tf.get_collection("variables", r"layer\d")) == ["layer1/w", "layer2/w"]
    assert names(tf.get_collection("variables", ".*w")) == ["layer1/w", "layer2/w", "other/w"]
    assert names(tf.trainable_variables("layer1|other")) == ["layer1/w", "other/w"]
    session.graph.add_to_collections(["a", "b", "a"], 1)
    session.graph.add_to_collections("a", 2)
    assert (tf.get_collection("a"), tf.get_collection("b")) == ([1, 2], [1])
    session.graph.clear_collection("a")
    assert tf.get_collection("a") == []
    assert len(tf.get_collection("things")) == 1 and tf.get_collection("things", "x") == []
    with pytest.raises(ValueError, match="no regular expression"):
        tf.get_collection("variables", "(")
