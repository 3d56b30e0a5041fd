"""Tensors, shapes and attributes go both ways, and what lies about its size is refused before it takes memory."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.dtypes import ALL
from graphdock.errors import DataLossError, InvalidArgumentError
from graphdock.messages import make
from graphdock_tensorflow.graphs.values import (
    array_of,
    attr_of,
    dims_of,
    dtype_name,
    from_attr,
    number_of,
    tensor_proto,
)

NUMERIC = [d for d in ALL.values() if d.kind not in "SRV"]


@pytest.mark.parametrize("dtype", NUMERIC, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 2)])
def test_arrays_come_back_bitwise(dtype, shape):
    array = np.arange(int(np.prod(shape)) + 1)[1:].astype(dtype.np).reshape(shape)
    again = array_of(tensor_proto(array), "it")
    assert again.dtype == array.dtype and again.shape == shape and again.tobytes() == array.tobytes()
    assert dtype_name(number_of(dtype.name), "it") == dtype_name(number_of(dtype.name) + 100, "it") == dtype.name


def test_strings_and_lists_of_elements():
    array = np.array([b"a", b"\xff"], object)
    assert array_of(tensor_proto(array), "it").tolist() == [b"a", b"\xff"]
    short = make("TensorProto", dtype=1, float_val=[1.0, 2.0])
    short.tensor_shape.dim.add(size=5)
    assert array_of(short, "it").tolist() == [1, 2, 2, 2, 2]
    none = make("TensorProto", dtype=3)
    none.tensor_shape.dim.add(size=3)
    assert array_of(none, "it").tolist() == [0, 0, 0]
    half = make("TensorProto", dtype=19, half_val=[0x3C00])
    assert array_of(half, "it").tolist() == 1.0


@pytest.mark.parametrize(
    ("fields", "dims", "words"),
    [
        ({"float_val": [1.0]}, [1 << 20, 1 << 20], "lies about its size"),
        ({"float_val": [1.0, 2.0]}, [1], "lies about its size"),
        ({"tensor_content": b"1234567"}, [2], "lies about its size"),
        ({"float_val": [1.0]}, [-1], "shape must be known"),
        ({"float_val": [1.0]}, [-7], "no such shape"),
        ({"float_val": [1.0]}, [1 << 40] * 4, "no such shape"),
        ({"tensor_content": b"\2", "dtype": 10}, [1], "neither true nor false"),
        ({"scomplex_val": [1.0], "dtype": 8}, [1], "imaginary"),
        ({"float_val": [1.0]}, [1] * 80, "of no array"),
    ],
)
def test_a_tensor_that_lies_is_refused(fields, dims, words):
    tensor = make("TensorProto", **{"dtype": 1, **fields})
    for dim in dims:
        tensor.tensor_shape.dim.add(size=dim)
    with pytest.raises(DataLossError, match=words):
        array_of(tensor, "it")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", -3),
        ("float", 0.1),
        ("float", "inf"),
        ("bool", True),
        ("string", "\u00e4"),
        ("type", "bfloat16"),
        ("shape", None),
        ("shape", [2, None]),
        ("list(shape)", [[1], None]),
        ("list(type)", []),
        ("list(int)", [1, 2]),
        ("list(float)", [0.5]),
    ],
)
def test_attributes_come_back(kind, value):
    assert from_attr(kind, attr_of(kind, value), "it") == value


def test_wrong_attributes_are_named():
    with pytest.raises(InvalidArgumentError, match="node 'a': k is wrong"):
        from_attr("int", attr_of("float", 1.0), "node 'a': k")
    with pytest.raises(InvalidArgumentError, match="no dtype DT_QINT8"):
        dtype_name(11, "it")
    with pytest.raises(InvalidArgumentError, match="is no text"):
        from_attr("string", make("AttrValue", s=b"\xff"), "it")
    with pytest.raises(DataLossError):
        dims_of(make("TensorShapeProto", dim=[{"size": 1}] * 255), "it")
