"""Messages: what travels comes back, and damaged frames are refused."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import errors
from graphdock.contracts import failure_of, pack, raised, unpack
from graphdock.dtypes import as_dtype

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint16", "int64", "bool", "complex64"]


def back(value):
    return unpack([bytes(f) for f in pack(value)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_arrays_come_back(dtype, shape):
    array = np.random.default_rng(0).integers(0, 2, shape).astype(as_dtype(dtype).np)
    found = back({"x": [array, array[..., ::-1] if array.ndim else array]})["x"]
    for got, sent in zip(found, [array, array[..., ::-1] if array.ndim else array], strict=True):
        assert got.dtype == sent.dtype and got.shape == sent.shape and got.flags.writeable
        np.testing.assert_array_equal(got, sent)


def test_strings_of_bytes_come_back():
    array = np.array([[b"", b"\xff\x00"], [b"abc", b"x" * 1000]], object)
    np.testing.assert_array_equal(back(array), array)


def test_plain_data_comes_back():
    value = {"a": [1, -(2**62), 2.5, "ü\n", True, None, {}, []], "b": {"c": float("inf")}}
    assert back(value) == value


def test_scalars_of_numpy_stay_numpys_own():
    sent = [np.float32(2.5), np.float64("nan"), np.int64(-3), np.bool_(True), np.str_("x"), b"y"]
    found = back({"x": sent})["x"]
    assert [(f.dtype.kind, f.shape) for f in found] == [(k, ()) for k in "ffibOO"]
    np.testing.assert_array_equal(np.stack(found[:4]), np.stack(sent[:4]))
    assert [f[()] for f in found[4:]] == [b"x", b"y"]


@pytest.mark.parametrize(
    "text",
    [
        '{"$array":0,"shape":[1180591620717411303424],"dtype":"float32"}',
        '{"$array":0,"shape":[1],"dtype":"float32"}',
        '{"$array":0,"shape":[2],"dtype":"resource"}',
        '{"$array":1,"shape":[2],"dtype":"float32"}',
        '{"shape":[2]} {}',
        "[",
    ],
)
def test_frames_that_lie_are_refused(text):
    with pytest.raises(errors.DataLossError, match="a message is damaged"):
        unpack([text.encode(), bytes(8)])


@pytest.mark.parametrize("value", [{"x": object()}, {"$array": 0}, {"f": lambda: 1}, {1j}, {1: 2}])
def test_what_is_no_plain_data_is_refused(value):
    with pytest.raises(errors.InvalidArgumentError, match="a message can't hold"):
        pack(value)


@pytest.mark.parametrize("seed", range(200))
def test_damaged_frames_are_refused_or_read(seed):
    rng = np.random.default_rng(seed)
    frames = [
        bytearray(bytes(f)) for f in pack({"x": np.arange(6.0).reshape(2, 3), "s": np.array([b"ab", b"c"], object)})
    ]
    for _ in range(int(rng.integers(1, 4))):
        frame = frames[int(rng.integers(len(frames)))]
        if len(frame) and rng.random() < 0.7:
            frame[int(rng.integers(len(frame)))] = int(rng.integers(256))
        else:
            del frame[int(rng.integers(len(frame) + 1)) :]
    if rng.random() < 0.3:
        del frames[-1]
    try:
        unpack(frames)
    except errors.DataLossError as error:
        assert "a message is damaged" in str(error)


@pytest.mark.parametrize(
    "kind",
    [
        tf.errors.ShapeError if hasattr(tf.errors, "ShapeError") else errors.ShapeError,
        errors.UninitializedError,
        errors.OutOfRangeError,
    ],
)
def test_errors_come_back_as_their_class(kind):
    error = kind("what happened", op="layer/MatMul", site="train.py:3", expected="this", got="that", hint="do")
    error.add_note("a note")
    found = raised(back(failure_of(error, "/job:ps/task:0")))
    assert type(found) is kind and str(found) == str(error) and found.op == "layer/MatMul"
    assert found.__notes__ == ["a note", "raised on /job:ps/task:0"]


def test_other_errors_come_back_with_their_class_named():
    found = raised(back(failure_of(ZeroDivisionError("by zero"))))
    assert type(found) is errors.UnknownError and "ZeroDivisionError: by zero" in str(found)


@pytest.mark.parametrize("failure", [{}, {"kind": "os"}, {"kind": "Exception"}, {"kind": 3}])
def test_what_is_no_error_is_said(failure):
    assert isinstance(raised(failure), errors.InternalError)
