"""Constants, conversions, feeds and fetches, as TensorFlow 1 answers."""

from __future__ import annotations

import collections

import graphdock as tf
import numpy as np
import pytest

F, I = np.float32, np.int32


def text(*values):
    found = np.empty(len(values), object)
    found[:] = values
    return found


CONSTANTS = {
    "nothing of a shape": (lambda: tf.constant([], tf.float32, shape=[1, 4, 0]), np.zeros((1, 4, 0), F)),
    "an empty list of a shape": (lambda: tf.constant([[]], shape=[0, 3]), np.zeros((0, 3), F)),
    "zeros at the end of bytes": (lambda: tf.constant(b"a\0\0"), b"a\0\0"),
    "zeros at the end of a list's": (lambda: tf.constant([b"a\0\0", b"bc\0"]), text(b"a\0\0", b"bc\0")),
    "text": (lambda: tf.constant(["é", b"x\0"]), text("é".encode(), b"x\0")),
    "extended precision": (
        lambda: tf.constant(np.array([1.5, 1e300], np.longdouble), tf.float32),
        np.array([1.5, np.inf], F),
    ),
    "whole floats of an array": (lambda: tf.constant(np.array([1.0, 2.0]), tf.int32), np.array([1, 2], I)),
    "tensors decide the dtype of a list": (
        lambda: tf.convert_to_tensor([[0.0, 0.0], tf.constant([0.0, 1.0], tf.float64)]),
        np.array([[0, 0], [0, 1]], np.float64),
    ),
    "nested lists of tensors and numbers": (
        lambda: tf.convert_to_tensor([[1, tf.constant(2)], [tf.constant(3), 4]]),
        np.array([[1, 2], [3, 4]], I),
    ),
    "a list beside a number": (lambda: tf.convert_to_tensor([1.0, tf.constant(2.0)]), np.array([1, 2], F)),
    "a shape of tensors": (lambda: tf.reshape(tf.ones([4]), [tf.constant(2, tf.int64), -1]), np.ones((2, 2), F)),
    "a range of mixed dtypes": (lambda: tf.range(tf.constant(0), tf.constant(3, tf.int64), 1), np.array([0, 1, 2])),
    "a range to a float tensor": (lambda: tf.range(0, tf.constant(3.0), 1), np.array([0, 1, 2], F)),
    "a range of a float": (lambda: tf.range(0.0, 2, 1), np.array([0, 1], F)),
    "a generator": (lambda: tf.add_n(tf.constant(float(i)) for i in range(4)), F(6)),
    "a generator to stack": (lambda: tf.stack(tf.constant(i) for i in range(3)), np.array([0, 1, 2], I)),
    "a generator to join": (lambda: tf.concat((tf.constant([i]) for i in range(3)), 0), np.array([0, 1, 2], I)),
    "an axis in a list": (lambda: tf.expand_dims(tf.constant(1.0), [0]), np.ones(1, F)),
    "the last axis in a list": (lambda: tf.expand_dims(tf.constant([1.0]), [-1]), np.ones((1, 1), F)),
    "dim": (lambda: tf.expand_dims(tf.constant([1.0]), dim=0), np.ones((1, 1), F)),
    "integers are round": (lambda: tf.round(tf.constant([1, 2])), np.array([1, 2], I)),
    "all of nothing": (lambda: tf.reduce_all([]), np.True_),
    "any of nothing": (lambda: tf.reduce_any([]), np.False_),
    "an array on the left": (lambda: np.array([2.0, 4.0], F) / tf.constant([2.0, 2.0]), np.array([1, 2], F)),
    "numbers over integers": (lambda: 3 / tf.constant([2]), np.array([1.5])),
    "half": (lambda: tf.constant(1.0, tf.half), np.float16(1)),
    "names of dtypes": (lambda: tf.cast(tf.cast([1], "double"), "float"), np.ones(1, F)),
}


@pytest.mark.parametrize(("program", "answer"), CONSTANTS.values(), ids=CONSTANTS)
def test_values(session, assert_agrees, program, answer):
    assert_agrees(session.run(program()), answer)


REFUSED = {
    "integers of no one dtype": (lambda: tf.constant([-1, 2**63]), tf.errors.OutOfRangeError),
    "text and numbers": (lambda: tf.constant(["a", 1]), TypeError),
    "fractions as integers": (lambda: tf.constant(np.array([1.5]), tf.int32), TypeError),
    "on and off of two dtypes": (lambda: tf.one_hot([0, 1], 2, on_value=1.0, off_value=0), TypeError),
    "the old order of concat": (lambda: tf.concat(1, 4.2), TypeError),
    "the diagonal of a scalar": (lambda: tf.diag(tf.constant(1.0)), ValueError),
    "expand_dims of two axes": (lambda: tf.expand_dims([1.0], 0, dim=1), ValueError),
    "expand_dims of none": (lambda: tf.expand_dims([1.0]), ValueError),
    "what is no value": (lambda: tf.constant(object()), TypeError),
}


@pytest.mark.parametrize(("program", "kind"), REFUSED.values(), ids=REFUSED)
def test_refused(session, program, kind):
    with pytest.raises(kind):
        program()


