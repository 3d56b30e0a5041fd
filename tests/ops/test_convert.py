"""Python values and arrays as tensors: dtypes, shapes, conversions that people register."""

from __future__ import annotations

import tracemalloc

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DTypeError, InvalidArgumentError, OutOfRangeError, ShapeError
from graphdock.ops import convert
from graphdock.ops.convert import make_array


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def run(tensor):
    with tf.Session() as sess:
        return sess.run(tensor)


@pytest.mark.parametrize(
    "value",
    [3, 2.5, True, [[1, 2], [3, 4]], (1.0, 2.0), np.arange(6).reshape(2, 3)[:, ::2], np.float16(1), b"x", ["a", b"b"]],
)
def test_a_constant_is_the_value(value):
    found = run(tf.constant(value))
    want = np.asarray(value)
    if want.dtype.kind in "SUO":
        want = np.array([v if isinstance(v, bytes) else v.encode() for v in np.atleast_1d(np.array(value, object))])
        assert np.atleast_1d(found).tolist() == want.tolist()
    else:
        np.testing.assert_array_equal(found, want)


def test_an_integer_is_int32_as_long_as_it_fits():
    found = [tf.constant(v).dtype.name for v in (2**31 - 1, 2**31, -(2**31), -(2**31) - 1)]
    assert found == ["int32", "int64", "int32", "int64"]


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        (1.5, "int32", DTypeError),
        ([1, 2.5], "int32", DTypeError),
        (np.array(True), "string", DTypeError),
        (1, "bool", DTypeError),
        (np.float64(1.5), "int8", DTypeError),
        ("text", "float32", DTypeError),
        (1, "string", DTypeError),
        (300, "uint8", OutOfRangeError),
        (-1, "uint8", OutOfRangeError),
        ([[1], [1, 2]], None, InvalidArgumentError),
        (object(), None, InvalidArgumentError),
        ({"a": 1}, None, InvalidArgumentError),
    ],
)
def test_values_that_do_not_fit(value, dtype, error):
    with pytest.raises(error):
        tf.constant(value, dtype)


def test_a_value_takes_the_dtype_that_is_asked_for():
    for value, dtype in (
        (1, "float64"),
        (1, "uint8"),
        ([], "int8"),
        (np.int8(3), "int64"),
        (0.1, "bfloat16"),
        (True, "bool"),
    ):
        assert tf.constant(value, dtype).dtype.name == dtype


@pytest.mark.parametrize(
    ("value", "shape", "want"),
    [
        (7, [2, 2], [[7, 7], [7, 7]]),
        ([1, 2, 3], [4], [1, 2, 3, 3]),
        ([1, 2, 3, 4], [2, 2], [[1, 2], [3, 4]]),
        (5, [0], []),
    ],
)
def test_a_constant_fills_its_shape(value, shape, want):
    assert run(tf.constant(value, shape=shape)).tolist() == want


@pytest.mark.parametrize("shape", [None, [None, 2], [1]])
def test_a_shape_that_can_not_be_filled(shape):
    if shape is None:
        with pytest.raises(ShapeError, match="wrong shape"):
            tf.constant([1, 2], shape=[3], verify_shape=True)
        return
    with pytest.raises(ShapeError):
        tf.constant([1, 2], shape=shape)


def test_a_constant_is_a_copy():
    value = np.array([1.0, 2.0])
    made = tf.constant(value)
    value[0] = 9
    assert run(made).tolist() == [1.0, 2.0]


def test_the_array_is_contiguous_and_keeps_its_shape():
    array, dtype = make_array(np.arange(12).reshape(3, 4).T, None)
    assert array.flags.c_contiguous and array.shape == (4, 3) and dtype is tf.int64
    assert make_array(np.float32(1), None)[0].shape == ()


def test_a_tensor_stays_itself_and_is_never_cast():
    x = tf.placeholder(tf.float32, [], name="x")
    assert tf.convert_to_tensor(x) is x is tf.convert_to_tensor(x, tf.float32)
    with pytest.raises(DTypeError, match="tensor x:0 has the wrong dtype") as caught:
        tf.convert_to_tensor(x, tf.int32)
    assert caught.value.hint == "use tf.cast(..., tf.int32)"


def test_a_preferred_dtype_is_used_where_it_can_hold_the_value():
    assert tf.convert_to_tensor(1, preferred_dtype=tf.float64).dtype is tf.float64
    assert tf.convert_to_tensor(1.5, preferred_dtype=tf.int32).dtype is tf.float32


def test_a_list_that_holds_a_tensor_is_stacked():
    x = tf.placeholder(tf.float32, [])
    stacked = tf.convert_to_tensor([x, 2.0, [3.0][0]])
    assert stacked.shape == [3]
    with tf.Session() as sess:
        assert sess.run(stacked, {x: 1.0}).tolist() == [1.0, 2.0, 3.0]
        assert sess.run(tf.convert_to_tensor([[x], [4.0]]), {x: 1.0}).tolist() == [[1.0], [4.0]]


class Celsius:
    def __init__(self, degrees):
        self.degrees = degrees


def test_people_may_say_how_a_value_of_theirs_becomes_a_tensor(monkeypatch):
    monkeypatch.setattr(convert, "_conversions", list(convert._conversions))

    def kelvin(value, dtype, name):
        return tf.constant(value.degrees + 273.15, dtype or tf.float32, name=name or "Const")

    tf.register_tensor_conversion_function(Celsius, kelvin)
    assert run(tf.convert_to_tensor(Celsius(0))) == np.float32(273.15)
    assert run(tf.add(Celsius(1), tf.constant(1.0))) == np.float32(275.15)
    assert run(tf.convert_to_tensor([Celsius(0), Celsius(1)])).shape == (2,)
    tf.register_tensor_conversion_function(Celsius, lambda value, dtype, name: tf.constant(0.0))
    assert run(tf.convert_to_tensor(Celsius(5))) == 0.0, "what was registered last comes first"
    with pytest.raises(DTypeError):
        tf.convert_to_tensor(Celsius(5), tf.int32)


def test_a_value_that_fills_a_shape_is_written_once() -> None:
    """What a constant takes is its own memory, and no copy of it on the way; memory of the caller's is copied."""
    tracemalloc.start()
    made = tf.constant(1.5, shape=[1 << 20])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * (4 << 20), peak
    mine = np.zeros(3, np.float32)
    with tf.Session() as sess:
        kept = tf.constant(mine, shape=[3])
        mine[:] = 7
        assert sess.run([kept, made[0]])[0].tolist() == [0, 0, 0]
