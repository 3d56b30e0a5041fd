"""tf.bitwise and tf.bitcast through a session, against NumPy and Python's integers."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

from tests.std.image.support import run

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_operators_are_numpys(dtype: str) -> None:
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    x, y = (rng.integers(info.min, info.max, size, dtype, endpoint=True) for size in ((4, 3), (3,)))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        got = run(getattr(tf.bitwise, name), x, y)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, getattr(np, name)(x, y))
    np.testing.assert_array_equal(run(tf.bitwise.invert, x), ~x)
    by = rng.integers(0, info.bits, 3).astype(dtype)
    np.testing.assert_array_equal(run(tf.bitwise.left_shift, x, by), x << by)
    np.testing.assert_array_equal(run(tf.bitwise.right_shift, x, by), x >> by)


def test_a_shift_by_more_than_the_width_is_clamped() -> None:
    """As in TensorFlow, where C leaves it open."""
    assert run(tf.bitwise.left_shift, np.int8(3), np.array([7, 8, 100, -1], np.int8)).tolist() == [-128, -128, -128, 3]
    assert run(tf.bitwise.right_shift, np.int8(-3), np.array([7, 8, 100, -1], np.int8)).tolist() == [-1, -1, -1, -3]


@pytest.mark.parametrize(
    ("have", "want"), [("float32", "int32"), ("int64", "uint8"), ("uint8", "float64"), ("complex64", "int16")]
)
def test_bitcast_reads_the_same_bytes(have: str, want: str) -> None:
    count = max(np.dtype(want).itemsize // np.dtype(have).itemsize, 1)
    x = np.frombuffer(np.random.default_rng(1).bytes(5 * count * np.dtype(have).itemsize), have).reshape(5, count)
    got = run(lambda v: tf.bitcast(v, want), x)
    assert got.dtype == want and got.tobytes() == x.tobytes()
    back = run(lambda v: tf.bitcast(v, have), got)
    assert back.tobytes() == x.tobytes()


def test_bitcast_changes_rank_where_sizes_differ() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    assert tf.bitcast(x, tf.int32).shape.as_list() == [None, 4]
    assert tf.bitcast(x, tf.uint8).shape.as_list() == [None, 4, 4]
    assert tf.bitcast(tf.placeholder(tf.uint8, [None, 4]), tf.float32).shape.as_list() == [None]
    assert tf.bitcast(tf.placeholder(tf.uint8), tf.float32).shape.dims is None
    with pytest.raises(ValueError, match="takes 4 elements"):
        tf.bitcast(tf.placeholder(tf.uint8, [4, 3]), tf.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.uint8)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.bitcast(x, tf.int16), {x: np.zeros(3, np.uint8)})
