"""Public functions of pools, against windows taken by hand and what TensorFlow 1 answers."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_testing.gradient_check import check_gradients
from numpy.lib.stride_tricks import sliding_window_view


def run(*tensors: Any, feed: Any = None) -> Any:
    with tf.Session() as sess:
        values = sess.run(list(tensors), feed)
    return values if len(values) > 1 else values[0]


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default():
        yield


def windows(x: np.ndarray, window: tuple[int, ...], strides: tuple[int, ...], same: bool) -> np.ndarray:
    """The windows of ``[B, *S, C]`` with NaN for padding: ``[B, *O, C, elements]``."""
    pads = [(0, 0)]
    for n, k, s in zip(x.shape[1:-1], window, strides, strict=True):
        total = max(0, (-(-n // s) - 1) * s + k - n) if same else 0
        pads.append((total // 2, total - total // 2))
    padded = np.pad(x, [*pads, (0, 0)], constant_values=np.nan)
    seen = sliding_window_view(padded, window, tuple(range(1, x.ndim - 1)))
    seen = seen[(slice(None), *(slice(None, None, s) for s in strides))]
    return seen.reshape(*seen.shape[: x.ndim], -1)


GEOMETRIES = [
    ((3,), (2,)),
    ((2, 2), (2, 2)),
    ((3, 2), (1, 2)),
    ((3, 3), (2, 2)),
    ((2, 3), (3, 4)),
    ((2, 2, 3), (2, 1, 2)),
]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pools_are_maxima_and_means_of_windows(padding: str) -> None:
    rng = np.random.default_rng(0)
    made, wanted = [], []
    for window, strides in GEOMETRIES:
        x = rng.normal(size=(2, *(5, 7, 6)[: len(window)], 3))
        seen = windows(x, window, strides, padding == "SAME")
        wanted += [np.nanmax(seen, -1), np.nanmean(seen, -1)] * 2
        suffix = {1: "1d", 2: "", 3: "3d"}[len(window)]
        for kind in ("max", "avg"):
            made.append(getattr(tf.nn, f"{kind}_pool{suffix}")(x, list(window), list(strides), padding))
        for kind in ("MAX", "AVG"):
            if all(s <= k for k, s in zip(window, strides, strict=True)):
                made.append(tf.nn.pool(x, window, kind, padding, strides=strides))
            else:
                made.append(made[-2])
    for index, (value, expected) in enumerate(zip(run(*made), wanted, strict=True)):
        np.testing.assert_allclose(value, expected, rtol=1e-12, err_msg=f"{GEOMETRIES[index // 4]}")


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_gradients_of_both_orders(kind: str, padding: str) -> None:
    rng = np.random.default_rng(1)
    x = tf.placeholder(tf.float64, [2, 5, 6, 2])
    y = getattr(tf.nn, f"{kind}_pool")(x, [1, 3, 2, 1], [1, 2, 1, 1], padding)
    (first,) = tf.gradients(tf.reduce_sum(y**3), x)
    check_gradients([y, first], {x: rng.normal(size=(2, 5, 6, 2))}, directions=2)


def test_channels_first_is_the_same_pool() -> None:
    x = np.random.default_rng(2).normal(size=(2, 5, 6, 3))
    for function in (tf.nn.max_pool, tf.nn.avg_pool):
        last = function(x, 3, 2, "SAME")
        first = function(x.transpose(0, 3, 1, 2), 3, 2, "SAME", data_format="NCHW")
        a, b = run(last, tf.transpose(first, [0, 2, 3, 1]))
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_the_first_of_equal_elements_gets_the_gradient() -> None:
    x = tf.ones([1, 2, 4, 1])
    y = tf.nn.max_pool(x, 2, 2, "VALID")
    assert (
        run(tf.gradients(y, x, tf.constant([[[[3.0], [5.0]]]]))[0]).ravel().tolist() == [3.0, 0.0, 5.0, 0.0] + [0.0] * 4
    )


def test_an_infinite_gradient_stays_where_it_is() -> None:
    x = tf.constant(np.arange(5.0, dtype=np.float32).reshape(1, 1, 5, 1))
    y = tf.nn.max_pool(x, [1, 1, 3, 1], 1, "VALID")
    (back,) = tf.gradients(y, x, tf.constant([[[[1.0], [np.inf], [2.0]]]]))
    assert run(back).ravel().tolist() == [0.0, 0.0, 1.0, np.inf, 2.0]


def test_windows_of_padding_only_and_integers() -> None:
    x = tf.constant(np.arange(4, dtype=np.int32).reshape(1, 1, 4, 1) - 9)
    assert run(tf.nn.max_pool(x, [1, 1, 2, 1], [1, 1, 2, 1], "SAME")).ravel().tolist() == [-8, -6]
    negative = -tf.ones([1, 1, 3, 1])
    assert run(tf.nn.max_pool(negative, [1, 1, 2, 1], 1, "SAME")).ravel().tolist() == [-1.0] * 3
    assert (
        run(tf.nn.max_pool(negative, [1, 1, 2, 1], 1, [[0, 0], [0, 0], [1, 1], [0, 0]])).ravel().tolist() == [-1.0] * 4
    )


def test_pools_over_channels() -> None:
    """Maxout (Goodfellow and others, 2013)."""
    x = np.random.default_rng(3).normal(size=(2, 3, 3, 6))
    value = run(tf.nn.max_pool(x, [1, 1, 1, 3], [1, 1, 1, 3], "VALID"))
    np.testing.assert_array_equal(value, x.reshape(2, 3, 3, 2, 3).max(-1))


def test_a_dilated_pool() -> None:
    x = np.random.default_rng(4).normal(size=(2, 7, 6, 2))
    taps = [x[:, i : i + 5, j : j + 4] for i in (0, 2) for j in (0, 2)]
    largest, mean = run(*(tf.nn.pool(x, [2, 2], kind, "VALID", dilation_rate=[2, 2]) for kind in ("MAX", "AVG")))
    np.testing.assert_array_equal(largest, np.max(taps, 0))
    np.testing.assert_allclose(mean, np.mean(taps, 0), rtol=1e-12)


def test_unknown_dims() -> None:
    x = tf.placeholder(tf.float32, [None, None, None, 3])
    xv = np.random.default_rng(5).normal(size=(2, 5, 4, 3)).astype(np.float32)
    for function in (tf.nn.max_pool, tf.nn.avg_pool):
        y = function(x, 3, 2, "SAME")
        assert y.shape.as_list() == [None, None, None, 3]
        value, back = run(y, tf.gradients(y, x)[0], feed={x: xv})
        np.testing.assert_allclose(value, run(function(xv, 3, 2, "SAME")), rtol=1e-6)
        assert back.shape == xv.shape and back.sum() == pytest.approx(value.size, rel=1e-5)


def test_names_and_errors() -> None:
    x = tf.zeros([2, 4, 4, 3])
    assert tf.nn.max_pool(x, 2, 2, "SAME").name == "MaxPool:0"
    assert tf.nn.avg_pool(x, 2, 2, "SAME", name="mean").name == "mean:0"
    assert tf.nn.max_pool1d(x[0], 2, 2, "SAME").name == "MaxPool1d/Squeeze:0"
    with pytest.raises(ValueError, match="a pool does not go over the batch"):
        tf.nn.max_pool(x, [2, 1, 1, 1], 1, "VALID")
    with pytest.raises(ValueError, match="a window of 7 elements over 4"):
        tf.nn.avg_pool(x, 7, 1, "VALID")
    with pytest.raises(ValueError, match="ksize should be of length 1, 2 or 4"):
        tf.nn.max_pool(x, [1, 2, 2], 1, "VALID")
    with pytest.raises(ValueError, match="strides above window_shape"):
        tf.nn.pool(x, [2, 2], "MAX", "VALID", strides=[3, 3])


def test_where_maxima_are() -> None:
    """TensorFlow 1: an index counts within its image, unless the batch is asked for; NHWC only."""
    x = np.array([[[1.0, 5.0], [5.0, 0.0]], [[2.0, 2.0], [3.0, 4.0]]])[..., None]
    value, at = tf.nn.max_pool_with_argmax(x, 2, 2, "VALID")
    _, whole = tf.nn.max_pool_with_argmax(x, 2, 2, "VALID", Targmax=tf.int32, include_batch_in_index=True)
    assert (at.dtype, whole.dtype) == (tf.int64, tf.int32)
    found = run(value, at, whole)
    assert [f.ravel().tolist() for f in found] == [[5.0, 4.0], [1, 3], [1, 7]]
    with pytest.raises(ValueError, match="channels last"):
        tf.nn.max_pool_with_argmax(x, 2, 2, "VALID", data_format="NCHW")


@pytest.mark.parametrize("batched", [False, True])
def test_gradients_by_index_are_those_of_max_pool(batched: bool) -> None:
    rng = np.random.default_rng(6)
    x = tf.placeholder(tf.float64, [2, 5, 6, 2])
    y, _ = tf.nn.max_pool_with_argmax(x, [1, 3, 2, 1], [1, 2, 1, 1], "SAME", include_batch_in_index=batched)
    plain = tf.nn.max_pool(x, [1, 3, 2, 1], [1, 2, 1, 1], "SAME")
    xv = rng.normal(size=(2, 5, 6, 2))
    (first,), (other,) = tf.gradients(y**3, x), tf.gradients(plain**3, x)
    a, b = run(first, other, feed={x: xv})
    np.testing.assert_allclose(a, b, rtol=1e-12)
    check_gradients([y, first], {x: xv}, directions=1)


def test_an_index_outside_of_the_input_is_an_error_of_the_step() -> None:
    x, at = tf.zeros([1, 2, 2, 1]), tf.placeholder(tf.int64, [1, 1, 1, 1])
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    back = (
        tf.get_default_graph()
        .create_op("MaxPoolGradWithArgmax", [x, tf.ones([1, 1, 1, 1]), at], attrs=window)
        .outputs[0]
    )
    with tf.Session() as sess:
        assert sess.run(back, {at: [[[[3]]]]}).ravel().tolist() == [0.0, 0.0, 0.0, 1.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="argmax has an index outside"):
            sess.run(back, {at: [[[[4]]]]})


def test_second_gradients_of_max_pools_are_zeros() -> None:
    x = tf.constant(np.random.default_rng(0).normal(size=(1, 4, 4, 2)))
    y = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    volume = tf.nn.max_pool3d(x[:, None], [1, 1, 2, 2, 1], [1, 1, 2, 2, 1], "SAME")
    for pooled in (y, volume):
        (first,) = tf.gradients(pooled, x)
        (second,) = tf.gradients(first, x)
        np.testing.assert_array_equal(run(second), np.zeros((1, 4, 4, 2)))


@pytest.mark.parametrize("shape", [(0, 4, 4, 3), (0, 4, 4, 0), (2, 4, 4, 0)])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("op", [tf.nn.max_pool, tf.nn.avg_pool])
def test_no_images_and_no_channels_are_pooled_to_none(op: Any, padding: str, shape: tuple[int, ...]) -> None:
    """TensorFlow 2.21 does so too, where a batch is known to be empty when the graph is made or is fed."""
    side = 3 if padding == "VALID" else 4
    for known in (shape, [None] * 4):
        x = tf.placeholder(tf.float32, known)
        y = op(x, [1, 2, 2, 1], [1, 1, 1, 1], padding)
        pooled, back = run(y, tf.gradients(y, x)[0], feed={x: np.zeros(shape)})
        assert (pooled.shape, back.shape) == ((shape[0], side, side, shape[3]), shape)


@pytest.mark.parametrize("op", [tf.nn.max_pool3d, tf.nn.avg_pool3d])
def test_no_volumes_are_pooled_to_none(op: Any) -> None:
    x = tf.zeros([0, 4, 4, 4, 2])
    assert run(op(x, [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID")).shape == (0, 3, 3, 3, 2)
    with pytest.raises(ValueError, match="would be negative: a window of 2 elements over 0"):
        op(tf.zeros([1, 4, 0, 4, 2]), [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID")


def test_no_channels_make_no_window_over_channels() -> None:
    with pytest.raises(ValueError, match="would be negative: a window of 3 elements over 0"):
        tf.nn.max_pool(tf.zeros([1, 2, 2, 0]), [1, 1, 1, 3], [1, 1, 1, 3], "VALID")
    assert run(tf.nn.max_pool(tf.zeros([0, 2, 2, 3]), [1, 1, 1, 3], [1, 1, 1, 3], "VALID")).shape == (0, 2, 2, 1)


@pytest.mark.parametrize("shape", [(2, 4, 5, 3), (0, 4, 5, 3), (1, 3, 6, 1)])
@pytest.mark.parametrize("kind", ["MAX", "AVG"])
def test_dilated_pools_of_sizes_that_the_step_knows(kind: str, shape: tuple[int, ...]) -> None:
    """As of the same sizes known when the graph is made, value and gradient; an image that is too small is refused in the step."""
    value = np.random.default_rng(1).normal(size=shape)
    known, fed = tf.constant(value), tf.placeholder(tf.float64, [None, None, None, shape[3]])
    one, other = (tf.nn.pool(x, [2, 3], kind, "VALID", dilation_rate=[2, 1]) for x in (known, fed))
    assert other.shape.rank == 4
    a, b, da, db = run(one, other, *tf.gradients(one**2, known), *tf.gradients(other**2, fed), feed={fed: value})
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(da, db)
    with pytest.raises(tf.errors.InvalidArgumentError, match="would be negative"):
        run(other, feed={fed: np.zeros((1, 2, 6, shape[3]))})