def test_dtypes():
    assert tf.half is tf.float16 and tf.double is tf.float64
    for name, dtype in (("float", tf.float32), ("double", tf.float64), ("half", tf.float16)):
        assert tf.as_dtype(name) is dtype and dtype == name
    assert tf.uint8.is_unsigned and not tf.int8.is_unsigned and tf.complex64.real_dtype is tf.float32
    assert tf.uint8.limits == (0, 255) and tf.float32.limits == (0, 1) and tf.float32.is_compatible_with("float")
    assert repr(tf.int32) == "tf.int32" and tf.string.is_numpy_compatible and not tf.resource.is_numpy_compatible


FEEDS = {
    "whole floats": (tf.int32, np.array([1.0, 2.0]), np.array([1, 2], I)),
    "a whole float": (tf.int32, 1.0, I(1)),
    "0 and 1": (tf.bool, np.array([1, 0]), np.array([True, False])),
    "1": (tf.bool, 1, np.True_),
    "zeros at the end": (tf.string, [b"a\0\0", b"b"], text(b"a\0\0", b"b")),
    "text": (tf.string, "é\0", "é\0".encode()),
    "extended precision": (tf.float32, np.array([1.5, 1e300], np.longdouble), np.array([1.5, np.inf], F)),
    "of complex numbers": (tf.complex64, np.array([1 + 2j], np.clongdouble), np.array([1 + 2j], np.complex64)),
}


@pytest.mark.parametrize(("dtype", "value", "answer"), FEEDS.values(), ids=FEEDS)
def test_feeds(session, assert_agrees, dtype, value, answer):
    x = tf.placeholder(dtype)
    assert_agrees(session.run(x, {x: value}), answer)
    assert_agrees(session.run(tf.identity(x), {x: value}), answer)


@pytest.mark.parametrize(
    ("dtype", "value"), [(tf.int32, 1.5), (tf.int32, np.array([np.nan])), (tf.bool, 2), (tf.bool, [0, 3])]
)
def test_feeds_that_would_lose_something(session, dtype, value):
    x = tf.placeholder(dtype)
    with pytest.raises(TypeError, match="wrong dtype"):
        session.run(x, {x: value})


def test_count_nonzero_takes_its_old_names(session):
    x = [[1, 0, 2], [0, 0, 3]]
    assert session.run(tf.count_nonzero(x, reduction_indices=1, keep_dims=True)).tolist() == [[2], [1]]
    assert session.run(tf.count_nonzero(input=x, dtype=tf.int32)) == 3


def test_a_mapping_keeps_its_class(session):
    a, b = tf.constant(1), tf.constant(2)
    got = session.run(collections.OrderedDict([("b", b), ("a", [a, b])]))
    assert type(got) is collections.OrderedDict and list(got.items()) == [("b", 2), ("a", [1, 2])]
    plain = session.run({"b": b, "a": [a, b]})
    assert type(plain) is dict and plain == {"b": 2, "a": [1, 2]}
    assert type(session.run(collections.OrderedDict(b=b))) is collections.OrderedDict


def test_the_name_of_a_variable_means_its_value(session):
    v = tf.Variable([1.0, 2.0], name="w")
    session.run(v.initializer)
    assert session.run("w:0").tolist() == [1.0, 2.0] and session.run(v * 2.0, {"w:0": [3.0, 4.0]}).tolist() == [
        6.0,
        8.0,
    ]
    assert session.run(tf.get_default_graph().get_tensor_by_name("w:0") + 1.0).tolist() == [2.0, 3.0]


def test_rows_of_a_tensor_are_fetched_and_fed(session):
    rows = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([3, 0]), tf.constant([4, 1]))
    got = session.run(rows)
    assert (
        type(got).__name__ == "IndexedSlicesValue"
        and got.indices.tolist() == [3, 0]
        and got.dense_shape.tolist() == [4, 1]
    )
    value = tf.IndexedSlicesValue(np.array([[5.0], [7.0]]), np.array([1, 1]), np.array([4, 1]))
    assert session.run(rows.values * 2.0, {rows: value}).tolist() == [[10.0], [14.0]]
    negative = session.run([-rows, tf.IndexedSlices(rows.values, rows.indices)])
    assert negative[0].values.tolist() == [[-1.0], [-2.0]] and negative[1].dense_shape is None
    both = tf.tuple([rows, tf.constant(2.0)])
    assert isinstance(both[0], tf.IndexedSlices)
    with tf.control_dependencies([rows]):
        assert session.run(tf.constant(1.0)) == 1.0


def test_python_functions(session, assert_agrees):
    assert_agrees(session.run(tf.py_func(lambda: np.array(["this", "é"]), [], tf.string)), text(b"this", "é".encode()))
    assert session.run(tf.py_func(lambda: "a", [], tf.string)) == b"a"
    assert session.run(tf.py_func(lambda: None, [], [])) is None
    assert session.run(tf.py_func(lambda s: s + b"\0", [tf.constant(b"a\0")], tf.string)) == b"a\0\0"
    for function, dtype in ((lambda: np.array([1], I), tf.int64), (lambda: 3.0, tf.float32), (lambda: "x", tf.int64)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="wrong dtype"):
            session.run(tf.py_func(function, [], dtype))


def test_a_constant_initializer_repeats_its_last_value(session):
    v = tf.get_variable("x", [2, 3], initializer=tf.constant_initializer([1.0, 2.0]))
    session.run(v.initializer)
    assert session.run(v).tolist() == [[1, 2, 2], [2, 2, 2]]
    with pytest.raises(ValueError, match="another size"):
        tf.get_variable("y", [2], initializer=tf.constant_initializer([1.0, 2.0, 3.0]))
