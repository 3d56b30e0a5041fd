"""Attribute values as JSON data and back: the same value, or an error that names the place."""

from __future__ import annotations

import json
import math

import ml_dtypes
import numpy as np
import pytest
from graphdock import dtypes
from graphdock.contracts.opdef import AttrDef, OpDef, TypeVarDef
from graphdock.errors import InvalidArgumentError
from graphdock_tensorflow.plain_data.attr_values import attr_type, decode, encode

VALUES = [
    ("int", -3),
    ("int", 2**70),
    ("float", 0.1),
    ("float", math.inf),
    ("float", -math.inf),
    ("bool", True),
    ("string", "grün"),
    ("type", dtypes.bfloat16),
    ("shape", None),
    ("shape", (2, None)),
    ("list(int)", ()),
    ("list(int)", (1, 2)),
    ("list(type)", (dtypes.int8, dtypes.string)),
    ("list(shape)", (None, (), (3,))),
    ("list(float)", (0.5, math.inf)),
]

ARRAYS = [
    np.array(3, np.int64),
    np.zeros((0, 4), np.float32),
    np.array([[True, False]]),
    np.array([1.5, math.inf, -0.0], np.float16),
    np.array([0.1, 3e-8], ml_dtypes.bfloat16),
    np.array([2**64 - 1], np.uint64),
    np.arange(300, dtype=np.int16).reshape(3, 100),
    np.array([1 + 2j], np.complex64),
    np.arange(4, dtype=">f8"),
    np.arange(500, dtype=">i4")[::2],
    np.array([b"text", b"\xff\x00"], object),
]


def through_json(kind, value):
    return decode(kind, json.loads(json.dumps(encode(kind, value))), "here")


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=str)
def test_a_value_comes_back(kind, value):
    assert through_json(kind, value) == value


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_a_tensor_comes_back_bit_for_bit(array):
    back = through_json("tensor", array)
    native = array.astype(array.dtype.newbyteorder("=")) if array.dtype.byteorder == ">" else array
    assert back.dtype == native.dtype and back.shape == native.shape
    if array.dtype.hasobject:
        assert list(back) == list(native)
    else:
        assert back.tobytes() == np.ascontiguousarray(native).tobytes()


def test_a_nan_comes_back_as_one():
    assert math.isnan(through_json("float", math.nan))


def test_numbers_of_any_width_are_written_in_their_shortest_digits():
    for dtype in (np.float16, np.float32, np.float64):
        data = encode("tensor", np.array([0.1], dtype))["tensor"]["data"]
        assert data == [0.1]


@pytest.mark.parametrize(
    ("kind", "data", "match"),
    [
        ("int", {"int": True}, "here is wrong"),
        ("int", {"float": 1}, "an object with the key 'int'"),
        ("float", {"float": "much"}, "a number"),
        ("type", {"type": "flota32"}, "did you mean 'float32'"),
        ("shape", {"shape": [-2]}, "GraphDef: here: .* is negative"),
        ("list(int)", {"list(int)": [1, "2"]}, r"here\[1\] is wrong"),
        ("tensor", {"tensor": {"dtype": "int8", "shape": [2], "data": [1]}}, "expected 2 elements, got 1"),
        ("tensor", {"tensor": {"dtype": "int8", "shape": [1], "data": [128]}}, "does not fit into int8"),
        ("tensor", {"tensor": {"dtype": "int8", "shape": [-1], "data": []}}, "negative dim"),
        ("tensor", {"tensor": {"dtype": "int8", "shape": [1]}}, "needs either 'data' or 'base64'"),
        ("tensor", {"tensor": {"dtype": "int8", "shape": [1], "base64": "AAA="}}, "expected 1 bytes, got 2"),
        ("tensor", {"tensor": {"dtype": "int8", "shape": [1], "base64": "!"}}, "is not base64"),
        ("tensor", {"tensor": {"dtype": "resource", "shape": [], "data": []}}, "cannot be stored"),
    ],
)
def test_wrong_data_is_an_error_that_names_the_place(kind, data, match):
    with pytest.raises(InvalidArgumentError, match=match) as caught:
        decode(kind, data, "here")
    assert str(caught.value).startswith("GraphDef: here")


def test_types_of_attributes_and_of_type_variables():
    opdef = OpDef("A", attrs=(AttrDef("k", "list(int)"),), types=(TypeVarDef("T"), TypeVarDef("Ts", is_list=True)))
    assert [attr_type(opdef, n) for n in ("k", "T", "Ts", "x")] == ["list(int)", "type", "list(type)", None]
