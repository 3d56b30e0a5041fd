"""Arrays of other libraries as feeds and constants, and fetched arrays for them, by a double of the protocol and by torch."""

from __future__ import annotations

import gc

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest
from graphdock.ops.dlpack import from_dlpack

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Foreign:
    """Another library's array: nothing but the protocol. ``handed``: capsules given out."""

    def __init__(self, array, device=(1, 0), error=None):
        self.array, self.device, self.error, self.handed = array, device, error, 0

    def __dlpack_device__(self):
        if isinstance(self.device, Exception):
            raise self.device
        return self.device

    def __dlpack__(self, **options):
        self.handed += 1
        if self.error is not None:
            raise self.error
        if self.array.dtype == BFLOAT16:
            return tf.to_dlpack(self.array).__dlpack__(**options)
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool", "float16", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)], ids=str)
def test_a_foreign_array_is_a_feed_and_a_constant_of_its_own_dtype(dtype, shape):
    value = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(dtype, shape)
        np.testing.assert_array_equal(session.run(tf.identity(x), {x: Foreign(value)}), value)
        session.explain(tf.identity(x), {x: Foreign(value)})
        constant = tf.constant(Foreign(value))
        assert constant.dtype == dtype and constant.shape == shape
        np.testing.assert_array_equal(session.run(constant), value)


def test_no_element_is_copied_on_the_way_in():
    value = np.arange(6.0).reshape(2, 3)
    taken = from_dlpack(Foreign(value))
    assert np.shares_memory(taken, value)
    assert from_dlpack(value) is value and from_dlpack(3) == 3 and from_dlpack(None) is None


def test_a_feed_is_cast_and_checked_as_any_array():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        y = x + 1.0
        assert session.run(y, {x: Foreign(np.array([1.0, 2.0]))}).tolist() == [2.0, 3.0]
        assert session.run(y, {x: Foreign(np.arange(4.0, dtype=np.float32)[::2])}).tolist() == [1.0, 3.0]
        with pytest.raises(tf.errors.ShapeError, match=r"expected \[2\], got \[3\]"):
            session.run(y, {x: Foreign(np.zeros(3))})
        with pytest.raises(tf.errors.DTypeError, match="wrong dtype"):
            session.run(y, {x: Foreign(np.zeros(2, np.complex64))})


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, -2.5, 3]),
        np.array(7.0),
        np.zeros((0, 2)),
        np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(10.0)[8:1:-3],
        np.arange(12.0).reshape(3, 4)[:, 1:3],
    ],
    ids=["vector", "rank 0", "empty", "transposed", "backwards", "part"],
)
def test_bfloat16_comes_in_and_goes_out(value):
    strided = value.astype(BFLOAT16) if value.flags.c_contiguous else None
    if strided is None:
        base = np.arange(24.0).astype(BFLOAT16)
        strided = np.lib.stride_tricks.as_strided(
            base[8:] if any(s < 0 for s in value.strides) else base[int(value.flat[0]) :],
            value.shape,
            tuple(s // 4 for s in value.strides),
        )
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.bfloat16, value.shape)
        got = session.run(tf.identity(x), {x: Foreign(strided)})
        assert got.dtype == BFLOAT16
        np.testing.assert_array_equal(got.astype(float), value)
    again = from_dlpack(tf.to_dlpack(got))
    assert again.dtype == BFLOAT16
    np.testing.assert_array_equal(again.astype(float), value)


@pytest.mark.parametrize(
    ("foreign", "error", "message"),
    [
        (Foreign(np.zeros(2), (2, 1)), tf.errors.InvalidArgumentError, r"memory of CUDA:1\n  expected host memory"),
        (Foreign(np.zeros(2), (99, 0)), tf.errors.InvalidArgumentError, "memory of a device of DLPack type 99:0"),
        (Foreign(np.zeros(2), OSError("gone")), tf.errors.InvalidArgumentError, "not say where it lies: OSError: gone"),
        (
            Foreign(np.zeros(2), error=BufferError("Can't export tensors that require gradient")),
            tf.errors.InvalidArgumentError,
            r"does not hand out its memory: Can't export(.*\n)*.*hint: value\.detach\(\)",
        ),
    ],
    ids=["device", "unknown device", "no device", "gradient"],
)
def test_what_can_not_be_read_is_said_with_the_name_of_its_class(foreign, error, message):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], name="fed")
        with pytest.raises(error, match=message) as caught:
            session.run(tf.identity(x), {x: foreign})
        assert "Foreign lies" in str(caught.value) or "Foreign does" in str(caught.value)
        assert caught.value.op_name == "fed"
        with pytest.raises(error, match=message):
            tf.constant(foreign)


def test_a_read_only_array_is_read():
    value = np.arange(3.0)
    value.flags.writeable = False

    class Asked(Foreign):
        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.array, dtype)

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, [3])
        for foreign in (Asked(value), Asked(value, error=BufferError("read-only"))):
            assert session.run(x + 1.0, {x: foreign}).tolist() == [1.0, 2.0, 3.0]


def test_elements_that_nobody_here_has_are_named(monkeypatch):
    class Odd(Foreign):
        def __dlpack__(self, **options):
            from graphdock.ops.dlpack import _tensor_of

            capsule = self.array.__dlpack__(**options)
            _tensor_of(capsule).dtype.code = 4
            return capsule

    with pytest.raises(tf.errors.DTypeError, match="got DLPack dtype code 4, 32 bits"):
        from_dlpack(Odd(np.zeros(2, np.float32)))


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16"])
@pytest.mark.sampled(2)
def test_a_fetched_array_is_handed_out_without_a_copy(dtype):
    with tf.Graph().as_default(), tf.Session() as session:
        got = session.run(tf.cast(tf.constant([0.0, 1.0, 2.0]), dtype))
    capsule = tf.to_dlpack(got)
    assert capsule.__dlpack_device__() == (1, 0)
    if dtype != "bfloat16":
        assert np.shares_memory(np.from_dlpack(capsule), got)
    for _ in range(3):
        capsule.__dlpack__()  # nobody takes it: freed with its last reference
    gc.collect()
    np.testing.assert_array_equal(got.astype(float), [0, 1, 1 if dtype == "bool" else 2])


def test_what_has_no_form_is_refused():
    with pytest.raises(tf.errors.DTypeError, match="object has no form in DLPack"):
        tf.to_dlpack(np.array([b"text"], object))
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        tf.to_dlpack(frozen).__dlpack__()


@pytest.mark.oracle
def test_torch_reads_and_is_read():
    torch = pytest.importorskip("torch")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, 3])
        fed = torch.arange(6, dtype=torch.float32).reshape(3, 2).T
        got = session.run(x * 2.0, {x: fed})
        assert torch.equal(torch.from_dlpack(tf.to_dlpack(got)), fed * 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"hint: value\.detach\(\)"):
            session.run(x, {x: torch.zeros(2, 3, requires_grad=True)})
        b = tf.placeholder(tf.bfloat16, [3])
        half = torch.tensor([1.0, 2.5, -3.0], dtype=torch.bfloat16)
        back = torch.from_dlpack(tf.to_dlpack(session.run(tf.identity(b), {b: half})))
        assert back.dtype == torch.bfloat16 and torch.equal(back, half)
