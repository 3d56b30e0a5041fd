"""Convolutions against sums over windows, in float64."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.conv import conv2d
from graphdock_triton.kernels.spec import Config, Problem
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide

SMALL = Config({"BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 16, "GROUP": 2})


def reference(x, weights, out, strides, before, dilations):
    """One output place at a time."""
    expected = np.zeros((len(x), *out, weights.shape[3]))
    for i, j in np.ndindex(out):
        for h, w in np.ndindex(weights.shape[:2]):
            row, column = (
                o * s - b + k * d for o, s, b, k, d in zip((i, j), strides, before, (h, w), dilations, strict=True)
            )
            if 0 <= row < x.shape[1] and 0 <= column < x.shape[2]:
                expected[:, i, j] += x[:, row, column] @ weights[h, w]
    return expected


def problem(x, weights, y, kind, strides, before, dilations, present=(), **flags):
    """Of arrays with channels last, whatever the flags say."""
    height, width, channels, filters = weights.shape
    dims = {"places": y[..., 0].size, "filters": filters, "window": height * width * channels, "channels": channels}
    dims |= {
        "x_height": x.shape[1],
        "x_width": x.shape[2],
        "y_height": y.shape[1],
        "y_width": y.shape[2],
        "w_width": width,
    }
    dims |= dict(
        zip(
            ("stride_h", "stride_w", "top", "left", "dilation_h", "dilation_w"),
            (*strides, *before, *dilations),
            strict=True,
        )
    )
    flags |= {"UPCAST": kind == "bf16"}
    return Problem(dims, {"T": kind, "Y": kind, "B": "fp32"}, flags, frozenset(present))


@pytest.mark.parametrize(
    ("kind", "size", "filter_size", "out", "strides", "before", "dilations"),
    [
        ("fp32", (2, 7, 6, 5), (3, 2, 5, 18), (4, 6), (2, 1), (1, 0), (1, 1)),
        ("bf16", (1, 6, 7, 16), (3, 3, 16, 7), (3, 2), (1, 2), (0, 1), (2, 3)),
        ("fp16", (1, 4, 5, 32), (1, 1, 32, 16), (4, 5), (1, 1), (0, 0), (1, 1)),
    ],
)
@pytest.mark.sampled(2)
def test_windows_of_any_step_and_distance(kind, size, filter_size, out, strides, before, dilations):
    rng = np.random.default_rng(size[1])
    x, weights = draw(rng, size, kind), draw(rng, filter_size, kind)
    y = empty((size[0], *out, filter_size[3]), kind)
    interpret(conv2d, problem(x, weights, y, kind, strides, before, dilations), SMALL, x=x, weights=weights, y=y)
    assert_close(y, reference(wide(x), wide(weights), out, strides, before, dilations), kind, 8)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.sampled(2)
def test_bias_activation_and_residual_follow_and_nan_stays_in_its_windows(first):
    rng = np.random.default_rng(3)
    x, weights = draw(rng, (1, 5, 5, 3)), draw(rng, (2, 2, 3, 4))
    x[0, 0, 0, 1] = np.nan
    y = empty((1, 4, 4, 4))
    given = {"bias": draw(rng, 4), "residual": draw(rng, y.shape)}
    steps = ((1, 1), (0, 0), (1, 1))
    made = problem(x, weights, y, "fp32", *steps, given, ACTIVATION="relu", ADD_FIRST=first)
    interpret(conv2d, made, SMALL, x=x, weights=weights, y=y, **given)
    linear = reference(wide(x), wide(weights), (4, 4), *steps) + wide(given["bias"])
    residual = wide(given["residual"])
    expected = np.maximum(linear + residual, 0) if first else np.maximum(linear, 0) + residual
    assert_close(y, expected, "fp32", 8)
    assert np.isnan(y[0, 0, 0]).all() and np.isnan(y).sum() == 4


@pytest.mark.parametrize(("kind", "activation"), [("fp32", "relu6"), ("bf16", "none")])
@pytest.mark.sampled(2)
def test_channels_first_are_the_same_transposed_and_what_is_activated_is_kept(kind, activation):
    rng = np.random.default_rng(4)
    x, weights = draw(rng, (2, 7, 6, 5), kind), draw(rng, (3, 2, 5, 18), kind)
    bias = draw(rng, 18, scale=4.0)
    steps = ((2, 1), (1, 0), (1, 1))
    y, pre = empty((2, 18, 4, 6), kind), empty((2, 18, 4, 6), kind)
    turned = np.empty_like(x, shape=(2, 5, 7, 6))
    turned[...] = x.transpose(0, 3, 1, 2)
    made = problem(
        x, weights, y.transpose(0, 2, 3, 1), kind, *steps, ("bias", "pre"), ACTIVATION=activation, FIRST=True
    )
    interpret(conv2d, made, SMALL, x=turned, weights=weights, y=y, pre=pre, bias=bias)
    expected = (reference(wide(x), wide(weights), (4, 6), *steps) + wide(bias)).transpose(0, 3, 1, 2)
    assert_close(pre, expected, kind, 12)
    assert_close(y, np.clip(expected, 0, 6) if activation == "relu6" else expected, kind, 12)
