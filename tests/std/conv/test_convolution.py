"""Public functions of convolutions, against plain loops, numbers worked out by hand and what TensorFlow 1 answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_std.reference import conv as loops
from graphdock_testing.gradient_check import check_gradients


def run(*tensors: Any, feed: Any = None) -> Any:
    with tf.Session() as sess:
        values = sess.run(list(tensors), feed)
    return values if len(values) > 1 else values[0]


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default():
        yield


def geometry(seed: int) -> dict[str, Any]:
    """A random convolution: shapes, and attributes as the oracle takes them."""
    r = random.Random(seed)
    rank = r.choice([2, 2, 3])
    window = [r.choice([1, 2, 3]) for _ in range(rank)]
    ones = [1] * rank
    strides = [r.choice([1, 2, 3]) for _ in range(rank)] if r.random() < 0.6 else ones
    dilations = [r.choice([1, 2]) for _ in range(rank)] if r.random() < 0.4 else ones
    channels, outputs = r.choice([1, 2, 3]), r.choice([1, 2, 4])
    sizes = [r.choice([5, 6, 7]) for _ in range(rank)]
    padding: Any = r.choice(["SAME", "VALID"])
    explicit: list[int] = []
    if rank == 2 and r.random() < 0.3:
        explicit = [0, 0, *(r.choice([0, 1, 2, 3]) for _ in range(4)), 0, 0]
        padding = "EXPLICIT"
    attrs = {
        "strides": [1, *strides, 1],
        "dilations": [1, *dilations, 1],
        "padding": padding,
        "explicit_paddings": explicit,
    }
    attrs["data_format"] = "NHWC" if rank == 2 else "NDHWC"
    return {"x": (r.choice([1, 2]), *sizes, channels), "w": (*window, channels, outputs), "attrs": attrs, "rank": rank}


def test_random_geometries_are_those_of_plain_loops() -> None:
    """40 geometries of two and three spatial dims, with both gradients, and every other one with channels first."""
    wanted, made = [], []
    rng = np.random.default_rng(0)
    for seed in range(40):
        given = geometry(seed)
        attrs, rank = given["attrs"], given["rank"]
        x, w = rng.normal(size=given["x"]), rng.normal(size=given["w"])
        y = loops.conv(x, w, **attrs)
        dy = rng.normal(size=y.shape)
        wanted.append(
            (y, loops.conv_backprop_input(x.shape, w, dy, **attrs), loops.conv_backprop_filter(x, w.shape, dy, **attrs))
        )
        first = seed % 2 == 1
        pairs = np.reshape(attrs["explicit_paddings"], (-1, 2)).tolist()
        turn = (0, rank + 1, *range(1, rank + 1))
        strides, dilations = attrs["strides"], attrs["dilations"]
        layout = attrs["data_format"]
        if first:
            x, dy = x.transpose(turn), dy.transpose(turn)
            layout = "NCHW" if rank == 2 else "NCDHW"
            strides, dilations, pairs = ([v[i] for i in turn] if v else v for v in (strides, dilations, pairs))
        xs, ws = tf.constant(x), tf.constant(w)
        function = tf.nn.conv2d if rank == 2 else tf.nn.conv3d
        result = function(xs, ws, strides, pairs or attrs["padding"], data_format=layout, dilations=dilations)
        back = tf.gradients(result, [xs, ws], dy)
        if first:
            inverse = np.argsort(turn)
            result, back[0] = tf.transpose(result, inverse), tf.transpose(back[0], inverse)
        made += [result, *back]
    values = iter(run(*made))
    for seed, expected in enumerate(wanted):
        for what, value in zip(("y", "dx", "dw"), expected, strict=True):
            np.testing.assert_allclose(next(values), value, rtol=1e-10, atol=1e-10, err_msg=f"{geometry(seed)} {what}")


@pytest.mark.parametrize("seed", range(4))
def test_gradients_of_gradients(seed: int) -> None:
    """Differences of the first gradients, which are ops of the family themselves."""
    rng = np.random.default_rng(seed)
    given = geometry(seed + 100)
    function = tf.nn.conv2d if given["rank"] == 2 else tf.nn.conv3d
    x, w = (tf.placeholder(tf.float64, given[k]) for k in "xw")
    attrs = given["attrs"]
    pairs = np.reshape(attrs["explicit_paddings"], (-1, 2)).tolist()
    y = function(x, w, attrs["strides"], pairs or attrs["padding"], dilations=attrs["dilations"])
    first = tf.gradients(tf.reduce_sum(y**3), [x, w])
    check_gradients(first, {x: rng.normal(size=given["x"]), w: rng.normal(size=given["w"])}, directions=1)


def test_same_puts_the_odd_zero_at_the_end() -> None:
    x = tf.constant(np.arange(1.0, 5.0).reshape(1, 1, 4, 1))
    w = tf.ones([1, 2, 1, 1], tf.float64)
    assert run(tf.nn.conv2d(x, w, 1, "SAME")).ravel().tolist() == [3.0, 5.0, 7.0, 4.0]
    assert run(tf.nn.conv2d(x, w, 2, "SAME")).ravel().tolist() == [3.0, 7.0]
    assert run(tf.nn.conv2d(x, w, 1, "VALID")).ravel().tolist() == [3.0, 5.0, 7.0]
    assert run(tf.nn.conv2d(x, w, 1, [[0, 0], [0, 0], [1, 0], [0, 0]])).ravel().tolist() == [1.0, 3.0, 5.0, 7.0]


def test_a_stride_above_the_window_leaves_elements_out_and_their_gradient_is_zero() -> None:
    x = tf.constant(np.arange(7.0).reshape(1, 1, 7, 1))
    y = tf.nn.conv2d(x, tf.ones([1, 1, 1, 1], tf.float64), 3, "SAME")
    value, back = run(y, tf.gradients(y, x)[0])
    assert value.ravel().tolist() == [0.0, 3.0, 6.0]
    assert back.ravel().tolist() == [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_accumulated_in_float32(dtype: str) -> None:
    """4096 ones: a sum in float16 stops at 2048, in bfloat16 at 256."""
    x = tf.ones([1, 1, 1, 4096], getattr(tf, dtype))
    assert float(run(tf.nn.conv2d(x, tf.ones([1, 1, 4096, 1], getattr(tf, dtype)), 1, "VALID")).ravel()[0]) == 4096.0


def test_unknown_dims_give_what_known_ones_do() -> None:
    rng = np.random.default_rng(3)
    xv, wv = rng.normal(size=(2, 7, 6, 3)), rng.normal(size=(3, 3, 3, 4))
    known = tf.nn.conv2d(tf.constant(xv), tf.constant(wv), 2, "SAME")
    x, w = tf.placeholder(tf.float64, [None, None, None, 3]), tf.placeholder(tf.float64)
    y = tf.nn.conv2d(x, w, 2, "SAME")
    assert y.shape.as_list() == [None, None, None, None]
    back = tf.gradients(y, [x, w], tf.ones_like(y))
    expected = run(known)
    values = run(y, *back, feed={x: xv, w: wv})
    np.testing.assert_allclose(values[0], expected, rtol=1e-12)
    assert values[1].shape == xv.shape and values[2].shape == wv.shape


def test_static_shapes() -> None:
    x = tf.placeholder(tf.float32, [None, 28, None, 3])
    w = tf.zeros([5, 5, 3, 8])
    assert tf.nn.conv2d(x, w, 2, "SAME").shape.as_list() == [None, 14, None, 8]
    assert tf.nn.conv2d(x, w, 1, "VALID").shape.as_list() == [None, 24, None, 8]
    assert tf.nn.conv2d(tf.placeholder(tf.float32), w, 1, "VALID").shape.as_list() == [None, None, None, 8]
    sequence = tf.placeholder(tf.float32, [4, None, 3])
    assert tf.nn.conv1d(sequence, tf.zeros([5, 3, 8]), 1, "SAME").shape.as_list() == [4, None, 8]
    assert tf.nn.depthwise_conv2d(x, tf.zeros([3, 3, 3, 2]), [1, 1, 1, 1], "SAME").shape.as_list() == [
        None,
        28,
        None,
        6,
    ]
    batch = tf.shape(x)[0]
    up = tf.nn.conv2d_transpose(x, tf.zeros([3, 3, 8, 3]), tf.stack([batch, 56, 56, 8]), 2)
    assert up.shape.as_list() == [None, 56, 56, 8]


def test_a_transposed_convolution_is_the_gradient() -> None:
    rng = np.random.default_rng(4)
    value, w = tf.constant(rng.normal(size=(2, 3, 4, 5))), tf.constant(rng.normal(size=(3, 2, 2, 5)))
    up = tf.nn.conv2d_transpose(value, w, [2, 6, 7, 2], [1, 2, 2, 1])
    x = tf.zeros([2, 6, 7, 2], tf.float64)
    (back,) = tf.gradients(tf.nn.conv2d(x, w, 2, "SAME"), x, value)
    a, b = run(up, back)
    np.testing.assert_allclose(a, b, rtol=1e-12)


def test_functions_of_several_ranks_agree() -> None:
    """conv1d is a conv2d of one row, convolution chooses by rank, atrous_conv2d spreads the filter."""
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(2, 9, 3)), rng.normal(size=(3, 3, 4))
    row = tf.nn.conv2d(x[:, None], w[None], [1, 1, 2, 1], "SAME")
    spread = np.zeros((5, 5, 3, 2))
    small = rng.normal(size=(3, 3, 3, 2))
    spread[::2, ::2] = small
    image = rng.normal(size=(1, 8, 9, 3))
    pairs = [
        (tf.nn.conv1d(x, w, 2, "SAME"), tf.squeeze(row, [1])),
        (
            tf.nn.conv1d(x.transpose(0, 2, 1), w, 2, "SAME", data_format="NCW"),
            tf.transpose(tf.squeeze(row, [1]), [0, 2, 1]),
        ),
        (tf.nn.convolution(x, w, "SAME", strides=[2]), tf.squeeze(row, [1])),
        (tf.nn.atrous_conv2d(image, small, 2, "SAME"), tf.nn.conv2d(image, spread, 1, "SAME")),
        (tf.nn.convolution(image, small, "VALID", dilation_rate=[2, 2]), tf.nn.conv2d(image, spread, 1, "VALID")),
        (
            tf.nn.atrous_conv2d_transpose(image, small.transpose(0, 1, 3, 2), [1, 8, 9, 2], 2, "SAME"),
            tf.nn.conv2d_transpose(image, spread.transpose(0, 1, 3, 2), [1, 8, 9, 2], 1, "SAME"),
        ),
        (
            tf.nn.conv1d_transpose(x, w.transpose(0, 2, 1), [2, 18, 4], 2),
            tf.squeeze(
                tf.nn.conv2d_transpose(x[:, None], w.transpose(0, 2, 1)[None], [2, 1, 18, 4], [1, 1, 2, 1]), [1]
            ),
        ),
        (
            tf.nn.conv_transpose(x, w.transpose(0, 2, 1), [2, 18, 4], 2),
            tf.nn.conv1d_transpose(x, w.transpose(0, 2, 1), [2, 18, 4], 2),
        ),
    ]
    values = iter(run(*(t for pair in pairs for t in pair)))
    for index, _ in enumerate(pairs):
        np.testing.assert_allclose(next(values), next(values), rtol=1e-10, atol=1e-12, err_msg=str(index))


def test_a_separable_convolution_is_one_with_the_product_of_its_filters() -> None:
    rng = np.random.default_rng(6)
    x, depth, point = rng.normal(size=(2, 6, 5, 3)), rng.normal(size=(3, 2, 3, 2)), rng.normal(size=(1, 1, 6, 4))
    whole = np.einsum("hwcm,cmo->hwco", depth, point.reshape(3, 2, 4))
    a, b = run(tf.nn.separable_conv2d(x, depth, point, [1, 2, 2, 1], "SAME"), tf.nn.conv2d(x, whole, 2, "SAME"))
    np.testing.assert_allclose(a, b, rtol=1e-10)
    apart = np.zeros((3, 2, 3, 6))
    for c in range(3):
        apart[:, :, c, 2 * c : 2 * c + 2] = depth[:, :, c]
    a, b = run(
        tf.nn.depthwise_conv2d(x, depth, [1, 1, 1, 1], "SAME", rate=[2, 1]),
        tf.nn.conv2d(x, apart, 1, "SAME", dilations=[1, 2, 1, 1]),
    )
    np.testing.assert_allclose(a, b, rtol=1e-10)


def test_names_are_those_of_tensorflow() -> None:
    x, w = tf.zeros([1, 4, 4, 2]), tf.zeros([2, 2, 2, 2])
    assert tf.nn.conv2d(x, w, 1, "SAME").name == "Conv2D:0"
    assert tf.nn.conv2d(x, w, 1, "SAME", name="layer").name == "layer:0"
    assert tf.nn.conv2d_transpose(x, w, [1, 4, 4, 2], 1).name == "conv2d_transpose:0"
    assert tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME").name == "depthwise:0"
    assert tf.nn.convolution(x, w, "SAME").name == "convolution:0"
    assert tf.nn.conv1d(x[0], w[0], 1, "SAME").name == "conv1d/Squeeze:0"


#: What no graph is made of for images of 4 by 4: TensorFlow refuses a window that is larger by a single element.
WINDOWS_OF_5: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "conv2d": lambda x: tf.nn.conv2d(x, tf.zeros([5, 5, 3, 1]), 1, "VALID"),
    "conv2d, stride": lambda x: tf.nn.conv2d(x, tf.zeros([5, 5, 3, 1]), 3, "VALID"),
    "conv2d, dilated": lambda x: tf.nn.conv2d(x, tf.zeros([3, 3, 3, 1]), 1, "VALID", dilations=2),
    "conv2d, padded": lambda x: tf.nn.conv2d(x[:, :2, :2], tf.zeros([5, 5, 3, 1]), 1, [[0, 0], [1, 1], [1, 1], [0, 0]]),
    "depthwise_conv2d": lambda x: tf.nn.depthwise_conv2d(x, tf.zeros([5, 5, 3, 1]), [1] * 4, "VALID"),
    "conv3d": lambda x: tf.nn.conv3d(x[None], tf.zeros([1, 5, 5, 3, 1]), [1] * 5, "VALID"),
    "max_pool": lambda x: tf.nn.max_pool(x, 5, 1, "VALID"),
    "avg_pool": lambda x: tf.nn.avg_pool(x, 5, 1, "VALID"),
    "max_pool3d": lambda x: tf.nn.max_pool3d(x[None], [1, 1, 5, 5, 1], [1] * 5, "VALID"),
    "max_pool_with_argmax": lambda x: tf.nn.max_pool_with_argmax(x, [1, 5, 5, 1], [1] * 4, "VALID")[0],
}


def test_patches_and_dilations_of_a_window_too_large_by_one_are_none() -> None:
    x = tf.zeros([1, 4, 4, 3])
    assert tf.nn.dilation2d(x, tf.zeros([5, 5, 3]), [1] * 4, [1] * 4, "VALID").shape == [1, 0, 0, 3]
    assert tf.extract_image_patches(x, [1, 5, 5, 1], [1] * 4, [1] * 4, "VALID").shape == [1, 0, 0, 75]
    with pytest.raises(ValueError, match="a window of 6 elements over 4"):
        tf.extract_image_patches(x, [1, 6, 6, 1], [1] * 4, [1] * 4, "VALID")


def test_errors_name_what_does_not_fit() -> None:
    x, w = tf.zeros([1, 4, 4, 3]), tf.zeros([3, 3, 2, 8])
    with pytest.raises(ValueError, match="input has 3 channels, but the filter takes 2"):
        tf.nn.conv2d(x, w, 1, "SAME")
    with pytest.raises(ValueError, match="the output size would be negative: a window of 7 elements over 4"):
        tf.nn.conv2d(x, tf.zeros([7, 7, 3, 1]), 1, "VALID")
    for make in WINDOWS_OF_5.values():
        with pytest.raises(
            ValueError, match="the output size would be negative: a window of 5 elements over (4|2 and 2 of padding)"
        ):
            make(x)
    with pytest.raises(ValueError, match="strides should be of length 1, 2 or 4"):
        tf.nn.conv2d(x, w, [1, 1, 1], "SAME")
    with pytest.raises(ValueError, match="filters and filter are one argument"):
        tf.nn.conv2d(x, w, 1, "SAME", filters=w)
    with pytest.raises(ValueError, match="a pair of numbers for each dim"):
        tf.nn.conv2d(x, w, 1, [[1, 1], [1, 1]])
    with pytest.raises(ValueError, match="strides and dilation_rate cannot both"):
        tf.nn.convolution(x, tf.zeros([2, 2, 3, 1]), "SAME", strides=[2, 2], dilation_rate=[2, 2])
    with pytest.raises(ValueError, match="pointwise filter must be 1x1"):
        tf.nn.separable_conv2d(x, tf.zeros([2, 2, 3, 1]), tf.zeros([2, 2, 3, 1]), [1, 1, 1, 1], "SAME")
    with pytest.raises(ValueError, match="out_backprop has size 4 in dim 1, but the output that it belongs to has 8"):
        tf.nn.conv2d_transpose(x, tf.zeros([3, 3, 2, 3]), [1, 16, 8, 2], 2)


def test_sizes_that_only_a_step_knows_are_checked_there() -> None:
    sizes = tf.placeholder(tf.int32)
    back = tf.nn.conv2d_backprop_input(sizes, tf.zeros([3, 3, 2, 3]), tf.zeros([1, 4, 4, 3]), 1, "SAME")
    with tf.Session() as sess:
        assert sess.run(back, {sizes: [1, 4, 4, 2]}).shape == (1, 4, 4, 2)
        for wrong, message in (
            ([1, 5, 4, 2], "out_backprop"),
            ([1, 4, 4, 1], "channels"),
            ([1, 4, 4], "must hold 4 sizes"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                sess.run(back, {sizes: wrong})
