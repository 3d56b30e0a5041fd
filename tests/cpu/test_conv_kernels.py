"""The methods of convolution on their own, at sizes at which a plan would choose another, and what a warmed-up step takes."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_cpu import team
from graphdock_cpu.blas import one_thread
from graphdock_cpu.kernels import conv, conv_im2col, conv_phases, conv_winograd, depthwise
from graphdock_cpu.kernels.sharing import product
from graphdock_cpu.kernels.sliding import Method, Slide
from graphdock_std.reference import conv as loops


def same(batch: int, size: tuple[int, int], channels: int, outputs: int, window: int = 3, stride: int = 1) -> Slide:
    """A square window with padding SAME."""
    out = tuple(-(-n // stride) for n in size)
    before = tuple(max(0, (o - 1) * stride + window - n) // 2 for o, n in zip(out, size, strict=True))
    return Slide(batch, channels, outputs, size, (window,) * 2, (stride,) * 2, (1, 1), before, out)


def call(method: Method, a: np.ndarray, b: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """What a method makes of two tensors; output and scratch begin as NaN."""
    compute, scratch = method
    out = np.full(shape, np.nan, a.dtype)
    compute(a, b, out, *(np.full(s, np.nan, a.dtype) for s in scratch))
    return out


METHODS: dict[str, list[Callable[[Slide], Method]]] = {
    "forward": [conv_im2col.im2col, partial(conv_im2col.im2col, planes=True), conv_winograd.winograd],
    "input": [
        conv_im2col.col2im,
        partial(conv_im2col.col2im, planes=True),
        conv_im2col.flipped,
        conv_winograd.winograd_input,
    ],
    "filter": [
        conv_im2col.im2col_filter,
        partial(conv_im2col.im2col_filter, planes=True),
        conv_winograd.winograd_filter,
    ],
}


@pytest.mark.parametrize("size", [(1, 1), (3, 4), (5, 5), (8, 7)])
def test_every_method_agrees_with_plain_loops(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks that are small enough for several, odd sizes among them."""
    for module, name in ((conv_im2col, "COPIED"), (conv_im2col, "COPIED_FILTER")):
        monkeypatch.setattr(module, name, 150)
    for name in ("TILES", "TILES_FILTER"):
        monkeypatch.setattr(conv_winograd, name, 5)
    rng = np.random.default_rng(0)
    slide = same(3, size, 2, 4)
    x, w, dy = (rng.normal(size=s) for s in ((3, *size, 2), (3, 3, 2, 4), (3, *size, 4)))
    attrs = {"strides": [1] * 4, "dilations": [1] * 4, "padding": "SAME", "data_format": "NHWC"}
    wanted = {
        "forward": (x, w, loops.conv(x, w, **attrs)),
        "input": (w, dy, loops.conv_backprop_input(x.shape, w, dy, **attrs)),
        "filter": (x, dy, loops.conv_backprop_filter(x, w.shape, dy, **attrs)),
    }
    for direction, methods in METHODS.items():
        a, b, expected = wanted[direction]
        for make in methods:
            np.testing.assert_allclose(call(make(slide), a, b, expected.shape), expected, rtol=1e-10, atol=1e-10)


def test_winograd_is_as_exact_as_im2col() -> None:
    """Largest difference from float64, over the largest result, in float32 with 128 channels."""
    rng = np.random.default_rng(1)
    slide = same(2, (17, 16), 128, 128)
    x, w, dy = (rng.normal(size=s) for s in ((2, 17, 16, 128), (3, 3, 128, 128), (2, 17, 16, 128)))
    for direction, (a, b, shape) in {
        "forward": (x, w, dy.shape),
        "input": (w, dy, x.shape),
        "filter": (x, dy, w.shape),
    }.items():
        exact = call(METHODS[direction][0](slide), a, b, shape)
        for make in METHODS[direction]:
            found = call(make(slide), a.astype(np.float32), b.astype(np.float32), shape)
            assert np.abs(found - exact).max() <= 3e-6 * np.abs(exact).max(), (direction, make)


@pytest.mark.parametrize(
    ("slide", "methods"),
    [
        (same(8, (28, 28), 192, 64, window=1), ("dot", "dot", "dot")),
        (same(8, (28, 28), 192, 64, window=1, stride=2), ("im2col", "col2im", "im2col")),
        (same(16, (13, 13), 192, 384), ("winograd", "winograd", "winograd")),
        (same(8, (28, 28), 96, 128), ("im2col", "flipped", "im2col")),
        (same(1, (7, 7), 512, 512), ("im2col", "col2im", "im2col")),
        (same(16, (27, 27), 64, 192, window=5), ("im2col", "flipped", "im2col")),
        (same(16, (224, 224), 3, 64, window=11, stride=4), ("im2col", "phases", "im2col")),
        (same(16, (16, 16), 16, 32, window=5, stride=2), ("im2col", "phases", "im2col")),
    ],
    ids=str,
)
def test_the_choice_of_a_method(slide: Slide, methods: tuple[str, str, str]) -> None:
    assert tuple(conv.choose(ways, slide).name for ways in (conv.FORWARD, conv.INPUT, conv.FILTER)) == methods


@pytest.mark.parametrize("planes", [False, True])
@pytest.mark.parametrize(
    ("size", "window", "stride", "dilation"),
    [((1, 40), (1, 5), 1, 1), ((9, 8), (3, 2), 2, 1), ((4, 3, 5), (2, 2, 2), 1, 2), ((2, 7), (9, 5), 1, 1)],
    ids=str,
)
def test_blocks_of_pieces_of_a_line(
    size: tuple[int, ...], window: tuple[int, ...], stride: int, dilation: int, planes: bool, monkeypatch: Any
) -> None:
    """Long texts are one line: their windows are copied some at a time. All that a layer can be cut into gives the same."""
    rank = len(size)
    spans = [(k - 1) * dilation + 1 for k in window]
    out = tuple(-(-n // stride) for n in size)
    before = tuple(max(0, (o - 1) * stride + p - n) // 2 for o, p, n in zip(out, spans, size, strict=True))
    slide = Slide(3, 2, 3, size, window, (stride,) * rank, (dilation,) * rank, before, out)
    rng = np.random.default_rng(4)
    x, w, dy = (rng.normal(size=s) for s in ((3, *size, 2), (*window, 2, 3), (3, *out, 3)))
    given: dict[Any, Any] = {conv_im2col.im2col: (x, w, dy.shape), conv_im2col.col2im: (w, dy, x.shape)}
    given[conv_im2col.im2col_filter] = (x, dy, w.shape)
    for make, (a, b, shape) in given.items():
        found = []
        for elements in (1, 40, 150, 1 << 20):
            for name in ("COPIED", "COPIED_FILTER"):
                monkeypatch.setattr(conv_im2col, name, elements)
            found.append(call(make(slide, planes=planes), a, b, shape))
        for each in found:
            np.testing.assert_allclose(each, found[-1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("size", "window", "stride", "before", "out"),
    [
        ((8, 6), (5, 5), (2, 2), (1, 1), (4, 3)),
        ((7, 9), (4, 3), (2, 3), (1, 0), (4, 3)),
        ((5, 11), (2, 11), (3, 4), (0, 5), (2, 3)),
        ((9, 4), (3, 1), (2, 2), (2, 0), (3, 1)),
        ((6,), (6,), (4,), (1,), (2,)),
        ((3, 4, 5), (3, 2, 3), (2, 1, 2), (1, 0, 1), (2, 3, 3)),
    ],
    ids=str,
)
def test_phases_agree_with_sums_of_windows(
    size: tuple[int, ...],
    window: tuple[int, ...],
    stride: tuple[int, ...],
    before: tuple[int, ...],
    out: tuple[int, ...],
) -> None:
    """Each window's share, added up where it lies; elements that no window meets are zero."""
    slide = Slide(2, 3, 4, size, window, stride, (1,) * len(size), before, out)
    rng = np.random.default_rng(6)
    w, dy = rng.normal(size=(*window, 3, 4)), rng.normal(size=(2, *out, 4))
    wanted = np.zeros((2, *size, 3))
    for position, tap in itertools.product(np.ndindex(out), np.ndindex(window)):
        place = tuple(o * s + k - b for o, s, k, b in zip(position, stride, tap, before, strict=True))
        if all(0 <= p < n for p, n in zip(place, size, strict=True)):
            wanted[:, *place] += dy[:, *position] @ w[tap].T
    np.testing.assert_allclose(call(conv_phases.phases(slide), w, dy, wanted.shape), wanted, rtol=1e-12, atol=1e-12)


def test_the_windows_of_a_long_line_take_little_scratch() -> None:
    slide = Slide(1, 64, 8, (1, 1 << 20), (1, 11), (1, 1), (1, 1), (0, 5), (1, 1 << 20))
    for make in (conv_im2col.im2col, conv_im2col.col2im, conv_im2col.im2col_filter):
        _, (_, copied, *_) = make(slide)
        assert np.prod(copied) <= conv_im2col.COPIED_FILTER


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (3, 2)])
def test_a_window_larger_than_the_maps(size: tuple[int, int]) -> None:
    """Forward and both gradients by the public names, against plain loops."""
    rng = np.random.default_rng(5)
    x, w, dy = (rng.normal(size=s) for s in ((2, *size, 3), (7, 9, 3, 2), (2, *size, 2)))
    attrs: dict[str, Any] = {"strides": [1] * 4, "dilations": [1] * 4, "padding": "SAME", "data_format": "NHWC"}
    with tf.Graph().as_default(), tf.Session() as sess:
        tx, tw = tf.constant(x), tf.constant(w)
        y = tf.nn.conv2d(tx, tw, 1, "SAME")
        found = sess.run([y, *tf.gradients(y, [tx, tw], tf.constant(dy))])
    wanted = (
        loops.conv(x, w, **attrs),
        loops.conv_backprop_input(x.shape, w, dy, **attrs),
        loops.conv_backprop_filter(x, w.shape, dy, **attrs),
    )
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("size", "channels", "outputs", "window", "stride"),
    [(24, 128, 128, 3, 1), (32, 16, 48, 3, 1), (32, 64, 64, 1, 1), (33, 8, 64, 5, 2)],
    ids=["winograd", "im2col", "dot", "strided"],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_warmed_up_step_allocates_nothing(
    size: int, channels: int, outputs: int, window: int, stride: int, threads: int
) -> None:
    """Forward, both gradients, and pools with theirs: all that a step takes is the 8192 elements per operand that NumPy's ufuncs
    read strided views through on each thread, whatever the size of the arrays.
    """
    config = tf.SessionConfig(intra_op_threads=threads)
    with tf.Graph().as_default(), tf.Session(config=config) as sess:
        x = tf.Variable(tf.random_normal([2, size, size, channels]))
        w = tf.Variable(tf.random_normal([window, window, channels, outputs]))
        y = tf.nn.conv2d(x, w, stride, "SAME")
        pooled = tf.nn.avg_pool(tf.nn.max_pool(y, 3, 2, "SAME"), 2, 1, "SAME")
        wanted = [g.op for g in tf.gradients(pooled, [x, w])]
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(wanted)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        sess.run(wanted)
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
    assert peak < 120_000 * threads, peak


def test_a_plan_for_any_shape_keeps_what_it_made() -> None:
    """Steps of many shapes through one plan: each is computed for its own."""
    rng = np.random.default_rng(2)
    attrs: dict[str, Any] = {"strides": [1] * 4, "dilations": [1] * 4, "padding": "SAME", "data_format": "NHWC"}
    with tf.Graph().as_default(), tf.Session() as sess:
        x, w = tf.placeholder(tf.float64, [None] * 4), tf.placeholder(tf.float64, [None] * 4)
        y = tf.nn.conv2d(x, w, 1, "SAME")
        for n in [*range(1, 12), *range(1, 4)]:
            xv, wv = rng.normal(size=(1, n, 3, 2)), rng.normal(size=(2, 2, 2, 1))
            np.testing.assert_allclose(sess.run(y, {x: xv, w: wv}), loops.conv(xv, wv, **attrs), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("few", "line"), [(0, 0), (100, 0), (100, 1000)])
def test_depthwise_convolutions_channel_by_channel(few: int, line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as a convolution of each channel alone, with its gradients."""
    monkeypatch.setattr(depthwise, "FEW_CHANNELS", few)
    monkeypatch.setattr(depthwise, "LONG_LINE", line)
    rng = np.random.default_rng(6)
    x, w = rng.normal(size=(3, 9, 20, 4)), rng.normal(size=(3, 2, 4, 2))
    with tf.Graph().as_default(), tf.Session() as sess:
        tx, tw = tf.constant(x), tf.constant(w)
        whole = tf.nn.depthwise_conv2d(tx, tw, [1, 2, 2, 1], "SAME")
        parts = [tf.nn.conv2d(tx[..., c : c + 1], tw[:, :, c : c + 1, :], [1, 2, 2, 1], "SAME") for c in range(4)]
        apart = tf.concat(parts, 3)
        found, wanted = ([y, *tf.gradients(tf.reduce_sum(tf.square(y)), [tx, tw])] for y in (whole, apart))
        for got, expected in zip(*sess.run([found, wanted]), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("window", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_window_that_fits_nowhere_gives_nothing_and_gradients_of_zero(size: int, window: int, stride: int) -> None:
    """The part of the window that meets the image was computed from the place before the first: an InternalError."""
    x, w = tf.placeholder(tf.float32, [None] * 4), tf.placeholder(tf.float32, [window, 2, 3, 2])
    y = tf.nn.conv2d(x, w, [1, stride, 1, 1], "VALID")
    fits = max(0, (size - window) // stride + 1)
    feeds = {x: np.ones((2, size, 4, 3)), w: np.ones(w.shape.as_list())}
    with tf.Session() as sess:
        if size <= window - 2 * stride:
            with pytest.raises(tf.errors.InvalidArgumentError, match="would be negative"):
                sess.run(y, feeds)
            return
        got, dx, dw = sess.run([y, *tf.gradients(y, [x, w])], feeds)
    assert got.shape == (2, fits, 3, 2) and (got == window * 2 * 3).all()
    assert dx.sum() == dw.sum() == 2 * fits * 3 * 2 * window * 2 * 3


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("before", [0, 1])
def test_a_convolution_without_elements_is_empty_or_zero(kind: str, window: int, before: int) -> None:
    for batch, high, wide, channels, outputs in itertools.product((0, 2), (0, 3), (0, 3), (0, 2), (0, 2)):
        if batch * high * wide * channels * outputs:
            continue
        size = (high, wide)
        out = tuple(max(0, n + 2 * before - window + 1) for n in size)
        slide = Slide(batch, channels, outputs, size, (window,) * 2, (1, 1), (1, 1), (before,) * 2, out)
        shapes = {
            "x": (batch, *size, channels),
            "w": (window, window, channels, outputs),
            "y": (batch, *out, outputs),
        }
        a, b, result = {"forward": "xwy", "input": "wyx", "filter": "xyw"}[kind]
        for make in METHODS[kind]:
            if window != 3 and getattr(make, "__module__", None) == conv_winograd.__name__:
                continue
            if make is conv_im2col.flipped and before >= window:
                continue
            found = call(make(slide), np.ones(shapes[a]), np.ones(shapes[b]), shapes[result])
            np.testing.assert_array_equal(found, np.zeros(shapes[result]), str(slide))


@pytest.mark.parametrize("planes", [False, True])
@pytest.mark.parametrize("slide", [same(1, (40, 50), 24, 8), same(1, (3, 4), 2, 3), same(1, (0, 4), 2, 3)])
def test_threads_that_share_an_image_are_woken_once(
    slide: Slide, planes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single image on a busy machine took 10 to 50 times as long: BLAS's own threads met after each block."""
    monkeypatch.setattr(conv_im2col, "COPIED", 1 << 14)
    rng, woken = np.random.default_rng(0), []
    x, w = rng.normal(size=(1, *slide.size, slide.channels)), rng.normal(size=(3, 3, slide.channels, slide.outputs))
    plain = call(conv_im2col.im2col(slide, planes=planes), x, w, (1, *slide.out, slide.outputs))
    run = team.Team.run
    monkeypatch.setattr(team.Team, "run", lambda self, parts: (woken.append(len(parts)), run(self, parts))[1])
    shared = conv_im2col.im2col(slide, product(2), planes)
    with one_thread():
        found = call(shared, x, w, plain.shape)
    np.testing.assert_allclose(found, plain, rtol=1e-12, atol=1e-12)
    assert len(woken) == 1 and woken[0] <= 2
    np.testing.assert_allclose(call(shared, x, w, plain.shape), plain, rtol=1e-12, atol=1e-12)
    assert len(woken) == 2, "once more, also where the plan lets BLAS have threads of its own"


def test_a_plan_of_a_single_large_image_keeps_blas_to_one_thread() -> None:
    x, w = tf.placeholder(tf.float32, [1, 77, 77, 64]), tf.placeholder(tf.float32, [3, 3, 64, 64])
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    held: list[bool] = []
    with tf.Session(config=tf.SessionConfig(intra_op_threads=2)) as sess:
        plan = sess.run(
            tf.py_func(lambda a: (held.append(one_thread().held), a)[1], [y], tf.float32),
            {x: np.ones(x.shape), w: np.ones(w.shape)},
        )
    assert held == [True] and plan.shape == (1, 77, 77, 64)
